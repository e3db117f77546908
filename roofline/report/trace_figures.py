"""Figures of diagnosis: a trace's timeline and parts, a node's links, a fleet's probes.

Units    ms, percent, GB/s; the axes name them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from roofline.diagnose.fabric import Fabric
from roofline.hardware.node_record import NodeRecord
from roofline.trace.kernels import PARTS
from roofline.trace.result import TraceSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {
    "linear": "#1f4e79", "attention": "#b5482a", "experts": "#6a4c93", "norm": "#8a9a5b",
    "rotary": "#c9a227", "elementwise": "#2a7f62", "KV append": "#d17b88", "recurrent": "#457b9d",
    "quantise": "#e07a5f", "embedding": "#81b29a", "softmax": "#f2cc8f", "sampling": "#3d405b",
    "collective": "#d62828", "copy": "#9aa5b1", "other": "#cccccc",
}  # fmt: skip
_CAUSE_COLOURS = {
    "launch": "#b5482a", "host synchronisation": "#d62828", "other stream": "#c9a227",
    "kernel start": "#9aa5b1", "graph": "#6a4c93", "other": "#cccccc",
}  # fmt: skip
_BINS = 400


def trace_figure(summary: TraceSummary) -> "Figure":
    """Draw when the busiest device worked, where its kernel time went, and what it waited for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    report = summary.only
    if report is None:
        axes = figure.add_subplot()
        axes.text(0.5, 0.5, "no device events in this trace", ha="center", va="center")
        axes.set_axis_off()
        return figure
    top, bottom = figure.subplots(2, 1, height_ratios=(1.2, 1))
    device = report.summary
    _timeline(top, summary)
    bound = "at least " if device.idle_s is None else ""
    top.set_title(
        f"device {device.device} {device.name}: busy {bound}{100 * device.busy_share:.1f} % of "
        f"{1e3 * device.window_s:.0f} ms",
        fontsize=10,
    )
    bars = sorted(device.part_s.items(), key=lambda item: item[1])
    names = [name for name, _ in bars]
    values = [1e3 * spent for _, spent in bars]
    colours = [_COLOURS[name] for name in names]
    if device.idle_s is not None:
        for cause, (_, total) in sorted(
            device.gaps.by_cause().items(), key=lambda item: item[1][1]
        ):
            names.append(f"idle: {cause}")
            values.append(1e3 * total)
            colours.append(_CAUSE_COLOURS[cause])
    bottom.barh(names, values, color=colours)
    bottom.set_xscale("log")
    bottom.set_xlabel("time in the window, ms (logarithmic)")
    bottom.tick_params(labelsize=8)
    return figure


def _timeline(axes: "Axes", summary: TraceSummary) -> None:
    """Share of each slice of the window in which each part ran, stacked."""
    report = summary.only
    if report is None:
        return
    device = report.summary
    events = device.events
    begin = float(np.min(events.start_s))
    edges = np.linspace(begin, max(begin + device.window_s, float(np.max(events.end_s))), _BINS + 1)
    width = edges[1] - edges[0]
    base = np.zeros(_BINS)
    for name in PARTS:
        own = device.parts == PARTS.index(name)
        if not np.any(own):
            continue
        share = 100 * _busy_in_bins(events.start_s[own], events.end_s[own], edges) / width
        middle = 1e3 * (edges[:-1] - begin)
        axes.bar(
            middle, share, width=1e3 * width, bottom=base, color=_COLOURS[name], label=name,
            align="edge",
        )  # fmt: skip
        base = base + share
    axes.set_xlabel("ms after the first kernel")
    axes.set_ylabel("kernel time, % of slice")
    axes.legend(fontsize=7, ncols=5, loc="upper right")


def _busy_in_bins(
    start: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    end: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    edges: "np.ndarray[tuple[int], np.dtype[np.float64]]",
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Kernel time before each edge, differenced: Σ clip(edge − start, 0, length)."""
    before = np.array(
        [float(np.sum(np.clip(edge - start, 0.0, end - start))) for edge in edges.tolist()]
    )
    return np.diff(before)


def fabric_figure(fabric: Fabric) -> "Figure":
    """Draw the nominal rate between every two GPUs of a node as a matrix."""
    from matplotlib.figure import Figure

    n = fabric.n_gpus
    rates = np.full((n, n), np.nan)
    labels = {}
    for pair in fabric.pairs():
        i, j = pair["first"], pair["second"]
        rates[i, j] = rates[j, i] = pair["bytes_per_s"] / 1e9
        labels[i, j] = labels[j, i] = pair["connection"]
    figure = Figure(figsize=(1.8 + 0.8 * n, 1.4 + 0.7 * n), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(rates, cmap="YlGnBu", vmin=0)
    for (i, j), label in labels.items():
        axes.text(j, i, f"{label}\n{rates[i, j]:.0f}", ha="center", va="center", fontsize=7)
    axes.set_xticks(range(n), [f"GPU{i}" for i in range(n)], fontsize=8)
    axes.set_yticks(range(n), [f"GPU{i}" for i in range(n)], fontsize=8)
    axes.set_title("nominal GB/s in one direction", fontsize=9)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def fleet_figure(records: Sequence[NodeRecord]) -> "Figure":
    """Draw every node's probes against the median of the fleet."""
    from matplotlib.figure import Figure

    tables = [{probe.label(): probe.rate for probe in record.probes} for record in records]
    labels = sorted({label for table in tables for label in table})
    figure = Figure(figsize=(8, 1.5 + 0.28 * max(len(labels), 1)), layout="constrained")
    axes = figure.add_subplot()
    for record, table in zip(records, tables, strict=True):
        x, y = [], []
        for row, label in enumerate(labels):
            values = [other[label] for other in tables if label in other]
            if label in table:
                x.append(100 * table[label] / float(np.median(values)))
                y.append(row)
        axes.plot(x, y, marker="o", linestyle="none", markersize=4, label=record.node)
    axes.axvline(100, color="#1f4e79", linewidth=1)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_xlabel("% of the fleet's median")
    if records:
        axes.legend(fontsize=8)
    return figure
