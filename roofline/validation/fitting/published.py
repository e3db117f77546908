"""Published rows split into the times that engine terms act on.

    tpot   decode step + (prefills of the other sequences in the batch) / (output − 1) · share
    ttft   prefill step + request handling
    e2e    ttft + (output − 1) · tpot

Shapes   One ``RowParts`` a row; times are what the device's terms give before the engine's.
Units    seconds.
Limits   Rows whose model, device or plan cannot be deployed are left out and counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from roofline.calibration.engines import engine_terms, is_early
from roofline.calibration.lookup import Terms
from roofline.calibration.typical import device_class, typical_terms
from roofline.errors import InputError, RooflineError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.serving.deployment import Deployment
from roofline.serving.engines import Engine
from roofline.serving.replica_links import ReplicaLinks, replica_links
from roofline.timing.estimate import weight_only
from roofline.timing.parallel import Parallel, fullest_stage
from roofline.timing.terms import EngineTerms
from roofline.validation.rows import Row
from roofline.validation.storage import cache_format, likely_architecture, on_device
from roofline.work.kv_cache import cache_bytes
from roofline.work.operators import Formats, Kind, Step
from roofline.work.weights import stored_bytes

ENGINE_SHARE = 0.9
"""Share of memory that engines give to weights and cache by default."""


@dataclass(frozen=True)
class StepParts:
    """A step before an engine's terms: seconds of each kind of part, kernels and sequences."""

    dense_s: float
    weight_only_s: float
    experts_s: float
    weight_only_experts_s: float
    small_s: float
    collectives_s: float
    kernels: float
    sequences: float

    def seconds(self, terms: EngineTerms, *, prefill: bool) -> float:
        """Put an engine's terms on the step."""
        rate = terms.prefill_rate if prefill else terms.decode_rate
        operators = (
            self.dense_s
            + self.weight_only_s / terms.weight_only_rate
            + self.experts_s / terms.expert_rate
            + self.weight_only_experts_s / (terms.expert_rate * terms.weight_only_rate)
        )
        device = operators / rate + self.small_s + self.collectives_s / terms.collective_rate
        busy = max(device, self.kernels * terms.eager_kernel_s)
        host = terms.step_s + terms.sequence_s * self.sequences
        return busy + host + (terms.prefill_step_s if prefill else 0.0)


@dataclass(frozen=True)
class RowParts:
    """A published row, ready for terms.

    Args:
        row: the measurement.
        device_class: class of its accelerator.
        decode, prefill: its steps; None where its quantity does not need one.
        steps: decode steps of one request.
        others: prefills of other requests that fall into them.
        early: whether the engine was one of its early releases.
        experts: whether the model routes its tokens to experts.
    """

    row: Row
    device_class: str
    decode: StepParts | None
    prefill: StepParts | None
    steps: float
    others: float
    early: bool = False
    experts: bool = False

    @property
    def pair(self) -> str:
        """Accelerator and model: what is left out together."""
        return f"{self.row.accelerator} {self.row.model}"

    def seconds(self, terms: EngineTerms) -> float:
        """Estimate the row's quantity under these terms."""
        first = 0.0 if self.prefill is None else self.prefill.seconds(terms, prefill=True)
        if self.row.quantity == "ttft" or self.decode is None:
            return first
        step = self.decode.seconds(terms, prefill=False)
        if self.row.quantity == "e2e":
            return first + self.steps * step
        if not self.others or self.prefill is None:
            return step
        # in a running batch a prompt's own host work hides behind the decode steps beside it
        alone = first - terms.prefill_step_s - terms.step_s
        return step + terms.scheduler_share * self.others / max(self.steps, 1.0) * alone


def row_parts(rows: Iterable[Row], engine: str) -> tuple[list[RowParts], dict[str, int]]:
    """Split rows of an engine; also count those left out by reason."""
    cases: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = (
            row.model, row.accelerator, row.tp, row.pp, row.dp, row.ep, row.weights, row.head,
            row.kv, row.quantity, row.weights_label,
        )  # fmt: skip
        cases.setdefault(key, []).append(row)
    parts: list[RowParts] = []
    left_out: dict[str, int] = {}
    for group in cases.values():
        try:
            parts += _split(group, engine)
        except RooflineError as error:
            reason = str(error)[:100]
            left_out[reason] = left_out.get(reason, 0) + len(group)
    return parts, left_out


def row_deployment(row: Row, engine: str) -> Deployment:
    """Deploy what a row ran, with its class's typical terms and no engine's numbers."""
    accelerator = load_accelerator(row.accelerator or "")
    arch = likely_architecture(row)
    arch = replace(arch, dtype=on_device(arch.dtype, accelerator))
    kv = on_device(cache_format(row, arch), accelerator)
    bare = replace(
        engine_terms(engine), step_s=0.0, sequence_s=0.0, eager_kernel_s=0.0, prefill_step_s=0.0,
        decode_rate=1.0, prefill_rate=1.0, weight_only_rate=1.0, expert_rate=1.0,
        collective_rate=1.0,
    )  # fmt: skip
    parallel = Parallel(tp=row.tp or 1, pp=row.pp, dp=row.dp, ep=row.ep)
    links = _links(accelerator, parallel)
    terms = Terms(links.reached(typical_terms(accelerator)), bare, False, ())
    return Deployment(
        arch, accelerator, parallel, Formats(None, kv), Engine(engine), terms,
        links, None, (),
    )  # fmt: skip


def _links(accelerator: Accelerator, parallel: Parallel) -> ReplicaLinks:
    """The links of a row's replica; rows do not say what lies between domains."""
    try:
        return replica_links(accelerator, parallel)
    except InputError:
        return replica_links(accelerator, Parallel(tp=2))


def _split(rows: Sequence[Row], engine: str) -> list[RowParts]:
    deployment = row_deployment(rows[0], engine)
    rows = [row for row in rows if _holds(deployment, row)]
    if not rows:
        return []
    replicas = rows[0].dp * rows[0].pp
    batch = np.array([(row.running_batch or row.batch or 1.0) / replicas for row in rows])
    batch = np.maximum(batch, 1.0)
    prompt = np.array([row.prompt_tokens or 1.0 for row in rows])
    cached = np.array([row.cached_tokens for row in rows])
    context = np.array([row.decode_context_tokens + 1 for row in rows])
    quantity = rows[0].quantity
    decode: list[StepParts | None] = [None] * len(rows)
    prefill: list[StepParts | None] = [None] * len(rows)
    if quantity != "ttft":
        step = Step(decode_sequences=batch, context_tokens=context)
        decode = _parts(deployment, step, len(rows), long_phase=False)
    static = np.array([row.load == "fixed_batch" for row in rows])
    together = np.where(static & (quantity != "tpot"), batch, 1.0)
    step = Step(prefill_sequences=together, prefill_tokens=prompt, cached_tokens=cached)
    if quantity != "tpot" or np.any([row.load == "concurrency" for row in rows]):
        prefill = _parts(deployment, step, len(rows), long_phase=True)
    name = device_class(deployment.accelerator).name
    return [
        RowParts(
            row,
            name,
            decode[i],
            prefill[i],
            max((row.output_tokens or 1.0) - 1, 0.0),
            float(batch[i]) if row.load == "concurrency" else 0.0,
            is_early(engine, row.engine_version),
            deployment.arch.has_experts,
        )
        for i, row in enumerate(rows)
    ]


def _holds(deployment: Deployment, row: Row) -> bool:
    """Whether a stated batch fits in memory: one that does not runs in waves, not as a batch."""
    if row.load != "fixed_batch":
        return True
    rank = fullest_stage(deployment.rank, deployment.parallel.pp)
    tokens = row.cached_tokens + (row.prompt_tokens or 0.0) + (row.output_tokens or 0.0)
    batch = (row.batch or 1.0) / row.dp
    cache = batch * float(cache_bytes(rank, tokens, deployment.formats.kv))
    usable, _ = deployment.accelerator.usable_memory()
    return stored_bytes(rank) + cache <= ENGINE_SHARE * usable


def _parts(
    deployment: Deployment, step: Step, count: int, *, long_phase: bool
) -> list[StepParts | None]:
    operators, kinds = deployment.operators(step)
    estimate = deployment.middle(step, long_phase=long_phase)
    sums = {name: np.zeros(count) for name in _KINDS}
    for position, part in enumerate(estimate.parts):
        name = {"small": "small_s", "collective": "collectives_s"}.get(part.kind, "dense_s")
        if part.kind == "host":
            continue
        if position < len(operators):
            unpacked = weight_only(operators[position], kinds[position])
            routed = operators[position].kind is Kind.EXPERTS
            name = _OPERATOR_KINDS[unpacked, routed]
        sums[name] = sums[name] + part.seconds
    kernels = sum(part.calls for part in estimate.parts)
    each = np.broadcast_to(np.asarray(step.logit_rows, dtype=float), count)
    return [
        StepParts(
            **{name: float(values[i]) for name, values in sums.items()},
            kernels=kernels,
            sequences=float(each[i]),
        )
        for i in range(count)
    ]


_OPERATOR_KINDS = {
    (False, False): "dense_s",
    (True, False): "weight_only_s",
    (False, True): "experts_s",
    (True, True): "weight_only_experts_s",
}
_KINDS = (*_OPERATOR_KINDS.values(), "small_s", "collectives_s")
