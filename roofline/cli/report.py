"""``roofline report``: theory, estimate and measurement of one model on one machine, on a page."""

from pathlib import Path
from typing import Annotated

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("report")(report_command)


def report_command(
    record: Annotated[str, typer.Argument(help="Measured record (file), or a spec id.")],
    model: Annotated[str, typer.Argument(help="Model of its decoder rows.")],
    trace: Annotated[
        list[Path] | None, typer.Option(help="Profiler trace of the model; may be repeated.")
    ] = None,
    before: Annotated[str | None, typer.Option(help="An earlier record, shown beside.")] = None,
    mode: Annotated[
        str | None, typer.Option(help="graph, eager, compiled or transformers.")
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Say how far a machine is from theory with one model, line by line, and why."""
    from roofline.report.theory import theory_report

    page = theory_report(record, model, traces=trace or (), before=before, mode=mode)
    emit(
        Answer(
            command="report",
            inputs={"record": record, "model": model, "before": before, "mode": mode,
                    "traces": [str(path) for path in trace or ()]},
            results=page.to_dict(),
            tables=[Table("Theory and measurement", list(page.columns), page.cells())],
            lines=[page.title, f"ran with {page.versions}"],
            assumptions=page.assumptions,
        ),
        form,
        output,
    )  # fmt: skip
