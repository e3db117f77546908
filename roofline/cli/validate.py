"""``roofline validate``: predictions against measurements, published, recorded or your own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Format, FormatOption, OutputOption, emit, figure_path
from roofline.files import write_text
from roofline.report.validation_answer import (
    beside_answer,
    memory_answer,
    scores_answer,
    training_answer,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

APART = {"memory": memory_answer, "training": training_answer}
"""Data sets without intervals and engines, which are judged by themselves."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("validate")(validate_command)


def validate_command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="serving, engines, decoder, peaks, memory, training, a machine such as h200, or "
            "a benchmark file."
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(help="Group by: dataset, engine, quantity, accelerator, model, group.")
    ] = "dataset,engine,quantity",
    engine: Annotated[str, typer.Option(help="Rows of this engine; what served a file.")] = "",
    accelerator: Annotated[str, typer.Option(help="Rows of this spec id; what ran a file.")] = "",
    model: Annotated[str, typer.Option(help="Rows of this model; the model of a file.")] = "",
    tp: Annotated[int, typer.Option(min=1, help="Tensor-parallel ranks behind a file.")] = 1,
    dp: Annotated[int, typer.Option(min=1, help="Replicas behind a file.")] = 1,
    ep: Annotated[int, typer.Option(min=1, help="Expert-parallel ranks behind a file.")] = 1,
    weights: Annotated[str | None, typer.Option(help="Storage of a file's weights.")] = None,
    kv: Annotated[str | None, typer.Option(help="Storage of a file's KV cache.")] = None,
    machine: Annotated[str | None, typer.Option(help="Measured record for a file.")] = None,
    prompt_tokens: Annotated[
        float | None, typer.Option(min=1, help="Where a file does not state it.")
    ] = None,
    output_tokens: Annotated[
        float | None, typer.Option(min=1, help="Where a file does not state it.")
    ] = None,
    batch: Annotated[
        float | None, typer.Option(min=1, help="Where a file does not state it.")
    ] = None,
    worst: Annotated[int, typer.Option(min=0, max=1000, help="How many worst rows.")] = 10,
    plot: Annotated[
        Path | None,
        typer.Option(
            callback=figure_path, help="Write predicted against measured as PNG, SVG or PDF."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 3 when an error has grown since it was committed.")
    ] = False,
    record: Annotated[
        Path | None, typer.Option(help="Write the errors as expectations to this file.")
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Compare predictions with measurements: errors by group, exclusions, bounds, worst rows."""
    names = what or []
    files = [name for name in names if _is_file(name)]
    if files:
        _files(
            files, names, form, output, accelerator=accelerator, model=model or None,
            engine=engine or None, tp=tp, dp=dp, ep=ep, weights=weights, kv=kv, machine=machine,
            prompt_tokens=prompt_tokens, output_tokens=output_tokens, batch=batch,
        )  # fmt: skip
        return
    if len(names) == 1 and names[0] in APART:
        emit(APART[names[0]](worst), form, output)
        return
    from roofline.validation.gate import expectations, expected_path, grown, read_expectations
    from roofline.validation.validate import validate

    validation = validate(
        names or None, by=[field.strip() for field in by.split(",") if field.strip()],
        engine=engine, accelerator=accelerator, model=model,
    )  # fmt: skip
    lines = grown(validation, read_expectations(expected_path())) if check else ()
    emit(scores_answer(validation, names, worst, lines), form, output)
    if plot is not None:
        from roofline.report.validation_plot import save_validation_figure

        save_validation_figure(validation, plot)
        typer.echo(f"wrote {plot}", err=True)
    if record is not None:
        import json

        write_text(record, json.dumps(expectations(validation), indent=1) + "\n")
        typer.echo(f"wrote {record}", err=True)
    if lines:
        raise typer.Exit(3)


def _is_file(name: str) -> bool:
    return Path(name).exists() or Path(name).suffix in (".json", ".jsonl", ".csv", ".gz")


def _files(
    files: "Sequence[str]", names: "Sequence[str]", form: Format, output: Path | None, *,
    accelerator: str, tp: int, dp: int, ep: int, **settings: Any,
) -> None:  # fmt: skip
    from roofline.errors import InputError
    from roofline.timing.parallel import Parallel
    from roofline.validation.beside import beside

    others = [name for name in names if name not in files]
    if others:
        raise InputError(f"{others[0]!r} is a data set; validate it without benchmark files")
    if not accelerator:
        raise InputError("no benchmark file states the accelerator; give --accelerator")
    plan = Parallel(tp=tp, dp=dp, ep=ep)
    found = [
        each for name in files for each in beside(name, accelerator, parallel=plan, **settings)
    ]
    emit(beside_answer(found, files, accelerator), form, output)
