"""Rows of a roofline chart: roofs, ridges, steps and a batch sweep, for any drawing library.

Shapes   A row a point; a roof is a line of points of one ``roof``.
Units    FLOP per byte, FLOP per second and accelerator, seconds.
Limits   A step's height is its FLOPs over its time. ``class`` says what a number is: bound (or
         measured roof, where a device has no datasheet), estimate, measured.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from roofline.api.over_batch import BatchPoint
from roofline.api.prediction import Prediction
from roofline.api.step_time import StepTime
from roofline.errors import MissingDataError
from roofline.hardware.measured import measured_accelerator
from roofline.hardware.measurement import Measurement
from roofline.report.prediction_answer import bound_word
from roofline.report.roofline_plot import distinct_roofs
from roofline.timing.roofs import Roofs, datasheet_roofs
from roofline.units import show

SHOWN = ("bf16", "fp16", "fp8", "fp4")
"""Compute types that a chart shows besides the one used."""
_MARGIN = 8.0
_POINTS = 60


def measured_roofs(record: Measurement) -> Roofs | None:
    """Roofs that a record reached; None where it lacks copies or matrix products."""
    try:
        return datasheet_roofs(measured_accelerator(record))
    except MissingDataError:
        return None


def span_flop_per_byte(
    prediction: Prediction, sweep: Sequence[BatchPoint] = ()
) -> tuple[float, float]:
    """From where to where intensities are shown: past every step and the ridge."""
    steps = [prediction.prefill, prediction.decode, *(point.decode for point in sweep)]
    found = [step.intensity_flop_per_byte for step in steps] + [prediction.ridge_flop_per_byte]
    return min(found) / _MARGIN, max(found) * _MARGIN


def roof_rows(
    roofs: Roofs, used: str, span: tuple[float, float], word: str
) -> list[dict[str, Any]]:
    """Points of each roof's line, the type that is used first; ``word`` is their class.

    >>> rows = roof_rows(Roofs({"fp16": 65e12}, 320e9, "datasheet"), "fp16", (1.0, 1e4), "bound")
    >>> rows[0]["flop_per_s"], max(row["flop_per_s"] for row in rows)
    (320000000000.0, 65000000000000.0)
    """
    kinds = [kind for kind in roofs.flop_per_s if kind in (*SHOWN, used)]
    if used not in roofs.flop_per_s:
        kinds = distinct_roofs(kinds, roofs, kinds[0]) if kinds else []
    else:
        kinds = distinct_roofs(kinds, roofs, used)
    rows = []
    for kind in kinds:
        ridge = roofs.ridge_flop_per_byte(kind)
        x = np.unique([*np.geomspace(*span, _POINTS), np.clip(ridge, *span)])
        y = np.asarray(roofs.attainable_flop_per_s(x, kind))
        label = f"{kind} {roofs.origin}, {show(roofs.flop_per_s[kind], 'FLOP/s')}"
        rows += [
            {"roof": label, "class": word, "compute": kind, "used": kind == used,
             "intensity_flop_per_byte": float(a), "flop_per_s": float(b)}
            for a, b in zip(x, y, strict=True)
        ]  # fmt: skip
    return rows


def ridge_rows(roofs: Roofs, used: str, word: str) -> list[dict[str, Any]]:
    """The ridge point of each compute type that a chart shows."""
    kinds = [kind for kind in roofs.flop_per_s if kind in (*SHOWN, used)]
    return [
        {"compute": kind, "used": kind == used, "class": word, "origin": roofs.origin,
         "ridge_flop_per_byte": roofs.ridge_flop_per_byte(kind),
         "flop_per_s": roofs.flop_per_s[kind], "bytes_per_s": roofs.bytes_per_s}
        for kind in kinds
    ]  # fmt: skip


def step_rows(prediction: Prediction) -> list[dict[str, Any]]:
    """Prefill and decode at their bounds and estimates."""
    word = bound_word(prediction)
    steps = (("prefill", prediction.prefill), ("decode", prediction.decode))
    return [row for name, step in steps for row in _step(name, step, word)]


def _step(name: str, step: StepTime, word: str) -> list[dict[str, Any]]:
    common = {
        "step": name,
        "intensity_flop_per_byte": step.intensity_flop_per_byte,
        "limited by": step.limited_by,
    }
    estimate = step.estimate_s
    low, mid, high = (float(end) for end in (estimate.low, estimate.mid, estimate.high))
    return [
        {**common, "class": word, "flop_per_s": step.flop / step.bound_s,
         "time_s": step.bound_s, "time": show(step.bound_s, "s")},
        {**common, "class": "estimate", "flop_per_s": step.flop / mid, "time_s": mid,
         "time": f"{show(mid, 's')} ({show(low, 's')} – {show(high, 's')})",
         "slow_flop_per_s": step.flop / high, "fast_flop_per_s": step.flop / low},
    ]  # fmt: skip


def batch_rows(sweep: Sequence[BatchPoint], word: str) -> list[dict[str, Any]]:
    """The decode step at each batch, at its bound and at the middle of its estimate."""
    rows = []
    for point in sweep:
        for row in _step("decode", point.decode, word):
            rows.append(row | {"batch": point.batch, "fits": "yes" if point.fits else "no"})
    return rows
