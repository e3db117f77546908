"""Figures of a sweep: the Pareto front, and the map of winners over batch and context.

Units    tokens/s as the columns say; batch in sequences, context in tokens.
"""

from typing import TYPE_CHECKING

import numpy as np

from roofline.api.sweep.columns import COLUMNS
from roofline.api.sweep.keep import Pareto, Winner
from roofline.api.sweep.space import OWN
from roofline.errors import InputError
from roofline.timing.parallel import Parallel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofline.api.sweep.run import SweepResult

MARKERS = "o^svDPX*<>"
LAST_COLOUR = 19
"""Colours of the map, less one."""


def sweep_figure(result: "SweepResult") -> "Figure":
    """Draw what a sweep kept.

    Raises:
        InputError: it kept neither a front nor winners.
    """
    if isinstance(result.keep, Pareto):
        return pareto_figure(result)
    if isinstance(result.keep, Winner):
        return winner_figure(result)
    raise InputError("a figure needs keep 'pareto' or 'winner'; this sweep kept something else")


def pareto_figure(result: "SweepResult") -> "Figure":
    """Draw the front, one marker per accelerator and plan."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.2), layout="constrained")
    axes = figure.add_subplot()
    keep = result.keep
    if not isinstance(keep, Pareto):
        raise InputError("this sweep kept no front")
    rows = result.configurations()
    labels = sorted({_label(row) for row in rows})
    axes.plot(
        [row[keep.x] for row in rows], [row[keep.y] for row in rows], color="#9aa5b1", linewidth=1
    )
    for position, label in enumerate(labels):
        chosen = [row for row in rows if _label(row) == label]
        axes.plot(
            [row[keep.x] for row in chosen],
            [row[keep.y] for row in chosen],
            linestyle="none",
            marker=MARKERS[position % len(MARKERS)],
            markersize=6,
            label=label,
        )
    axes.set_xlabel(f"{_words(keep.x)} [{COLUMNS[keep.x]}]")
    axes.set_ylabel(f"{_words(keep.y)} [{COLUMNS[keep.y]}]")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(f"Front of {result.n_feasible:,} configurations that fit")
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=8)
    return figure


def winner_figure(result: "SweepResult") -> "Figure":
    """Draw which cell wins where, batch up, context across; each cell also has its letter."""
    from matplotlib.figure import Figure

    keep, winners = result.keep, result.rows["cell"]
    if not isinstance(keep, Winner):
        raise InputError("this sweep kept no winners")
    figure = Figure(figsize=(8.5, 5.2), layout="constrained")
    axes = figure.add_subplot()
    cells = list(result.space.cells())
    present = [int(number) for number in np.unique(winners) if number >= 0]
    place = {number: position for position, number in enumerate(present)}
    shown = np.vectorize(lambda number: place.get(int(number), -1))(winners).astype(float)
    shown[shown < 0] = np.nan
    image = axes.imshow(
        shown, origin="lower", aspect="auto", cmap="tab20", vmin=0, vmax=LAST_COLOUR
    )
    prompt, output = result.space.lengths
    contexts = (prompt + output / 2)[0]
    for axis, values in ((axes.xaxis, contexts), (axes.yaxis, np.array(result.space.batch))):
        ticks = np.unique(np.linspace(0, len(values) - 1, min(len(values), 8)).astype(int))
        axis.set_ticks(ticks, [f"{values[tick]:,.0f}" for tick in ticks])
    letters = [chr(ord("A") + position % 26) for position in range(len(present))]
    for position, number in enumerate(present):
        batch, length = np.argwhere(winners == number)[len(np.argwhere(winners == number)) // 2]
        axes.text(length, batch, letters[position], ha="center", va="center", fontsize=11)
        cell = cells[number]
        label = f"{letters[position]}  {cell.model} · {cell.accelerator} · {cell.parallel}"
        colour = image.cmap(position / LAST_COLOUR)
        axes.plot([], [], marker="s", linestyle="none", color=colour, label=label)
    axes.set_xlabel("context at mid-output, tokens")
    axes.set_ylabel("batch, sequences")
    axes.set_title(f"Best by {_words(keep.by)}; blank: nothing fits")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=1, frameon=False)
    return figure


def _label(row: dict[str, object]) -> str:
    plan = Parallel(**{name: row[name] for name in ("tp", "pp", "dp", "ep")})  # type: ignore[arg-type]
    shown = (row["model"], row["accelerator"], plan, row["weights"], row["kv"], row["engine"])
    return " · ".join(str(part) for part in shown if part != OWN)


def _words(column: str) -> str:
    return column.removesuffix("_s").replace("_", " ").replace(" per s ", "/s ")
