"""Step times: the bound of a step, and the estimate of its operators.

    bound = max over resources of the total demand:
            Σ FLOP / P of each compute type, Σ bytes / B, Σ bytes on each link / its rate

No schedule beats a bound: it takes datasheet roofs, only bytes that must move, the fewest experts,
the least link volume, and no latency.

    estimate = max(host time, Σ operator time) + collectives + host work of step and sequences

Shapes   Step fields broadcast; every time has the shape they broadcast to.
Units    seconds, FLOP, bytes, of one accelerator (the fullest rank) for one step.
Limits   With pipeline stages a step is its way through all stages. Routing between experts may stay
         local, so a bound counts no all-to-all.
Sources  [1] Williams, Waterman, Patterson 2009, Roofline, CACM 52(4).
         [2] Shoeybi et al. 2019, arXiv:1909.08053, section 3 (an all-reduce after each row-split).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture, LayerGroup, Split
from roofline.timing.collectives import least_all_reduce_volume
from roofline.timing.parallel import Parallel
from roofline.timing.roofs import Roofs, compute_type
from roofline.units import Numeric
from roofline.work.operators import ACTIVATION_BYTES, Formats, Kind, Operator, Step, step_operators


@dataclass(frozen=True)
class Demand:
    """What one step asks of each resource of the fullest rank.

    Args:
        flop: FLOPs by compute type.
        memory_bytes: bytes that must move.
        link_bytes: bytes that a rank must send over the tensor-parallel link.
        stage_bytes: bytes that a rank passes to the next pipeline stage, over all boundaries.
        further_expert_bytes: bytes of experts that even routing is expected to touch beyond those
            that a step cannot avoid.
    """

    flop: Mapping[str, Numeric]
    memory_bytes: Numeric
    link_bytes: Numeric
    stage_bytes: Numeric
    further_expert_bytes: Numeric = 0.0

    def seconds(
        self, roofs: Roofs, link_bytes_per_s: float | None, stage_bytes_per_s: float | None
    ) -> dict[str, Numeric]:
        """Time that each resource needs for its demand alone."""
        times: dict[str, Numeric] = {
            f"compute ({kind})": flop / roofs.flop_per_s[kind] for kind, flop in self.flop.items()
        }
        times["memory"] = self.memory_bytes / roofs.bytes_per_s
        if link_bytes_per_s is not None and np.any(np.asarray(self.link_bytes) > 0):
            times["link"] = self.link_bytes / link_bytes_per_s
        if stage_bytes_per_s is not None and np.any(np.asarray(self.stage_bytes) > 0):
            times["pipeline link"] = self.stage_bytes / stage_bytes_per_s
        return times


def operator_compute(
    operators: list[Operator], accelerator: Accelerator, compute: str | None = None
) -> list[str]:
    """Say which compute type each operator uses on a device."""
    chosen: dict[str, str] = {}
    types = []
    for operator in operators:
        asked = compute if operator.kind in (Kind.MATMUL, Kind.EXPERTS) else None
        key = f"{operator.storage.name}|{asked}"
        if key not in chosen:
            chosen[key] = _compute_of(operator, accelerator, asked)
        types.append(chosen[key])
    return types


def _compute_of(operator: Operator, accelerator: Accelerator, asked: str | None) -> str:
    return compute_type(operator.storage, accelerator, asked=asked)


def demand(
    operators: list[Operator],
    compute_types: list[str],
    arch: Architecture,
    step: Step,
    parallel: Parallel,
) -> Demand:
    """Sum what the operators of one rank must do.

    Args:
        operators: of ``arch``, one rank's share.
        compute_types: the type of each operator.
        arch: the sharded model, whose layers say how many all-reduces follow.
        step: the step.
        parallel: the plan that ``arch`` was sharded by.
    """
    flop: dict[str, list[Numeric]] = {}
    memory: list[Numeric] = []
    idle: list[Numeric] = []
    for operator, kind in zip(operators, compute_types, strict=True):
        flop.setdefault(kind, []).append(operator.flop)
        memory.append(operator.least_weight_bytes)
        memory.append(operator.cache_bytes)
        if operator.weight_bytes is not operator.least_weight_bytes:
            idle.append(operator.weight_bytes - operator.least_weight_bytes)
    sums = {kind: total(parts) for kind, parts in flop.items()}
    done = {kind: value for kind, value in sums.items() if np.ndim(value) or value}
    message = step.rows * arch.hidden_size * ACTIVATION_BYTES
    reduced = least_all_reduce_volume(message, parallel.tp) * all_reduces_per_step(arch)
    passed = message / parallel.tp * (parallel.pp - 1)  # each rank may send its share
    return Demand(done, total(memory), reduced, passed, total(idle))


def total(parts: list[Numeric]) -> Numeric:
    """Add numbers and arrays, those of one shape first: broadcasting then happens once a shape.

    >>> total([1.0, np.ones((2, 1)), 2.0, np.ones((1, 3))]).shape
    (2, 3)
    """
    by_shape: dict[tuple[int, ...], Numeric] = {}
    for part in parts:
        shape = np.shape(part)
        by_shape[shape] = by_shape[shape] + part if shape in by_shape else part
    return sum(by_shape.values(), start=0.0)


def all_reduces_per_layer(group: LayerGroup) -> int:
    """Count the all-reduces of one layer: one behind each block with a row-split matrix [2].

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> all_reduces_per_layer(LLAMA_3_8B.layers[0])
    2
    """
    blocks = {
        linear.name.split(".")[0]
        for linear in group.linears
        if linear.split is Split.ROW and linear.calls > 0
    }
    if group.experts is not None:
        blocks.add(group.experts.linears[0].name.split(".")[0])
    return len(blocks)


def all_reduces_per_step(arch: Architecture) -> int:
    """Count the all-reduces of a whole step."""
    return sum(group.n_layers * all_reduces_per_layer(group) for group in arch.layers)


@dataclass(frozen=True)
class Bound:
    """The least time of a step.

    Args:
        seconds: the bound.
        by_resource: time that each resource needs alone; the largest is the bound.
        demand: what the times were made from.
        with_expected_experts_s: the same, with the experts that even routing is expected to touch
            in place of the fewest; no bound where there are experts.
    """

    seconds: Numeric
    by_resource: Mapping[str, Numeric]
    demand: Demand
    with_expected_experts_s: Numeric = 0.0

    @property
    def limited_by(self) -> str:
        """The resource that sets the bound (for scalars)."""
        return max(self.by_resource, key=lambda name: float(np.max(self.by_resource[name])))


def step_bound(
    arch: Architecture,
    step: Step,
    formats: Formats,
    accelerator: Accelerator,
    roofs: Roofs,
    *,
    parallel: Parallel,
    link_bytes_per_s: float | None = None,
    stage_bytes_per_s: float | None = None,
    compute: str | None = None,
) -> Bound:
    """Bound a step of one rank's share of a model.

    Args:
        arch: the share of a rank, ``shard(arch, parallel)``.
        step: what is decoded and prefilled.
        formats: storage of weights and cache.
        accelerator: the device, for the compute types it has.
        roofs: datasheet roofs.
        parallel: the plan.
        link_bytes_per_s: rate of the tensor-parallel link; None: not bounded by it.
        stage_bytes_per_s: rate of the link between pipeline stages; None: not bounded by it.
        compute: compute type of the blocks' matmuls; None: the fastest that the format admits.
    """
    operators = step_operators(arch, step, formats)
    kinds = operator_compute(operators, accelerator, compute)
    return operators_bound(
        arch,
        operators,
        kinds,
        step,
        roofs,
        parallel=parallel,
        link_bytes_per_s=link_bytes_per_s,
        stage_bytes_per_s=stage_bytes_per_s,
    )


def operators_bound(
    arch: Architecture,
    operators: list[Operator],
    compute_types: list[str],
    step: Step,
    roofs: Roofs,
    *,
    parallel: Parallel,
    link_bytes_per_s: float | None,
    stage_bytes_per_s: float | None,
) -> Bound:
    """Bound a step whose operators are known; see ``step_bound``."""
    asked = demand(operators, compute_types, arch, step, parallel)
    times = asked.seconds(roofs, link_bytes_per_s, stage_bytes_per_s)
    longest: Numeric = 0.0
    for time_s in times.values():
        longest = np.maximum(longest, time_s)
    further = asked.further_expert_bytes
    expected = longest
    if np.ndim(further) or further:
        expected = np.maximum(longest, (asked.memory_bytes + further) / roofs.bytes_per_s)
    return Bound(longest, times, asked, expected)
