"""Step table: the time of one engine step, tabulated so that a simulation can look it up.

A step carries ``n`` sequences that decode and a chunk of ``C`` prompt tokens:

    decode only   t = decode_s[n] + context_s[n] · Σ context
    with a chunk  t = mixed_s[n + C] + context_s[n] · Σ context + pair_s · pairs

Shapes   ``decode_s`` and ``context_s`` are indexed by 0 … max_batch, ``mixed_s`` by
         0 … max_batch + chunk_tokens.
Units    second; ``pairs`` are causal (query, key) pairs of the chunk.
Limits   Attention is taken as affine in context and pairs, around the context given; the matrix
         work of a mixed step depends on its tokens alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError

Array = NDArray[np.float64]
StepTime = Callable[[Array, Array, Array, Array], Array]
"""step_time_s(n_decode, sum_context_tokens, prefill_tokens, prefill_pairs), arrays alike."""


@dataclass(frozen=True)
class StepTable:
    """Times of one engine step; ``step_s`` puts them together."""

    decode_s: Array
    context_s: Array
    mixed_s: Array
    pair_s: float

    def __post_init__(self) -> None:
        sizes = (self.decode_s.size, self.context_s.size, self.mixed_s.size)
        if sizes[0] < 2 or sizes[1] != sizes[0] or sizes[2] < sizes[0]:
            raise InputError(
                f"step table needs decode_s and context_s for 0 … max_batch and mixed_s at least "
                f"as long, got {sizes}"
            )
        for name in ("decode_s", "context_s", "mixed_s"):
            values = getattr(self, name)
            if not np.all(np.isfinite(values)) or np.any(values < 0):
                raise InputError(f"step table: {name} needs finite times of at least 0")
        if not (np.isfinite(self.pair_s) and self.pair_s >= 0):
            raise InputError(f"step table: pair_s needs to be at least 0, got {self.pair_s}")

    @property
    def max_batch(self) -> int:
        """Most sequences that can decode together."""
        return int(self.decode_s.size) - 1

    def step_s(self, n_decode: Array, context: Array, chunk: Array, pairs: Array) -> Array:
        """Time of steps, fractional batches interpolated; arrays broadcast.

        >>> table = constant_table(0.02, max_batch=4, chunk_tokens=8)
        >>> float(table.step_s(np.array(2.0), np.array(100.0), np.array(0.0), np.array(0.0)))
        0.02
        """
        axis, mixed_axis = np.arange(self.decode_s.size), np.arange(self.mixed_s.size)
        matrix = np.where(
            chunk > 0,
            np.interp(n_decode + chunk, mixed_axis, self.mixed_s),
            np.interp(n_decode, axis, self.decode_s),
        )
        slope = np.interp(n_decode, axis, self.context_s)
        return np.asarray(matrix + slope * context + self.pair_s * pairs, dtype=np.float64)


def constant_table(step_s: float, *, max_batch: int, chunk_tokens: int) -> StepTable:
    """Table of an engine whose every step takes the same time: queueing theory's server.

    >>> constant_table(0.5, max_batch=1, chunk_tokens=100).max_batch
    1
    """
    return StepTable(
        np.full(max_batch + 1, step_s),
        np.zeros(max_batch + 1),
        np.full(max_batch + chunk_tokens + 1, step_s),
        0.0,
    )


def tabulate(
    step_time: StepTime, *, max_batch: int, chunk_tokens: int, context_tokens: float
) -> StepTable:
    """Sample a step-time function into a table, affine in context around ``context_tokens``.

    Batches and chunks are sampled densely where small and geometrically above, with straight
    lines between.

    Raises:
        InputError: max_batch or chunk_tokens below 1, or the function gives a time that is no time.

    >>> table = tabulate(lambda n, context, chunk, pairs: 0.01 + 1e-8 * context + 1e-5 * chunk,
    ...                  max_batch=8, chunk_tokens=64, context_tokens=1000)
    >>> float(table.decode_s[8]), float(table.context_s[8]), float(table.mixed_s[64])
    (0.01, 1e-08, 0.01064)
    """
    if max_batch < 1 or chunk_tokens < 1:
        raise InputError(
            f"need max_batch >= 1 and chunk_tokens >= 1, got {max_batch} and {chunk_tokens}"
        )
    batch = sample_grid(max_batch)
    zero = np.zeros_like(batch)
    context = max(context_tokens, 2.0)
    low = step_time(batch, batch * context / 2, zero, zero)
    high = step_time(batch, batch * context * 3 / 2, zero, zero)
    slope = np.maximum(high - low, 0.0) / (batch * context)
    fixed = np.maximum(low - slope * batch * context / 2, 0.0)

    tokens = sample_grid(max_batch + chunk_tokens)
    none = np.zeros_like(tokens)
    mixed = step_time(none, none, tokens, none)
    pairs = np.array([0.0, float(chunk_tokens) * context])
    ends = step_time(np.zeros(2), np.zeros(2), np.full(2, float(chunk_tokens)), pairs)
    pair_s = float(max(ends[1] - ends[0], 0.0) / pairs[1])

    axis = np.arange(1, max_batch + 1)
    return StepTable(
        np.concatenate([[0.0], np.interp(axis, batch, fixed)]),
        np.concatenate([slope[:1], np.interp(axis, batch, slope)]),
        np.concatenate([[0.0], np.interp(np.arange(1, tokens[-1] + 1), tokens, mixed)]),
        pair_s,
    )


def sample_grid(last: int) -> Array:
    """Choose counts at which to sample: all up to 16, then geometrically up to ``last``.

    >>> sample_grid(4)
    array([1., 2., 3., 4.])
    """
    dense = np.arange(1, min(last, 16) + 1)
    sparse = np.geomspace(16, last, 24).round() if last > 16 else np.array([])
    return np.unique(np.concatenate([dense, sparse, [last]])).astype(np.float64)
