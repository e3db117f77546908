"""Predicted against measured as a scatter, both axes logarithmic.

Shapes   One panel for time to first token and whole requests, one for time per output token; the
         diagonal is a perfect prediction, the band a factor of two.
Units    seconds.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline.errors import InputError
from roofline.report.figure_file import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofline.validation.scores import Point
    from roofline.validation.validate import Validation

PANELS = (("time per output token", ("tpot",)), ("first token and whole requests", ("ttft", "e2e")))
_MARKERS = "osD^vP*X<>"
_COLOURS = ("#1f4e79", "#b5482a", "#2a7f62", "#8a6d1f", "#6b4a8a", "#4a4a4a", "#c2527c", "#2b8ca3")


def validation_figure(validation: "Validation") -> "Figure":
    """Draw every judged row: measured across, estimate up; marker and colour say the engine.

    Raises:
        InputError: no row has an estimate.
    """
    judged = [point for point in validation.points if point.judged]
    if not judged:
        raise InputError("no row here has an estimate to draw; bounds alone make no scatter")
    from matplotlib.figure import Figure  # heavy: only when a figure is asked for

    figure = Figure(figsize=(11, 5.2), layout="constrained")
    engines = sorted({point.engine for point in judged})
    for axes, (title, quantities) in zip(figure.subplots(1, 2), PANELS, strict=True):
        _panel(axes, title, [p for p in judged if p.quantity in quantities], engines)
    figure.suptitle(f"Predicted against measured, {len(judged):,} rows outside the fits")
    return figure


def _panel(axes: Any, title: str, points: "list[Point]", engines: list[str]) -> None:
    axes.set_title(title, loc="left")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("measured (s)")
    axes.set_ylabel("estimate (s)")
    if not points:
        axes.text(0.5, 0.5, "no rows", transform=axes.transAxes, ha="center")
        return
    measured = np.array([point.measured for point in points])
    predicted = np.array([point.mid for point in points])
    ends = np.array([min(measured.min(), predicted.min()), max(measured.max(), predicted.max())])
    ends = ends * [0.8, 1.25]
    axes.fill_between(ends, ends / 2, ends * 2, color="#000000", alpha=0.06, label="factor of 2")
    axes.plot(ends, ends, color="#000000", linewidth=1)
    for place, engine in enumerate(engines):
        of = [point for point in points if point.engine == engine]
        if of:
            axes.scatter(
                [point.measured for point in of], [point.mid for point in of], s=14, alpha=0.55,
                marker=_MARKERS[place % len(_MARKERS)], color=_COLOURS[place % len(_COLOURS)],
                linewidths=0, label=f"{engine} ({len(of)})",
            )  # fmt: skip
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    axes.legend(loc="upper left", frameon=False, fontsize=8)


def save_validation_figure(validation: "Validation", path: Path) -> None:
    """Write the scatter to a file, whole or not at all.

    Raises:
        InputError: nothing to draw, no such folder, or no format that can be written.
    """
    save_figure(validation_figure(validation), path)
