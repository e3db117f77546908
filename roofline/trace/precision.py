"""Precision: how much of the matrix time really ran in 8 or 4 bit, and what is left to gain.

    gain of a step = Σ time of 16-bit products · (1 − 1/ratio) · (1 − share of waiting for the host)

Limits   The ratio is measured where the record has both types, and 2 otherwise: half the bytes and
         twice the dense peak, the most that halving the width can give.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from roofline.trace.rates import KernelRow, Roofs
from roofline.trace.summary import DeviceSummary

_LOW = ("fp8", "fp4", "int8")
_NOMINAL_RATIO = 2.0


@dataclass(frozen=True)
class LowPrecision:
    """Matrix time of a device by the type that the kernels computed in."""

    matmul_s: float
    by_type_s: dict[str, float]
    casts: int
    cast_s: float
    ratio: float
    ratio_origin: str
    gain_s: float
    """Time that the whole window would gain if all 16-bit products ran in fp8."""
    gain_share: float

    @property
    def low_share(self) -> float:
        """Share of the matrix time in 8 bit or less."""
        low = sum(self.by_type_s.get(kind, 0.0) for kind in _LOW)
        return low / self.matmul_s if self.matmul_s else 0.0


def low_precision(
    summary: DeviceSummary, rows: Sequence[KernelRow], roofs: Roofs | None = None
) -> LowPrecision:
    """Measure the low-precision share of one device's matrix products."""
    by_type: dict[str, float] = {}
    for row in rows:
        if row.part in ("linear", "experts"):
            kind = row.compute or "unknown"
            by_type[kind] = by_type.get(kind, 0.0) + row.total_s
    casts = [row for row in rows if row.part == "quantise"]
    ratio, origin = _NOMINAL_RATIO, "half the bytes, twice the dense peak (nominal)"
    if roofs is not None and roofs.flop_per_s.get("fp8") and roofs.flop_per_s.get("bf16"):
        ratio = roofs.flop_per_s["fp8"] / roofs.flop_per_s["bf16"]
        origin = roofs.origin
    wide_s = sum(by_type.get(kind, 0.0) for kind in ("bf16", "fp16", "tf32", "fp32"))
    waiting = summary.waiting_share("launch", "host synchronisation")
    gain_s = wide_s * (1 - 1 / max(ratio, 1.0)) * (1 - waiting)
    return LowPrecision(
        matmul_s=sum(by_type.values()),
        by_type_s=dict(sorted(by_type.items(), key=lambda item: -item[1])),
        casts=sum(row.calls for row in casts),
        cast_s=sum(row.total_s for row in casts),
        ratio=ratio,
        ratio_origin=origin,
        gain_s=gain_s,
        gain_share=gain_s / summary.window_s if summary.window_s else 0.0,
    )
