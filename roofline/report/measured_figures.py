"""Figures of a measured record: bandwidth and matmul rate by size, roofs, decode over batch.

Shapes   Both axes are logarithmic.
Units    TB/s and TFLOP/s on axes.
Sources  [1] Williams, Waterman, Patterson 2009, Roofline, CACM 52(4), figure 1.
"""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline.errors import InputError, MissingDataError
from roofline.hardware.batch_curve import BatchCurve
from roofline.hardware.measured_rows import MatmulRow
from roofline.hardware.measurement import Measurement
from roofline.report.figure_file import save_figure
from roofline.report.measured import measured_pair, record_curves, spec_of
from roofline.units import number, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#1f4e79", "#b5482a", "#2a7f62", "#7a5195", "#c9a227", "#5b6770", "#d46a9f")
_MARKERS = "osD^vPX"


def _figure(title: str, x: str, y: str) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, which="major", color="#e3e6ea", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def bandwidth_figure(record: Measurement) -> "Figure":
    """Bandwidth by buffer size, with the steps of the caches.

    Raises:
        MissingDataError: the record has no copies.
    """
    if not record.copy_rows:
        raise MissingDataError("the record has no copy rows; run: roofline measure")
    figure, axes = _figure(
        f"Memory of {record.device.name} by size", "bytes of one buffer", "TB/s moved"
    )
    for index, op in enumerate(dict.fromkeys(row.op for row in record.copy_rows)):
        rows = sorted(
            (row for row in record.copy_rows if row.op == op), key=lambda row: row.buffer_bytes
        )
        axes.plot(
            [row.buffer_bytes for row in rows], [row.bytes_per_s / 1e12 for row in rows],
            color=_COLOURS[index % 7], marker=_MARKERS[index % 7], markersize=4,
            label=op.replace("_", " "),
        )  # fmt: skip
    spec = spec_of(record)
    if spec is not None and spec.memory.bytes_per_s:
        nominal = spec.memory.bytes_per_s
        axes.axhline(nominal / 1e12, color="#333333", linestyle="--", linewidth=1)
        axes.annotate(
            f"datasheet {show(nominal, 'B/s')}", (0.01, nominal / 1e12),
            xycoords=("axes fraction", "data"), textcoords="offset points", xytext=(0, 4),
            fontsize=9,
        )  # fmt: skip
    for name, size in (("L2", record.device.l2_bytes), ("L3", record.device.llc_bytes)):
        if size:
            axes.axvline(size, color="#9aa5b1", linestyle=":", linewidth=1.2)
            axes.annotate(
                f"{name} {show(size, 'GiB')}", (size, 0.02), xycoords=("data", "axes fraction"),
                textcoords="offset points", xytext=(4, 0), fontsize=9, color="#5b6770",
            )  # fmt: skip
    axes.legend(frameon=False, fontsize=9, loc="lower right", ncols=2)
    return figure


def matmul_figure(record: Measurement) -> "Figure":
    """Rate of square matmuls by size and type, bursts as lines and sustained rates as stars.

    Raises:
        MissingDataError: the record has no square matmuls.
    """
    square = [row for row in record.matmul_rows if row.shape == "square"]
    if not square:
        raise MissingDataError("the record has no square matmul rows; run: roofline measure")
    figure, axes = _figure(
        f"Square matmuls of {record.device.name}", "m = n = k", "TFLOP/s (int8: TOP/s)"
    )
    spec = spec_of(record)
    for index, compute in enumerate(dict.fromkeys(row.compute for row in square)):
        colour = _COLOURS[index % 7]
        _matmul_line(axes, square, compute, colour, _MARKERS[index % 7])
        nominal = None if spec is None else spec.compute.flop_per_s.get(compute)
        if nominal and compute in ("bf16", "fp8", "fp32", "tf32"):
            axes.axhline(nominal / 1e12, color=colour, linestyle="--", linewidth=0.9)
            axes.annotate(
                f"{compute} datasheet", (0.995, nominal / 1e12), ha="right", fontsize=8,
                xycoords=("axes fraction", "data"), textcoords="offset points", xytext=(0, 3),
                color=colour,
            )  # fmt: skip
    axes.legend(frameon=False, fontsize=9, loc="lower right", ncols=2)
    return figure


def _matmul_line(
    axes: "Axes", square: list[MatmulRow], compute: str, colour: str, marker: str
) -> None:
    for mode in ("burst", "sustained"):
        rows = [row for row in square if (row.compute, row.mode) == (compute, mode)]
        rows.sort(key=lambda row: row.n)
        if rows:
            burst = mode == "burst"
            axes.plot(
                [row.n for row in rows], [row.flop_per_s / 1e12 for row in rows], color=colour,
                marker=marker if burst else "*", markersize=4 if burst else 12,
                linestyle="-" if burst else "none", markeredgecolor="white" if not burst else None,
                label=compute if burst else f"{compute} sustained",
            )  # fmt: skip


def roofline_record_figure(record: Measurement, compute: str = "bf16") -> "Figure":
    """The measured roofline over the nominal one, with both ridge points [1].

    Raises:
        MissingDataError: no memory or matmul rows of that type.
    """
    peak, sustained, memory = measured_pair(record, compute)
    figure, axes = _figure(
        f"{record.device.name}, {compute}: nominal and measured roofs", "FLOP per byte", "TFLOP/s"
    )
    roofs = [("measured burst", peak, memory, _COLOURS[1], "-")]
    if sustained:
        roofs.append(("measured sustained", sustained, memory, _COLOURS[2], "-"))
    spec = spec_of(record)
    if spec is not None and spec.memory.bytes_per_s and compute in spec.compute.flop_per_s:
        nominal = spec.compute.flop_per_s[compute]
        roofs.insert(0, ("datasheet", nominal, spec.memory.bytes_per_s, _COLOURS[0], "--"))
    ridges = [rate / bandwidth for _, rate, bandwidth, _, _ in roofs]
    x = np.geomspace(min(ridges) / 6, max(ridges) * 5, 300)
    for index, (name, rate, bandwidth, colour, style) in enumerate(roofs):
        ridge = rate / bandwidth
        axes.plot(
            x, np.minimum(rate, bandwidth * x) / 1e12, color=colour, linestyle=style, linewidth=2,
            label=f"{name}: {show(bandwidth, 'B/s')}, {show(rate, 'FLOP/s')}",
        )  # fmt: skip
        axes.plot([ridge], [rate / 1e12], marker=_MARKERS[index], color=colour, linestyle="none")
        axes.annotate(
            f"{name}: ridge {number(ridge)} FLOP per byte", (x[-1], rate / 1e12), ha="right",
            textcoords="offset points", xytext=(0, 4), color=colour, fontsize=9,
        )  # fmt: skip
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def batch_figure(record: Measurement, roofs: Measurement, curve: BatchCurve) -> "Figure":
    """A model's decode steps over batch on the measured roofline; the batch off the slope marked.

    Raises:
        MissingDataError: ``roofs`` lacks what the figure stands on.
    """
    used = curve.weights if curve.weights in ("fp8", "fp32", "fp16") else "bf16"
    peak, sustained, memory = measured_pair(roofs, used)
    figure, axes = _figure(
        f"{curve.model} {curve.weights}, {curve.mode}, context {curve.context_tokens}: decode by "
        "batch",
        "FLOP per byte (least work of the step)",
        "TFLOP/s",
    )
    x_values = [point.intensity_flop_per_byte for point in curve.points]
    y_values = [point.flop_per_s / 1e12 for point in curve.points]
    rate = sustained or peak
    x = np.geomspace(min(x_values) / 2, max([*x_values, rate / memory]) * 3, 200)
    axes.plot(
        x, np.minimum(rate, memory * x) / 1e12, color=_COLOURS[0], linewidth=2,
        label=f"measured roofs, ridge {number(rate / memory)}",
    )  # fmt: skip
    axes.plot(x_values, y_values, color=_COLOURS[1], marker="o", markersize=5, label="decode steps")
    for point, right, up in zip(curve.points, x_values, y_values, strict=True):
        off = curve.leaves_at is not None and point.batch >= curve.leaves_at
        axes.annotate(
            str(point.batch), (right, up), textcoords="offset points", xytext=(6, -10), fontsize=9,
            color=_COLOURS[1] if off else "#333333", weight="bold" if off else "normal",
        )  # fmt: skip
    text = "stays on the slope" if curve.leaves_at is None else (
        f"leaves the slope at batch {curve.leaves_at}"
    )  # fmt: skip
    axes.text(
        0.02, 0.97, f"{text}\n{_wrapped(curve.why)}", transform=axes.transAxes, va="top",
        fontsize=9,
    )  # fmt: skip
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 60))


def figures(record: Measurement) -> "dict[str, Figure]":
    """Every figure that the record has rows for, by a name for its file."""
    wanted: dict[str, Callable[[], Any]] = {
        "bandwidth": lambda: bandwidth_figure(record),
        "matmul": lambda: matmul_figure(record),
        "roofline": lambda: roofline_record_figure(
            record, "fp32" if record.device.kind == "cpu" else "bf16"
        ),
    }
    drawn = {}
    for name, draw in wanted.items():
        try:
            drawn[name] = draw()
        except MissingDataError:
            continue
    return drawn


def save_figures(record: Measurement, folder: Path) -> list[Path]:
    """Draw every figure of a record into a folder, curves over batch included.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}") from None
    drawn = figures(record)
    if record.decoder_rows:
        try:
            for curve in record_curves(record, record):
                name = f"batch-{curve.model}-{curve.weights}-tp{curve.tp}-{curve.mode}"
                drawn[f"{name}-{curve.context_tokens}"] = batch_figure(record, record, curve)
        except MissingDataError:  # a record of models alone has no roofs to draw them on
            return [save_figure(figure, folder / f"{name}.png") for name, figure in drawn.items()]
    return [save_figure(figure, folder / f"{name}.png") for name, figure in drawn.items()]
