"""Collectives: the bytes that each rank sends, and the time that takes on a link.

Shapes   Message bytes are a number or an array; the result has that shape. ``message_bytes`` is the
         whole buffer of one rank (all-reduce), or the whole gathered one (all-gather,
         reduce-scatter, all-to-all).
Units    bytes, seconds; a link's rate is per direction and accelerator.
Limits   No congestion between groups; a switch that reduces halves an all-reduce's volume and is
         used for bounds only.
Sources  [1] Patarasuk & Yuan 2009, Bandwidth optimal all-reduce, JPDC 69(2): ring, 2(n−1)/n.
         [2] NVIDIA, nccl-tests, PERFORMANCE.md: bus bandwidth factors.
         [3] Klenk et al. 2020, In-network acceleration for shared-memory multiprocessors, ISCA:
             with reduction in the switch each rank sends its buffer once.
"""

import math
from dataclasses import dataclass

import numpy as np

from roofline.errors import InputError
from roofline.units import Numeric


@dataclass(frozen=True)
class LinkTerms:
    """What a collective's time depends on.

    Args:
        bytes_per_s: rate that one rank reaches in one direction.
        latency_s: time of one hop, start-up included.
        curve: measured (bytes, seconds) of an all-reduce over ``curve_ranks`` ranks, by size.
        curve_ranks: ranks of the measured curve.
        origin: where the numbers come from.
    """

    bytes_per_s: float
    latency_s: float
    curve: tuple[tuple[float, float], ...] = ()
    curve_ranks: int = 0
    origin: str = ""


def all_reduce_volume(message_bytes: Numeric, ranks: int) -> Numeric:
    """Bytes that each rank sends in a ring all-reduce: 2(n − 1)/n of the message [1].

    >>> all_reduce_volume(140e9, 8) / 1e9  # gradients of 70e9 parameters in bf16
    245.0
    """
    _check_ranks(ranks)
    return 2 * (ranks - 1) / ranks * message_bytes


def least_all_reduce_volume(message_bytes: Numeric, ranks: int) -> Numeric:
    """Fewest bytes that a rank must send, reduction in the switch included [3]."""
    _check_ranks(ranks)
    return np.minimum(2 * (ranks - 1) / ranks, 1.0) * message_bytes


def ring_all_reduce_s(message_bytes: Numeric, ranks: int, link: LinkTerms) -> Numeric:
    """Time of a ring: 2(n − 1)/n · bytes/rate + 2(n − 1) · latency [1].

    >>> round(float(ring_all_reduce_s(140e9, 8, LinkTerms(300e9, 0.0))), 3)
    0.817
    """
    steps = 2 * (ranks - 1)
    return all_reduce_volume(message_bytes, ranks) / link.bytes_per_s + steps * link.latency_s


def tree_all_reduce_s(message_bytes: Numeric, ranks: int, link: LinkTerms) -> Numeric:
    """Time of a pipelined double tree: 2 · bytes/rate + 2 ⌈log₂ n⌉ · latency."""
    _check_ranks(ranks)
    depth = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    sent = 2.0 if ranks > 2 else float(ranks > 1)
    return sent * message_bytes / link.bytes_per_s + 2 * depth * link.latency_s


def one_shot_all_reduce_s(message_bytes: Numeric, ranks: int, link: LinkTerms) -> Numeric:
    """Time when every rank sends its buffer to every other: (n − 1) · bytes/rate + latency."""
    _check_ranks(ranks)
    return (ranks - 1) * message_bytes / link.bytes_per_s + min(ranks - 1, 1) * link.latency_s


def all_reduce_s(message_bytes: Numeric, ranks: int, link: LinkTerms) -> Numeric:
    """Time of the best all-reduce for each size; a measured curve is used where there is one.

    Past the curve's ranks the volume and the hops grow as a ring's do.

    >>> link = LinkTerms(bytes_per_s=300e9, latency_s=5e-6)
    >>> float(all_reduce_s(8192.0, 1, link))
    0.0
    >>> np.round(all_reduce_s(np.array([8e3, 8e9]), 8, link) * 1e6, 1)
    array([5.20000e+00, 4.67367e+04])
    """
    if ranks == 1:
        return np.zeros_like(np.asarray(message_bytes, dtype=float))
    if link.curve:
        return _measured_all_reduce_s(message_bytes, ranks, link)
    best = np.minimum(
        ring_all_reduce_s(message_bytes, ranks, link), tree_all_reduce_s(message_bytes, ranks, link)
    )
    return np.minimum(best, one_shot_all_reduce_s(message_bytes, ranks, link))


def _measured_all_reduce_s(message_bytes: Numeric, ranks: int, link: LinkTerms) -> Numeric:
    sizes = np.log(np.array([point[0] for point in link.curve]))
    times = np.log(np.array([point[1] for point in link.curve]))
    size = np.log(np.maximum(np.asarray(message_bytes, dtype=float), 1.0))
    inside = np.exp(np.interp(size, sizes, times))
    # past the largest message measured the rate stays what it was there
    beyond = np.maximum(np.exp(size - sizes[-1]), 1.0)
    if ranks == link.curve_ranks:
        return inside * beyond
    measured = 2 * (link.curve_ranks - 1) / link.curve_ranks
    volume = 2 * (ranks - 1) / ranks / measured
    floor = float(np.exp(times[0]))
    hops = math.log2(ranks) / math.log2(link.curve_ranks)
    return np.maximum(inside * beyond - floor, 0.0) * volume + floor * hops


def gather_s(message_bytes: Numeric, ranks: int, link: LinkTerms) -> Numeric:
    """Time of an all-gather or a reduce-scatter: (n − 1)/n · bytes/rate + (n − 1) · latency [2]."""
    _check_ranks(ranks)
    return (ranks - 1) / ranks * message_bytes / link.bytes_per_s + (ranks - 1) * link.latency_s


def all_to_all_s(message_bytes: Numeric, ranks: int, link: LinkTerms) -> Numeric:
    """Time of an all-to-all: (n − 1)/n · bytes/rate + one latency; pairs exchange at once [2]."""
    _check_ranks(ranks)
    return (ranks - 1) / ranks * message_bytes / link.bytes_per_s + min(
        ranks - 1, 1
    ) * link.latency_s


def send_s(message_bytes: Numeric, link: LinkTerms) -> Numeric:
    """Time of one message from one accelerator to another."""
    return np.asarray(message_bytes, dtype=float) / link.bytes_per_s + link.latency_s


def hierarchical_all_reduce_s(
    message_bytes: Numeric, ranks_per_node: int, nodes: int, inner: LinkTerms, outer: LinkTerms
) -> Numeric:
    """Time of reduce-scatter inside nodes, all-reduce of the shards across, all-gather inside.

    >>> inner, outer = LinkTerms(450e9, 0.0), LinkTerms(50e9, 0.0)
    >>> round(float(hierarchical_all_reduce_s(1e9, 8, 2, inner, outer)) * 1e3, 2)  # 1.94·2 + 2.5
    6.39
    """
    inside = 2 * gather_s(message_bytes, ranks_per_node, inner)
    shard_bytes = np.asarray(message_bytes, dtype=float) / ranks_per_node
    return inside + all_reduce_s(shard_bytes, nodes, outer)


def bus_bytes_per_s(operation: str, message_bytes: float, ranks: int, time_s: float) -> float:
    """Bus bandwidth as nccl-tests defines it [2].

    >>> bus_bytes_per_s("all_reduce", 1e9, 8, 0.01) / 1e9
    175.0
    """
    factors = {
        "all_reduce": 2 * (ranks - 1) / ranks,
        "all_gather": (ranks - 1) / ranks,
        "reduce_scatter": (ranks - 1) / ranks,
        "all_to_all": (ranks - 1) / ranks,
        "sendrecv": 1.0,
    }
    if operation not in factors:
        raise InputError(f"no collective {operation!r}; there are {', '.join(factors)}")
    return factors[operation] * message_bytes / time_s


def _check_ranks(ranks: int) -> None:
    if ranks < 1:
        raise InputError(f"a collective needs at least one rank, got {ranks}")
