"""Mapping: which devices form a tensor-parallel group, and in which order stages follow.

The most traffic goes over the fastest links: tensor parallelism talks in every layer, pipeline
stages once a boundary. A group is worth the slowest edge of its best ring; groups are chosen so
that the worst group is as good as can be, then the sum; stages so that neighbours are near.

Units    bytes per second and direction.
Limits   Exhaustive up to 8 devices; past that, groups are built greedily and improved by swaps.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from roofline.errors import InputError

Edge = Callable[[int, int], float]
_EXHAUSTIVE = 8


@dataclass(frozen=True)
class Mapping:
    """Groups in the order of stages: rank r runs on ``devices[r]``."""

    tp: int
    groups: tuple[tuple[int, ...], ...]
    group_bytes_per_s: tuple[float, ...]
    boundary_bytes_per_s: tuple[float, ...]

    @property
    def devices(self) -> tuple[int, ...]:
        """Devices by rank, tensor-parallel ranks innermost."""
        return tuple(device for group in self.groups for device in group)

    @property
    def paste(self) -> str:
        """The line that makes ranks and devices agree.

        >>> Mapping(2, ((0, 3), (1, 2)), (1.0, 1.0), (1.0,)).paste
        'CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,3,1,2'
        """
        listed = ",".join(map(str, self.devices))
        return f"CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={listed}"


def best_mapping(n_devices: int, tp: int, edge: Edge) -> Mapping:
    """Find the best tensor-parallel groups and the order of the stages.

    Args:
        n_devices: devices of the node, numbered from 0.
        tp: devices of a group.
        edge: rate between two devices.

    Raises:
        InputError: tp does not divide the devices.

    >>> fast = {(0, 2), (1, 3)}
    >>> best_mapping(4, 2, lambda a, b: 300e9 if (min(a, b), max(a, b)) in fast else 30e9).groups
    ((0, 2), (1, 3))
    """
    if tp < 1 or n_devices < 1 or n_devices % tp:
        divisors = [d for d in range(1, n_devices + 1) if n_devices % d == 0]
        raise InputError(
            f"tp={tp} does not divide {n_devices} devices; use {', '.join(map(str, divisors))}"
        )
    if n_devices <= _EXHAUSTIVE:
        candidates = _partitions(tuple(range(n_devices)), tp)
    else:
        candidates = iter([_improved(_greedy(n_devices, tp, edge), edge)])
    best = max(candidates, key=lambda groups: _worth(groups, edge))
    ordered = _stage_order([_best_ring(group, edge) for group in best], edge)
    return Mapping(
        tp,
        tuple(ordered),
        tuple(ring_rate(group, edge) for group in ordered),
        tuple(_boundary(first, second, edge) for first, second in itertools.pairwise(ordered)),
    )


def ring_rate(ring: Sequence[int], edge: Edge) -> float:
    """Slowest edge of a ring in this order; infinite for one device."""
    if len(ring) < 2:
        return float("inf")
    return min(edge(a, b) for a, b in zip(ring, (*ring[1:], ring[0]), strict=True))


def _best_ring(group: tuple[int, ...], edge: Edge) -> tuple[int, ...]:
    if len(group) <= 3 or len(group) > _EXHAUSTIVE:
        return group
    first, *rest = group
    rings = ((first, *order) for order in itertools.permutations(rest))
    return max(rings, key=lambda ring: ring_rate(ring, edge))


def _worth(groups: Sequence[tuple[int, ...]], edge: Edge) -> tuple[float, float]:
    rates = [ring_rate(_best_ring(group, edge), edge) for group in groups]
    finite = [rate for rate in rates if rate != float("inf")]
    inside = sum(edge(a, b) for group in groups for a, b in itertools.combinations(group, 2))
    return (min(finite, default=0.0), inside)


def _partitions(devices: tuple[int, ...], size: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    if not devices:
        yield ()
        return
    first, rest = devices[0], devices[1:]
    for others in itertools.combinations(rest, size - 1):
        left = tuple(device for device in rest if device not in others)
        for tail in _partitions(left, size):
            yield ((first, *others), *tail)


def _greedy(n_devices: int, size: int, edge: Edge) -> list[list[int]]:
    left = list(range(n_devices))
    groups = []
    while left:
        group = [left.pop(0)]
        while len(group) < size:
            near = max(left, key=lambda d: min(edge(d, member) for member in group))
            left.remove(near)
            group.append(near)
        groups.append(group)
    return groups


def _improved(groups: list[list[int]], edge: Edge) -> tuple[tuple[int, ...], ...]:
    def worth() -> tuple[float, float]:
        return _worth([tuple(group) for group in groups], edge)

    best = worth()
    improved = True
    while improved:
        improved = False
        for one, two in itertools.combinations(range(len(groups)), 2):
            for i, j in itertools.product(range(len(groups[one])), range(len(groups[two]))):
                groups[one][i], groups[two][j] = groups[two][j], groups[one][i]
                now = worth()
                if now > best:
                    best, improved = now, True
                else:
                    groups[one][i], groups[two][j] = groups[two][j], groups[one][i]
    return tuple(tuple(group) for group in groups)


def _boundary(first: Sequence[int], second: Sequence[int], edge: Edge) -> float:
    """Rate of the links between two stages: rank i sends to rank i."""
    return min(edge(a, b) for a, b in zip(first, second, strict=True))


def _stage_order(groups: list[tuple[int, ...]], edge: Edge) -> list[tuple[int, ...]]:
    if len(groups) < 3:
        return groups
    if len(groups) <= _EXHAUSTIVE:
        first, *rest = groups
        orders = ([first, *order] for order in itertools.permutations(rest))
        if len(groups) > 6:  # a chain by nearest neighbour: 7! orders are enough, more are not
            return _chain(groups, edge)
        return max(
            orders,
            key=lambda order: (
                min(_boundary(a, b, edge) for a, b in itertools.pairwise(order)),
                sum(_boundary(a, b, edge) for a, b in itertools.pairwise(order)),
            ),
        )
    return _chain(groups, edge)


def _chain(groups: list[tuple[int, ...]], edge: Edge) -> list[tuple[int, ...]]:
    left = list(groups)
    order = [left.pop(0)]
    while left:
        near = max(left, key=lambda group: _boundary(order[-1], group, edge))
        left.remove(near)
        order.append(near)
    return order
