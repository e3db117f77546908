"""Safetensors: the header of a weight file, read without its weights.

A file is eight bytes of length, a JSON header of that length, and the data. The header names each
tensor with type, shape and place; the places must cover the data without gap or overlap.

Limits   A header has at most 100,000,000 bytes, as the format's own reader has it; what claims
         more, or claims places that are not in the file, is refused.
Sources  [1] Hugging Face, safetensors, README, "Format" (2026-11).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roofline.errors import SpecError
from roofline.models.fields import show

LARGEST_HEADER = 100_000_000
LENGTH_BYTES = 8
MOST_DIMENSIONS = 16
BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8,
    "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
NAMES = {
    "F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
    "BOOL": "bool", "C64": "complex64", "F8_E4M3": "fp8", "F8_E5M2": "fp8_e5m2",
    "F8_E4M3FNUZ": "fp8_fnuz", "F8_E5M2FNUZ": "fp8_e5m2_fnuz", "F8_E8M0": "e8m0",
    "F6_E2M3": "fp6_e2m3", "F6_E3M2": "fp6_e3m2", "F4": "fp4",
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file: its type by our name, its values as stored, its bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    n_bytes: int

    @property
    def values(self) -> int:
        """Elements as stored; packed formats hold several values in one."""
        count = 1
        for size in self.shape:
            count *= size
        return count


def read_tensors(file: Path) -> tuple[Tensor, ...]:
    """Read the header of a safetensors file.

    Raises:
        SpecError: no such file, or the header is cut, too large, or claims what is not there.
    """
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            start = stream.read(LENGTH_BYTES)
            if len(start) < LENGTH_BYTES:
                raise SpecError(
                    f"{file}: {size} bytes; no safetensors file (8 bytes of length first)"
                )
            length = int.from_bytes(start, "little")
            if length > min(LARGEST_HEADER, size - LENGTH_BYTES):
                raise SpecError(
                    f"{file}: claims a header of {length} bytes in {size}; cut or no safetensors"
                )
            text = stream.read(length)
    except OSError as error:
        raise SpecError(f"{file}: cannot be read ({error.strerror})") from None
    return parse_header(text, size - LENGTH_BYTES - length, str(file))


def parse_header(text: bytes, data_bytes: int | None, where: str) -> tuple[Tensor, ...]:
    """Check a header; ``data_bytes`` is the size of what follows, None: not known.

    Raises:
        SpecError: it is no JSON, or its tensors do not fit the data.
    """
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_no_twins)
    except _TwinError as error:
        raise SpecError(f"{where}: the header names {show(str(error))} twice") from None
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise SpecError(f"{where}: the header is no JSON; no safetensors file") from None
    if not isinstance(header, Mapping):
        raise SpecError(f"{where}: the header is no mapping; no safetensors file")
    tensors, places = [], []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        tensor, begin = _tensor(name, entry, where)
        tensors.append(tensor)
        places.append((begin, begin + tensor.n_bytes, name))
    end = 0
    for begin, stop, name in sorted(places):
        if begin != end:
            raise SpecError(f"{where}: {show(name)} begins at {begin}, {end} was expected")
        end = stop
    if data_bytes is not None and end != data_bytes:
        raise SpecError(
            f"{where}: tensors take {end} bytes, the file has {data_bytes} after its header"
        )
    return tuple(tensors)


class _TwinError(ValueError):
    pass


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwinError(key)
        found[key] = value
    return found


def _tensor(name: str, entry: Any, where: str) -> tuple[Tensor, int]:
    where = f"{where}: tensor {show(name)}"
    if not isinstance(entry, Mapping):
        raise SpecError(f"{where} is {show(entry)}; it needs a mapping")
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise SpecError(f"{where} has type {show(dtype)}; known are {', '.join(BITS)}")
    shape = _counts(entry.get("shape"))
    if shape is None or len(shape) > MOST_DIMENSIONS:
        raise SpecError(f"{where} has shape {show(entry.get('shape'))}")
    offsets = _counts(entry.get("data_offsets"))
    if offsets is None or len(offsets) != 2 or offsets[1] < offsets[0]:
        raise SpecError(f"{where} has data_offsets {show(entry.get('data_offsets'))}")
    tensor = Tensor(name, NAMES[dtype], shape, offsets[1] - offsets[0])
    if tensor.values * BITS[dtype] != tensor.n_bytes * 8:
        raise SpecError(f"{where}: {show(list(shape))} {dtype} is not {tensor.n_bytes} bytes")
    return tensor, offsets[0]


def _counts(values: Any) -> tuple[int, ...] | None:
    if not isinstance(values, list):
        return None
    if any(isinstance(v, bool) or not isinstance(v, int) or not 0 <= v < 2**62 for v in values):
        return None
    return tuple(values)
