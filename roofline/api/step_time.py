"""Step times as results: bound and estimate of one step, operator by operator.

Units    seconds, FLOP, bytes, of one accelerator (the fullest rank).
Limits   Shares are of the estimate; bounds of operators do not add up to the bound of the step,
         which may overlap them.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from roofline.serving.deployment import Deployment
from roofline.timing.interval import Interval
from roofline.timing.steps import Bound
from roofline.units import Numeric
from roofline.work.operators import Operator, Step


@dataclass(frozen=True)
class OperatorTime:
    """One kind of operator in a step.

    Args:
        name, kind: what it is.
        calls: kernels.
        compute: type it computes in; empty where it only moves bytes or waits.
        flop, bytes: what it must do and move; ``expected_bytes`` what an engine moves.
        bound_s: the least time of its own demand.
        estimate_s: middle of its estimate.
        limited_by: ``memory``, ``compute (type)`` or ``launch``.
        share: of the step's estimate.
        gain_if_halved: what the step would gain if it took half the time.
    """

    name: str
    kind: str
    calls: float
    compute: str
    flop: float
    bytes: float
    expected_bytes: float
    bound_s: float
    estimate_s: float
    limited_by: str
    share: float
    gain_if_halved: float


@dataclass(frozen=True)
class StepTime:
    """A step's bound and estimate.

    Args:
        bound_s: the least time; on datasheet roofs.
        estimate_s: what it will take.
        limited_by: the resource that sets the bound.
        flop: FLOPs of all compute types.
        bytes: bytes that must move.
        by_resource: time that each resource needs alone.
        expected_experts_s: the bound's formula with the experts that even routing is expected to
            touch; no bound, and equal to it in dense models.
        operators: its operators, largest share first.
    """

    bound_s: float
    estimate_s: Interval
    limited_by: str
    flop: float
    bytes: float
    by_resource: dict[str, float] = field(default_factory=dict)
    expected_experts_s: float = 0.0
    operators: tuple[OperatorTime, ...] = ()

    @property
    def intensity_flop_per_byte(self) -> float:
        """FLOPs per byte that must move."""
        return self.flop / self.bytes

    def to_dict(self) -> dict[str, Any]:
        """All fields in base units."""
        return {
            **asdict(self),
            "estimate_s": self.estimate_s.to_dict(),
            "intensity_flop_per_byte": self.intensity_flop_per_byte,
        }


def step_time(deployment: Deployment, step: Step, *, long_phase: bool) -> StepTime:
    """Time one step, for one number each.

    Args:
        deployment: what runs where.
        step: what is decoded and prefilled; numbers only.
        long_phase: whether steps like this follow each other for seconds (prefill).
    """
    bound = deployment.bound(step)
    estimate = (
        deployment.prefill_s(step.prefill_sequences, step.prefill_tokens, step.cached_tokens)
        if long_phase
        else deployment.decode_s(step.decode_sequences, step.context_tokens)
    )
    return StepTime(
        bound_s=_number(bound.seconds),
        estimate_s=estimate,
        limited_by=bound.limited_by,
        flop=sum(_number(flop) for flop in bound.demand.flop.values()),
        bytes=_number(bound.demand.memory_bytes),
        by_resource={name: _number(time) for name, time in bound.by_resource.items()},
        expected_experts_s=_number(bound.with_expected_experts_s),
        operators=_operator_times(deployment, step, bound, long_phase=long_phase),
    )


def _operator_times(
    deployment: Deployment, step: Step, bound: Bound, *, long_phase: bool
) -> tuple[OperatorTime, ...]:
    operators, kinds = deployment.operators(step)
    middle = deployment.middle(step, long_phase=long_phase)
    total = _number(middle.seconds)
    merged: dict[tuple[str, str], OperatorTime] = {}
    times = [part.seconds for part in middle.parts]
    for operator, kind, seconds in zip(operators, kinds, times, strict=False):
        row = _row(deployment, operator, kind, _number(seconds), total)
        key = (row.name, row.kind)
        merged[key] = _merge(merged[key], row) if key in merged else row
    rows = list(merged.values())
    for part in middle.parts[len(operators) :]:
        seconds = _number(part.seconds)
        if seconds <= 0:
            continue
        share = seconds / total
        link = _number(bound.by_resource.get("link", 0.0)) if part.kind == "collective" else 0.0
        rows.append(
            OperatorTime(
                part.name, part.kind, part.calls, "", 0.0, 0.0, 0.0, link, seconds,
                "link" if part.kind == "collective" else "launch", share, share / 2,
            )
        )  # fmt: skip
    return tuple(sorted(rows, key=lambda row: -row.estimate_s))


def _row(
    deployment: Deployment, operator: Operator, kind: str, seconds: float, total: float
) -> OperatorTime:
    flop, least = _number(operator.flop), _number(operator.least_bytes)
    compute_s = flop / deployment.roofs.flop_per_s[kind] if flop else 0.0
    memory_s = least / deployment.roofs.bytes_per_s
    bound_s = max(compute_s, memory_s)
    limited = f"compute ({kind})" if compute_s > memory_s else "memory"
    expected = _number(operator.expected_bytes) / deployment.roofs.bytes_per_s
    if seconds > 3 * max(bound_s, expected):
        limited = "launch"
    share = seconds / total
    return OperatorTime(
        operator.name, operator.kind.value, operator.calls, kind if flop else "", flop, least,
        _number(operator.expected_bytes), bound_s, seconds, limited, share, share / 2,
    )  # fmt: skip


def _merge(first: OperatorTime, second: OperatorTime) -> OperatorTime:
    larger = first if first.estimate_s >= second.estimate_s else second
    return OperatorTime(
        first.name,
        first.kind,
        first.calls + second.calls,
        larger.compute,
        first.flop + second.flop,
        first.bytes + second.bytes,
        first.expected_bytes + second.expected_bytes,
        first.bound_s + second.bound_s,
        first.estimate_s + second.estimate_s,
        larger.limited_by,
        first.share + second.share,
        first.gain_if_halved + second.gain_if_halved,
    )


def _number(value: Numeric) -> float:
    return float(np.max(value))
