"""Figure of memory: one stacked bar a deployment, weights, cache, activation, overhead and free.

Shapes   Bars lie side by side in the order given; one that does not fit runs past its card's line.
Units    GiB on the axis; ``Memory`` is in bytes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofline.errors import InputError
from roofline.report.figure_file import save_figure
from roofline.serving.memory import Memory
from roofline.units import GIB, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Memory per accelerator"
SEGMENTS = ("weights", "KV cache", "activation", "overhead", "free")
_COLOURS = ("#31688e", "#35b779", "#fde725", "#8a8a8a", "#f2f2f2")
_HATCHES = ("", "//", "..", "xx", "")  # colour is never the only code


def segments(memory: Memory) -> tuple[tuple[str, float], ...]:
    """Name the parts of the bar with their bytes, in the order they are stacked.

    >>> memory = Memory(usable_bytes=10.0, weights_bytes=4.0, kv_cache_bytes=2.0,
    ...     activation_bytes=1.0, overhead_bytes=1.0, kv_pool_bytes=4.0, missing_bytes=0.0, rule="")
    >>> segments(memory)
    (('weights', 4.0), ('KV cache', 2.0), ('activation', 1.0), ('overhead', 1.0), ('free', 2.0))
    """
    values = (
        memory.weights_bytes,
        memory.kv_cache_bytes,
        memory.activation_bytes,
        memory.overhead_bytes,
        memory.free_bytes,
    )
    return tuple(zip(SEGMENTS, values, strict=True))


def memory_rows(memories: Mapping[str, Memory]) -> list[dict[str, Any]]:
    """Give the figure's numbers as rows, for a table beside it."""
    return [
        {
            "deployment": name,
            **{f"{segment} (bytes)": size for segment, size in segments(memory)},
            "usable (bytes)": memory.usable_bytes,
            "missing (bytes)": memory.missing_bytes,
            "fits": memory.fits,
        }
        for name, memory in memories.items()
    ]


def memory_figure(
    memories: Mapping[str, Memory], title: str = "Memory per accelerator"
) -> "Figure":
    """Draw the bars of some deployments.

    Raises:
        InputError: there is nothing to draw.
    """
    if not memories:
        raise InputError("the figure of memory needs at least one deployment")
    from matplotlib.figure import Figure  # heavy: only when a figure is asked for

    figure = Figure(figsize=(3.6 + 1.2 * len(memories), 4.8), layout="constrained")
    axes = figure.subplots()
    names = list(memories)
    _draw_bars(axes, names, list(memories.values()))
    axes.set_xticks(range(len(names)), names, rotation=20, ha="right")
    axes.set_ylabel("GiB")
    axes.set_title(title, loc="left")
    tallest = max(memory.usable_bytes + memory.missing_bytes for memory in memories.values())
    axes.set_ylim(0, 1.1 * tallest / GIB)  # room for the words above the bars
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def _draw_bars(axes: Any, names: Sequence[str], memories: Sequence[Memory]) -> None:
    bottoms = [0.0] * len(names)
    for index, segment in enumerate(SEGMENTS):
        heights = [segments(memory)[index][1] / GIB for memory in memories]
        axes.bar(
            range(len(names)), heights, 0.6, bottom=bottoms, label=segment,
            color=_COLOURS[index], hatch=_HATCHES[index], edgecolor="#555555", linewidth=0.6,
        )  # fmt: skip
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
    for place, memory in enumerate(memories):
        usable = memory.usable_bytes / GIB
        axes.plot([place - 0.4, place + 0.4], [usable, usable], color="black", linewidth=1.6,
                  label="usable" if place == 0 else None)  # fmt: skip
        word = "fits" if memory.fits else f"{show(memory.missing_bytes, 'GiB')} too much"
        axes.annotate(word, (place, max(bottoms[place], usable)), ha="center", va="bottom",
                      xytext=(0, 3), textcoords="offset points", fontsize=8)  # fmt: skip


def save_memory_figure(memories: Mapping[str, Memory], path: Path, title: str = "") -> None:
    """Write the figure to a file, whole or not at all.

    Raises:
        InputError: the folder does not exist, or the suffix is no format that can be written.
    """
    save_figure(memory_figure(memories, title or TITLE), path)
