"""What ``train`` says to readers, in the command and on the page: lines and tables.

Limits   No number is made here.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofline.report.answer import Answer, Table
from roofline.training.choice import plan_words
from roofline.training.memory import PART_WORDS
from roofline.training.step_time import PHASE_WORDS
from roofline.units import show

if TYPE_CHECKING:
    from roofline.api.training_result import Training
    from roofline.timing.interval import Interval

JOULES_PER_MWH = 3.6e9


def training_answer(
    result: "Training", model: str, accelerator: str, asked: Mapping[str, object] | None = None
) -> Answer:
    """Everything that is said of a training run."""
    data = result.to_dict()
    return Answer(
        command="train",
        inputs={"model": model, "accelerator": accelerator, **data["plan"], **(asked or {})},
        results=data,
        tables=tables(result),
        lines=headline(result),
        assumptions=result.assumptions,
    )


def headline(result: "Training") -> list[str]:
    """What is trained on what, and whether it fits."""
    plan = result.plan
    lines = [
        f"{result.arch.name}, {result.arch.parameters:,} parameters, "
        f"{round(result.trainable):,} trained, on {plan.accelerators} × {result.accelerator.name}",
        f"{plan_words(plan)}; {plan.global_batch:,} × {plan.sequence_tokens:,} tokens a step",
    ]
    needed, usable = result.memory.needed_bytes, result.usable_bytes
    if result.fits:
        lines.append(f"fits: {show(usable - needed, 'GiB')} free at the {peak(result)}")
    else:
        lines.append(
            f"DOES NOT FIT: {show(needed - usable, 'GiB')} missing on each accelerator at the "
            f"{peak(result)} ({show(usable, 'GiB')} usable)"
        )
    return lines


def peak(result: "Training") -> str:
    """Name the moment of the peak."""
    return f"peak ({result.memory.peak_moment})"


def words(interval: "Interval", unit: str) -> str:
    """An interval for readers: middle, low and high."""
    low, mid, high = (float(end) for end in (interval.low, interval.mid, interval.high))
    return f"{show(mid, unit)}  ({show(low, unit)} – {show(high, unit)})"


def tables(result: "Training") -> list[Table]:
    """Times, phases of a step, memory at the peak."""
    step = result.step
    rows = [
        ["step", show(step.bound.seconds, "s"), words(step.step_s, "s")],
        ["tokens/s", show(step.tokens / step.bound.seconds, ""), words(step.tokens_per_s, "")],
        ["MFU", "", percent(step.mfu)],
        ["HFU", "", percent(step.hfu)],
        ["FLOP a step, exact", show(step.model_flop, "FLOP"), ""],
        [
            "FLOP a step, 6·N",
            show(result.to_dict()["step"]["rule_of_thumb_flop"], "FLOP"),
            "",
        ],
    ]
    run = result.run
    if run is not None:
        rows.append(["run", "", words(run.seconds, "s")])
        if run.energy_j is not None:
            rows.append(
                [
                    "energy at rated power, MWh",
                    "",
                    words(run.energy_j.scaled(1 / JOULES_PER_MWH), ""),
                ]
            )
        if run.usd is not None:
            rows.append(["cost, USD", "", words(run.usd, "")])
    times = Table(
        f"Time, limited by {step.bound.limited_by}", ["", "bound", "estimate (low – high)"], rows
    )
    total = step.parts.total
    phases = Table(
        "Where a step goes (middle of the estimate)",
        ["phase", "time", "share"],
        [
            [
                phase,
                show(getattr(step.parts, name), "s"),
                f"{getattr(step.parts, name) / total:.1%}",
            ]
            for name, phase in PHASE_WORDS.items()
            if getattr(step.parts, name) > 0
        ],
    )
    parts = result.memory.peak.by_name()
    held = Table(
        f"Memory of one accelerator at the {peak(result)}, "
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


def percent(interval: "Interval") -> str:
    """An interval of shares for readers."""
    low, mid, high = (float(end) for end in (interval.low, interval.mid, interval.high))
    return f"{mid:.1%}  ({low:.1%} – {high:.1%})"
