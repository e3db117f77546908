"""``roofline predict``: bounds, estimate, memory and fit of a model on an accelerator."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit

if TYPE_CHECKING:
    from roofline.api.predict import Prediction
    from roofline.timing.interval import Interval


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("predict")(predict_command)


def predict_command(
    model: Annotated[str, typer.Argument(help="Catalogue name, config.json or its folder.")],
    accelerator: Annotated[str, typer.Argument(help="Spec id or YAML file.")],
    prompt_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of a prompt.")] = None,
    output_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of an answer.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Sequences per replica.")] = 1,
    tp: Annotated[int, typer.Option(min=1, help="Tensor-parallel ranks.")] = 1,
    pp: Annotated[int, typer.Option(min=1, help="Pipeline stages.")] = 1,
    dp: Annotated[int, typer.Option(min=1, help="Data-parallel replicas.")] = 1,
    ep: Annotated[int, typer.Option(min=1, help="Expert-parallel ranks, of tp × dp.")] = 1,
    weights: Annotated[
        str | None, typer.Option(help="Storage format of the weights: bf16, fp8, int4, q4_k, …")
    ] = None,
    kv: Annotated[str | None, typer.Option(help="Storage format of the KV cache.")] = None,
    compute: Annotated[str | None, typer.Option(help="Compute type of the matmuls.")] = None,
    engine: Annotated[str, typer.Option(help="Engine, or ideal for none.")] = "ideal",
    engine_version: Annotated[str | None, typer.Option(help="Such as 0.19.")] = None,
    memory_fraction: Annotated[
        float | None, typer.Option(help="The engine's memory fraction, 0 to 1.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="Measured record (spec id or file) for the estimate.")
    ] = None,
    network: Annotated[str | None, typer.Option(help="Link between nodes, by name.")] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(help="Price of one accelerator-hour.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show formulas and numbers.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write the roofline as PNG, SVG or PDF.")
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Say what a model weighs, whether it fits, how fast it can be, and what limits it.

    Exit code 3: the batch does not fit.
    """
    from roofline.api.predict import predict
    from roofline.serving.engines import Engine
    from roofline.timing.parallel import Parallel

    prediction = predict(
        model,
        accelerator,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        batch=batch,
        parallel=Parallel(tp=tp, pp=pp, dp=dp, ep=ep),
        weights=weights,
        kv=kv,
        engine=Engine(engine, version=engine_version, memory_fraction=memory_fraction),
        machine=machine,
        compute=compute,
        network=network,
        usd_per_hour=usd_per_hour,
    )
    inputs = {
        "model": model,
        "accelerator": accelerator,
        "prompt_tokens": prediction.prompt_tokens,
        "output_tokens": prediction.output_tokens,
        "batch": batch,
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "ep": ep,
        "weights": weights,
        "kv": kv,
        "compute": compute,
        "engine": engine,
        "engine_version": engine_version,
        "memory_fraction": memory_fraction,
        "machine": machine,
        "network": network,
        "usd_per_hour": usd_per_hour,
    }
    emit(_answer(prediction, inputs, explained=explain), form, output)
    if plot is not None:
        from roofline.report.roofline_plot import roofline_figure, save_figure

        save_figure(roofline_figure(prediction), plot)
        typer.echo(f"wrote {plot}", err=True)
    if not prediction.fits:
        raise typer.Exit(3)


def _answer(prediction: "Prediction", inputs: dict[str, object], *, explained: bool) -> Answer:
    from roofline.api.explain import explain

    results = prediction.to_dict()
    lines = _headline(prediction)
    if explained:
        formulas = explain(prediction)
        results["explanation"] = formulas
        lines += ["", *formulas]
    return Answer(
        command="predict",
        inputs=inputs,
        results=results,
        tables=_tables(prediction),
        lines=lines,
        assumptions=prediction.assumptions,
    )


def _headline(prediction: "Prediction") -> list[str]:
    from roofline.units import show

    d = prediction.deployment
    where = d.accelerator.name
    if d.parallel.accelerators > 1:
        where = f"{d.parallel.accelerators} × {where} ({d.parallel})"
    lines = [
        f"{d.arch.name}, {d.arch.parameters:,} parameters, on {where}",
        f"prompt {prediction.prompt_tokens:,} + output {prediction.output_tokens:,} tokens, "
        f"batch {prediction.batch:,}, weights {d.weights_dtype}, KV {d.formats.kv}, "
        f"engine {d.engine.name}",
    ]
    memory = prediction.memory
    if prediction.fits:
        most = prediction.max_batch
        limit = "any batch" if most is None else f"batch {most:,} at most"
        longest = prediction.max_context_tokens
        context = "any context" if longest is None else f"{longest:,} tokens of context at most"
        lines.append(f"fits: {show(memory.free_bytes, 'GiB')} free; {limit}, or {context}")
    else:
        lines.append(
            f"DOES NOT FIT: {show(memory.missing_bytes, 'GiB')} missing on each accelerator "
            f"({show(memory.usable_bytes, 'GiB')} usable)"
        )
    return lines


def _tables(prediction: "Prediction") -> list[Table]:
    from roofline.units import show

    def words(interval: "Interval | None", unit: str) -> str:
        if interval is None:
            return "–"
        low, mid, high = (show(float(end), unit) for end in _ends(interval))
        return mid if low == mid == high else f"{mid}  ({low} – {high})"

    bound = prediction.bound
    times = Table(
        "Times",
        ["", "bound", "estimate (low – high)", "limited by"],
        [
            ["TTFT", show(bound.ttft_s, "s"), words(prediction.ttft_s, "s"),
             prediction.prefill.limited_by],
            ["TPOT", show(bound.tpot_s, "s"), words(prediction.tpot_s, "s"),
             prediction.decode.limited_by if bound.tpot_s is not None else "–"],
            ["total", show(bound.total_s, "s"), words(prediction.total_s, "s"), ""],
            ["output tokens/s", show(bound.output_tokens_per_s, ""),
             words(prediction.output_tokens_per_s, ""), ""],
            ["decode step, mid-output", show(prediction.decode.bound_s, "s"),
             words(prediction.decode.estimate_s, "s"), prediction.decode.limited_by],
        ],
    )  # fmt: skip
    memory = prediction.memory
    parts = [
        ("weights", memory.weights_bytes),
        (f"KV cache of {prediction.batch:,} sequences", memory.kv_cache_bytes),
        ("activation", memory.activation_bytes),
        *((part.name, part.bytes) for part in memory.parts),
        ("free", memory.free_bytes),
    ]
    held = Table(
        f"Memory of one accelerator, {show(memory.usable_bytes, 'GiB')} usable",
        ["part", "size", "share"],
        [
            [name, show(size, "GiB"), f"{size / memory.usable_bytes:.1%}"]
            for name, size in parts
            if size or name == "free"
        ],
    )
    points = prediction.turning_points
    facts = Table(
        "Roofline",
        ["", ""],
        [
            ["ridge", prediction.ridge],
            ["prefill", f"{show(prediction.prefill.intensity_flop_per_byte, 'FLOP/B')}, "
                        f"compute-bound from {_or_never(points.prefill_tokens)} prompt tokens"],
            ["decode", f"{show(prediction.decode.intensity_flop_per_byte, 'FLOP/B')}, "
                       f"compute-bound from batch {_or_never(points.decode_batch)}"],
            ["cache = weights", f"at {_or_never(points.context_cache_equals_weights)} tokens of "
                                "context of one sequence"],
            ["KV per token", show(prediction.kv_bytes_per_token, "B", 5)],
        ],
    )  # fmt: skip
    return [times, held, facts, _operators(prediction)]


def _operators(prediction: "Prediction") -> Table:
    from roofline.units import show

    return Table(
        "Decode step by operator",
        ["operator", "calls", "bound", "estimate", "share", "halved gains", "limited by"],
        [
            [row.name, f"{row.calls:g}", show(row.bound_s, "s"), show(row.estimate_s, "s"),
             f"{row.share:.1%}", f"{row.gain_if_halved:.1%}", row.limited_by]
            for row in prediction.decode.operators
        ],
    )  # fmt: skip


def _or_never(value: int | None) -> str:
    return "no" if value is None else f"{value:,}"


def _ends(interval: "Interval") -> tuple[float, float, float]:
    return float(interval.low), float(interval.mid), float(interval.high)
