"""``roofline train``: memory, step time, utilisation, days and cost of a training run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit

if TYPE_CHECKING:
    from roofline.api.training_result import Training
    from roofline.timing.interval import Interval


JOULES_PER_MWH = 3.6e9


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("train")(train_command)


def train_command(
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
    network: Annotated[str | None, typer.Option(help="Link between nodes, by name.")] = None,
    machine: Annotated[
        str | None, typer.Option(help="Measured record (spec id or file) for the estimate.")
    ] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option(help="Price of one accelerator-hour.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write memory and step as PNG, SVG or PDF.")
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Say whether training fits, what a step takes and what limits it.

    Exit code 3: it does not fit.
    """
    from roofline.api.train import train

    if scenario is not None:
        asked = {
            "accelerators": accelerators or 1,
            "global_batch": global_batch or 8,
            "sequence_tokens": sequence_tokens,
            "network": network,
            "machine": machine,
        }
        _advise(model, accelerator, scenario, asked, form, output)
        return
    common: dict[str, Any] = {
        "sequence_tokens": sequence_tokens,
        "optimiser": optimiser,
        "lora_rank": lora_rank,
        "offload": tuple(offload or ()),
    }
    warnings: list[str] = []
    if accelerators is not None:
        found = _best(model, accelerator, accelerators, global_batch, mode, network, common)
        result = train(
            model, accelerator, plan=found, tokens=tokens, network=network,
            usd_per_hour=usd_per_hour, machine=machine,
        )  # fmt: skip
    else:
        common |= {
            "micro_batch": micro_batch, "tp": tp, "pp": pp, "cp": cp, "dp": dp, "ep": ep,
            "zero_stage": zero_stage, "interleave": interleave,
            "sequence_parallel": sequence_parallel,
        }  # fmt: skip
        result = train(
            model, accelerator, mode=_mode(mode), recompute=recompute, global_batch=global_batch,
            tokens=tokens, network=network, usd_per_hour=usd_per_hour, machine=machine, **common,
        )  # fmt: skip
    inputs = {"model": model, "accelerator": accelerator, **result.to_dict()["plan"]}
    inputs |= {"mode": mode, "tokens": tokens, "network": network, "machine": machine}
    inputs["usd_per_hour"] = usd_per_hour
    answer = Answer(
        command="train",
        inputs=inputs,
        results=result.to_dict(),
        tables=_tables(result),
        lines=_headline(result),
        assumptions=result.assumptions,
        warnings=warnings,
    )
    emit(answer, form, output)
    if plot is not None:
        from roofline.report.training import save_training_figure

        save_training_figure(result, plot)
        typer.echo(f"wrote {plot}", err=True)
    if not result.fits:
        raise typer.Exit(3)


def _mode(mode: str | None) -> Any:
    """Give the word on as it is: ``train`` checks it and says what there is."""
    return mode


def _best(
    model: str,
    accelerator: str,
    accelerators: int,
    global_batch: int | None,
    mode: str | None,
    network: str | None,
    common: dict[str, Any],
) -> Any:
    from roofline.api.train_choice import best_training
    from roofline.errors import InputError
    from roofline.units import show

    found = best_training(
        model, accelerator, accelerators=accelerators, global_batch=global_batch or accelerators,
        mode=_mode(mode), network=network, **common,
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


def _advise(
    model: str,
    accelerator: str,
    scenario: str,
    asked: dict[str, Any],
    form: Format,
    output: Path | None,
) -> None:
    from roofline.api.train_choice import training_advice
    from roofline.training.choice import plan_words

    advice = training_advice(model, accelerator, scenario, **asked)
    best = advice.candidate
    results: dict[str, Any] = {"scenario": scenario, "fits": best is not None}
    rows: list[list[Any]] = []
    if best is not None and best.step is not None:
        results |= {
            "plan_words": plan_words(best.plan),
            "needed_bytes": best.memory.needed_bytes,
            "usable_bytes": best.usable_bytes,
            "tokens_per_s": best.step.tokens_per_s.to_dict(),
        }
        rows = [[name, value] for name, value in results.items() if name != "tokens_per_s"]
    answer = Answer(
        command="train",
        inputs={"model": model, "accelerator": accelerator, "scenario": scenario, **asked},
        results=results,
        tables=[Table("Recommendation", ["", ""], rows)] if rows else [],
        lines=advice.lines,
    )
    emit(answer, form, output)
    if best is None:
        raise typer.Exit(3)


def _headline(result: "Training") -> list[str]:
    from roofline.training.choice import plan_words
    from roofline.units import show

    plan = result.plan
    lines = [
        f"{result.arch.name}, {result.arch.parameters:,} parameters, "
        f"{round(result.trainable):,} trained, on {plan.accelerators} × {result.accelerator.name}",
        f"{plan_words(plan)}; {plan.global_batch:,} × {plan.sequence_tokens:,} tokens a step",
    ]
    needed, usable = result.memory.needed_bytes, result.usable_bytes
    if result.fits:
        lines.append(f"fits: {show(usable - needed, 'GiB')} free at the {_peak(result)}")
    else:
        lines.append(
            f"DOES NOT FIT: {show(needed - usable, 'GiB')} missing on each accelerator at the "
            f"{_peak(result)} ({show(usable, 'GiB')} usable)"
        )
    return lines


def _peak(result: "Training") -> str:
    return f"peak ({result.memory.peak_moment})"


def _words(interval: "Interval", unit: str) -> str:
    from roofline.units import show

    low, mid, high = (float(end) for end in (interval.low, interval.mid, interval.high))
    return f"{show(mid, unit)}  ({show(low, unit)} – {show(high, unit)})"


def _tables(result: "Training") -> list[Table]:
    from roofline.training.memory import PART_WORDS
    from roofline.training.step_time import PHASE_WORDS
    from roofline.units import show

    step = result.step
    rows = [
        ["step", show(step.bound.seconds, "s"), _words(step.step_s, "s")],
        ["tokens/s", show(step.tokens / step.bound.seconds, ""), _words(step.tokens_per_s, "")],
        ["MFU", "", _percent(step.mfu)],
        ["HFU", "", _percent(step.hfu)],
        ["FLOP a step, exact", show(step.model_flop, "FLOP"), ""],
        [
            "FLOP a step, 6·N",
            show(result.to_dict()["step"]["rule_of_thumb_flop"], "FLOP"),
            "",
        ],
    ]
    run = result.run
    if run is not None:
        rows.append(["run", "", _words(run.seconds, "s")])
        if run.energy_j is not None:
            rows.append(
                ["energy at rated power, MWh", "", _words(run.energy_j.scaled(1 / 3.6e9), "")]
            )
        if run.usd is not None:
            rows.append(["cost, USD", "", _words(run.usd, "")])
    times = Table(
        f"Time, limited by {step.bound.limited_by}", ["", "bound", "estimate (low – high)"], rows
    )
    total = step.parts.total
    phases = Table(
        "Where a step goes (middle of the estimate)",
        ["phase", "time", "share"],
        [
            [
                words,
                show(getattr(step.parts, name), "s"),
                f"{getattr(step.parts, name) / total:.1%}",
            ]
            for name, words in PHASE_WORDS.items()
            if getattr(step.parts, name) > 0
        ],
    )
    parts = result.memory.peak.by_name()
    held = Table(
        f"Memory of one accelerator at the {_peak(result)}, "
        f"{show(result.usable_bytes, 'GiB')} usable",
        ["part", "size", "share"],
        [
            *(
                [PART_WORDS[name], show(size, "GiB"), f"{size / result.usable_bytes:.1%}"]
                for name, size in parts.items()
                if size > 0
            ),
            [
                "outside the allocator",
                show(result.memory.outside_bytes, "GiB"),
                f"{result.memory.outside_bytes / result.usable_bytes:.1%}",
            ],
        ],
    )
    return [times, phases, held]


def _percent(interval: "Interval") -> str:
    low, mid, high = (float(end) for end in (interval.low, interval.mid, interval.high))
    return f"{mid:.1%}  ({low:.1%} – {high:.1%})"
