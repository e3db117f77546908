"""Figures of training: memory by part and moment, a step's timeline, the scaling curve.

Shapes   Memory: a stacked bar a moment, in the order of the step. Timeline: one bar, phases side by
         side. Scaling: tokens per second over accelerators, with the interval.
Units    GiB, seconds, tokens per second on the axes; results are in bytes and seconds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofline.api.training_result import Training
from roofline.errors import InputError
from roofline.report.figure_file import save_figure
from roofline.training.memory import PART_NAMES, PART_WORDS
from roofline.training.scaling import ScalingPoint
from roofline.training.step_time import PHASE_WORDS
from roofline.units import GIB, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PART_COLOURS = (
    "#31688e", "#443983", "#21918c", "#35b779", "#8fd744", "#fde725", "#f98e52", "#c0c0c0",
    "#8a8a8a",
)  # fmt: skip
_PHASE_COLOURS = (
    "#31688e", "#90b4d2", "#443983", "#d95f0e", "#fec44f", "#b30000", "#35b779", "#8a8a8a",
)  # fmt: skip
_HATCHES = ("", "//", "", "..", "", "\\\\", "xx", "--", "")


def memory_axes(axes: Any, result: Training) -> None:
    """Draw what one accelerator holds at each moment of a step."""
    moments = result.memory.moments
    places = range(len(moments))
    bottoms = [0.0] * len(moments)
    for index, name in enumerate(PART_NAMES):
        heights = [getattr(parts, name) / GIB for _, parts in moments]
        if max(heights) <= 0:
            continue
        axes.barh(
            places, heights, 0.7, left=bottoms, label=PART_WORDS[name],
            color=_PART_COLOURS[index], hatch=_HATCHES[index], edgecolor="#555555", linewidth=0.5,
        )  # fmt: skip
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
    usable = (result.usable_bytes - result.memory.outside_bytes) / GIB
    axes.axvline(usable, color="black", linewidth=1.4)
    axes.annotate(
        "usable", (usable, -0.65), ha="right", va="center", fontsize=8, xytext=(-3, 0),
        textcoords="offset points",
    )  # fmt: skip
    axes.set_yticks(places, [name for name, _ in moments])
    axes.set_ylim(len(moments) - 0.5, -1.0)
    axes.set_xlim(0, 1.04 * max(usable, *bottoms))
    axes.set_xlabel("GiB on one accelerator")
    word = "fits" if result.fits else "does not fit"
    axes.set_title(f"Memory over a step: {word}", loc="left", fontsize=11)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8)


def timeline_axes(axes: Any, result: Training) -> None:
    """Draw the phases of a step side by side, the bound as a line."""
    left = 0.0
    for index, (name, words) in enumerate(PHASE_WORDS.items()):
        seconds = float(getattr(result.step.parts, name))
        if seconds <= 0:
            continue
        axes.barh(
            [0], [seconds], 0.5, left=[left], label=f"{words}: {show(seconds, 's')}",
            color=_PHASE_COLOURS[index], hatch=_HATCHES[index], edgecolor="#555555", linewidth=0.5,
        )  # fmt: skip
        left += seconds
    bound = result.step.bound.seconds
    axes.axvline(bound, color="black", linewidth=1.4, linestyle="--")
    axes.annotate(
        f"bound ({result.step.bound.limited_by})", (bound, 0.42), fontsize=8, va="center",
        xytext=(3, 0), textcoords="offset points",
    )  # fmt: skip
    interval = result.step.step_s
    axes.errorbar(
        [float(interval.mid)], [-0.38],
        xerr=[[float(interval.mid - interval.low)], [float(interval.high - interval.mid)]],
        fmt="o", color="black", capsize=3, markersize=4, label="estimate, its interval",
    )  # fmt: skip
    axes.set_ylim(-0.6, 0.6)
    axes.set_yticks([])
    axes.set_xlim(0, 1.05 * float(interval.high))
    axes.set_xlabel("seconds")
    mfu = float(result.mfu.mid)
    axes.set_title(
        f"A step of {result.step.tokens:,} tokens: {show(float(interval.mid), 's')}, MFU {mfu:.0%}",
        loc="left", fontsize=11,
    )  # fmt: skip
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8)


def training_figure(result: Training) -> "Figure":
    """Draw memory by moment and part over the timeline of a step."""
    from matplotlib.figure import Figure  # heavy: only when a figure is asked for

    figure = Figure(figsize=(10.0, 6.2), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(3, 1.6))
    memory_axes(above, result)
    timeline_axes(below, result)
    figure.suptitle(
        f"{result.arch.name} on {result.plan.accelerators} × {result.accelerator.name}",
        x=0.01, ha="left",
    )  # fmt: skip
    return figure


def scaling_figure(points: Sequence[ScalingPoint], title: str = "Scaling") -> "Figure":
    """Draw tokens per second over accelerators beside the line of perfect scaling.

    Raises:
        InputError: there is nothing to draw.
    """
    if not points:
        raise InputError("the scaling figure needs at least one point")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    counts = [point.accelerators for point in points]
    rates = [point.step.tokens_per_s for point in points]
    middle = [float(rate.mid) for rate in rates]
    axes.fill_between(
        counts, [float(rate.low) for rate in rates], [float(rate.high) for rate in rates],
        color="#31688e", alpha=0.2, label="interval",
    )  # fmt: skip
    axes.plot(counts, middle, "o-", color="#31688e", label="estimate")
    ideal = [middle[0] * count / counts[0] for count in counts]
    axes.plot(counts, ideal, "--", color="#555555", label="perfect scaling")
    for point, rate in zip(points[1:], middle[1:], strict=True):
        axes.annotate(
            f"{point.efficiency:.0%}", (point.accelerators, rate), fontsize=9,
            xytext=(7, -11), textcoords="offset points",
        )  # fmt: skip
    if points[-1].lost_to and points[-1].efficiency < 0.97:
        title += f"\nmost is lost to: {points[-1].lost_to}"
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set_xlim(counts[0] / 1.2, counts[-1] * 1.35)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.minorticks_off()
    axes.set_xlabel("accelerators")
    axes.set_ylabel("tokens per second")
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(loc="upper left", frameon=False)
    return figure


def save_training_figure(result: Training, path: Path) -> None:
    """Write memory and timeline to a file, whole or not at all.

    Raises:
        InputError: the folder does not exist, or the suffix is no format that can be written.
    """
    save_figure(training_figure(result), path)
