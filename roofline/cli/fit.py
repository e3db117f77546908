"""``roofline fit``: where a model fits, how much of it, and why not elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit, figure_path
from roofline.dtypes import find_dtype
from roofline.errors import InputError, RooflineError
from roofline.hardware.accelerator import Accelerator, accelerator_ids, load_accelerator
from roofline.models.catalogue import model_names
from roofline.models.config import load_model
from roofline.serving.alternatives import formats_that_fit, models_that_fit
from roofline.serving.engines import ENGINE_NAMES, Engine
from roofline.serving.extras import Extras
from roofline.serving.fit import Fit, fit
from roofline.serving.placement import Placement
from roofline.timing.parallel import Parallel
from roofline.units import GIB


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("fit")(fit_command)


def fit_command(
    model: Annotated[str, typer.Argument(help="Catalogue name, or path to a config.json.")],
    gpu: Annotated[
        list[str] | None, typer.Option("--gpu", help="Accelerator id or YAML file; repeatable.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every accelerator there is.")] = False,
    prompt_tokens: Annotated[int, typer.Option(help="Tokens of each prompt.")] = 2048,
    output_tokens: Annotated[int, typer.Option(help="Tokens of each answer.")] = 256,
    batch: Annotated[int, typer.Option(help="Sequences at once, per replica.")] = 1,
    tp: Annotated[int, typer.Option(help="Tensor-parallel ranks.")] = 1,
    pp: Annotated[int, typer.Option(help="Pipeline stages.")] = 1,
    ep: Annotated[int, typer.Option(help="Expert-parallel ranks.")] = 1,
    dp: Annotated[int, typer.Option(help="Data-parallel replicas.")] = 1,
    weights: Annotated[str | None, typer.Option(help="Storage format of the weights.")] = None,
    kv: Annotated[str | None, typer.Option(help="Storage format of the KV cache.")] = None,
    engine: Annotated[str, typer.Option(help=f"One of {', '.join(ENGINE_NAMES)}.")] = "ideal",
    engine_version: Annotated[str | None, typer.Option(help="Such as 0.19.")] = None,
    memory_fraction: Annotated[float | None, typer.Option(help="The engine's fraction.")] = None,
    lora_adapters: Annotated[int, typer.Option(help="LoRA adapters held at once.")] = 0,
    lora_rank: Annotated[int, typer.Option(help="Their rank.")] = 16,
    towers: Annotated[bool, typer.Option(help="Count vision and audio encoders.")] = False,
    prediction_layers: Annotated[
        bool, typer.Option(help="Count multi-token-prediction layers.")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(callback=figure_path, help="Draw the bars of memory as PNG, SVG or PDF."),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Where does a model fit, how much of it, and why not elsewhere?"""
    if prompt_tokens < 0 or output_tokens < 0 or prompt_tokens + output_tokens < 1:
        raise InputError(
            f"prompt and output have at least one token together, got {prompt_tokens} and "
            f"{output_tokens}"
        )
    cards = _cards(gpu, every)
    placement = Placement(
        load_model(model),
        cards[0],
        Parallel(tp=tp, pp=pp, dp=dp, ep=ep),
        None if weights is None else find_dtype(weights),
        None if kv is None else find_dtype(kv),
        Engine(engine, version=engine_version, memory_fraction=memory_fraction),
        Extras(lora_adapters, lora_rank, towers=towers, prediction_layers=prediction_layers),
    )
    context = prompt_tokens + output_tokens
    rows = fit(placement, cards, batch=batch, context_tokens=context)
    answer = _answer(placement, rows, model=model, batch=batch, context=context)
    emit(answer, form, output)
    if figure is not None:
        _draw(rows, figure)
    if not any(row.fits for row in rows):
        raise typer.Exit(3)


def _cards(gpu: list[str] | None, every: bool) -> list[Accelerator]:
    if every and gpu:
        raise InputError("give --gpu or --all, not both")
    if not every and not gpu:
        raise InputError("say on which accelerator: --gpu ID (roofline specs lists them) or --all")
    return [load_accelerator(name) for name in (accelerator_ids() if every else gpu or [])]


def _answer(
    placement: Placement, rows: tuple[Fit, ...], *, model: str, batch: int, context: int
) -> Answer:
    arch = placement.arch
    lines = [
        f"{arch.name}: {batch} sequence(s) of {context:,} tokens on {placement.parallel}, "
        f"{placement.engine.name}"
    ]
    tables = [_table(rows)]
    if len(rows) == 1 and rows[0].memory is not None:
        lines.append(f"Rule: {rows[0].memory.rule}")
        tables.append(_bar_table(rows[0]))
        if not rows[0].fits:
            one = _on(placement, rows[0])
            tables.append(_formats_table(one, batch, context))
            lines.append(_models_line(one, batch, context))
    memory = next((row.memory for row in rows if row.memory is not None), None)
    return Answer(
        command="fit",
        inputs={
            "model": model, "batch": batch, "context_tokens": context,
            "parallel": str(placement.parallel), "engine": placement.engine.name,
            "weights": str(placement.weights or "the checkpoint's own"),
            "kv": str(placement.kv_format),
        },
        results=[_result(row) for row in rows],
        tables=tables,
        lines=lines,
        assumptions=(*arch.assumptions, *(() if memory is None else memory.assumptions)),
    )  # fmt: skip


def _on(placement: Placement, row: Fit) -> Placement:
    return replace(placement, accelerator=row.accelerator)


def _plan(parallel: Parallel | None) -> str:
    if parallel is None:
        return "–"
    return str(parallel) if parallel.accelerators > 1 else "1"


def _gib(size: float | None) -> float | None:
    return None if size is None else round(size / GIB, 2)


def _table(rows: tuple[Fit, ...]) -> Table:
    cells: list[list[Any]] = []
    for row in sorted(rows, key=lambda row: not row.fits):
        memory = row.memory
        cells.append([
            row.accelerator.id,
            "yes" if row.fits else "no",
            _gib(memory.usable_bytes) if memory else None,
            _gib(memory.weights_bytes) if memory else None,
            _gib(memory.kv_cache_bytes) if memory else None,
            _gib(memory.activation_bytes + memory.overhead_bytes) if memory else None,
            _gib(memory.free_bytes) if memory else None,
            row.max_batch if row.memory else None,
            row.max_context_tokens if row.memory else None,
            _plan(row.fewest),
            row.reason,
        ])  # fmt: skip
    return Table(
        "Fit (GiB per accelerator; most sequences at this context, longest context at this batch)",
        ("accelerator", "fits", "GiB", "weights", "KV", "engine", "free", "sequences", "context",
         "fewest", "why not"),
        cells,
    )  # fmt: skip


def _bar_table(row: Fit) -> Table:
    memory = row.memory
    if memory is None:
        return Table("Memory", ("part", "GiB", "source"), [])
    cells: list[list[Any]] = [
        ["weights", _gib(memory.weights_bytes), "the architecture's matrices and formats"],
        ["KV cache of the batch", _gib(memory.kv_cache_bytes), "what each layer keeps"],
        ["activation peak", _gib(memory.activation_bytes), "the engine's rule"],
        *([part.name, _gib(part.bytes), part.source] for part in memory.parts),
        ["free", _gib(memory.free_bytes), ""],
        ["missing", _gib(memory.missing_bytes), ""],
    ]
    return Table(f"Memory of one {row.accelerator.id}", ("part", "GiB", "source"), cells)


def _formats_table(placement: Placement, batch: int, context: int) -> Table:
    found = formats_that_fit(placement, batch, context)
    cells = [
        [entry.weights.name, entry.weights.bits, _gib(entry.memory.weights_bytes),
         entry.max_context_tokens]
        for entry in found
    ]  # fmt: skip
    return Table("Formats that would fit", ("weights", "bits", "GiB", "max context"), cells)


def _models_line(placement: Placement, batch: int, context: int) -> str:
    models = []
    for name in model_names():
        try:
            models.append(load_model(name))
        except RooflineError:
            continue  # an entry that does not load is the catalogue's test's business
    fitting = models_that_fit(placement, models, batch, context)
    if not fitting:
        return "No model of the catalogue fits here as asked."
    names = ", ".join(arch.name for arch in fitting)
    return f"Largest models of the catalogue that fit here: {names}"


def _result(row: Fit) -> dict[str, Any]:
    memory = row.memory
    return {
        "accelerator": row.accelerator.id,
        "fits": row.fits,
        "max_batch": row.max_batch,
        "max_context_tokens": row.max_context_tokens,
        "fewest_accelerators": None if row.fewest is None else row.fewest.accelerators,
        "fewest_plan": None if row.fewest is None else str(row.fewest),
        "reason": row.reason,
        "memory": None if memory is None else memory.to_dict(),
    }


def _draw(rows: tuple[Fit, ...], path: Path) -> None:
    from roofline.report.memory import save_memory_figure

    memories = {row.accelerator.id: row.memory for row in rows if row.memory is not None}
    save_memory_figure(memories, path)
