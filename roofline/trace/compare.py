"""Compare: two traces side by side, and the ranks of one run.

    wait of a rank in a collective   its time in the collective − the least time of any rank

The clocks of ranks differ, so only durations are compared: the rank that enters a collective last
spends least time in it, and the others wait for it.

Units    seconds; a step's where the traces have step marks, else the whole window's.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline.errors import InputError
from roofline.trace.events import Trace
from roofline.trace.kernels import PARTS
from roofline.trace.result import DeviceReport, TraceSummary, summarise
from roofline.trace.summary import DeviceSummary

if TYPE_CHECKING:
    import pandas as pd

STRAGGLER_EXCESS = 0.05
"""A rank trails when its own work takes this much longer than the median rank's."""


@dataclass(frozen=True)
class PartChange:
    """One part of the model before and after, per step."""

    part: str
    before_s: float
    after_s: float
    before_kernels: float
    after_kernels: float

    @property
    def change_s(self) -> float:
        """After − before: negative is faster."""
        return self.after_s - self.before_s


@dataclass(frozen=True)
class TraceComparison:
    """Two traces: parts of the model and the waiting, per step."""

    before: TraceSummary
    after: TraceSummary
    step_s: tuple[float, float]
    busy_share: tuple[float, float]
    kernels: tuple[float, float]
    parts: tuple[PartChange, ...]
    verdict: str
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything in base units."""
        return {
            "before": self.before.source,
            "after": self.after.source,
            "step_s": {"before": self.step_s[0], "after": self.step_s[1]},
            "busy_share": {"before": self.busy_share[0], "after": self.busy_share[1]},
            "kernels_per_step": {"before": self.kernels[0], "after": self.kernels[1]},
            "parts": [{**asdict(part), "change_s": part.change_s} for part in self.parts],
            "verdict": self.verdict,
            "warnings": list(self.warnings),
        }

    def to_frame(self) -> "pd.DataFrame":
        """One row per part."""
        import pandas as pd

        return pd.DataFrame([{**asdict(part), "change_s": part.change_s} for part in self.parts])


def compare_traces(
    before: "str | Path | Trace | TraceSummary", after: "str | Path | Trace | TraceSummary"
) -> TraceComparison:
    """Put two traces side by side, per step.

    Raises:
        InputError: a file is no trace, or has no device events.
    """
    one, two = _summary(before), _summary(after)
    first, second = _device(one), _device(two)
    steps = first.n_steps or 1, second.n_steps or 1
    step_s = first.window_s / steps[0], second.window_s / steps[1]
    parts = [
        PartChange(
            name,
            first.part_s.get(name, 0.0) / steps[0],
            second.part_s.get(name, 0.0) / steps[1],
            first.part_kernels.get(name, 0) / steps[0],
            second.part_kernels.get(name, 0) / steps[1],
        )
        for name in PARTS
        if name in first.part_s or name in second.part_s
    ]
    parts.sort(key=lambda part: -abs(part.change_s))
    warnings = list(dict.fromkeys((*one.warnings, *two.warnings)))
    if bool(first.n_steps) != bool(second.n_steps):
        warnings.append("one trace has step marks and the other none: its whole window counts")
    return TraceComparison(
        before=one,
        after=two,
        step_s=step_s,
        busy_share=(first.busy_share, second.busy_share),
        kernels=(first.kernels / steps[0], second.kernels / steps[1]),
        parts=tuple(parts),
        verdict=_verdict(step_s, first, second, parts),
        warnings=tuple(warnings),
    )


def _verdict(
    step_s: tuple[float, float],
    first: DeviceSummary,
    second: DeviceSummary,
    parts: list[PartChange],
) -> str:
    ratio = step_s[1] / step_s[0] if step_s[0] else float("nan")
    busy = sum(part.change_s for part in parts)
    change = step_s[1] - step_s[0]
    head = f"a step takes {ratio:.2f} × the time"
    if first.idle_s is None or second.idle_s is None:
        return f"{head}; idle time is not known in both, so what changed cannot be split"
    if abs(change) < 0.02 * step_s[0]:
        return f"{head}: no change beyond 2 %"
    where = "kernels" if abs(busy) >= abs(change) / 2 else "waiting, not kernels"
    most = f"; most in {parts[0].part}" if parts and where == "kernels" else ""
    return f"{head}; the change is in {where}{most}"


@dataclass(frozen=True)
class RankRow:
    """One rank of a run."""

    rank: int
    source: str
    window_s: float
    compute_s: float
    communication_s: float
    wait_s: float
    collectives: int


@dataclass(frozen=True)
class RankComparison:
    """The ranks of one run: who trails, and what the others wait for."""

    ranks: tuple[RankRow, ...]
    stragglers: tuple[int, ...]
    matched: bool
    verdict: str
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything in base units."""
        return {
            "ranks": [asdict(row) for row in self.ranks],
            "stragglers": list(self.stragglers),
            "collectives_matched": self.matched,
            "verdict": self.verdict,
            "warnings": list(self.warnings),
        }

    def to_frame(self) -> "pd.DataFrame":
        """One row per rank."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.ranks])


def compare_ranks(traces: "Sequence[str | Path | Trace | TraceSummary]") -> RankComparison:
    """Find the rank that the others wait for.

    Args:
        traces: one trace per rank, of the same steps.

    Raises:
        InputError: fewer than two traces, or one without device events.
    """
    if len(traces) < 2:
        raise InputError(f"comparing ranks needs two traces or more, got {len(traces)}")
    summaries = [_summary(trace) for trace in traces]
    devices = [_device(summary) for summary in summaries]
    durations = [_collectives(device) for device in devices]
    matched = len({len(d) for d in durations}) == 1 and len(durations[0]) > 0
    if matched:
        table = np.stack(durations)
        waits = np.sum(table - np.min(table, axis=0), axis=1)
    else:
        totals = np.array([float(np.sum(d)) for d in durations])
        waits = totals - float(np.min(totals))
    known = [summary.rank for summary in summaries]
    numbers = (
        [rank for rank in known if rank is not None]
        if None not in known and len(set(known)) == len(known)
        else list(range(len(known)))
    )
    rows = tuple(
        RankRow(
            rank=rank,
            source=summary.source,
            window_s=device.window_s,
            compute_s=device.busy_s - device.exposed_communication_s,
            communication_s=device.communication_s,
            wait_s=float(wait),
            collectives=len(own),
        )
        for rank, summary, device, wait, own in zip(
            numbers, summaries, devices, waits, durations, strict=True
        )
    )
    stragglers = _stragglers(rows)
    return RankComparison(
        rows,
        stragglers,
        matched,
        _rank_verdict(rows, stragglers),
        tuple(dict.fromkeys(w for summary in summaries for w in summary.warnings)),
    )


def _stragglers(rows: tuple[RankRow, ...]) -> tuple[int, ...]:
    """Ranks that the others wait for: least waiting themselves, and the others wait for long."""
    waits = np.array([row.wait_s for row in rows])
    windows = np.array([row.window_s for row in rows])
    lost = float(np.max(waits)) / float(np.max(windows)) if np.max(windows) > 0 else 0.0
    if lost < STRAGGLER_EXCESS:
        return ()
    near = waits <= 0.25 * float(np.max(waits))
    return tuple(row.rank for row, slow in zip(rows, near, strict=True) if slow)


def _rank_verdict(rows: tuple[RankRow, ...], stragglers: tuple[int, ...]) -> str:
    if not any(row.collectives for row in rows):
        return "no collectives in these traces: nothing tells whether a rank trails"
    worst = max(rows, key=lambda row: row.wait_s)
    if not stragglers:
        return "no rank trails: no rank waits for more than 5 % of its window"
    share = worst.wait_s / worst.window_s
    named = ", ".join(str(rank) for rank in stragglers)
    slow = next(row for row in rows if row.rank == stragglers[0])
    others = [row.compute_s for row in rows if row.rank not in stragglers]
    middle = float(np.median(others)) if others else slow.compute_s
    if slow.compute_s > (1 + STRAGGLER_EXCESS) * middle:
        ratio = slow.compute_s / middle
        why = f"its own kernels take {ratio:.2f} × the median: a slow device or more work"
    else:
        why = "its kernels are no slower: its host is late, or its input"
    return f"rank {named} trails; rank {worst.rank} waits {100 * share:.0f} % of its window; {why}"


def _collectives(device: DeviceSummary) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    own = device.parts == PARTS.index("collective")
    start = device.events.start_s[own]
    length = device.events.end_s[own] - start
    ordered: np.ndarray[tuple[int], np.dtype[np.float64]] = length[np.argsort(start, kind="stable")]
    return ordered


def _summary(trace: "str | Path | Trace | TraceSummary") -> TraceSummary:
    return trace if isinstance(trace, TraceSummary) else summarise(trace)


def _device(summary: TraceSummary) -> DeviceSummary:
    report: DeviceReport | None = summary.only
    if report is None:
        raise InputError(f"{Path(summary.source).name}: {summary.warnings[-1]}")
    return report.summary
