"""Uploads: what a person hands in, checked before anything reads it, and read by the library.

The name of an upload is never a path: contents go to a temporary folder under a name of our own,
and messages show the name as it was given, with everything but its last part taken away.

Limits   ``LARGEST_BYTES`` of a text, ``LARGEST_TRACE_BYTES`` of a trace; the server refuses more
         than its own limit before a page sees it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roofline.errors import RooflineError, SpecError
from roofline.hardware.accelerator import Accelerator, accelerator_problems, read_accelerator
from roofline.hardware.measurement import Measurement, parse_measurement
from roofline.models.architecture import Architecture
from roofline.models.config import load_path
from roofline.units import MIB, show

LARGEST_BYTES = 16 * MIB
LARGEST_CONFIG_BYTES = 4 * MIB
LARGEST_TRACE_BYTES = 200 * MIB
_SUFFIXES = (".json", ".jsonl", ".json.gz", ".yaml", ".yml", ".csv", ".txt", ".log", ".gz")


def own_name(given: object) -> str:
    """The last part of an upload's name, without anything that is no letter, digit, dot or dash.

    >>> own_name("../../etc/passwd"), own_name("<b>a</b>.json"), own_name("")
    ('passwd', 'b_.json', 'upload')
    """
    last = re.split(r"[/\\]", str(given))[-1]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", last).strip("._-")[-60:] or "upload"


def suffix_of(given: object) -> str:
    """The suffix that readers go by; ``.txt`` for one that no reader knows."""
    name = own_name(given).lower()
    known = [suffix for suffix in _SUFFIXES if name.endswith(suffix)]
    return max(known, key=len, default=".txt")


def content(upload: Any, largest: int = LARGEST_BYTES) -> bytes:
    """Take an upload's bytes.

    Raises:
        SpecError: it is empty or larger than what is read.
    """
    size = int(upload.size)
    if size > largest:
        raise SpecError(
            f"{own_name(upload.name)}: {show(size, 'GiB')}; at most {show(largest, 'GiB')} are read"
        )
    found = bytes(upload.getvalue())
    if not found.strip():
        raise SpecError(f"{own_name(upload.name)}: the file is empty")
    return found


def text_of(upload: Any, largest: int = LARGEST_BYTES) -> str:
    """Take an upload's text.

    Raises:
        SpecError: as ``content``, or it is no UTF-8.
    """
    try:
        return content(upload, largest).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{own_name(upload.name)}: no text in UTF-8") from None


@contextmanager
def held(name: object, data: bytes, file_name: str = "") -> Iterator[Path]:
    """Hold contents as a file of our own name; an error's message has the upload's name instead.

    Raises:
        RooflineError: what happens inside, without the temporary folder.
    """
    with TemporaryDirectory(prefix="roofline-") as folder:
        path = Path(folder) / (file_name or f"upload{suffix_of(name)}")
        path.write_bytes(data)
        try:
            yield path
        except RooflineError as error:
            raise type(error)(public(str(error), folder, path, name)) from None


def public(message: str, folder: str, path: Path, name: object) -> str:
    """Take the temporary folder out of a message."""
    shown = own_name(name)
    return message.replace(str(path), shown).replace(folder, "").replace(path.name, shown)


@contextmanager
def held_all(uploads: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, list[Path]]]:
    """Hold several uploads, by what they are; each under a safe name that resembles its own.

    Raises:
        RooflineError: an upload is empty or too large, or what happens inside.
    """
    with TemporaryDirectory(prefix="roofline-") as folder:
        found: dict[str, list[Path]] = {}
        for kind, given in uploads.items():
            for place, upload in enumerate(given):
                path = Path(folder) / f"{kind}{place}" / own_name(upload.name)
                path.parent.mkdir()
                path.write_bytes(content(upload, LARGEST_TRACE_BYTES))
                found.setdefault(kind, []).append(path)
        try:
            yield found
        except RooflineError as error:
            raise type(error)(without_folder(str(error), folder)) from None


def without_folder(value: Any, folder: str) -> Any:
    """Take the temporary folder out of a text, or out of every text of a result.

    >>> without_folder(["/tmp/x/trace0/a.json: cut"], "/tmp/x")
    ['a.json: cut']
    """
    if isinstance(value, str):
        return re.sub(re.escape(folder) + r"/[a-z]+\d+/", "", value)
    if isinstance(value, Mapping):
        return {key: without_folder(item, folder) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_folder(item, folder) for item in value)
    return value


@lru_cache(maxsize=16)
def model_of(text: str, name: str = "config.json") -> Architecture:
    """Read a config.json.

    Raises:
        RooflineError: it is none, or has parts that are not modelled.
    """
    with held(name, text.encode(), "config.json") as path:
        return load_path(path)


@lru_cache(maxsize=16)
def accelerator_of(text: str, name: str = "accelerator.yaml") -> Accelerator:
    """Read an accelerator's YAML.

    Raises:
        SpecError: it does not load; the message has the line.
    """
    with held(name, text.encode(), "accelerator.yaml") as path:
        return read_accelerator(path)


def accelerator_faults(text: str, name: str = "accelerator.yaml") -> tuple[str, ...]:
    """Everything that is wrong with an accelerator's YAML, a line each."""
    with held(name, text.encode(), "accelerator.yaml") as path:
        return tuple(
            public(line, str(path.parent), path, name) for line in accelerator_problems(path)
        )


@lru_cache(maxsize=4)
def record_of(text: str, name: str = "record.json") -> Measurement:
    """Read a measured record.

    Raises:
        SpecError: it is none.
    """
    return parse_measurement(text, own_name(name))
