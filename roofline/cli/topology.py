"""``roofline topology``: links of a node, what is broken, and which ranks go where."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit, figure_path

if TYPE_CHECKING:
    from roofline.diagnose.fabric import Fabric


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("topology")(topology_command)


def topology_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Output of nvidia-smi topo -m, nvlink -s, ibstat, NCCL_DEBUG=INFO."),
    ],
    accelerator: Annotated[
        str | None, typer.Option(help="Spec id; found by the device's name when left out.")
    ] = None,
    tp: Annotated[int | None, typer.Option(min=1, help="Tensor-parallel ranks to map.")] = None,
    parameters: Annotated[
        float | None, typer.Option(help="Parameters whose gradients are exchanged.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(min=1, help="GPUs that exchange them; all of the node's.")
    ] = None,
    gradients: Annotated[str, typer.Option(help="Format of the gradients.")] = "bf16",
    plot: Annotated[
        Path | None,
        typer.Option(callback=figure_path, help="Write the link graph as PNG, SVG or PDF."),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Read a node's links: paths, faults, the best mapping, and what collectives cost.

    Exit code 3: a link is degraded or missing.
    """
    from roofline.diagnose.fabric_reader import read_fabric
    from roofline.diagnose.gradients import gradient_bill
    from roofline.errors import InputError

    if parameters is None and (ranks is not None or gradients != "bf16"):
        raise InputError("--ranks and --gradients are of an exchange; give --parameters as well")
    fabric = read_fabric(*files, accelerator=accelerator)
    results: dict[str, Any] = fabric.to_dict(tp)
    lines = _lines(fabric)
    tables = [_pairs(fabric)]
    if fabric.health:
        tables.append(_links(fabric))
    if tp is not None:
        tables.append(_groups(fabric, tp))
        lines.append(fabric.mapping(tp).paste)
    if parameters is not None:
        ring = min((pair["bytes_per_s"] for pair in fabric.pairs()), default=None)
        bill = gradient_bill(
            parameters, ranks or max(fabric.n_gpus, 1), dtype=gradients, bytes_per_s=ring
        )
        results["gradient_bill"] = bill.to_dict()
        lines.append(_bill(bill.to_dict()))
    inputs = {
        "files": [str(file) for file in files],
        "accelerator": accelerator,
        "tp": tp,
        "parameters": parameters,
        "ranks": ranks,
        "gradients": gradients,
    }
    answer = Answer(
        command="topology",
        inputs=inputs,
        results=results,
        tables=tables,
        lines=lines,
        assumptions=(
            *fabric.assumptions,
            "rates are nominal, times those of a ring at least; usual: at the fraction such links "
            "reach",
        ),
        warnings=fabric.faults,
    )
    emit(answer, form, output)
    if plot is not None:
        from roofline.report.figure_file import save_figure
        from roofline.report.trace_figures import fabric_figure

        save_figure(fabric_figure(fabric), plot)
        typer.echo(f"wrote {plot}", err=True)
    if fabric.faults:
        raise typer.Exit(3)


def _bill(bill: dict[str, Any]) -> str:
    from roofline.units import show

    return (
        f"gradients of {bill['parameters']:.4g} parameters over {bill['ranks']} GPUs: a ring moves "
        f"{show(bill['volume_bytes'], 'B')} per GPU, {show(bill['time_s'], 's')} at least"
    )


def _lines(fabric: "Fabric") -> list[str]:
    lines = [f"{fabric.n_gpus} GPUs, {fabric.accelerator or 'variant not known'}"]
    lines += [f"FAULT: {fault}" for fault in fabric.faults]
    lines += list(fabric.notes)
    if fabric.topology is not None and fabric.topology.nics:
        from roofline.diagnose.topology import gpudirect

        lines += [f"GPU {i} and {gpudirect(fabric.topology, i)}" for i in range(fabric.n_gpus)]
    if fabric.nccl is not None:
        shown = ", ".join(f"{count} by {name}" for name, count in fabric.nccl.transports.items())
        lines.append(f"NCCL channels: {shown}")
    return lines


def _pairs(fabric: "Fabric") -> Table:
    return Table(
        "Paths between GPUs",
        ("GPU", "GPU", "connection", "GB/s a direction", "transport"),
        [
            (
                pair["first"],
                pair["second"],
                pair["connection"],
                round(pair["bytes_per_s"] / 1e9, 1),
                pair["transport"],
            )
            for pair in fabric.pairs()
        ],
    )


def _links(fabric: "Fabric") -> Table:
    return Table(
        "NVLinks",
        ("GPU", "active", "should be", "GB/s printed", "GB/s nominal", "fault", "why"),
        [
            (
                state.gpu,
                state.active,
                state.expected,
                round(state.signalling_bytes_per_s / 1e9, 1),
                round(state.limit_bytes_per_s / 1e9, 1),
                "yes" if state.fault else "no",
                state.reason,
            )
            for state in fabric.health
        ],
    )


def _groups(fabric: "Fabric", tp: int) -> Table:
    from roofline.diagnose.fabric import MESSAGE_BYTES

    rows: list[tuple[Any, ...]] = []
    sizes: list[Any] = list(MESSAGE_BYTES) if tp > 1 else [None] * len(MESSAGE_BYTES)
    for stage, group in enumerate(fabric.groups(tp)):
        rate = round(group.bytes_per_s / 1e9, 1) if tp > 1 else None
        times = [round(1e6 * group.all_reduce_s[size], 1) for size in sizes] if tp > 1 else sizes
        devices = ",".join(map(str, group.devices))
        usual = [round(1e6 * spent, 1) for spent in group.expected_all_reduce_s.values()]
        rows.append((stage, devices, rate, *times, usual[-1] if usual else None))
    return Table(
        f"Groups of {tp}",
        (
            "stage",
            "GPUs",
            "ring GB/s",
            "1 MiB (µs)",
            "64 MiB (µs)",
            "1 GiB (µs)",
            "1 GiB usual (µs)",
        ),
        rows,
    )
