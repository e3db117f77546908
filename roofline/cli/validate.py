"""``roofline validate``: predictions against measurements, published, recorded or your own."""

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
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roofline.validation.beside import Beside
    from roofline.validation.datasets import Left
    from roofline.validation.scores import Point, Score
    from roofline.validation.validate import Validation

MEMORY = "memory"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("validate")(validate_command)


def validate_command(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="serving, engines, decoder, memory, or a benchmark file; all if none."),
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
        Path | None, typer.Option(help="Write predicted against measured as PNG, SVG or PDF.")
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
    if names == [MEMORY]:
        emit(_memory_answer(worst), form, output)
        return
    from roofline.validation.gate import expectations, expected_path, grown, read_expectations
    from roofline.validation.validate import validate

    validation = validate(
        names or None, by=[field.strip() for field in by.split(",") if field.strip()],
        engine=engine, accelerator=accelerator, model=model,
    )  # fmt: skip
    lines = grown(validation, read_expectations(expected_path())) if check else ()
    emit(_answer(validation, names, worst, lines), form, output)
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


def _answer(
    validation: "Validation", names: "Sequence[str]", worst: int, grown: "Sequence[str]"
) -> Answer:
    overall = validation.overall()
    found = validation.violations()
    lines = [
        f"{validation.total:,} rows; {overall.bounded:,} bounded, {overall.rows:,} estimated "
        "(none of them in a fit)",
        f"bounds above a measurement: {len(found)}; closest {overall.tightest:.2f} × its bound",
    ]
    if overall.rows:
        lines.append(
            f"error: median {overall.median_error:.1%}, 90th percentile {overall.p90_error:.1%}, "
            f"bias {overall.bias:+.1%}; {overall.coverage:.0%} inside their interval"
        )
    results = validation.to_dict()
    results["worst"] = [point.to_dict() for point in validation.worst(worst)]
    return Answer(
        command="validate",
        inputs={"what": list(names), "by": list(validation.by), "engine": validation.engine,
                "accelerator": validation.accelerator, "model": validation.model},
        results=results,
        tables=[
            _scores_table(validation.scores(), validation.by),
            _left_table(validation.left),
            _points_table("Worst estimates", validation.worst(worst)),
            _points_table("Closest to their bound", validation.closest(min(worst, 10))),
        ],
        lines=lines,
        warnings=list(grown),
    )  # fmt: skip


def _scores_table(scores: "Sequence[Score]", by: "Sequence[str]") -> Table:
    return Table(
        "Errors by group",
        [*by, "rows", "median error", "90th pct", "bias", "inside", "high/low", "bounded",
         "above", "closest"],
        [
            [*each.key.values(), each.rows, *(_percent(v) for v in (each.median_error,
             each.p90_error)), _percent(each.bias, signed=True), _percent(each.coverage),
             _times(each.width), each.bounded, each.violations, _times(each.tightest)]
            for each in scores
        ],
    )  # fmt: skip


def _percent(value: float, *, signed: bool = False) -> str:
    if value != value:  # NaN: no rows
        return "–"
    return f"{value:+.1%}" if signed else f"{value:.1%}"


def _times(value: float) -> str:
    return "–" if value != value else f"{value:.2f}×"


def _left_table(left: "Sequence[Left]") -> Table:
    return Table(
        "Left out, and why",
        ["data set", "judges no", "rows", "what", "reason"],
        [[each.dataset, each.use, each.rows, each.name, each.reason] for each in left],
    )


def _points_table(title: str, points: "Sequence[Point]") -> Table:
    from roofline.validation.datasets import shown

    return Table(
        title,
        ["id", "engine", "accelerator", "model", "quantity", "setting", "measured", "estimate",
         "bound", "measured/bound"],
        [
            [p.id, p.engine, p.accelerator, p.model, p.quantity, p.setting, shown(p, p.measured),
             shown(p, p.mid), shown(p, p.bound), _times(p.over_bound)]
            for p in points
        ],
    )  # fmt: skip


def _memory_answer(worst: int) -> Answer:
    from roofline.validation.memory import validate_memory

    found = validate_memory()
    summary = found.summary()
    columns = list(summary[0])
    rows = [[_shown(each[name]) for name in columns] for each in summary]
    largest = found.largest(worst)
    refused = [[each.id, each.reason] for each in found.refused]
    return Answer(
        command="validate",
        inputs={"what": [MEMORY]},
        results={"summary": summary, "rows": [vars(row) | {"error": row.error}
                 for row in found.rows], "refused": [vars(each) for each in found.refused]},
        tables=[
            Table("Memory against engines' logs and files", columns, rows),
            Table("Largest errors", ["id", "quantity", "model", "setting", "predicted (GiB)",
                  "measured (GiB)", "error", "role", "why"],
                  [[r.id, r.quantity, r.model, r.setting, f"{r.predicted:.3f}",
                    f"{r.measured:.3f}", f"{r.error:+.1%}", r.role, r.reason] for r in largest]),
            Table("Not judged", ["id", "reason"], refused),
        ],
        lines=[f"{len(found.judged())} rows judged, {len(found.refused)} lines not"],
    )  # fmt: skip


def _shown(value: Any) -> str:
    return f"{value:.2%}" if isinstance(value, float) else str(value)


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
    emit(_beside_answer(found, files, accelerator), form, output)


def _beside_answer(found: "Sequence[Beside]", files: "Sequence[str]", accelerator: str) -> Answer:
    from roofline.units import show

    def words(name: str, value: float) -> str:
        return show(value, "tok/s" if name.endswith("per_s") else "s")

    rows = [
        [each.run.raw_path, each.run.tool, f"{each.batch:.4g}", q.name,
         words(q.name, q.measured), words(q.name, q.bound), words(q.name, float(q.estimate.mid)),
         f"{words(q.name, float(q.estimate.low))} – {words(q.name, float(q.estimate.high))}",
         f"{q.over_estimate:.2f}×", "yes" if q.inside else "no"]
        for each in found
        for q in each.quantities
    ]  # fmt: skip
    definitions = {each.run.tool: each.run.tpot_definition for each in found}
    return Answer(
        command="validate",
        inputs={"what": list(files), "accelerator": accelerator},
        results=[each.to_dict() for each in found],
        tables=[
            Table("Measured beside predicted", ["run", "tool", "running batch", "quantity",
                  "measured", "bound", "estimate", "low – high", "measured/estimate", "inside"],
                  rows)
        ],
        lines=[f"{tool}: TPOT is {what}" for tool, what in definitions.items() if what],
        assumptions=list(dict.fromkeys(line for each in found for line in each.assumptions)),
    )  # fmt: skip
