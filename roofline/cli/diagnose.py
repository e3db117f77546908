"""``roofline diagnose``: why is mine slower, from what there is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Format, FormatOption, OutputOption, emit

if TYPE_CHECKING:
    from roofline.diagnose.verdict import Diagnosis


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("diagnose")(diagnose_command)


def diagnose_command(
    trace: Annotated[
        list[Path] | None, typer.Option(help="torch.profiler trace; one per rank when repeated.")
    ] = None,
    symptoms: Annotated[
        list[Path] | None,
        typer.Option(help="JSON or YAML of symptoms, DCGM text, out-of-memory message."),
    ] = None,
    benchmark: Annotated[
        list[Path] | None, typer.Option(help="Result file of a serving benchmark; repeatable.")
    ] = None,
    baseline: Annotated[Path | None, typer.Option(help="Record of the node.")] = None,
    earlier: Annotated[Path | None, typer.Option(help="Earlier record of the node.")] = None,
    fleet: Annotated[
        list[Path] | None, typer.Option(help="Records of other nodes; repeatable.")
    ] = None,
    topology: Annotated[
        Path | None, typer.Option(help="Output of nvidia-smi topo -m and nvlink -s.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="Measured record (spec id or file): its roofs.")
    ] = None,
    accelerator: Annotated[
        str | None, typer.Option(help="Spec id, for datasheet roofs without a record.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="With --accelerator: predict this model's step too.")
    ] = None,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Of the prediction.")] = 200,
    output_tokens: Annotated[int, typer.Option(min=1, help="Of the prediction.")] = 64,
    batch: Annotated[int, typer.Option(min=1, help="Of the prediction.")] = 1,
    incident: Annotated[
        Path | None, typer.Option(help="Write an incident record (Markdown) here.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the incident.")] = "Slow run",
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Walk the decision tree: causes with evidence, what would refute them, next step and gain."""
    from roofline.diagnose.tree import diagnose
    from roofline.errors import InputError
    from roofline.report.diagnosis_answer import diagnosis_answer

    if not any((trace, symptoms, benchmark, baseline, topology, machine)):
        raise InputError(
            "nothing to diagnose: give --trace, --symptoms, --benchmark, --baseline, --topology or "
            "--machine"
        )
    prediction: Any = None
    if model is not None:
        from roofline.api.predict import predict

        if accelerator is None:
            raise InputError("--model needs --accelerator SPEC_ID for its prediction")
        prediction = predict(
            model,
            accelerator,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            batch=batch,
            machine=machine,
        )
    found = diagnose(
        prediction=prediction,
        machine=machine,
        accelerator=accelerator,
        trace=list(trace) if trace else None,
        benchmark=list(benchmark or []),
        baseline=baseline,
        earlier=earlier,
        fleet=list(fleet or []),
        topology=topology,
        symptoms=list(symptoms) if symptoms else None,
    )
    inputs = {
        "trace": [str(path) for path in trace or []],
        "symptoms": [str(path) for path in symptoms or []],
        "benchmark": [str(path) for path in benchmark or []],
        "baseline": None if baseline is None else str(baseline),
        "earlier": None if earlier is None else str(earlier),
        "fleet": [str(path) for path in fleet or []],
        "topology": None if topology is None else str(topology),
        "machine": machine,
        "accelerator": accelerator,
        "model": model,
    }
    emit(diagnosis_answer(found, inputs), form, output)
    if incident is not None:
        _write_incident(found, incident, title, baseline, topology)


def _write_incident(
    found: "Diagnosis", path: Path, title: str, baseline: Path | None, topology: Path | None
) -> None:
    from roofline.diagnose.fabric_reader import read_fabric
    from roofline.diagnose.incident import incident_record
    from roofline.files import write_text
    from roofline.hardware.node_record import read_node_record

    text = incident_record(
        found,
        title=title,
        node=None if baseline is None else read_node_record(baseline),
        fabric=None if topology is None else read_fabric(topology),
    )
    write_text(path, text)
    typer.echo(f"wrote {path}", err=True)
