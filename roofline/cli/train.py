"""``roofline train``: memory, step time, utilisation, days and cost of a training run."""

from dataclasses import replace
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
    from roofline.training.plan import TrainingPlan


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("train")(train_command)


PLACES = ("network", "machine", "form", "output", "model", "accelerator", "plot")
CHOSEN = ("accelerators", "global_batch", "sequence_tokens", "tokens", "usd_per_hour", *PLACES)
TAKES = {
    "scenario": ("scenario", *CHOSEN),
    "scale": (
        "scale", "sequence_tokens", "optimiser", "lora_rank", "offload", "micro_batch", "tp", "pp",
        "cp", "ep", "zero_stage", "interleave", "sequence_parallel", "recompute", "mode", *PLACES,
    ),
    "accelerators": ("mode", "optimiser", "lora_rank", "offload", *CHOSEN),
}  # fmt: skip
"""What each question takes; the rest it finds itself, or has no use for."""


def train_command(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="Catalogue name, config.json or its folder.")],
    accelerator: Annotated[str, typer.Argument(help="Spec id or YAML file.")],
    mode: Annotated[str | None, typer.Option(help="amp, bf16, mixed, fp32, lora or qlora.")] = None,
    sequence_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a sequence.")] = 2048,
    micro_batch: Annotated[int, typer.Option(min=1, help="Sequences at a time.")] = 1,
    global_batch: Annotated[
        int | None, typer.Option(min=1, help="Sequences of a step, over all replicas.")
    ] = None,
    recompute: Annotated[str, typer.Option(help="none, selective or full.")] = "none",
    optimiser: Annotated[
        str, typer.Option(help="adam, adam8bit, adafactor, sgd, momentum or muon.")
    ] = "adam",
    lora_rank: Annotated[int, typer.Option(min=1, help="Rank of the adapters.")] = 16,
    tp: Annotated[int, typer.Option(min=1, help="Tensor-parallel ranks.")] = 1,
    pp: Annotated[int, typer.Option(min=1, help="Pipeline stages.")] = 1,
    cp: Annotated[int, typer.Option(min=1, help="Context-parallel ranks.")] = 1,
    dp: Annotated[int, typer.Option(min=1, help="Data-parallel replicas.")] = 1,
    ep: Annotated[int, typer.Option(min=1, help="Expert-parallel ranks, of all.")] = 1,
    zero_stage: Annotated[int, typer.Option(min=0, max=3, help="ZeRO stage; 3 is FSDP.")] = 0,
    interleave: Annotated[int, typer.Option(min=1, help="Chunks on a pipeline rank.")] = 1,
    sequence_parallel: Annotated[
        bool, typer.Option("--sequence-parallel", help="Divide norms over tp ranks too.")
    ] = False,
    offload: Annotated[
        list[str] | None, typer.Option(help="optimiser, parameters or activations; repeatable.")
    ] = None,
    tokens: Annotated[float | None, typer.Option(help="Tokens of the whole run.")] = None,
    accelerators: Annotated[
        int | None, typer.Option(min=1, help="Find the best plan for so many accelerators.")
    ] = None,
    scenario: Annotated[
        str | None, typer.Option(help="Recommend for pre-training, fine-tuning or lora.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Data-parallel degrees to compare, such as 8,16,32.")
    ] = None,
    network: Annotated[str | None, typer.Option(help="Link between nodes, by name.")] = None,
    machine: Annotated[
        str | None, typer.Option(help="Measured record (spec id or file) for the estimate.")
    ] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(help="Price of one accelerator-hour.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(callback=figure_path, help="Write memory and step as PNG, SVG or PDF."),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Say whether training fits, what a step takes and what limits it.

    Exit code 3: it does not fit.
    """
    from roofline.api.train import train
    from roofline.report.training_answer import training_answer

    _refuse_unused(context, mode)
    common: dict[str, Any] = {
        "sequence_tokens": sequence_tokens,
        "optimiser": optimiser,
        "lora_rank": lora_rank,
        "offload": tuple(offload or ()),
    }
    spread: dict[str, Any] = {
        "micro_batch": micro_batch, "tp": tp, "pp": pp, "cp": cp, "dp": dp, "ep": ep,
        "zero_stage": zero_stage, "interleave": interleave,
        "sequence_parallel": sequence_parallel, "mode": mode,
    }  # fmt: skip
    if scale is not None:
        settings = {**common, **spread, "recompute": recompute}
        _scale(model, accelerator, scale, settings, network, machine, plot, form, output)
        return
    run: dict[str, Any] = {
        "tokens": tokens, "network": network, "usd_per_hour": usd_per_hour, "machine": machine,
    }  # fmt: skip
    reasons: tuple[str, ...] = ()
    if scenario is not None:
        asked = {
            "accelerators": accelerators or 1, "global_batch": global_batch or 8,
            "sequence_tokens": sequence_tokens, "network": network, "machine": machine,
        }  # fmt: skip
        plan, reasons = _advised(model, accelerator, scenario, asked, form, output)
        result = train(model, accelerator, plan=plan, **run)
    elif accelerators is not None:
        settings = {**common, "mode": mode, "network": network, "machine": machine}
        plan = _best(model, accelerator, accelerators, global_batch, settings)
        result = train(model, accelerator, plan=plan, **run)
    else:
        result = train(
            model, accelerator, recompute=recompute, global_batch=global_batch,
            **run, **common, **spread,
        )  # fmt: skip
    answer = training_answer(
        result, model, accelerator, {**run, "mode": mode, "scenario": scenario}
    )
    emit(replace(answer, lines=[*reasons, *answer.lines]), form, output)
    if plot is not None:
        from roofline.report.training import save_training_figure

        save_training_figure(result, plot)
        typer.echo(f"wrote {plot}", err=True)
    if not result.fits:
        raise typer.Exit(3)


def _refuse_unused(context: typer.Context, mode: str | None) -> None:
    """Refuse options that this question would not look at, rather than ignore them."""
    from roofline.errors import InputError

    given = given_options(context)
    question = next((name for name in TAKES if name in given), None)
    if question is not None:
        refuse_unused(given, TAKES[question], f"--{question}")
    if "lora_rank" in given and mode not in ("lora", "qlora"):
        raise InputError("--lora-rank needs --mode lora or --mode qlora")


def _best(
    model: str,
    accelerator: str,
    accelerators: int,
    global_batch: int | None,
    settings: dict[str, Any],
) -> "TrainingPlan":
    from roofline.api.train_choice import best_training
    from roofline.errors import InputError
    from roofline.units import show

    found = best_training(
        model, accelerator, accelerators=accelerators, global_batch=global_batch or accelerators,
        **settings,
    )  # fmt: skip
    if found.best is not None:
        return found.best.plan
    miss = found.nearest_miss
    if miss is None:
        raise InputError(f"no plan could be laid over {model}")
    typer.echo(
        f"none of {found.tried} plans fits; the nearest needs "
        f"{show(miss.memory.needed_bytes, 'GiB')} of {show(miss.usable_bytes, 'GiB')}",
        err=True,
    )
    return miss.plan


def _scale(
    model: str,
    accelerator: str,
    scale: str,
    settings: dict[str, Any],
    network: str | None,
    machine: str | None,
    plot: Path | None,
    form: Format,
    output: Path | None,
) -> None:
    from roofline.api.train_scaling import training_scaling
    from roofline.errors import InputError
    from roofline.report.training_answer import words

    try:
        replicas = [int(part) for part in scale.split(",")]
    except ValueError:
        raise InputError(f"--scale takes whole numbers such as 8,16,32, got {scale!r}") from None
    curve = training_scaling(
        model, accelerator, replicas, network=network, machine=machine, **settings
    )
    hides = curve.hiding_micro_batch
    line = "no micro-batch up to 64 sequences hides the gradient exchange"
    if hides is not None:
        line = f"the gradient exchange hides from micro-batch {hides} on"
    rows = [
        [
            point.accelerators, words(point.step.tokens_per_s, ""), f"{point.speed_up:.2f} ×",
            f"{point.efficiency:.0%}", point.lost_to or "–",
        ]
        for point in curve.points
    ]  # fmt: skip
    answer = Answer(
        command="train",
        inputs={"model": model, "accelerator": accelerator, "scale": replicas, **settings},
        results=curve.to_dict(),
        tables=[
            Table(
                "Scaling",
                ["accelerators", "tokens/s (low – high)", "speed-up", "efficiency", "lost to"],
                rows,
            )
        ],
        lines=[
            f"{model} on {accelerator}, {replicas[0]} replicas and more",
            f"at {curve.points[-1].accelerators} accelerators {line}",
        ],
        assumptions=curve.assumptions,
    )
    emit(answer, form, output)
    if plot is not None:
        from roofline.report.figure_file import save_figure
        from roofline.report.training import scaling_figure

        save_figure(scaling_figure(curve.points, f"{model} on {accelerator}"), plot)
        typer.echo(f"wrote {plot}", err=True)


def _advised(
    model: str,
    accelerator: str,
    scenario: str,
    asked: dict[str, Any],
    form: Format,
    output: Path | None,
) -> tuple["TrainingPlan", tuple[str, ...]]:
    """Take the plan that is recommended and why; say why there is none, and leave with 3."""
    from roofline.api.train_choice import training_advice

    advice = training_advice(model, accelerator, scenario, **asked)
    if advice.candidate is not None:
        return advice.candidate.plan, advice.lines
    answer = Answer(
        command="train",
        inputs={"model": model, "accelerator": accelerator, "scenario": scenario, **asked},
        results={"fits": False},
        lines=advice.lines,
    )
    emit(answer, form, output)
    raise typer.Exit(3)
