"""``roofline trace``: what a profiler trace says; two traces; the ranks of one run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit

if TYPE_CHECKING:
    from roofline.trace.compare import RankComparison, TraceComparison
    from roofline.trace.rates import KernelRow
    from roofline.trace.result import DeviceReport, TraceSummary


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("trace")(trace_command)


def trace_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Trace of torch.profiler (.json, .json.gz); several: --ranks."),
    ],
    against: Annotated[
        Path | None, typer.Option(help="An earlier trace to compare the file with.")
    ] = None,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="The files are the ranks of one run.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="Model that ran: its linear calls are reconciled.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="Measured record (spec id or file) for percent of roof.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=1000, help="Kernels to list.")] = 10,
    plot: Annotated[
        Path | None, typer.Option(help="Write the timeline and parts as PNG, SVG or PDF.")
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Say how busy the device was, what it waited for, and where the kernel time went."""
    from roofline.errors import InputError
    from roofline.trace.compare import compare_ranks, compare_traces
    from roofline.trace.result import summarise

    inputs = {
        "files": [str(file) for file in files],
        "against": None if against is None else str(against),
        "ranks": ranks,
        "model": model,
        "machine": machine,
    }
    if ranks and against is not None:
        raise InputError("--ranks compares the files with each other; leave --against out")
    if ranks:
        emit(_ranks_answer(compare_ranks(list(files)), inputs), form, output)
        return
    if len(files) > 1:
        raise InputError(f"{len(files)} traces given; add --ranks, or --against FILE for two")
    if against is not None:
        emit(_comparison_answer(compare_traces(against, files[0]), inputs), form, output)
        return
    summary = summarise(files[0], machine=machine, model=model)
    emit(_answer(summary, inputs, top), form, output)
    if plot is not None:
        from roofline.report.roofline_plot import save_figure
        from roofline.report.trace_figures import trace_figure

        save_figure(trace_figure(summary), plot)
        typer.echo(f"wrote {plot}", err=True)


def _answer(summary: "TraceSummary", inputs: dict[str, Any], top: int) -> Answer:
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
    from roofline.units import number, show

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
    from roofline.trace.kernels import short_name

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


def _comparison_answer(comparison: "TraceComparison", inputs: dict[str, Any]) -> Answer:
    from roofline.units import show

    before, after = comparison.step_s
    return Answer(
        command="trace",
        inputs=inputs,
        results=comparison.to_dict(),
        tables=[
            Table(
                "Parts, per step",
                ("part", "before (ms)", "after (ms)", "change (ms)", "kernels before", "after"),
                [
                    (
                        part.part,
                        round(1e3 * part.before_s, 4),
                        round(1e3 * part.after_s, 4),
                        round(1e3 * part.change_s, 4),
                        round(part.before_kernels, 1),
                        round(part.after_kernels, 1),
                    )
                    for part in comparison.parts
                ],
            )
        ],
        lines=[
            comparison.verdict,
            f"step {show(before, 's')} → {show(after, 's')}; busy "
            f"{comparison.busy_share[0] * 100:.1f} % → {comparison.busy_share[1] * 100:.1f} %",
        ],
        warnings=comparison.warnings,
    )


def _ranks_answer(comparison: "RankComparison", inputs: dict[str, Any]) -> Answer:
    return Answer(
        command="trace",
        inputs=inputs,
        results=comparison.to_dict(),
        tables=[
            Table(
                "Ranks",
                ("rank", "window (ms)", "own work (ms)", "communication (ms)", "wait (ms)"),
                [
                    (
                        row.rank,
                        round(1e3 * row.window_s, 3),
                        round(1e3 * row.compute_s, 3),
                        round(1e3 * row.communication_s, 3),
                        round(1e3 * row.wait_s, 3),
                    )
                    for row in comparison.ranks
                ],
            )
        ],
        lines=[comparison.verdict],
        warnings=comparison.warnings,
    )
