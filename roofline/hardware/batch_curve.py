"""A measured decoder over batch: how long tokens per second grow with it, and what stops them.

At small batch a step reads the weights whatever the batch is, so its time stays and tokens per
second grow in proportion. The batch where the step has become a quarter slower than at the smallest
one is where the curve leaves that slope.

Units    Tokens per second, FLOP, bytes, FLOP per byte.
Limits   The reason is read off what the step must compute and read at least, on measured roofs; it
         names the largest share, not every one.
Sources  [1] Williams, Waterman, Patterson 2009, Roofline, CACM 52(4).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from roofline.errors import InputError, MissingDataError
from roofline.hardware.measured_rows import DecoderRow
from roofline.units import number, show

SLOWER = 1.25
"""A step this much slower than at the smallest batch has left the slope."""


@dataclass(frozen=True)
class CurvePoint:
    """One batch of the curve."""

    batch: int
    step_s: float
    tokens_per_s: float
    intensity_flop_per_byte: float
    flop_per_s: float


@dataclass(frozen=True)
class BatchCurve:
    """The curve of one model at one context.

    Args:
        model, weights, mode, context_tokens, tp: what was run.
        points: by batch.
        leaves_at: the first batch off the slope; None: none was measured.
        why: what stops it, in words.
    """

    model: str
    weights: str
    mode: str
    context_tokens: int
    tp: int
    points: tuple[CurvePoint, ...]
    leaves_at: int | None
    why: str


def batch_curve(rows: Iterable[DecoderRow], *, flop_per_s: float, bytes_per_s: float) -> BatchCurve:
    """Follow decode over batch.

    Args:
        rows: decode rows of one model, format, mode and context.
        flop_per_s, bytes_per_s: the roofs that the machine reaches.

    Raises:
        MissingDataError: fewer than two batches, or rows without their least work.
        InputError: rows of several models, contexts or modes.

    >>> def row(batch, seconds):
    ...     return DecoderRow(phase="decode", model="m", weights="bf16", batch=batch, mode="graph",
    ...         context_tokens=8, median_s=seconds, least_flop=1e9 * batch, least_bytes=1e9)
    >>> curve = batch_curve([row(1, 1.0), row(8, 1.1), row(64, 2.0)], flop_per_s=1e11,
    ...                     bytes_per_s=1e10)
    >>> curve.leaves_at, curve.why
    (64, 'compute: 64.0 FLOP per byte is past the measured ridge, 10.0')
    """
    decode = sorted((row for row in rows if row.phase == "decode"), key=lambda row: row.batch)
    decode = [row for row in decode if row.least_flop and row.least_bytes]
    if len({row.batch for row in decode}) < 2:
        raise MissingDataError("a batch curve needs decode rows of two batches with their work")
    kinds = {(row.model, row.weights, row.mode, row.context_tokens, row.tp) for row in decode}
    if len(kinds) != 1:
        raise InputError(f"a batch curve is of one model, mode and context, got {len(kinds)}")
    model, weights, mode, context_tokens, tp = kinds.pop()
    first = decode[0]
    left = next((row for row in decode if row.median_s > SLOWER * first.median_s), None)
    why = "the step is as fast as at the smallest batch: weights are what it reads"
    if left is not None:
        why = _why(first, left, flop_per_s, bytes_per_s)
    return BatchCurve(
        model, weights, mode, context_tokens, tp, tuple(_point(row) for row in decode),
        None if left is None else left.batch, why,
    )  # fmt: skip


def _point(row: DecoderRow) -> CurvePoint:
    flop, size = row.least_flop or 0.0, row.least_bytes or 1.0
    return CurvePoint(row.batch, row.median_s, row.tokens_per_s, flop / size, flop / row.median_s)


def _why(first: DecoderRow, left: DecoderRow, flop_per_s: float, bytes_per_s: float) -> str:
    flop, size = left.least_flop or 0.0, left.least_bytes or 1.0
    ridge = flop_per_s / bytes_per_s
    if flop / size >= ridge:
        return (
            f"compute: {number(flop / size)} FLOP per byte is past the measured ridge, "
            f"{number(ridge)}"
        )
    slower_s = left.median_s - first.median_s
    more = size - (first.least_bytes or 0.0)
    if more / bytes_per_s >= 0.5 * slower_s:
        return (
            f"bytes: the step reads {show(size, 'B')} instead of {show(first.least_bytes, 'B')} "
            "(the cache grows with the batch, and experts where there are some)"
        )
    share = more / bytes_per_s / slower_s
    return (
        f"kernels: bytes explain {share * 100:.0f} % of the {show(slower_s, 's')} that the step "
        f"became slower, compute none (ridge {number(ridge)} FLOP per byte): its matmuls and "
        "attention run below their roofs"
    )


def curves(
    rows: Iterable[DecoderRow], *, flop_per_s: float, bytes_per_s: float
) -> tuple[BatchCurve, ...]:
    """Every curve that a record holds, in the order of its rows."""
    groups: dict[tuple[object, ...], list[DecoderRow]] = {}
    for row in rows:
        if row.phase == "decode" and row.least_flop:
            key = (row.model, row.weights, row.mode, row.context_tokens, row.tp)
            groups.setdefault(key, []).append(row)
    return tuple(
        batch_curve(group, flop_per_s=flop_per_s, bytes_per_s=bytes_per_s)
        for group in groups.values()
        if len({row.batch for row in group}) > 1
    )
