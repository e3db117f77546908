"""Intervals: unions and differences of stretches of time, as two arrays of starts and ends.

Streams overlap, so the time of kernels is never a sum: it is the length of their union.

Shapes   ``start_s`` and ``end_s`` are one-dimensional and of one length.
Units    seconds on one clock.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Union(NamedTuple):
    """Disjoint stretches in order, each with the event that opens and the one that closes it."""

    start_s: Floats
    end_s: Floats
    first: Ints
    last: Ints

    @property
    def total_s(self) -> float:
        """Length of all stretches."""
        return float(np.sum(self.end_s - self.start_s))


def union(start_s: Floats, end_s: Floats) -> Union:
    """Join overlapping and touching intervals.

    >>> joined = union(np.array([3.0, 0.0, 1.0]), np.array([4.0, 2.0, 2.5]))
    >>> joined.start_s.tolist(), joined.end_s.tolist(), joined.total_s
    ([0.0, 3.0], [2.5, 4.0], 3.5)
    """
    if len(start_s) == 0:
        empty = np.zeros(0)
        return Union(empty, empty, np.zeros(0, np.int64), np.zeros(0, np.int64))
    order = np.lexsort((end_s, start_s))
    start, end = start_s[order], end_s[order]
    reach = np.maximum.accumulate(end)
    opens = np.concatenate(([True], start[1:] > reach[:-1]))
    begins = np.flatnonzero(opens)
    stops = np.concatenate((begins[1:] - 1, [len(start) - 1]))
    # where the furthest end so far was last raised: the event that closes each stretch
    raised = np.concatenate(([True], reach[1:] > reach[:-1]))
    closer = np.maximum.accumulate(np.where(raised, np.arange(len(start)), 0))
    return Union(start[begins], reach[stops], order[begins], order[closer[stops]])


def clip(start_s: Floats, end_s: Floats, low_s: float, high_s: float) -> tuple[Floats, Floats]:
    """Cut intervals to a window and drop those outside it.

    >>> clip(np.array([0.0, 5.0]), np.array([2.0, 6.0]), 1.0, 3.0)
    (array([1.]), array([2.]))
    """
    start, end = np.maximum(start_s, low_s), np.minimum(end_s, high_s)
    keep = end > start
    return start[keep], end[keep]


def exposed_s(start_s: Floats, end_s: Floats, hidden_by: list[tuple[Floats, Floats]]) -> float:
    """Length of the first intervals that no other interval covers: |A ∪ B| − |B|.

    >>> exposed_s(np.array([0.0]), np.array([4.0]), [(np.array([1.0]), np.array([3.0]))])
    2.0
    """
    other_start = np.concatenate([start for start, _ in hidden_by] or [np.zeros(0)])
    other_end = np.concatenate([end for _, end in hidden_by] or [np.zeros(0)])
    both = union(np.concatenate((start_s, other_start)), np.concatenate((end_s, other_end)))
    return max(both.total_s - union(other_start, other_end).total_s, 0.0)
