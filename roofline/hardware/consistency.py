"""Consistency of a spec: figures that contradict each other are slips, and the kind can be named.

A peak that cores × clock × FLOP per clock cannot reach is a sparse one; a usable memory outside
what drivers show is a GB/GiB slip; a link rate above its generation counts both directions.

Limits   A wrong figure that fits all the others is not found.
Sources  [1] NVIDIA CUDA C++ Programming Guide, arithmetic instructions; architecture whitepapers of
             V100, A100, GA102, Ada, H100, Blackwell (dense tensor FLOP per SM and clock, 16-bit).
         [2] AMD ROCm documentation, MI200 and MI300 microarchitecture peak tables (per CU).
         [3] PCI-SIG base specifications: 8, 16, 32, 64 GT/s a lane, 128b/130b coding up to 5.0.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from roofline.dtypes import SIXTEEN_BIT
from roofline.units import GIB, show

if TYPE_CHECKING:
    from roofline.hardware.spec import Accelerator

Finding = tuple[tuple[str, ...], str]
"""Where a slip is, as the path of the field, and what it is."""

# dense 16-bit tensor FLOP per SM (or CU) and clock at the full rate of the architecture [1, 2]
_TENSOR_FLOP_PER_CLOCK = {
    "7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "10.0": 8192,
    "10.3": 8192, "12.0": 1024, "12.1": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096,
}  # fmt: skip
_PEAK_SLACK = 1.25
"""Boost clocks are quoted up to 16 % below what a peak was computed at; sparsity is a factor 2."""

# the highest dense rate of a type as a multiple of the 16-bit rate, over all known devices:
# Trainium3 has 3.75 × in fp8, B300 6 × in fp4, MI355X 4 × in fp6
_MOST_OF_16_BIT = {"tf32": 1.05, "fp8": 3.9, "int8": 3.9, "fp6": 4.1, "fp4": 7.0, "int4": 7.9}

_PCIE_BYTES_PER_S_PER_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
_NVLINK_BYTES_PER_S = {1: 80e9, 2: 150e9, 3: 300e9, 4: 450e9, 5: 900e9, 6: 1800e9}

BINARY_OVER_DECIMAL = GIB / 1e9
_LEAST_USABLE = 0.9
_LEAST_USABLE_OF_HBM = 1.02  # NVIDIA HBM parts show 1.05 to 1.07 × their GB; 1.0 is GiB read as GB


def inconsistencies(accelerator: "Accelerator") -> Iterator[Finding]:
    """Name every slip that the figures of one accelerator give away."""
    yield from _memory_slips(accelerator)
    if not accelerator.is_measured:  # a measured rate is what it is
        yield from _peak_slips(accelerator)
    yield from _link_slips(accelerator)


def is_binary_size(size_bytes: float) -> bool:
    """Whether a size is whole in GiB, so that it was written in GiB."""
    return size_bytes % GIB == 0


def _memory_slips(accelerator: "Accelerator") -> Iterator[Finding]:
    memory = accelerator.memory
    if memory.marketed_bytes is None or memory.usable_bytes is None:
        return
    ratio = memory.usable_bytes / memory.marketed_bytes
    most = 1.0001 if is_binary_size(memory.marketed_bytes) else BINARY_OVER_DECIMAL * 1.0001
    is_hbm = (memory.type or "").upper().startswith("HBM")
    least = _LEAST_USABLE
    if is_hbm and accelerator.vendor == "NVIDIA":
        least = _LEAST_USABLE_OF_HBM / (
            BINARY_OVER_DECIMAL if is_binary_size(memory.marketed_bytes) else 1
        )
    if not least <= ratio <= most:
        usable, marketed = show(memory.usable_bytes, "B", 4), show(memory.marketed_bytes, "B", 4)
        yield (
            ("memory", "usable_bytes"),
            f"usable {usable} against {marketed} on the box is {ratio:.3f} ×, expected "
            f"{least:.2f} to {most:.4f}: GB and GiB mixed up?",
        )


def _peak_slips(accelerator: "Accelerator") -> Iterator[Finding]:
    compute, rates = accelerator.compute, accelerator.compute.flop_per_s
    sixteen: dict[str, float] = {name: rates[name] for name in SIXTEEN_BIT if name in rates}
    full_rate = compute.flop_per_clock_per_sm or _TENSOR_FLOP_PER_CLOCK.get(
        accelerator.compute_capability or ""
    )
    if compute.sm_count and compute.boost_clock_hz and full_rate:
        reach = compute.sm_count * compute.boost_clock_hz * full_rate
        for name, rate in sixteen.items():
            if rate > reach * _PEAK_SLACK:
                yield (
                    ("compute", "flop_per_s", name),
                    f"{show(rate, 'FLOP/s', 4)} is {rate / reach:.2f} × what {compute.sm_count} "
                    f"cores × clock × {full_rate} FLOP reach ({show(reach, 'FLOP/s', 4)}): a "
                    "sparse figure? write the dense one",
                )
    if not sixteen:
        return
    accumulate = compute.flop_per_s_fp16_accumulate
    most_16_bit = max(*sixteen.values(), accumulate.get("fp16", 0.0))
    for name, most in _MOST_OF_16_BIT.items():
        if accelerator.vendor == "NVIDIA" and name == "tf32":
            most = 0.6  # half the 16-bit rate on every NVIDIA part; the sparse figure equals it
        if rates.get(name, 0.0) > most * most_16_bit:
            yield (
                ("compute", "flop_per_s", name),
                f"{name} at {rates[name] / most_16_bit:.2f} × the 16-bit rate, expected at most "
                f"{most:g} ×: a sparse figure? write the dense one",
            )
    if accelerator.vendor == "NVIDIA" and len(sixteen) == 2:
        ratio = max(sixteen.values()) / min(sixteen.values())
        if ratio > 1.1:
            higher = max(sixteen, key=lambda name: sixteen[name])
            yield (
                ("compute", "flop_per_s", higher),
                f"{higher} at {ratio:.2f} × the other 16-bit type: a sparse figure, or 16-bit "
                "accumulation, which belongs under flop_per_s_fp16_accumulate",
            )


def _link_slips(accelerator: "Accelerator") -> Iterator[Finding]:
    pcie, link = accelerator.pcie, accelerator.link
    lane = _PCIE_BYTES_PER_S_PER_LANE.get(pcie.generation or 0)
    if pcie.bytes_per_s is not None and pcie.lanes is not None and lane is not None:
        per_direction = lane * pcie.lanes
        if not 0.94 <= pcie.bytes_per_s / per_direction <= 1.06:
            yield (
                ("pcie", "bytes_per_s"),
                f"PCIe {pcie.generation}.0 x{pcie.lanes} moves {show(per_direction, 'B/s')} per "
                f"direction, not {show(pcie.bytes_per_s, 'B/s')} (both directions added?)",
            )
    words = (link.kind or "").split()
    if link.bytes_per_s is None or len(words) < 2 or words[0] != "NVLink":
        return
    most_per_direction = _NVLINK_BYTES_PER_S.get(int(words[1]) if words[1].isdecimal() else 0)
    if most_per_direction is not None and link.bytes_per_s > 1.01 * most_per_direction:
        yield (
            ("link", "bytes_per_s"),
            f"NVLink {words[1]} moves {show(most_per_direction, 'B/s')} per direction, not "
            f"{show(link.bytes_per_s, 'B/s')}: both directions added?",
        )


# Medians of usable / marketed over the catalogue (a test recomputes them). ECC that lives inside
# GDDR6 takes its 1/16 from the user, HBM keeps its own.
_USABLE_RATIOS = {
    "NVIDIA HBM": 1.0626,
    "NVIDIA GDDR6": 0.9959,
    "NVIDIA GDDR": 1.0599,
    "AMD HBM": 1.0735,
}


def usable_ratio(vendor: str, memory_type: str | None, marketed_bytes: float) -> tuple[float, str]:
    """Usable over marketed memory where the driver's figure is not known, and why.

    >>> usable_ratio("NVIDIA", "HBM3e", 141e9)
    (1.0626, 'median of NVIDIA HBM parts with a known figure')
    """
    kind = (memory_type or "").upper()
    if is_binary_size(marketed_bytes):
        return 1.0, "sold in GiB, all of it taken as usable"
    if vendor == "Apple":
        share = 0.75 * BINARY_OVER_DECIMAL
        return share, "three quarters of unified memory is what macOS lets the GPU hold by default"
    if "UNIFIED" in kind:
        return 1.0, "unified memory, shared with the system: the figure on the box in decimal GB"
    family = "HBM" if kind.startswith("HBM") else "GDDR6" if kind == "GDDR6" else "GDDR"
    key = f"{vendor} {family}"
    if key in _USABLE_RATIOS:
        return _USABLE_RATIOS[key], f"median of {key} parts with a known figure"
    return 1.0, "no figure of a part of this kind is known: decimal GB, the cautious reading"
