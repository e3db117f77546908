"""Step times as results: bound and estimate of one step, operator by operator.

Units    seconds, FLOP, bytes, of one accelerator (the fullest rank).
Limits   Shares are of the estimate; bounds of operators do not add up to the bound of the step,
         which may overlap them.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from roofline.serving.deployment import Deployment, TimedStep
from roofline.timing.estimate import Part
from roofline.timing.interval import Interval
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
        deployment: what runs where.
        timed: operators, bound and middle of the estimate.
        bound_s: the least time; on datasheet roofs.
        estimate_s: what it will take.
        limited_by: the resource that sets the bound.
        flop: FLOPs of all compute types.
        bytes: bytes that must move.
    """

    deployment: Deployment
    timed: TimedStep
    bound_s: float
    estimate_s: Interval
    limited_by: str
    flop: float
    bytes: float

    @property
    def by_resource(self) -> dict[str, float]:
        """Time that each resource needs alone; the largest is the bound."""
        return {name: _number(time) for name, time in self.timed.bound.by_resource.items()}

    @property
    def expected_experts_s(self) -> float:
        """The bound's formula with the experts that even routing is expected to touch.

        No bound where there are experts; equal to the bound in dense models.
        """
        return _number(self.timed.bound.with_expected_experts_s)

    @property
    def intensity_flop_per_byte(self) -> float:
        """FLOPs per byte that must move."""
        return self.flop / self.bytes

    @cached_property
    def operators(self) -> tuple[OperatorTime, ...]:
        """Its operators, largest share first."""
        return _operator_times(self.deployment, self.timed)

    def to_dict(self) -> dict[str, Any]:
        """All fields in base units."""
        return {
            "bound_s": self.bound_s,
            "estimate_s": self.estimate_s.to_dict(),
            "limited_by": self.limited_by,
            "flop": self.flop,
            "bytes": self.bytes,
            "intensity_flop_per_byte": self.intensity_flop_per_byte,
            "by_resource": self.by_resource,
            "expected_experts_s": self.expected_experts_s,
            "operators": [asdict(row) for row in self.operators],
        }


def step_time(deployment: Deployment, step: Step, *, long_phase: bool) -> StepTime:
    """Time one step, for one number each.

    Args:
        deployment: what runs where.
        step: what is decoded and prefilled; numbers only.
        long_phase: whether steps like this follow each other for seconds (prefill).
    """
    timed = deployment.timed(step, long_phase=long_phase)
    bound = timed.bound
    return StepTime(
        deployment=deployment,
        timed=timed,
        bound_s=_number(bound.seconds),
        estimate_s=timed.estimate_s,
        limited_by=bound.limited_by,
        flop=sum(_number(flop) for flop in bound.demand.flop.values()),
        bytes=_number(bound.demand.memory_bytes),
    )


def _operator_times(deployment: Deployment, timed: TimedStep) -> tuple[OperatorTime, ...]:
    middle = timed.middle
    total = _number(middle.seconds)
    merged: dict[tuple[str, str], OperatorTime] = {}
    times = [part.seconds for part in middle.parts]
    for operator, kind, seconds in zip(timed.operators, timed.compute_types, times, strict=False):
        row = _row(deployment, operator, kind, _number(seconds), total)
        key = (row.name, row.kind)
        merged[key] = _merge(merged[key], row) if key in merged else row
    rows = list(merged.values())
    link_s = _number(timed.bound.by_resource.get("link", 0.0))
    for part in middle.parts[len(timed.operators) :]:
        seconds = _number(part.seconds)
        if seconds > 0:
            rows.append(_other_row(part, seconds, total, link_s))
    return tuple(sorted(rows, key=lambda row: -row.estimate_s))


def _other_row(part: Part, seconds: float, total: float, link_s: float) -> OperatorTime:
    collective = part.kind == "collective"
    share = seconds / total
    return OperatorTime(
        part.name,
        part.kind,
        part.calls,
        compute="",
        flop=0.0,
        bytes=0.0,
        expected_bytes=0.0,
        bound_s=link_s if collective else 0.0,
        estimate_s=seconds,
        limited_by="link" if collective else "launch",
        share=share,
        gain_if_halved=share / 2,
    )


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
    return float(value) if np.ndim(value) == 0 else float(np.max(value))
