"""Terms of one machine from its own measured record.

What a section of the record measured is fitted; a section that it lacks falls back to the class's
typical terms, and says so. Curves are fitted by least squares on the logarithm of time, so that a
relative error counts the same at every size.

    matmul     t0 + ((bytes/B)^q + (FLOP/P)^q)^(1/q)     skinny rows of one compute type, burst
    attention  the measured grid of decode times; prefill rate of the largest prompts
    small      time of one elementwise kernel in a graph; add rate of large buffers
    sustained  sustained over burst rate of the largest square matmul
    link       the measured all-reduce curve, graph rows before eager ones

Limits   Rows flagged as wrong by the harness, and buffers that fit the cache, do not count.
Sources  The record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roofline.calibration.typical import typical_terms
from roofline.hardware.accelerator import Accelerator
from roofline.hardware.measurement import (
    AttentionRow,
    MatmulRow,
    Measurement,
)
from roofline.timing.collectives import LinkTerms
from roofline.timing.terms import (
    TYPICAL_HOST_OPERATOR_S,
    AttentionGrid,
    AttentionTerms,
    Curve,
    DeviceTerms,
    PrefillAttentionTerms,
)

FLASH_OCCUPANCY = 2
"""Blocks per multiprocessor for which flash attention 2 plans its splits."""
FLASH_FULL = 0.8
"""Share of those blocks from which it no longer splits a sequence."""
FEWEST_ROWS = 12
"""Skinny matmuls that a fit of four numbers needs at least."""


@dataclass(frozen=True)
class Residual:
    """How well one fit meets the rows it was made from.

    Args:
        what: the fit.
        rows: rows it was made from.
        mean, worst: absolute relative error.
        values: the fitted numbers in words.
    """

    what: str
    rows: int
    mean: float
    worst: float
    values: str


@dataclass(frozen=True)
class MachineFit:
    """Terms of a machine, how well they fit, and what fell back to its class."""

    terms: DeviceTerms
    residuals: tuple[Residual, ...]
    assumptions: tuple[str, ...]


def fit_machine(record: Measurement, accelerator: Accelerator) -> MachineFit:
    """Fit the terms of a device to a record of it.

    Args:
        record: measured rows.
        accelerator: the device, whose class fills what was not measured.
    """
    base = typical_terms(accelerator)
    residuals: list[Residual] = []
    missing: list[str] = []
    matmul = dict(base.matmul)
    for kind in sorted({row.compute for row in record.matmul_rows}):
        rows = [row for row in record.matmul_rows if _counts(row, kind, "skinny")]
        if len(rows) < FEWEST_ROWS:
            continue
        curve, residual = _fit_curve(f"matmul {kind}", rows)
        matmul[kind] = curve
        residuals.append(residual)
    if not residuals:
        missing.append("matmul")
    if "bf16" in matmul and not any(r.what == "matmul fp16" for r in residuals):
        matmul["fp16"] = matmul["bf16"]
    experts = {kind: _expert_curve(kind, matmul, base) for kind in matmul}
    grouped = [row for row in record.matmul_rows if _counts(row, "bf16", "grouped")]
    if len(grouped) >= FEWEST_ROWS:
        experts["bf16"], residual = _fit_curve("experts bf16", grouped)
        experts["fp16"] = experts["bf16"]
        residuals.append(residual)
    decode, decode_words = _decode_attention(record, accelerator, base)
    missing += decode_words
    prefill = _prefill_attention(record, base)
    if prefill is None:
        missing.append("prefill attention")
    link = _link(record) or base.all_reduce
    sustained = {**base.sustained, **_sustained(record)}
    small = _small(record, base)
    terms = DeviceTerms(
        matmul=matmul,
        sustained=sustained,
        experts=experts,
        decode_attention=decode,
        prefill_attention=prefill or base.prefill_attention,
        small=small,
        all_reduce=link,
        host_operator_s=_host_operator(record),
        origin=f"measured on {record.device.name}, {record.date:%Y-%m-%d}",
    )
    words = tuple(f"{name} was not measured: {base.origin}" for name in missing)
    return MachineFit(terms, tuple(residuals), words)


def _counts(row: MatmulRow, kind: str, shape: str) -> bool:
    return (
        row.compute == kind and row.shape == shape and row.mode == "burst" and row.data == "random"
    )


def _fit_curve(what: str, rows: Sequence[MatmulRow]) -> tuple[Curve, Residual]:
    from scipy.optimize import least_squares

    n_bytes = np.array([row.bytes for row in rows])
    flop = np.array([row.flop for row in rows])
    seconds = np.array([row.median_s for row in rows])

    def curve(logs: np.ndarray) -> Curve:
        start, bandwidth, peak, softness = np.exp(logs)
        return Curve(float(start), float(bandwidth), float(peak), float(softness))

    first = np.log(
        [
            float(seconds.min()) / 2,
            float((n_bytes / seconds).max()),
            float((flop / seconds).max()),
            3.0,
        ]
    )
    found = least_squares(lambda logs: np.log(curve(logs).seconds(n_bytes, flop) / seconds), first)
    best = curve(found.x)
    error = np.abs(best.seconds(n_bytes, flop) / seconds - 1)
    words = (
        f"t0 {best.start_s * 1e6:.2f} µs, B {best.bytes_per_s / 1e12:.2f} TB/s, "
        f"P {best.flop_per_s / 1e12:.0f} TFLOP/s, q {best.softness:.2f}"
    )
    return best, Residual(what, len(rows), float(error.mean()), float(error.max()), words)


def _expert_curve(kind: str, matmul: dict[str, Curve], base: DeviceTerms) -> Curve:
    """Grouped matmuls of a type that no sweep measured: the class's share of the dense curve."""
    if kind not in base.experts:
        return matmul[kind]
    dense, usual = matmul[kind], base.experts[kind]
    share = usual.bytes_per_s / base.matmul[kind].bytes_per_s
    return replace(
        dense,
        start_s=dense.start_s * 1.5,
        bytes_per_s=dense.bytes_per_s * share,
        flop_per_s=dense.flop_per_s * share,
    )


def _decode_attention(
    record: Measurement, accelerator: Accelerator, base: DeviceTerms
) -> tuple[AttentionTerms, list[str]]:
    rows = [row for row in record.attention_rows if row.phase == "decode"]
    flash = [row for row in rows if row.backend == "flash"]
    if len(flash) < 4:
        return base.decode_attention, ["decode attention"]
    sms = record.device.sm_count or accelerator.compute.sm_count or 1
    limit = FLASH_FULL * FLASH_OCCUPANCY * sms
    split = [row for row in flash if row.batch * row.n_kv_heads < limit]
    whole = [row for row in flash if row.batch * row.n_kv_heads >= limit]
    best = max(row.bytes_per_s for row in rows)
    curve = replace(base.decode_attention.curve, bytes_per_s=best)
    terms = AttentionTerms(curve, grid=_grid(split))
    if len(whole) >= 2:
        slope, start = _line([row.kv_bytes for row in whole], [row.median_s for row in whole])
        terms = replace(
            terms, whole=replace(curve, start_s=start, bytes_per_s=slope), whole_from_blocks=limit
        )
    return terms, []


def _line(n_bytes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Fit time = start + bytes / rate with relative weights; give rate and start."""
    size, time_s = np.array(n_bytes), np.array(seconds)
    matrix = np.stack([np.ones_like(size) / time_s, size / time_s], axis=1)
    (start, inverse), *_ = np.linalg.lstsq(matrix, np.ones_like(size), rcond=None)
    return float(1 / inverse), max(float(start), 0.0)


def _grid(rows: Sequence[AttentionRow]) -> AttentionGrid | None:
    points: dict[int, dict[float, float]] = {}
    for row in rows:
        points.setdefault(row.batch * row.n_kv_heads, {})[row.kv_bytes] = row.median_s
    if not points:
        return None
    blocks = sorted(points)
    knots = sorted({size for times in points.values() for size in times})
    seconds = []
    for block in blocks:
        sizes = sorted(points[block])
        logs = np.interp(
            np.log(knots), np.log(sizes), np.log([points[block][size] for size in sizes])
        )
        beyond = np.maximum(np.log(knots) - np.log(sizes[-1]), 0.0)
        seconds.append(tuple(float(value) for value in np.exp(logs + beyond)))
    return AttentionGrid(tuple(map(float, blocks)), tuple(map(float, knots)), tuple(seconds))


def _prefill_attention(record: Measurement, base: DeviceTerms) -> PrefillAttentionTerms | None:
    rows = [
        row for row in record.attention_rows if row.phase == "prefill" and row.backend == "flash"
    ]
    if len(rows) < 3:
        return None
    largest = max(rows, key=lambda row: row.flop)
    smallest = min(rows, key=lambda row: row.flop)
    rate = max(largest.flop_per_s, max(row.flop_per_s for row in rows))
    start = max(smallest.median_s - smallest.flop / rate, base.prefill_attention.start_s)
    return PrefillAttentionTerms(start_s=start, flop_per_s=rate)


def _sustained(record: Measurement) -> dict[str, float]:
    """Sustained over burst rate of the largest square matmul, by compute type."""
    shares: dict[str, float] = {}
    for kind in {row.compute for row in record.matmul_rows}:
        square = [r for r in record.matmul_rows if r.compute == kind and r.shape == "square"]
        long = [r for r in square if r.mode == "sustained"]
        burst = [r.flop_per_s for r in square if r.mode == "burst" and r.data == "random"]
        if long and burst:
            shares[kind] = min(max(r.flop_per_s for r in long) / max(burst), 1.0)
    return shares


def _small(record: Measurement, base: DeviceTerms) -> Curve:
    adds = [row for row in record.copy_rows if row.op == "add" and _is_large(row.flags)]
    rate = max((row.bytes_per_s for row in adds), default=0.0)
    return replace(base.small, bytes_per_s=rate * 0.75) if rate else base.small


HOST_OPERATORS = ("host_add", "host_silu", "host_rms_norm", "host_cat")
"""Small operators whose host cost a launch sweep times."""


def _host_operator(record: Measurement) -> float:
    """Median host cost of the framework's small operators; the typical one where none was timed."""
    costs = [row.median_s for row in record.launch_rows if row.what in HOST_OPERATORS]
    return float(np.median(costs)) if costs else TYPICAL_HOST_OPERATOR_S


def _is_large(flags: Sequence[str]) -> bool:
    return not any("cache" in flag for flag in flags)


def _link(record: Measurement) -> LinkTerms | None:
    rows = [row for row in record.collective_rows if row.op == "all_reduce"]
    graph = [row for row in rows if row.mode == "graph"]
    chosen = graph or rows
    if not chosen:
        return None
    ranks = max(row.n_ranks for row in chosen)
    curve = sorted((float(r.bytes), r.median_s) for r in chosen if r.n_ranks == ranks)
    best = max(row.bus_bytes_per_s for row in chosen)
    words = f"measured all-reduce over {ranks} ranks"
    if graph:
        return LinkTerms(best, curve[0][1], tuple(curve), ranks, words + " in a graph")
    # eager calls hide the latency behind the host's launch: only the rate is taken from them
    return LinkTerms(best, 10e-6, origin=words + ", rate only: calls were timed eagerly")
