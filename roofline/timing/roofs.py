"""Roofs: the rates that nothing on a device exceeds, and the ridge points between them.

    attainable(I) = min(P, B·I)        ridge = P / B

Units    FLOP/s, bytes/s, FLOP/byte.
Limits   Datasheet roofs are nominal: bounds use them and nothing else. A measured record replaces
         them in estimates only.
Sources  [1] Williams, Waterman, Patterson 2009, Roofline, CACM 52(4), section 3.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roofline.dtypes import COMPUTE_TYPES, SIXTEEN_BIT, Dtype
from roofline.errors import MissingDataError, UnsupportedError
from roofline.hardware.accelerator import Accelerator
from roofline.units import Numeric, show


@dataclass(frozen=True)
class Roofs:
    """The roofs of one device.

    Args:
        flop_per_s: peak rate by compute type, dense.
        bytes_per_s: memory bandwidth.
        origin: what they are, for the reader: ``datasheet`` or the record's name.
    """

    flop_per_s: Mapping[str, float]
    bytes_per_s: float
    origin: str

    def attainable_flop_per_s(self, intensity_flop_per_byte: Numeric, compute: str) -> Numeric:
        """The roofline itself: min(P, B·I) [1].

        >>> float(Roofs({"fp16": 65e12}, 320e9, "datasheet").attainable_flop_per_s(100.0, "fp16"))
        32000000000000.0
        """
        return np.minimum(self.flop_per_s[compute], self.bytes_per_s * intensity_flop_per_byte)

    def ridge_flop_per_byte(self, compute: str) -> float:
        """Intensity at which compute and memory take equally long.

        >>> Roofs({"fp16": 65e12}, 320e9, "datasheet").ridge_flop_per_byte("fp16")
        203.125
        """
        return self.flop_per_s[compute] / self.bytes_per_s


def datasheet_roofs(accelerator: Accelerator) -> Roofs:
    """Take the roofs that the maker states, or of a device without a datasheet the measured ones.

    Raises:
        MissingDataError: the spec has no memory bandwidth.
    """
    origin = "measured" if accelerator.is_measured else "datasheet"
    return Roofs(peak_rates(accelerator), accelerator.memory_bandwidth(), origin)


def peak_rates(accelerator: Accelerator) -> dict[str, float]:
    """List the dense peaks of a device by compute type, FLOP/s.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> peak_rates(load_accelerator("t4"))["fp16"]
    65000000000000.0
    """
    return {kind: accelerator.peak_flop_per_s(kind) for kind in accelerator.compute_types}


def compute_type(storage: Dtype, accelerator: Accelerator, *, asked: str | None = None) -> str:
    """Choose what values of a format are computed in: the fastest type admitted on the device.

    Args:
        storage: storage format of the weights or cache.
        accelerator: the device.
        asked: a compute type that the caller insists on.

    Raises:
        UnsupportedError: the device has none of the types; the message has what it has instead.
        MissingDataError: it has a faster one that is admitted, and nobody has sourced its peak.
    """
    rates = peak_rates(accelerator)
    if asked is not None:
        if asked not in COMPUTE_TYPES:
            raise UnsupportedError(
                f"no compute type {asked!r}; there are {', '.join(COMPUTE_TYPES)}"
            )
        accelerator.peak_flop_per_s(asked)
        return asked
    admitted = [kind for kind in storage.compute if rates.get(kind)]
    if not rates:
        raise MissingDataError(
            f"{accelerator.id} has no sourced peak; give a spec file that has one"
        )
    for kind in _unsourced_and_faster(storage, accelerator, admitted):
        accelerator.peak_flop_per_s(kind)  # refuses: a bound on a slower type would be none
    if not admitted:
        wanted = " or ".join(storage.compute)
        has = ", ".join(kind for kind in COMPUTE_TYPES if rates.get(kind))
        hint = _instead(storage, rates)
        raise UnsupportedError(
            f"{accelerator.id} does not compute in {wanted}, which {storage.name} needs; "
            f"it has {has}{hint}"
        )
    return max(admitted, key=lambda kind: rates[kind])


def _unsourced_and_faster(
    storage: Dtype, accelerator: Accelerator, admitted: Sequence[str]
) -> Iterator[str]:
    """Types that the format admits and the device has, faster than those with a sourced peak."""
    if set(admitted) - set(SIXTEEN_BIT):
        return
    for kind in storage.compute:
        alike = kind in SIXTEEN_BIT and bool(admitted)  # both 16-bit types run at one rate
        if kind in accelerator.compute.unsourced_types and not alike:
            yield kind


def _instead(storage: Dtype, rates: Mapping[str, float]) -> str:
    other = [kind for kind in SIXTEEN_BIT if rates.get(kind) and kind not in storage.compute]
    return f"; try weights={other[0]!r}" if storage.name in SIXTEEN_BIT and other else ""


def ridge_words(roofs: Roofs, compute: str) -> str:
    """Say a ridge point with the numbers in it.

    >>> ridge_words(Roofs({"fp16": 65e12}, 320e9, "datasheet"), "fp16")
    '65.0 TFLOP/s (fp16) / 320 GB/s = 203 FLOP/B, datasheet roofs'
    """
    peak, bandwidth = show(roofs.flop_per_s[compute], "FLOP/s"), show(roofs.bytes_per_s, "B/s")
    ridge = show(roofs.ridge_flop_per_byte(compute), "FLOP/B")
    return f"{peak} ({compute}) / {bandwidth} = {ridge}, {roofs.origin} roofs"
