"""Result: a trace summarised, as dictionaries and frames for readers and programs.

Units    seconds, bytes, FLOP; ``_percent`` and ``_share`` say what they are.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline.hardware.measurement import Measurement
from roofline.models.architecture import Architecture
from roofline.trace.events import HostEvents, Trace
from roofline.trace.gaps import HISTOGRAM_EDGES_S
from roofline.trace.precision import LowPrecision, low_precision
from roofline.trace.rates import KernelRow, Roofs, kernel_rows, roofs_of
from roofline.trace.reader import read_trace
from roofline.trace.reconcile import Reconciliation, reconcile
from roofline.trace.summary import DeviceSummary, summarise_device

if TYPE_CHECKING:
    import pandas as pd

_HOST_ROWS = 10


@dataclass(frozen=True)
class DeviceReport:
    """One device of a trace with its kernels, its types and its model."""

    summary: DeviceSummary
    kernels: tuple[KernelRow, ...]
    precision: LowPrecision
    model: Reconciliation | None


@dataclass(frozen=True)
class TraceSummary:
    """What a trace file says."""

    source: str
    rank: int | None
    devices: tuple[DeviceReport, ...]
    host: tuple[tuple[str, int, float], ...]
    """Operators with most time of their own on the host: name, calls, seconds."""
    roofs: Roofs | None
    n_events: int
    invalid_kernels: int
    read_by: str
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]

    @property
    def only(self) -> DeviceReport | None:
        """The device with most busy time; None in a trace of the CPU alone."""
        return max(self.devices, key=lambda d: d.summary.busy_s, default=None)

    def to_dict(self, top: int = 20) -> dict[str, Any]:
        """Everything in base units; ``top`` kernels of each device."""
        return {
            "source": self.source,
            "rank": self.rank,
            "n_events": self.n_events,
            "invalid_kernels": self.invalid_kernels,
            "read_by": self.read_by,
            "roofs": None if self.roofs is None else _roofs_dict(self.roofs),
            "devices": [_device_dict(report, top) for report in self.devices],
            "host_operators": [
                {"name": name, "calls": calls, "self_s": spent} for name, calls, spent in self.host
            ],
            "warnings": list(self.warnings),
            "assumptions": list(self.assumptions),
        }

    def to_frame(self) -> "pd.DataFrame":
        """One row per kernel of every device, by total time."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"device": report.summary.device, **kernel_dict(row)}
                for report in self.devices
                for row in report.kernels
            ]
        )


def summarise(
    trace: "str | Path | Trace",
    *,
    machine: "str | Measurement | None" = None,
    roofs: Roofs | None = None,
    model: "str | Path | Mapping[str, Any] | Architecture | None" = None,
) -> TraceSummary:
    """Summarise a trace: busy share, gaps and causes, parts, kernels, precision.

    Args:
        trace: a file, or a trace that was read.
        machine: a measured record whose roofs kernels are compared with.
        roofs: roofs given outright, instead of ``machine``.
        model: the model that ran, to reconcile its linear calls with.

    Raises:
        InputError: the file is no trace.
        UnknownNameError: no such machine or model.
    """
    read = read_trace(trace)
    if machine is not None:
        roofs = roofs_of(machine)
    reports = []
    warnings = list(read.warnings)
    for device in np.unique(read.device.device).tolist():
        summary = summarise_device(read, device)
        rows = kernel_rows(read, summary, roofs)
        given = dict(model) if isinstance(model, Mapping) else model
        reports.append(
            DeviceReport(
                summary,
                rows,
                low_precision(summary, rows, roofs),
                None if given is None else reconcile(summary, given),
            )
        )
        warnings += summary.warnings
    if not reports:
        warnings.append(_explain_no_device(read))
    assumptions = ["copies and fills count as busy; a host annotation on the device does not"]
    if reports and not reports[0].summary.n_steps:
        assumptions.append("no ProfilerStep marks: the window is first to last device event")
    if roofs is None:
        assumptions.append("no measured machine given: no percent of roof")
    else:
        assumptions.append(f"roofs: {roofs.origin}")
    return TraceSummary(
        source=read.source,
        rank=read.rank,
        devices=tuple(reports),
        host=_host_rows(read),
        roofs=roofs,
        n_events=read.n_events,
        invalid_kernels=read.invalid_kernels,
        read_by=read.read_by,
        warnings=tuple(dict.fromkeys(warnings)),
        assumptions=tuple(assumptions),
    )


def _explain_no_device(trace: Trace) -> str:
    if trace.invalid_kernels:
        return (
            f"none of the {trace.invalid_kernels:,} device events has a valid time: nothing can be "
            "said about the device; update CUDA (13.1 or later) and profile again"
        )
    if len(trace.runtime):
        return (
            "launches but no device events: the profiler could not read the GPU's activity "
            "(another profiler attached, or no permission for CUPTI); nothing is said about idle"
        )
    if not len(trace.operators):
        return (
            "no operator and no kernel in the trace: nothing ran while it was recorded, or the "
            "profiler stopped before it; run steps inside 'with torch.profiler.profile(...)'"
        )
    return (
        "a trace of the CPU alone: no device events; profile with "
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
    )


def _host_rows(trace: Trace) -> tuple[tuple[str, int, float], ...]:
    """Time of their own: an operator's time less that of the operators inside it."""
    table = trace.operators
    if not len(table):
        return ()
    own = _self_s(table)
    spent = np.bincount(table.name, weights=own, minlength=len(table.names))
    calls = np.bincount(table.name, minlength=len(table.names))
    order = np.argsort(-spent, kind="stable")[:_HOST_ROWS]
    return tuple((table.names[i], int(calls[i]), float(spent[i])) for i in order.tolist())


def _self_s(table: HostEvents) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    own = (table.end_s - table.start_s).copy()
    for thread in np.unique(table.thread):
        rows = np.flatnonzero(table.thread == thread)
        rows = rows[np.lexsort((-table.end_s[rows], table.start_s[rows]))]
        stack: list[int] = []
        starts, ends = table.start_s.tolist(), table.end_s.tolist()
        for row in rows.tolist():
            while stack and ends[stack[-1]] <= starts[row]:
                stack.pop()
            if stack:
                own[stack[-1]] -= ends[row] - starts[row]
            stack.append(row)
    return np.maximum(own, 0.0)


def _roofs_dict(roofs: Roofs) -> dict[str, Any]:
    return {
        "bytes_per_s": roofs.bytes_per_s,
        "flop_per_s": dict(roofs.flop_per_s),
        "origin": roofs.origin,
    }


def kernel_dict(row: KernelRow) -> dict[str, Any]:
    """One kernel as a flat dictionary."""
    return {
        "kernel": row.name,
        "part": row.part,
        "library": row.library,
        "architecture": row.architecture,
        "compute": row.compute,
        "calls": row.calls,
        "total_s": row.total_s,
        "mean_s": row.mean_s,
        "share": row.share,
        "flop_per_s": row.flop_per_s,
        "bytes_per_s": row.bytes_per_s,
        "percent_of_roof": row.percent_of_roof,
        "limited_by": row.limited_by,
        "counted_calls": row.counted_calls,
        "registers_per_thread": row.registers,
        "occupancy_percent": row.occupancy_percent,
    }


def _device_dict(report: DeviceReport, top: int) -> dict[str, Any]:
    summary = report.summary
    gaps = summary.gaps
    return {
        "device": summary.device,
        "name": summary.name,
        "steps": summary.n_steps,
        "step_s": summary.step_s,
        "steps_s": list(summary.steps_s),
        "window_s": summary.window_s,
        "busy_s": summary.busy_s,
        "busy_share": summary.busy_share,
        "busy_share_is_lower_bound": summary.idle_s is None,
        "idle_s": summary.idle_s,
        "kernels": summary.kernels,
        "copies": summary.copies,
        "kernels_per_step": summary.kernels_per_step,
        "linear_calls_per_step": summary.linear_calls_per_step,
        "linear_operator": summary.linear_operator,
        "communication_s": summary.communication_s,
        "exposed_communication_s": summary.exposed_communication_s,
        "copy_s": summary.copy_s,
        "exposed_copy_s": summary.exposed_copy_s,
        "part_s": dict(sorted(summary.part_s.items(), key=lambda item: -item[1])),
        "part_kernels": summary.part_kernels,
        "streams": [asdict(use) for use in summary.streams],
        "gaps": None
        if summary.idle_s is None
        else {
            "by_cause": {
                cause: {"count": count, "total_s": total}
                for cause, (count, total) in gaps.by_cause().items()
            },
            "synchronised_by": {
                caller: {"count": count, "total_s": total}
                for caller, (count, total) in list(gaps.by_caller().items())[:_HOST_ROWS]
            },
            "launched_late_by": {
                operator: {"count": count, "total_s": total}
                for operator, (count, total) in list(gaps.by_operator().items())[:_HOST_ROWS]
            },
            "histogram_edges_s": list(HISTOGRAM_EDGES_S[:-1]),
            "histogram": list(gaps.histogram()),
        },
        "launch": asdict(summary.launch),
        "graph_replay": {
            "launches": summary.replay.launches,
            "recorded": summary.replay.recorded,
            "coverage": summary.replay.coverage,
        },
        "low_precision": {
            **asdict(report.precision),
            "low_share": report.precision.low_share,
        },
        "model": None
        if report.model is None
        else {**asdict(report.model), "agrees": report.model.agrees},
        "top_kernels": [kernel_dict(row) for row in report.kernels[:top]],
    }
