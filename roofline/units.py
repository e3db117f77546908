"""Units: text with a unit to base SI and back; the only place where a unit is converted.

Inside, everything is a plain float or array in base units (byte, FLOP, second, watt, USD, hertz)
and the unit stands in the name: ``hbm_bytes_per_s``. Text meets base units here, at the edge.

Units    GB = 10⁹ byte, GiB = 2³⁰ byte; TFLOP/s = 10¹² FLOP per second.
Sources  [1] BIPM, The International System of Units, 9th ed., table 7 (decimal prefixes).
         [2] IEC 80000-13:2008 (binary prefixes).
"""

import math
import re
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError

Numeric = float | NDArray[np.float64]
"""A number, or an array of any shape: functions of it keep the shape."""

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
KILO, MEGA, TERA = 10**3, 10**6, 10**12
MILLION = 10**6
SECONDS_PER_HOUR = 3600.0
HOURS_PER_MONTH = 730.0
"""Hours in a month, 8,760 / 12: the cloud providers' convention."""

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}

_SCALES: dict[str, dict[str, float]] = {
    "B": {f"{p}B": f for p, f in {**_DECIMAL, **_BINARY}.items()},
    "B/s": {
        **{f"{p}B/s": f for p, f in {**_DECIMAL, **_BINARY}.items()},
        **{f"{p}b/s": f / 8 for p, f in _DECIMAL.items()},
        **{f"{p}bit/s": f / 8 for p, f in _DECIMAL.items()},
    },
    "FLOP/s": {
        **{f"{p}FLOP/s": f for p, f in _DECIMAL.items()},
        **{f"{p}OP/s": f for p, f in _DECIMAL.items()},
    },
    "FLOP": {f"{p}FLOP": f for p, f in _DECIMAL.items()},
    "s": {"min": 60.0, "h": 3600.0, "s": 1.0, **{f"{p}s": f for p, f in _SMALL.items()}},
    "Hz": {f"{p}Hz": f for p, f in _DECIMAL.items()},
    "W": {f"{p}W": f for p, f in _DECIMAL.items()},
    "FLOP/B": {"FLOP/B": 1.0, "FLOP/byte": 1.0},
}
# "," and "_" part thousands; a decimal comma is refused, it would be read as ten times the value
_TEXT = re.compile(
    r"([+-]?(?:\d{1,3}(?:[,_ ]\d{3})+|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+) *(\D*)"
)
_MAX_TEXT = 80


def parse(text: Any, unit: str) -> float:
    """Read text with its unit into base units.

    Raises:
        InputError: no unit, another kind of unit, or no finite number.

    >>> parse("4.8 TB/s", "B/s")
    4800000000000.0
    >>> parse("79.19 GiB", "B") / 2**30
    79.19
    >>> parse("4800", "B/s")
    Traceback (most recent call last):
    ...
    roofline.errors.InputError: '4800' has no unit; write a number and one of B/s, GB/s, TB/s, GiB/s
    """
    scales = _SCALES[unit]
    written = str(text).strip() if isinstance(text, str | int | float) else ""
    if len(written) > _MAX_TEXT:
        raise InputError(f"{written[:40]!r}... is too long for a number with a unit")
    match = _TEXT.fullmatch(written)
    if match is None or isinstance(text, bool):
        raise InputError(f"{text!r} is no number with a unit; write e.g. '1 {_example(unit)}'")
    number, given = float(re.sub(r"[,_ ]", "", match[1])), match[2].strip()
    if not math.isfinite(number):
        raise InputError(f"{text!r} is not finite")
    if not given:
        raise InputError(f"{text!r} has no unit; write a number and one of {_examples(unit)}")
    if given not in scales:
        raise InputError(f"{text!r}: {given!r} is no unit here; use one of {_examples(unit)}")
    return number * scales[given]


def _example(unit: str) -> str:
    return {"B": "GB", "B/s": "GB/s", "FLOP/s": "TFLOP/s", "Hz": "MHz"}.get(unit, unit)


def _examples(unit: str) -> str:
    if unit in ("B", "B/s"):
        return ", ".join(f"{prefix}{unit}" for prefix in ("", "G", "T", "Gi"))
    return ", ".join(list(_SCALES[unit])[:6])


_LADDERS = {
    "B": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "GiB": ((float(GIB), "GiB"), (float(MIB), "MiB"), (float(KIB), "KiB"), (1.0, "B")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "FLOP": ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1.0, "FLOP")),
    "FLOP/s": ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1.0, "FLOP/s")),
    "s": ((86400.0, "d"), (3600.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "W": ((1e6, "MW"), (1e3, "kW"), (1.0, "W")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")),
}


def show(value: float | None, unit: str, digits: int = 3) -> str:
    """Write a value in base units for a reader; ``GiB`` shows bytes in binary units.

    >>> show(0.00648, "s"), show(4.8e12, "B/s"), show(80 * 2**30, "GiB"), show(203.1, "FLOP/B")
    ('6.48 ms', '4.80 TB/s', '80.0 GiB', '203 FLOP/B')
    >>> show(None, "s")
    '–'
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else ("-∞" if value < 0 else "–")
    ladder = _LADDERS.get(unit)
    if ladder is None:
        return f"{number(value, digits)} {unit}".rstrip()
    size = abs(value)
    if size > 0:
        reached = (step for step in ladder if size >= step[0] * (1 - 0.5 * 10**-digits))
        factor, name = next(reached, ladder[-1])
    else:
        factor, name = next(step for step in ladder if step[0] == 1.0)
    return f"{number(value / factor, digits)} {name}"


def number(value: float, digits: int = 3) -> str:
    """Write a number with this many significant digits and thousands separators.

    >>> number(22528.0, 5), number(0.00253), number(3.0), number(1234567.0)
    ('22,528', '0.00253', '3.00', '1,234,567')
    """
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    decimals = max(digits - 1 - magnitude, 0)
    return f"{value:,.{min(decimals, 12)}f}"


MOST_COUNTED = 2**31
"""Largest count that is taken at its word; past it, a setting is a slip."""


def whole(name: str, value: object, *, least: int = 1, most: int = MOST_COUNTED) -> int:
    """Take a whole number within its limits, numpy's integers too, and give it back as an int.

    Raises:
        InputError: it is none, or a bool, or outside its limits.

    >>> whole("batch", np.int64(4))
    4
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if not least <= value <= most:
        raise InputError(f"{name} must be from {least:,} to {most:,}, got {value}")
    return int(value)


@overload
def as_float(value: float) -> float: ...
@overload
def as_float(value: NDArray[np.float64]) -> NDArray[np.float64]: ...
def as_float(value: Numeric) -> Numeric:
    """Give numpy's 0-d results back as floats; arrays stay."""
    return float(value) if np.ndim(value) == 0 else value
