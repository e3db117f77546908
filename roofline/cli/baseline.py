"""``roofline baseline``: record a node's health, and find the sick node."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit, figure_path

if TYPE_CHECKING:
    from roofline.diagnose.baseline import BaselineComparison


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = typer.Typer(
        help="Record a node's health, compare records, merge those of many nodes.",
        no_args_is_help=True,
    )
    group.command("run")(run_command)
    group.command("compare")(compare_command)
    group.command("merge")(merge_command)
    app.add_typer(group, name="baseline")


def run_command(
    folder: Annotated[Path, typer.Option(help="Folder for the record.")] = Path(),
    node: Annotated[str, typer.Option(help="Name of this node; its host name if empty.")] = "",
    device: Annotated[str, typer.Option(help="auto, cuda or cpu.")] = "auto",
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Measure this node: state, links, copy, peer-to-peer and all-reduce rates, kernel probes."""
    from roofline.hardware.node_record import save_node_record
    from roofline.measure.baseline import measure_baseline
    from roofline.units import show

    record = measure_baseline(node=node, device=device, say=lambda text: typer.echo(text, err=True))
    path = save_node_record(record, folder)
    table = Table(
        "Probes",
        ("probe", "value", "spread (%)"),
        [
            (probe.label(), show(probe.rate, probe.unit), round(100 * probe.spread, 1))
            for probe in record.probes
        ],
    )
    answer = Answer(
        command="baseline run",
        inputs={"node": record.node, "device": device, "folder": str(folder)},
        results={"path": str(path), "record": record.model_dump(mode="json")},
        tables=[table],
        lines=[f"node {record.node}: {len(record.probes)} probes in {record.duration_s:.0f} s"],
        warnings=record.warnings,
    )
    emit(answer, form, output)
    typer.echo(f"wrote {path}", err=True)


def compare_command(
    records: Annotated[list[Path], typer.Argument(help="Records or folders; several: a fleet.")],
    earlier: Annotated[Path | None, typer.Option(help="Earlier record of the same node.")] = None,
    fleet: Annotated[
        list[Path] | None, typer.Option(help="Records of other nodes; may be repeated.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            callback=figure_path, help="Write every node against the median as PNG, SVG or PDF."
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Compare a node with its earlier self and with its fleet.

    Exit code 3: a node is sick.
    """
    from roofline.diagnose.baseline import compare_baselines

    comparison = compare_baselines(list(records), earlier=earlier, fleet=list(fleet or []))
    inputs: dict[str, object] = {
        "records": [str(path) for path in records],
        "earlier": None if earlier is None else str(earlier),
        "fleet": [str(path) for path in fleet or []],
    }
    emit(_answer(comparison, inputs), form, output)
    if plot is not None:
        _plot([*records, *(fleet or [])], plot)
    if comparison.sick_nodes:
        raise typer.Exit(3)


def _plot(sources: list[Path], path: Path) -> None:
    from roofline.diagnose.baseline import read_nodes
    from roofline.report.figure_file import save_figure
    from roofline.report.trace_figures import fleet_figure

    save_figure(fleet_figure(read_nodes(sources)), path)
    typer.echo(f"wrote {path}", err=True)


def _answer(comparison: "BaselineComparison", inputs: dict[str, object]) -> Answer:
    return Answer(
        command="baseline compare",
        inputs=inputs,
        results=comparison.to_dict(),
        tables=[
            Table(
                "Findings",
                ("node", "severity", "finding", "next step"),
                [(f.node, f.severity, f.text, f.next_step) for f in comparison.findings],
            )
        ],
        lines=[comparison.verdict],
        assumptions=comparison.notes,
    )


def merge_command(
    records: Annotated[list[Path], typer.Argument(help="Records or folders of many nodes.")],
    into: Annotated[Path, typer.Option(help="JSON Lines file to write.")],
) -> None:
    """Put the records of many nodes, each made by srun or torchrun, into one file."""
    from roofline.diagnose.baseline import merge_nodes, read_nodes
    from roofline.files import write_text

    found = read_nodes(records)
    write_text(into, merge_nodes(found))
    typer.echo(f"wrote {into}: {len(found)} records", err=True)
