"""The Pareto front: speed of one user against throughput of one accelerator, and its cost.

A point is a candidate at one load. It is on the front when no other point is at least as good in
both and better in one.

Units    output token per second, of one user and of one accelerator; USD per million of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A candidate at one load."""

    accelerator: str
    plan: str
    tokens_per_s_per_user: float
    tokens_per_s_per_accelerator: float
    requests_per_s: float
    usd_per_million_output_tokens: float | None
    meets: bool


def front(first: Array, second: Array) -> NDArray[np.int64]:
    """Indices of the points that no other dominates, from the largest ``first`` down.

    >>> front(np.array([1.0, 2.0, 3.0, 3.0]), np.array([9.0, 5.0, 6.0, 1.0]))
    array([2, 0])
    """
    order = np.lexsort((-second, -first))
    best = np.maximum.accumulate(np.concatenate([[-np.inf], second[order][:-1]]))
    kept: NDArray[np.int64] = order[second[order] > best]
    return kept


def pareto(points: Sequence[Point]) -> tuple[Point, ...]:
    """Take the points of the front out of all, fastest first."""
    if not points:
        return ()
    users = np.array([point.tokens_per_s_per_user for point in points])
    devices = np.array([point.tokens_per_s_per_accelerator for point in points])
    return tuple(points[index] for index in front(users, devices))
