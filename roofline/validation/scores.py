"""Scores: how far predictions are from measurements, group by group.

    error      prediction / measurement − 1
    bias       median error: positive when predictions are too slow
    coverage   share of measurements inside their interval
    tightest   least measured / bound: below 1 is a violation

Limits   Medians and percentiles are of absolute errors; fitted rows are bounded and not scored.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

KEYS = ("dataset", "engine", "quantity", "accelerator", "model", "group")


@dataclass(frozen=True)
class Point:
    """One measurement beside its bound and its estimate, in base units.

    Args:
        id, dataset, group, source: where it is from.
        engine, accelerator, model: our names.
        quantity: ``ttft``, ``tpot``, ``e2e``, ``output_rate``.
        setting: plan, batch and lengths in words.
        measured: the measurement.
        bound: the least time (or the most tokens per second); NaN without one.
        over_bound: measured over bound as times; below 1 is a violation.
        low, mid, high: the estimate; NaN where the row is only bounded.
        fitted: whether the row was in a fit: it then judges no estimate.
    """

    id: str
    dataset: str
    group: str
    source: str
    engine: str
    accelerator: str
    model: str
    quantity: str
    setting: str
    measured: float
    bound: float = math.nan
    over_bound: float = math.nan
    low: float = math.nan
    mid: float = math.nan
    high: float = math.nan
    fitted: bool = False

    @property
    def judged(self) -> bool:
        """Whether the row judges an estimate."""
        return math.isfinite(self.mid) and not self.fitted

    @property
    def error(self) -> float:
        """Prediction over measurement, less one."""
        return self.mid / self.measured - 1

    @property
    def inside(self) -> bool:
        """Whether the measurement lies in the interval."""
        return self.low <= self.measured <= self.high

    @property
    def violates(self) -> bool:
        """Whether the bound is above the measurement."""
        return self.over_bound < 1

    def to_dict(self) -> dict[str, Any]:
        """All fields, with the error; NaN as None."""
        found = asdict(self) | {"error": self.error, "inside": self.inside}
        if not self.judged:
            found |= {"error": None, "inside": None}
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in found.items()
        }


@dataclass(frozen=True)
class Score:
    """Errors of a group of rows.

    Args:
        key: what the rows share, by name.
        rows: rows that judge the estimate.
        median_error, p90_error: of absolute errors; NaN without rows.
        bias: median error.
        coverage: share inside the interval.
        width: median high / low.
        bounded: rows with a bound.
        violations: rows below their bound.
        tightest: least measured over bound.
    """

    key: dict[str, str]
    rows: int
    median_error: float
    p90_error: float
    bias: float
    coverage: float
    width: float
    bounded: int
    violations: int
    tightest: float

    def to_dict(self) -> dict[str, Any]:
        """All fields, with the key's beside them; NaN as None."""
        found = asdict(self)
        found.pop("key")
        shown = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in found.items()
        }
        return {**self.key, **shown}


def score(points: Sequence[Point], key: dict[str, str]) -> Score:
    """Score the points of one group.

    >>> point = Point("a", "d", "", "", "e", "g", "m", "tpot", "", 10.0, 5.0, 2.0, 8.0, 9.0, 12.0)
    >>> found = score([point], {"engine": "e"})
    >>> round(found.median_error, 3), found.coverage, found.violations, found.tightest
    (0.1, 1.0, 0, 2.0)
    """
    judged = [point for point in points if point.judged]
    bounded = [point for point in points if math.isfinite(point.over_bound)]
    errors = np.array([point.error for point in judged])
    sizes = np.abs(errors)

    def of(values: Any, statistic: Callable[[Any], Any]) -> float:
        return float(statistic(values)) if len(values) else math.nan

    return Score(
        key=key,
        rows=len(judged),
        median_error=of(sizes, np.median),
        p90_error=of(sizes, lambda v: np.percentile(v, 90)),
        bias=of(errors, np.median),
        coverage=of([point.inside for point in judged], np.mean),
        width=of([point.high / point.low for point in judged], np.median),
        bounded=len(bounded),
        violations=sum(point.violates for point in bounded),
        tightest=min((point.over_bound for point in bounded), default=math.nan),
    )


def scores(points: Iterable[Point], by: Sequence[str]) -> tuple[Score, ...]:
    """Score the points group by group.

    Args:
        points: rows with bounds and estimates.
        by: names of ``Point`` fields, of ``KEYS``.
    """
    groups: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        groups.setdefault(tuple(getattr(point, name) for name in by), []).append(point)
    return tuple(score(groups[key], dict(zip(by, key, strict=True))) for key in sorted(groups))


def worst(points: Iterable[Point], count: int) -> tuple[Point, ...]:
    """Judged points with the largest errors, taken as ratios: half is as wrong as double."""
    judged = [point for point in points if point.judged]
    return tuple(sorted(judged, key=lambda p: -abs(math.log(p.mid / p.measured)))[:count])


def closest(points: Iterable[Point], count: int) -> tuple[Point, ...]:
    """Points nearest to (or below) their bounds."""
    bounded = [point for point in points if math.isfinite(point.over_bound)]
    return tuple(sorted(bounded, key=lambda p: p.over_bound)[:count])
