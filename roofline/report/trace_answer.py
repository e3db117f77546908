"""A trace in words and tables, for commands and pages: busy share, kernels, gaps, parts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from roofline.report.answer import Answer, Table
from roofline.trace.kernels import short_name
from roofline.units import number, show

if TYPE_CHECKING:
    from roofline.trace.rates import KernelRow
    from roofline.trace.result import DeviceReport, TraceSummary


def trace_answer(summary: "TraceSummary", inputs: Mapping[str, Any], top: int = 10) -> Answer:
    """Say what one trace holds, device by device."""
    tables = []
    lines = []
    for report in summary.devices:
        lines += _lines(report)
        tables += [_kernels(report, top), _gaps(report), _parts(report)]
    if not summary.devices:
        tables.append(
            Table(
                "Operators with most host time of their own",
                ("operator", "calls", "time (ms)"),
                [(name, calls, round(1e3 * spent, 3)) for name, calls, spent in summary.host],
            )
        )
        lines.append("no device events: nothing is said about a device")
    return Answer(
        command="trace",
        inputs=inputs,
        results=summary.to_dict(top),
        tables=tables,
        lines=lines,
        assumptions=summary.assumptions,
        warnings=summary.warnings,
    )


def _lines(report: "DeviceReport") -> list[str]:
    summary = report.summary
    lower = "at least " if summary.idle_s is None else ""
    lines = [
        f"device {summary.device} {summary.name}: busy {lower}{summary.busy_share * 100:.1f} % of "
        f"{show(summary.window_s, 's')} ({show(summary.busy_s, 's')})"
    ]
    if summary.n_steps and summary.step_s is not None and summary.kernels_per_step is not None:
        linear = summary.linear_calls_per_step
        lines.append(
            f"{summary.n_steps} steps of {show(summary.step_s, 's')}, "
            f"{number(summary.kernels_per_step, 4)} kernels a step, "
            f"{'–' if linear is None else number(linear, 4)} linear calls a step"
        )
    if summary.launch.median_s is not None:
        lines.append(
            f"a launch call takes {show(summary.launch.median_s, 's')}; "
            f"{show(summary.launch.host_s_per_kernel, 's')} of the window for each kernel"
        )
    if summary.communication_s:
        lines.append(
            f"communication {show(summary.communication_s, 's')}, exposed "
            f"{show(summary.exposed_communication_s, 's')}"
        )
    precision = report.precision
    if precision.matmul_s:
        lines.append(
            f"{precision.low_share * 100:.0f} % of the matrix time in 8 bit or less, "
            f"{precision.casts:,} casts; all of it in fp8 would gain "
            f"{precision.gain_share * 100:.1f} % of the window"
        )
    if report.model is not None:
        lines.append(report.model.verdict)
    return lines


def _kernels(report: "DeviceReport", top: int) -> Table:
    def cells(row: "KernelRow") -> tuple[Any, ...]:
        percent = row.percent_of_roof
        return (
            short_name(row.name),
            row.part,
            row.compute,
            row.calls,
            round(1e3 * row.total_s, 3),
            round(100 * row.share, 1),
            None if row.bytes_per_s is None else round(row.bytes_per_s / 1e9, 1),
            None if row.flop_per_s is None else round(row.flop_per_s / 1e12, 2),
            None if percent is None else round(percent, 1),
        )

    return Table(
        "Kernels by time",
        (
            "kernel",
            "part",
            "type",
            "calls",
            "time (ms)",
            "share (%)",
            "GB/s",
            "TFLOP/s",
            "roof (%)",
        ),
        [cells(row) for row in report.kernels[:top]],
    )


def _gaps(report: "DeviceReport") -> Table:
    summary = report.summary
    if summary.idle_s is None:
        return Table("Idle time is not claimed: graph replay hides kernels", ("cause",), [])
    rows = [
        (cause, count, round(1e3 * total, 3), round(100 * total / summary.window_s, 1))
        for cause, (count, total) in sorted(
            summary.gaps.by_cause().items(), key=lambda item: -item[1][1]
        )
    ]
    rows += [
        (f"  {caller}", count, round(1e3 * total, 3), round(100 * total / summary.window_s, 1))
        for caller, (count, total) in list(summary.gaps.by_caller().items())[:5]
    ]
    rows += [
        (f"  late: {name}", count, round(1e3 * total, 3), round(100 * total / summary.window_s, 1))
        for name, (count, total) in list(summary.gaps.by_operator().items())[:5]
    ]
    return Table("Gaps by cause", ("cause", "gaps", "time (ms)", "window (%)"), rows)


def _parts(report: "DeviceReport") -> Table:
    summary = report.summary
    total = sum(summary.part_s.values()) or 1.0
    rows = [
        (part, summary.part_kernels[part], round(1e3 * spent, 3), round(100 * spent / total, 1))
        for part, spent in sorted(summary.part_s.items(), key=lambda item: -item[1])
    ]
    return Table("Parts of the model", ("part", "kernels", "time (ms)", "share (%)"), rows)
