"""``roofline predict``: bounds, estimate, memory and fit of a model on an accelerator."""

from pathlib import Path
from typing import Annotated

import typer

from roofline.cli.output import Format, FormatOption, OutputOption, emit, figure_path


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
        Path | None,
        typer.Option(callback=figure_path, help="Write the roofline as PNG, SVG or PDF."),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Say what a model weighs, whether it fits, how fast it can be, and what limits it.

    Exit code 3: the batch does not fit.
    """
    from roofline.api.predict import predict
    from roofline.report.prediction_answer import prediction_answer
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
    emit(prediction_answer(prediction, inputs, explained=explain), form, output)
    if plot is not None:
        from roofline.report.figure_file import save_figure
        from roofline.report.roofline_plot import roofline_figure

        save_figure(roofline_figure(prediction), plot)
        typer.echo(f"wrote {plot}", err=True)
    if not prediction.fits:
        raise typer.Exit(3)
