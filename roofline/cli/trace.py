"""``roofline trace``: what a profiler trace says; two traces; the ranks of one run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import (
    Answer,
    Format,
    FormatOption,
    OutputOption,
    Table,
    emit,
    figure_path,
    given_options,
    refuse_unused,
)

if TYPE_CHECKING:
    from roofline.trace.compare import RankComparison, TraceComparison


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("trace")(trace_command)


def trace_command(
    context: typer.Context,
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
        Path | None,
        typer.Option(callback=figure_path, help="Write the timeline and parts as PNG, SVG or PDF."),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Say how busy the device was, what it waited for, and where the kernel time went."""
    from roofline.errors import InputError
    from roofline.report.trace_answer import trace_answer
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
    if ranks or against is not None:
        question = "--ranks" if ranks else "--against"
        refuse_unused(
            given_options(context), ("files", "ranks", "against", "form", "output"), question
        )
    if ranks:
        emit(_ranks_answer(compare_ranks(list(files)), inputs), form, output)
        return
    if len(files) > 1:
        raise InputError(f"{len(files)} traces given; add --ranks, or --against FILE for two")
    if against is not None:
        emit(_comparison_answer(compare_traces(against, files[0]), inputs), form, output)
        return
    summary = summarise(files[0], machine=machine, model=model)
    emit(trace_answer(summary, inputs, top), form, output)
    if plot is not None:
        from roofline.report.figure_file import save_figure
        from roofline.report.trace_figures import trace_figure

        save_figure(trace_figure(summary), plot)
        typer.echo(f"wrote {plot}", err=True)


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
