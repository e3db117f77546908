"""Class-typical terms: what devices of a class reach, for those that nobody measured here.

A device's datasheet roofs times the shares that measurements of its class reached. Estimates made
from these carry a wider interval and say so.

Units    Shares of the datasheet's dense peak or bandwidth; seconds.
Limits   A class is a chip family; a board with a lower power limit sustains less.
Sources  [1] measurements/published/peaks.csv: matmul, weight-stream, attention and all-reduce rates
             on 28 GPU labels (TensorRT-LLM and vLLM kernel tables, STREAM, mamf-finder; source in
             each row). Shares are medians of the largest shapes of each class.
         [2] measurements/h200-sxm-141gb: kernel start, ridge softness, power-limited rate.
         [3] NVIDIA nccl, src/graph/tuning.cc (base latencies of ring and tree; 14 µs a hop over a
             network port).
         [4] DeepEP, README: 43 of 50 GB/s over NDR InfiniBand, the share taken where none is known.
"""

from dataclasses import dataclass

from roofline.hardware.accelerator import Accelerator
from roofline.hardware.links import Link
from roofline.timing.collectives import LinkTerms
from roofline.timing.roofs import peak_rates
from roofline.timing.terms import AttentionTerms, Curve, DeviceTerms, PrefillAttentionTerms


@dataclass(frozen=True)
class DeviceClass:
    """Shares that a family of chips reaches.

    Args:
        name: for the reader.
        words: any of these in the architecture's name makes a device one of the class.
        memory: share of bandwidth that a weight stream reaches.
        compute: share of the peak that large matmuls reach, by compute type; "other" for the rest.
        sustained: share of that which holds under seconds of load.
        attention: share of the 16-bit peak that prefill attention reaches.
        start_s: time between two kernels' work.
    """

    name: str
    words: tuple[str, ...]
    memory: float
    compute: dict[str, float]
    sustained: float = 0.9
    attention: float = 0.4
    start_s: float = 4e-6


CLASSES = (
    DeviceClass("Hopper H20", ("h20-",), 0.8, {"fp8": 0.85, "int8": 0.6, "other": 0.88}, 0.95, 0.6),
    DeviceClass("Hopper", ("hopper",), 0.86, {"fp8": 0.73, "int8": 0.5, "other": 0.79}, 0.85, 0.5),
    DeviceClass("Blackwell unified", ("gb10-",), 0.85, {"fp4": 0.4, "other": 0.7}, 0.9, 0.4),
    DeviceClass(
        "Blackwell data centre", ("gb100", "gb102", "b200", "b300", "gb200", "gb300", "gb1"),
        0.82, {"fp8": 0.7, "fp4": 0.55, "other": 0.75}, 0.9, 0.4,
    ),
    DeviceClass(
        "Blackwell workstation", ("gb20", "blackwell"), 0.88,
        {"fp8": 0.65, "fp4": 0.5, "other": 0.75}, 0.9, 0.5,
    ),
    DeviceClass(
        "Ada GeForce", ("rtx-4090", "rtx-4080"), 0.9, {"fp8": 0.8, "other": 0.9}, 0.95, 0.6
    ),
    DeviceClass("Ada", ("ada",), 0.88, {"fp8": 0.6, "other": 0.72}, 0.9, 0.5),
    DeviceClass("Ampere GeForce", ("rtx-30",), 0.9, {"other": 0.9}, 0.95, 0.6),
    DeviceClass("Ampere GDDR", ("ga102", "ga104", "ga106"), 0.87, {"other": 0.75}, 0.9, 0.5),
    DeviceClass("Ampere", ("ampere", "ga10"), 0.83, {"other": 0.84}, 0.95, 0.55),
    DeviceClass("Volta or Turing", ("volta", "turing"), 0.82, {"other": 0.7}, 0.9, 0.35, 5e-6),
    DeviceClass("Pascal", ("pascal",), 0.78, {"other": 0.7}, 0.95, 0.2, 6e-6),
    DeviceClass("CDNA", ("cdna",), 0.75, {"fp8": 0.5, "other": 0.58}, 0.95, 0.3, 6e-6),
    DeviceClass("RDNA", ("rdna",), 0.8, {"other": 0.55}, 0.95, 0.25, 7e-6),
    DeviceClass("Gaudi", ("gaudi",), 0.8, {"other": 0.75}, 0.95, 0.4, 8e-6),
    DeviceClass("Arc", ("xe", "battlemage", "bmg", "arc"), 0.85, {"other": 0.5}, 0.95, 0.2, 8e-6),
    DeviceClass("Apple", ("apple",), 0.82, {"other": 0.65}, 0.95, 0.25, 8e-6),
)  # fmt: skip
UNKNOWN = DeviceClass("no class", (), 0.75, {"other": 0.55}, 0.9, 0.3, 6e-6)

RIDGE_SOFTNESS = 3.0
"""Fitted on one H200 between 2.9 (bf16) and 4.2 (fp8) [2]."""
SMALL_KERNEL_S = 2.2e-6
"""One elementwise kernel inside a graph, H200 [2]."""
SHARE_OF_SMALL_KERNELS = 0.67
"""Bandwidth that elementwise kernels reach [2]."""
DECODE_ATTENTION_START_S = 6e-6
NVLINK_LATENCY_S = 10e-6
"""A small NCCL all-reduce in a captured graph on two H200s [2]."""
PCIE_LATENCY_S = 20e-6
"""A small all-reduce over PCIe between L40S boards: 21–42 µs [1]."""
NVLINK_SHARE = 0.72
"""Bus bandwidth of a large all-reduce over the link's nominal rate: 324 of 450 GB/s [2]."""
PCIE_SHARE = 0.32
"""Bus bandwidth of an all-reduce over PCIe: 20 of 63 GB/s, L40S, NCCL [1]."""


def device_class(accelerator: Accelerator) -> DeviceClass:
    """Find the class that a device belongs to.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> device_class(load_accelerator("t4")).name
    'Volta or Turing'
    """
    text = f"{accelerator.architecture} {accelerator.vendor} {accelerator.id}".lower()
    return next((c for c in CLASSES if any(word in text for word in c.words)), UNKNOWN)


def typical_terms(accelerator: Accelerator) -> DeviceTerms:
    """Make the terms of a device from its datasheet and its class.

    Raises:
        MissingDataError: the spec has no memory bandwidth.
    """
    family = device_class(accelerator)
    bandwidth = accelerator.memory_bandwidth() * family.memory
    matmul = {
        kind: Curve(
            family.start_s,
            bandwidth,
            peak * family.compute.get(kind, family.compute["other"]),
            RIDGE_SOFTNESS,
        )
        for kind, peak in peak_rates(accelerator).items()
    }
    rates = peak_rates(accelerator)
    sixteen = max((rates[kind] for kind in ("bf16", "fp16", "fp32") if kind in rates), default=1e12)
    attention = Curve(
        DECODE_ATTENTION_START_S, bandwidth, sixteen * family.attention, RIDGE_SOFTNESS
    )
    small = Curve(
        SMALL_KERNEL_S * family.start_s / 4e-6,
        accelerator.memory_bandwidth() * SHARE_OF_SMALL_KERNELS,
        sixteen,
        2.0,
    )
    return DeviceTerms(
        matmul=matmul,
        sustained=dict.fromkeys(matmul, family.sustained),
        experts={kind: _grouped(curve) for kind, curve in matmul.items()},
        decode_attention=AttentionTerms(attention),
        prefill_attention=PrefillAttentionTerms(family.start_s, sixteen * family.attention),
        small=small,
        all_reduce=typical_link(accelerator),
        origin=f"datasheet roofs × what the class {family.name} reaches",
    )


EXPERT_SHARE = 0.8
"""Bandwidth of grouped matmuls over dense ones'."""


def _grouped(curve: Curve) -> Curve:
    return Curve(
        curve.start_s * 1.5,
        curve.bytes_per_s * EXPERT_SHARE,
        curve.flop_per_s * EXPERT_SHARE,
        curve.softness,
    )


def typical_link(accelerator: Accelerator) -> LinkTerms | None:
    """Terms of collectives over a device's scale-up link, or over PCIe where it has none.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> round(typical_link(load_accelerator("h200-sxm-141gb")).bytes_per_s / 1e9)
    324
    """
    link = accelerator.link
    if link is not None and link.bytes_per_s is not None:
        return LinkTerms(
            link.bytes_per_s * NVLINK_SHARE,
            NVLINK_LATENCY_S,
            origin=f"{link.kind}, {NVLINK_SHARE:.0%} of its nominal rate",
        )
    pcie = accelerator.pcie
    if pcie is not None and pcie.bytes_per_s is not None:
        return LinkTerms(
            pcie.bytes_per_s * PCIE_SHARE,
            PCIE_LATENCY_S,
            origin=f"PCIe {pcie.generation} through the host, {PCIE_SHARE:.0%} of its rate",
        )
    return None


PORT_SHARE = 0.86
PORT_LATENCY_S = 14e-6


def port_terms(link: Link) -> LinkTerms:
    """Say what a named link between nodes reaches: its known share, or a usual one [3, 4]."""
    share = link.achieved_fraction or PORT_SHARE
    latency_s = max(link.latency_s or 0.0, PORT_LATENCY_S)
    return LinkTerms(link.bytes_per_s * share, latency_s, origin=f"{link.name}, {share:.0%}")
