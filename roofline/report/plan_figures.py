"""Figures of plans and comparisons: the Pareto front, and cost bars, nominal beside effective.

Shapes   Pareto: one line an accelerator, its own front; the points that meet the targets filled.
Units    output token per second of a user and of an accelerator; USD.
"""

from typing import TYPE_CHECKING

import numpy as np

from roofline.planning.pareto import Point, pareto

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofline.api.comparison import Comparison
    from roofline.api.plan_result import Plan

_MARKERS = "osD^vP*X<>"
MOST_LINES = 8


def fronts(plan: "Plan") -> dict[str, tuple[Point, ...]]:
    """The front of each accelerator, most productive first, and no more than a figure carries."""
    by_device: dict[str, list[Point]] = {}
    for point in plan.points:
        by_device.setdefault(point.accelerator, []).append(point)
    own = {device: pareto(points) for device, points in by_device.items()}
    ranked = [option.accelerator for option in plan.options if option.accelerator in own]
    rest = [device for device in own if device not in ranked]
    return {device: own[device] for device in (*ranked, *rest)[:MOST_LINES]}


def pareto_figure(plan: "Plan") -> "Figure":
    """Draw speed per user against throughput per accelerator; filled where the targets hold."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.2), layout="constrained")
    axes = figure.add_subplot()
    for index, (device, points) in enumerate(fronts(plan).items()):
        x = np.array([point.tokens_per_s_per_user for point in points])
        y = np.array([point.tokens_per_s_per_accelerator for point in points])
        meets = np.array([point.meets for point in points])
        marker = _MARKERS[index % len(_MARKERS)]
        (line,) = axes.plot(
            x, y, linewidth=1.2, label=device, marker=marker, markersize=5, markerfacecolor="white"
        )
        axes.scatter(x[meets], y[meets], marker=marker, s=26, color=line.get_color(), zorder=3)
    if plan.slo.tpot_s is not None:
        axes.axvline(1 / plan.slo.tpot_s, color="#777777", linestyle=":", linewidth=1)
        axes.annotate(
            "TPOT target", (1 / plan.slo.tpot_s, 0.02), xycoords=("data", "axes fraction"),
            rotation=90, ha="right", va="bottom", color="#777777",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("output tokens per second, one user (mean)")
    axes.set_ylabel("output tokens per second, one accelerator")
    axes.set_title(f"{plan.model}: filled points meet the targets")
    axes.grid(visible=True, alpha=0.25)
    if axes.lines:
        axes.legend(frameon=False)
    return figure


def cost_figure(comparison: "Comparison") -> "Figure":
    """Draw nominal beside effective cost of a TFLOP-hour, cheapest effective one first."""
    from matplotlib.figure import Figure

    rows = sorted(
        (row for row in comparison.rows if row.usd_per_effective_tflop_hour is not None),
        key=lambda row: row.usd_per_effective_tflop_hour or 0.0,
    )
    figure = Figure(figsize=(8, 1.6 + 0.55 * max(len(rows), 1)), layout="constrained")
    axes = figure.add_subplot()
    if not rows:
        axes.text(0.5, 0.5, "no accelerator here has a price", ha="center", va="center")
        axes.set_axis_off()
        return figure
    place = np.arange(len(rows))
    nominal = [row.usd_per_nominal_tflop_hour or 0.0 for row in rows]
    effective = [row.usd_per_effective_tflop_hour or 0.0 for row in rows]
    axes.barh(place - 0.2, nominal, height=0.38, color="#9aa5b1", label="nominal (datasheet peak)")
    axes.barh(
        place + 0.2, effective, height=0.38, color="#1f4e79", hatch="//", edgecolor="white",
        label="effective (this workload)",
    )  # fmt: skip
    for at, row in zip(place, rows, strict=True):
        share = f"{row.achieved_share:.0%} of peak"
        axes.annotate(share, (effective[int(at)], at + 0.2), xytext=(4, 0),
                      textcoords="offset points", va="center")  # fmt: skip
    axes.set_yticks(place, [row.accelerator for row in rows])
    axes.invert_yaxis()
    axes.margins(x=0.16)
    axes.set_xlabel("USD per TFLOP-hour")
    axes.set_title(f"{comparison.model}, {comparison.scenario}: cost of compute")
    axes.legend(frameon=False, loc="upper right")
    return figure
