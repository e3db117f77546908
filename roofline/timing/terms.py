"""Terms: the numbers that an estimate takes beyond the bound's roofs, and their defaults' shape.

Each term is physical and named: what a kernel costs to start, the rate that a kind of operator
reaches, how soft its ridge is, which small kernels an engine runs in a layer, what its host does in
a step. Where the numbers come from (a record, a class of device, published rows) is no matter here.

    operator time = t0 + ((bytes / B)^q + (FLOP / P)^q)^(1/q)

Units    seconds, bytes/s, FLOP/s; ``softness`` q is a pure number of at least 1: infinite is the
         roofline's sharp corner.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from roofline.timing.collectives import LinkTerms
from roofline.units import Numeric


@dataclass(frozen=True)
class Curve:
    """Time of one kernel by its bytes and FLOPs.

    Args:
        start_s: time from one kernel's end to the next one's work: t0.
        bytes_per_s: rate reached when memory limits: B.
        flop_per_s: rate reached when compute limits: P.
        softness: exponent q of the ridge.

    >>> curve = Curve(start_s=4e-6, bytes_per_s=4e12, flop_per_s=800e12, softness=3.0)
    >>> round(float(curve.seconds(4e8, 0.0)) * 1e6, 1)
    104.0
    """

    start_s: float
    bytes_per_s: float
    flop_per_s: float
    softness: float

    def seconds(self, n_bytes: Numeric, flop: Numeric) -> Numeric:
        """Time of one kernel, in the shape that bytes and FLOPs broadcast to."""
        memory_s = np.asarray(n_bytes, dtype=float) / self.bytes_per_s
        compute_s = np.asarray(flop, dtype=float) / self.flop_per_s
        longer = np.maximum(memory_s, compute_s)
        shorter = np.minimum(memory_s, compute_s)
        # the p-norm, written so that nothing under- or overflows
        ratio = shorter / np.maximum(longer, 1e-300)
        return self.start_s + longer * (1 + ratio**self.softness) ** (1 / self.softness)


@dataclass(frozen=True)
class AttentionGrid:
    """Measured times of decode attention over how many blocks share how many bytes.

    A block is one KV head of one sequence, the unit that a kernel can give to a multiprocessor.

    Args:
        blocks: numbers of blocks measured, rising.
        n_bytes: bytes of cache read, rising.
        seconds: time of each [blocks][bytes].

    Outside the grid the nearest number of blocks counts; past the largest read the rate stays,
    below the smallest the time does.
    """

    blocks: tuple[float, ...]
    n_bytes: tuple[float, ...]
    seconds: tuple[tuple[float, ...], ...]

    def at(self, blocks: Numeric, n_bytes: Numeric) -> Numeric:
        """Time at any point, interpolated in logarithms.

        >>> grid = AttentionGrid((8.0, 64.0), (1e6, 1e8), ((1e-5, 4e-5), (1e-5, 3e-5)))
        >>> round(float(grid.at(8.0, 1e7)) * 1e6, 1), round(float(grid.at(64.0, 2e8)) * 1e6, 1)
        (20.0, 60.0)
        """
        log_bytes = np.log(np.maximum(np.asarray(n_bytes, dtype=float), 1.0))
        knots = np.log(np.array(self.n_bytes))
        rows = [np.interp(log_bytes, knots, np.log(np.array(row))) for row in self.seconds]
        beyond = np.maximum(log_bytes - knots[-1], 0.0)
        axis = np.log(np.array(self.blocks))
        place = np.clip(
            np.log(np.maximum(np.asarray(blocks, dtype=float), 1e-9)), axis[0], axis[-1]
        )
        result: Numeric = rows[0] + np.zeros_like(place)
        for lower in range(len(axis) - 1):
            share = np.clip((place - axis[lower]) / (axis[lower + 1] - axis[lower]), 0.0, 1.0)
            result = np.where(
                place > axis[lower], rows[lower] + share * (rows[lower + 1] - rows[lower]), result
            )
        return np.exp(result + beyond)


@dataclass(frozen=True)
class AttentionTerms:
    """What decode attention reaches.

    Args:
        curve: time by bytes and FLOPs, of the best kernel.
        grid: measured times that replace the curve's memory side where there are some.
        whole: curve of a kernel that no longer splits a sequence's cache over multiprocessors once
            there are ``whole_from_blocks`` blocks (flash attention 2); None: it always splits.
        whole_from_blocks: blocks from which ``whole`` counts.
        by_head_dim: (head dim, rate) pairs: rate reached at other widths, relative to ``curve``'s.
    """

    curve: Curve
    grid: AttentionGrid | None = None
    whole: Curve | None = None
    whole_from_blocks: float = float("inf")
    by_head_dim: tuple[tuple[int, float], ...] = ()

    def seconds(self, blocks: Numeric, n_bytes: Numeric, flop: Numeric, head_dim: int) -> Numeric:
        """Time of one layer's attention over all sequences of a step."""
        rate = 1.0
        if self.by_head_dim:
            widths = [float(width) for width, _ in self.by_head_dim]
            rate = float(np.interp(head_dim, widths, [value for _, value in self.by_head_dim]))
        scaled = np.asarray(n_bytes, dtype=float) / rate
        split = self.curve.seconds(scaled, flop)
        if self.grid is not None:
            split = np.maximum(
                self.grid.at(blocks, n_bytes), self.curve.start_s + flop / self.curve.flop_per_s
            )
        if self.whole is None:
            return split
        return np.where(
            np.asarray(blocks) >= self.whole_from_blocks, self.whole.seconds(scaled, flop), split
        )


@dataclass(frozen=True)
class PrefillAttentionTerms:
    """What prefill attention reaches: t0 + FLOP / P + tail of the last, longest rows.

    Args:
        start_s: time to start.
        flop_per_s: rate when the device is full.
        row_s: time per token of context that the last blocks run alone.
        by_head_dim: (head dim, rate) pairs, relative to ``flop_per_s``.
    """

    start_s: float
    flop_per_s: float
    row_s: float = 0.0
    by_head_dim: tuple[tuple[int, float], ...] = ()

    def seconds(self, flop: Numeric, longest_tokens: Numeric, head_dim: int) -> Numeric:
        """Time of one layer's attention over all prompts of a step."""
        rate = 1.0
        if self.by_head_dim:
            widths = [float(width) for width, _ in self.by_head_dim]
            rate = float(np.interp(head_dim, widths, [value for _, value in self.by_head_dim]))
        busy = np.asarray(flop, dtype=float) / (self.flop_per_s * rate)
        return self.start_s + busy + self.row_s * np.asarray(longest_tokens, dtype=float)


@dataclass(frozen=True)
class SmallKernel:
    """A kernel between the matmuls of a layer: norm, rotary, copy, activation.

    Args:
        name: what it does.
        where: ``mixer`` (layers with attention or state), ``attention``, ``dense``, ``experts`` or
            ``layer`` (all).
        calls: kernels a layer.
        hidden, query, key, inner, picked: 16-bit values that it moves per token, in widths of the
            hidden state, queries, keys and feed-forward (``picked``: per chosen expert).
        picked_hidden: widths of the hidden state per chosen expert.
        below_rows: runs only in steps of fewer tokens (padding); None: always.
        not_for_one: a copy that a step of one token does not need: its layout is right already.
    """

    name: str
    where: str
    calls: float
    hidden: float = 0.0
    query: float = 0.0
    key: float = 0.0
    inner: float = 0.0
    picked: float = 0.0
    picked_hidden: float = 0.0
    not_for_one: bool = False
    below_rows: float | None = None


TYPICAL_HOST_OPERATOR_S = 7.5e-6
"""One PyTorch operator (add, SiLU, norm, concatenation) on the host of an H200, November 2026."""


@dataclass(frozen=True)
class DeviceTerms:
    """What one device reaches.

    Args:
        matmul: curve of dense matmuls by compute type.
        sustained: share of the matmul curve's FLOP rate that holds when a phase is long (the
            board's power limit), by compute type.
        experts: curve of grouped matmuls by compute type; missing types fall back to ``matmul``.
        decode_attention, prefill_attention: curves of attention.
        small: curve of small kernels (its FLOP rate plays no part).
        all_reduce: link terms of collectives in graphs; None: one device only.
        origin: where the numbers come from, in words.
        host_operator_s: what one operator of the framework costs on the host, dispatch included.
        domain: accelerators that the inner link joins; None: all that there are.
        between: link terms of the network between domains; None: nothing leaves a domain.
    """

    matmul: Mapping[str, Curve]
    sustained: Mapping[str, float]
    experts: Mapping[str, Curve]
    decode_attention: AttentionTerms
    prefill_attention: PrefillAttentionTerms
    small: Curve
    all_reduce: LinkTerms | None
    origin: str
    host_operator_s: float = TYPICAL_HOST_OPERATOR_S
    domain: int | None = None
    between: LinkTerms | None = None


@dataclass(frozen=True)
class Spread:
    """Measured over estimated: the ratios between which four of five judged rows lie.

    Args:
        low, high: 10th and 90th percentile of measured / estimate.
        rows: rows that it comes from; 0: a stated guess, wide on purpose.
        origin: which rows, in words.
    """

    low: float
    high: float
    rows: int
    origin: str


@dataclass(frozen=True)
class EngineTerms:
    """What an engine adds to its kernels.

    Args:
        name: engine.
        small_kernels: kernels between the matmuls of a layer.
        kernels_per_step: small kernels outside the layers.
        step_s: host work in every step that the device waits for.
        sequence_s: host work per sequence and step that the device waits for.
        eager_kernel_s: host time per kernel when nothing is captured, modules and Python included,
            on a host of ``TYPICAL_HOST_OPERATOR_S``; 0: launched as a graph.
        prefill_step_s: host work of one prefill step (request handling, first token out).
        decode_rate, prefill_rate: share of the device's rates that the engine's kernels reach.
        weight_only_rate: further share where weights are unpacked to 16 bit before they multiply.
        expert_rate: further share of grouped matmuls over routed experts.
        scheduler_share: share of a prompt's time that the sequences beside it wait for: below 1
            where its chunks ride along in decode steps.
        collective_rate: speed of collectives over the device's terms (one-shot kernels beat NCCL).
        spread_decode, spread_prefill: how far measurements lie from estimates.
        spread_whole: the same of whole requests that mostly decode; None: no rows, so that the
            errors of their phases are taken to go together.
    """

    name: str
    small_kernels: tuple[SmallKernel, ...] = ()
    kernels_per_step: float = 0.0
    step_s: float = 0.0
    sequence_s: float = 0.0
    eager_kernel_s: float = 0.0
    prefill_step_s: float = 0.0
    decode_rate: float = 1.0
    prefill_rate: float = 1.0
    weight_only_rate: float = 1.0
    expert_rate: float = 1.0
    collective_rate: float = 1.0
    scheduler_share: float = 0.8
    spread_decode: Spread = field(default_factory=lambda: Spread(0.5, 3.0, 0, "no rows"))
    spread_prefill: Spread = field(default_factory=lambda: Spread(0.5, 3.0, 0, "no rows"))
    spread_whole: Spread | None = None
