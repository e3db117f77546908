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
        ratio = np.divide(shorter, longer, out=np.zeros_like(longer), where=longer > 0)
        return self.start_s + longer * (1 + ratio**self.softness) ** (1 / self.softness)


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
    """

    name: str
    where: str
    calls: float
    hidden: float = 0.0
    query: float = 0.0
    key: float = 0.0
    inner: float = 0.0
    picked: float = 0.0


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
    """

    matmul: Mapping[str, Curve]
    sustained: Mapping[str, float]
    experts: Mapping[str, Curve]
    decode_attention: Curve
    prefill_attention: Curve
    small: Curve
    all_reduce: LinkTerms | None
    origin: str


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
        eager_kernel_s: host time per kernel when nothing is captured; 0: launched as a graph.
        prefill_step_s: host work of one prefill step (request handling, first token out).
        decode_rate, prefill_rate: share of the device's rates that the engine's kernels reach,
            within 0.5–1.25.
        spread_decode, spread_prefill: how far measurements lie from estimates.
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
    spread_decode: Spread = field(default_factory=lambda: Spread(0.5, 3.0, 0, "no rows"))
    spread_prefill: Spread = field(default_factory=lambda: Spread(0.5, 3.0, 0, "no rows"))
