"""GGUF header: the metadata and tensor list of a GGUF file, read without its weights.

Limits   GGUF versions 2 and 3, little-endian. Counts and lengths that the file cannot hold are
         refused; long lists (a tokenizer's words) are kept as their length.
Sources  [1] ggml, docs/gguf.md (2026-11). [2] ggml-common.h and gguf-py's constants: blocks.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from roofline.errors import SpecError, UnsupportedError
from roofline.models.fields import show
from roofline.models.safetensors import Tensor

MAGIC = b"GGUF"
MOST_ENTRIES = 2**20
LONGEST_TEXT = 2**24
KEPT_ITEMS = 4096
MOST_DIMENSIONS = 4
ARRAY, TEXT, BOOLEAN = 9, 8, 7
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
           11: "<q", 12: "<d"}  # fmt: skip

# name, bytes a block, values a block by the type's number [2]
BLOCKS: dict[int, tuple[str, int, int]] = {
    0: ("fp32", 4, 1), 1: ("fp16", 2, 1), 2: ("q4_0", 18, 32), 3: ("q4_1", 20, 32),
    6: ("q5_0", 22, 32), 7: ("q5_1", 24, 32), 8: ("q8_0", 34, 32), 9: ("q8_1", 40, 32),
    10: ("q2_k", 84, 256), 11: ("q3_k", 110, 256), 12: ("q4_k", 144, 256), 13: ("q5_k", 176, 256),
    14: ("q6_k", 210, 256), 15: ("q8_k", 292, 256), 16: ("iq2_xxs", 66, 256),
    17: ("iq2_xs", 74, 256), 18: ("iq3_xxs", 98, 256), 19: ("iq1_s", 50, 256),
    20: ("iq4_nl", 18, 32), 21: ("iq3_s", 110, 256), 22: ("iq2_s", 82, 256),
    23: ("iq4_xs", 136, 256), 24: ("int8", 1, 1), 25: ("int16", 2, 1), 26: ("int32", 4, 1),
    27: ("int64", 8, 1), 28: ("fp64", 8, 1), 29: ("iq1_m", 56, 256), 30: ("bf16", 2, 1),
    34: ("tq1_0", 54, 256), 35: ("tq2_0", 66, 256), 39: ("mxfp4", 17, 32), 40: ("nvfp4", 36, 64),
}  # fmt: skip

Value = int | float | str | bool | list[int | float | str | bool] | int


@dataclass(frozen=True)
class GgufHeader:
    """What a GGUF file says of itself.

    Args:
        metadata: by key; a list longer than 4,096 entries is not kept, see ``lengths``.
        lengths: number of entries of each list.
        tensors: every tensor, shape as ggml has it: the first dimension is the input width.
    """

    metadata: dict[str, object]
    lengths: dict[str, int]
    tensors: tuple[Tensor, ...]


class _Reader:
    """A file read forward with its size in mind."""

    def __init__(self, stream: BinaryIO, size: int, where: str) -> None:
        self.stream, self.size, self.where = stream, size, where

    def cut(self) -> SpecError:
        return SpecError(f"{self.where}: claims more than {self.size} bytes; cut or no GGUF file")

    def take(self, count: int) -> bytes:
        if count < 0 or self.stream.tell() + count > self.size:
            raise SpecError(
                f"{self.where}: claims more bytes than its {self.size}; cut or no GGUF file"
            )
        data = self.stream.read(count)
        if len(data) < count:
            raise SpecError(f"{self.where}: ends within its header; cut")
        return data

    def number(self, kind: str) -> int:
        value: int = struct.unpack(kind, self.take(struct.calcsize(kind)))[0]
        return value

    def text(self) -> str:
        length = self.number("<Q")
        if length > LONGEST_TEXT:
            raise SpecError(f"{self.where}: claims a text of {length} bytes; no GGUF file")
        return self.take(length).decode("utf-8", errors="replace")

    def value(self, kind: int) -> object:
        if kind == TEXT:
            return self.text()
        if kind not in SCALARS:
            raise SpecError(f"{self.where}: metadata of type {kind} is not known; no GGUF file")
        if kind == BOOLEAN:
            return self.take(1) != b"\0"
        return struct.unpack(SCALARS[kind], self.take(struct.calcsize(SCALARS[kind])))[0]

    def items(self, kind: int, count: int) -> list[object] | None:
        """Read or skip a list; None when it is too long to keep."""
        if count > self.size:
            raise SpecError(f"{self.where}: claims a list of {count} entries; no GGUF file")
        if kind == ARRAY:
            raise SpecError(f"{self.where}: lists of lists are not read")
        if count <= KEPT_ITEMS:
            return [self.value(kind) for _ in range(count)]
        if kind in SCALARS:
            self.take_over(count * struct.calcsize(SCALARS[kind]))
        else:
            for _ in range(count):
                self.take_over(self.number("<Q"))
        return None

    def take_over(self, count: int) -> None:
        """Skip bytes."""
        if self.stream.tell() + count > self.size:
            raise SpecError(
                f"{self.where}: claims more bytes than its {self.size}; cut or no GGUF file"
            )
        self.stream.seek(count, 1)


def read_gguf(file: Path) -> GgufHeader:
    """Read the header of a GGUF file.

    Raises:
        SpecError: no such file, or it is cut or no GGUF file.
        UnsupportedError: another version, or a block type that is not known.
    """
    try:
        with file.open("rb") as stream:
            return _read(_Reader(stream, file.stat().st_size, str(file)))
    except OSError as error:
        raise SpecError(f"{file}: cannot be read ({error.strerror})") from None


def _read(reader: _Reader) -> GgufHeader:
    if reader.take(4) != MAGIC:
        raise SpecError(f"{reader.where}: does not begin with GGUF; no GGUF file")
    version = reader.number("<I")
    if version not in (2, 3):
        raise UnsupportedError(f"{reader.where}: GGUF version {version}; read are 2 and 3")
    n_tensors, n_keys = reader.number("<Q"), reader.number("<Q")
    if n_tensors > MOST_ENTRIES or n_keys > MOST_ENTRIES:
        raise SpecError(
            f"{reader.where}: claims {n_tensors} tensors and {n_keys} keys; no GGUF file"
        )
    metadata: dict[str, object] = {}
    lengths: dict[str, int] = {}
    for _ in range(n_keys):
        key, kind = reader.text(), reader.number("<I")
        if kind != ARRAY:
            metadata[key] = reader.value(kind)
            continue
        inner, count = reader.number("<I"), reader.number("<Q")
        listed = reader.items(inner, count)
        lengths[key] = count
        if listed is not None:
            metadata[key] = listed
    tensors = tuple(_tensor(reader) for _ in range(n_tensors))
    return GgufHeader(metadata, lengths, tensors)


def _tensor(reader: _Reader) -> Tensor:
    name = reader.text()
    n_dimensions = reader.number("<I")
    if not 0 < n_dimensions <= MOST_DIMENSIONS:
        raise SpecError(f"{reader.where}: tensor {show(name)} has {n_dimensions} dimensions")
    shape = tuple(reader.number("<Q") for _ in range(n_dimensions))
    kind = reader.number("<I")
    reader.take(8)  # place of its data
    if kind not in BLOCKS:
        raise UnsupportedError(
            f"{reader.where}: tensor {show(name)} has block type {kind}, not known"
        )
    if any(size >= 2**40 for size in shape):
        raise SpecError(f"{reader.where}: tensor {show(name)} has shape {show(shape)}")
    dtype, block_bytes, block_values = BLOCKS[kind]
    values = 1
    for size in shape:
        values *= size
    if shape[0] % block_values:
        raise SpecError(
            f"{reader.where}: tensor {show(name)} of {shape} has no whole {dtype} blocks"
        )
    n_bytes = values // block_values * block_bytes
    if n_bytes > reader.size:
        raise SpecError(
            f"{reader.where}: tensor {show(name)} takes {n_bytes} of {reader.size} bytes; cut"
        )
    return Tensor(name, dtype, shape, n_bytes)
