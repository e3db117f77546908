"""Checkpoint: exact bytes of a model's weight files by type, from their headers.

``read_checkpoint`` takes a folder of safetensors files (with or without an index), one safetensors
or GGUF file, or a folder with one GGUF model. Weights are never read.

Limits   Bytes as stored, towers and prediction layers included when the files hold them: the config
         (config.py) says what a text model needs of it.
Sources  See safetensors.py and gguf_header.py.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from roofline.errors import SpecError
from roofline.models.config import read_json
from roofline.models.fields import show
from roofline.models.gguf_header import read_gguf
from roofline.models.safetensors import Tensor, read_tensors

INDEX = "model.safetensors.index.json"
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.(gguf|safetensors)$")


@dataclass(frozen=True)
class CheckpointBytes:
    """What a checkpoint takes.

    Args:
        by_dtype: bytes by type, largest first; for GGUF by block type.
        total_bytes: their sum.
        parameters: values as stored; packed formats (int4 in int32, fp4 in uint8) hold more.
        n_tensors: tensors.
        files: the files read.
        source: where it was read.
        assumptions: what had to be said.
    """

    by_dtype: dict[str, int]
    total_bytes: int
    parameters: int
    n_tensors: int
    files: tuple[str, ...]
    source: str
    assumptions: tuple[str, ...] = field(default=())


def summarise(
    tensors: Iterable[Tensor], files: tuple[str, ...], source: str, notes: Iterable[str] = ()
) -> CheckpointBytes:
    """Add tensors up.

    >>> weights = [Tensor("a", "bf16", (2, 3), 12), Tensor("b", "fp32", (2,), 8)]
    >>> total = summarise(weights, ("x.safetensors",), "x")
    >>> total.by_dtype, total.total_bytes, total.parameters
    ({'bf16': 12, 'fp32': 8}, 20, 8)
    """
    sums: dict[str, int] = {}
    values = count = 0
    for tensor in tensors:
        sums[tensor.dtype] = sums.get(tensor.dtype, 0) + tensor.n_bytes
        values += tensor.values
        count += 1
    by_dtype = dict(sorted(sums.items(), key=lambda item: -item[1]))
    return CheckpointBytes(by_dtype, sum(sums.values()), values, count, files, source, tuple(notes))


def read_checkpoint(source: str | Path) -> CheckpointBytes:
    """Read the exact bytes of a local checkpoint.

    Raises:
        SpecError: there is none, files are missing, or a header cannot be right.
    """
    path = Path(source).expanduser()
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError) as error:
        raise SpecError(f"{show(str(path))}: cannot be read ({error})") from None
    if is_folder:
        return _folder(path)
    if not is_file:
        raise SpecError(
            f"{path}: no such file; a checkpoint is a folder, a .safetensors or a .gguf"
        )
    if path.suffix == ".gguf":
        return _gguf(path)
    return summarise(read_tensors(path), (path.name,), str(path))


def checkpoint_at(source: object) -> CheckpointBytes | None:
    """Read the weight files of a model that was named by its path; None: there are none there.

    Args:
        source: what a model was asked for by: a name, a mapping, a config.json, a folder, a file.

    Raises:
        SpecError: there are weight files, and they cannot be right.

    >>> checkpoint_at("llama-3.1-8b") is None
    True
    """
    if not isinstance(source, str | Path) or not str(source) or "\0" in str(source):
        return None
    path = Path(source).expanduser()
    try:
        folder = path.parent if path.name == "config.json" else path
        weighty = folder.suffix in (".safetensors", ".gguf") or any(
            next(folder.glob(f"*{suffix}"), None) for suffix in (".safetensors", ".gguf")
        )
        if not (folder.exists() and weighty):
            return None
    except (OSError, ValueError):
        return None
    return read_checkpoint(folder)


def _folder(folder: Path) -> CheckpointBytes:
    index = folder / INDEX
    if index.is_file():
        return _indexed(folder, index)
    files = sorted(folder.glob("*.safetensors"))
    if files:
        _check_parts(files)
        tensors = [tensor for file in files for tensor in read_tensors(file)]
        return summarise(tensors, tuple(file.name for file in files), str(folder))
    ggufs = sorted(folder.glob("*.gguf"))
    if len(ggufs) == 1 or (ggufs and _PART.search(ggufs[0].name)):
        return _gguf(ggufs[0])
    if ggufs:
        names = ", ".join(file.name for file in ggufs[:4])
        raise SpecError(f"{folder}: {len(ggufs)} GGUF models ({names}, …); name one of them")
    raise SpecError(f"{folder}: no .safetensors or .gguf file; a checkpoint has one")


def _indexed(folder: Path, index: Path) -> CheckpointBytes:
    content = read_json(index)
    names = content.get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(n, str) for n in names.values()):
        raise SpecError(f"{index}: no 'weight_map' of tensor to file")
    files = sorted(set(names.values()))
    for name in files:
        if Path(name).name != name or name in ("", ".", ".."):
            raise SpecError(f"{index}: names {show(name)}; a file beside the index is expected")
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise SpecError(
            f"{folder}: {len(missing)} of {len(files)} files missing, first {missing[0]}"
        )
    held = {file: read_tensors(folder / file) for file in files}
    tensors = [tensor for part in held.values() for tensor in part]
    known = {tensor.name for tensor in tensors}
    lost = [name for name in names if name not in known]
    if lost:
        raise SpecError(f"{index}: {len(lost)} tensors are in no file, first {show(lost[0])}")
    total = summarise(tensors, tuple(files), str(folder))
    meta = content.get("metadata")
    stated = meta.get("total_size") if isinstance(meta, dict) else None
    notes = []
    if isinstance(stated, int) and stated != total.total_bytes:
        notes.append(f"the index states {stated} bytes, the files hold {total.total_bytes}")
    return summarise(tensors, tuple(files), str(folder), notes)


def _check_parts(files: list[Path]) -> None:
    """Refuse a set of numbered files that is not whole."""
    for file in files:
        found = _PART.search(file.name)
        if found and int(found[2]) > sum(1 for other in files if _PART.search(other.name)):
            raise SpecError(
                f"{file.parent}: {file.name} is one of {int(found[2])}; files are missing"
            )


def _gguf(file: Path) -> CheckpointBytes:
    found = _PART.search(file.name)
    files = [file]
    if found:
        stem = file.name[: found.start()]
        files = [
            file.with_name(f"{stem}-{part:05d}-of-{found[2]}.gguf")
            for part in range(1, int(found[2]) + 1)
        ]
        missing = [part.name for part in files if not part.is_file()]
        if missing:
            raise SpecError(f"{file.parent}: {len(missing)} of {len(files)} parts are missing")
    tensors = [tensor for part in files for tensor in read_gguf(part).tensors]
    return summarise(tensors, tuple(part.name for part in files), str(file))
