"""Quantities of a spec: text with a unit in a file, plain floats in base units inside.

A file holds the datasheet's own text (``4.8 TB/s``); a bare number there is refused, because nobody
can tell GB from GiB in it. Code that builds a spec passes base units. Sparse figures are refused.
"""

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from roofline.errors import InputError
from roofline.units import parse

FROM_FILE = {"from_file": True}
"""The validation context in which quantities must be text with a unit."""

_MAX_TEXT = 60
_SPARSE_WORDS = ("spars", "2:4", "structured")


def read_quantity(value: Any, unit: str, low: float, high: float, *, from_file: bool) -> float:
    """Read one quantity and check that it is between what can be.

    Raises:
        InputError: no unit, another unit, sparse, not finite, or outside ``low``..``high``.

    >>> read_quantity("141 GB", "B", 1e6, 1e14, from_file=True)
    141000000000.0
    >>> read_quantity(141, "B", 1e6, 1e14, from_file=True)
    Traceback (most recent call last):
    ...
    roofline.errors.InputError: 141 has no unit; write it as in the datasheet, e.g. '141 GB'
    """
    if isinstance(value, str):
        number = _read_text(value, unit)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{value!r} is no quantity; write a number and a unit")
    elif from_file:
        example = {"B": "GB", "B/s": "GB/s", "FLOP/s": "TFLOP/s", "Hz": "MHz"}.get(unit, unit)
        raise InputError(
            f"{value} has no unit; write it as in the datasheet, e.g. '{value} {example}'"
        )
    else:
        number = float(value)
    if not math.isfinite(number) or not low <= number <= high:
        raise InputError(
            f"{value!r} cannot be: expected between {low:g} and {high:g} {unit}; check the unit"
        )
    return number


def _read_text(text: str, unit: str) -> float:
    shown = text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "..."
    if any(word in text.lower() for word in _SPARSE_WORDS):
        raise InputError(
            f"{shown!r} is a sparse figure; write the dense one (half of it for 2:4 sparsity)"
        )
    if len(text) > _MAX_TEXT:
        raise InputError(f"{shown!r} is too long for a number with a unit")
    lowered = text.lower().rstrip()
    if unit == "FLOP/s" and lowered.endswith(("flops", "tops", "pops")):
        rate = "TOP/s" if lowered.endswith("ops") and "flop" not in lowered else "TFLOP/s"
        raise InputError(
            f"{shown!r} can be a count or a rate; write a rate, e.g. '989.4 {rate}' (1 P = 1000 T)"
        )
    return parse(text, unit)


def _quantity(unit: str, low: float, high: float) -> BeforeValidator:
    def read(value: Any, info: ValidationInfo) -> Any:
        if value is None:
            return None
        return read_quantity(value, unit, low, high, from_file=bool(info.context))

    return BeforeValidator(read)


MemoryBytes = Annotated[float, _quantity("B", 64e6, 20e12)]
CacheBytes = Annotated[float, _quantity("B", 1e3, 64e9)]
MemoryBytesPerSecond = Annotated[float, _quantity("B/s", 100e6, 200e12)]
LinkBytesPerSecond = Annotated[float, _quantity("B/s", 1e6, 50e12)]
FlopPerSecond = Annotated[float, _quantity("FLOP/s", 1e6, 1e18)]
Hertz = Annotated[float, _quantity("Hz", 10e6, 20e9)]
Watts = Annotated[float, _quantity("W", 0.5, 100e3)]
Seconds = Annotated[float, _quantity("s", 1e-9, 10.0)]


class Facts(BaseModel):
    """Base of every group of facts: strict, frozen, nothing unknown, nothing infinite."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


_NO_SOURCE = {"todo", "tbd", "none", "unknown", "n/a", "na", "?", "-", "source", "internet"}


def _sources(value: Any) -> Any:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, tuple | list):
        raise InputError("a source is text, or a list of texts: title, date, address")
    for text in texts:
        if not isinstance(text, str) or len(text.strip()) < 4 or text.strip().lower() in _NO_SOURCE:
            raise InputError(f"{text!r} is no source; name the document: title, date, address")
    return tuple(text.strip() for text in texts)


Sources = Annotated[tuple[str, ...], BeforeValidator(_sources)]
