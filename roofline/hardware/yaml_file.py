"""YAML files, read with the line of every field, and nothing that a data file has no use for.

Anchors, aliases, tags and merge keys are refused (they are how a small file becomes a huge one, or
becomes code), and so are duplicate keys, infinities and files past ``MAX_BYTES``. Lists come back
as tuples. Text stays as written: ``2026-08`` is no number and ``no`` is no boolean (YAML 1.2).

Limits   One document a file; keys are text; no block of more than ``MAX_DEPTH`` levels.
Sources  [1] YAML 1.2.2, section 10.3 (core schema: how plain scalars are read).
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from roofline.errors import SpecError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20

_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}

FieldPath = tuple[str | int, ...]
"""The keys and list positions that lead to a field."""


@dataclass(frozen=True)
class Document:
    """What a YAML file holds, and where.

    Args:
        path: the file.
        value: mappings as dicts, lists as tuples, scalars as in YAML 1.2.
        lines: the line of each field, by its path.
    """

    path: Path
    value: Any
    lines: dict[FieldPath, int]

    def where(self, field: FieldPath = ()) -> str:
        """Name file and line of a field, or of the nearest thing above it that is there."""
        for length in range(len(field), -1, -1):
            if field[:length] in self.lines:
                return f"{self.path}:{self.lines[field[:length]]}"
        return f"{self.path}:1"


def read_yaml(path: Path) -> Document:
    """Read one YAML file.

    Raises:
        SpecError: no such file, too large, not UTF-8, no valid YAML, or YAML that is refused here.
    """
    return parse_yaml(_read_text(path), path)


def _read_text(path: Path) -> str:
    try:
        is_folder = path.is_dir()
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        if is_folder:
            raise SpecError(f"{path} is a folder; give a YAML file") from None
        raise SpecError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError:  # a NUL in the name
        raise SpecError(f"{str(path)!r} is no file name") from None
    if len(raw) > MAX_BYTES:
        raise SpecError(f"{path} is larger than {MAX_BYTES // 1024} KiB; a spec takes a few")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise SpecError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from None


def parse_yaml(text: str, path: Path) -> Document:
    """Read YAML text; ``path`` is for messages.

    >>> document = parse_yaml("id: t4\\nmemory:\\n  bytes_per_s: 320 GB/s", Path("t4.yaml"))
    >>> document.value["memory"], document.where(("memory", "bytes_per_s"))
    ({'bytes_per_s': '320 GB/s'}, 't4.yaml:3')
    """
    try:
        return _build(text, path)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise SpecError(f"{path}{line}: no valid YAML: {problem}") from None
    except RecursionError:
        raise SpecError(f"{path}: nested too deeply for a spec") from None


def _build(text: str, path: Path) -> Document:
    """Build the tree from the parser's events, with a stack of open mappings and lists."""
    lines: dict[FieldPath, int] = {}
    root: list[Any] = []
    stack: list[_Open] = []
    place: FieldPath
    for event in YAML(typ="safe", pure=True).parse(text):
        kind, line = type(event).__name__, event.start_mark.line + 1
        if kind == "AliasEvent" or getattr(event, "anchor", None):
            raise SpecError(f"{path}:{line}: anchors and aliases (&, *) are refused; write it out")
        if kind == "DocumentStartEvent" and root:
            raise SpecError(f"{path}:{line}: a second document; a file holds one")
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            closed = stack.pop()
            value: Any = closed.value if closed.is_mapping else tuple(closed.value)
            place = closed.place
        elif kind in ("MappingStartEvent", "SequenceStartEvent", "ScalarEvent"):
            if event.tag is not None and (kind != "ScalarEvent" or str(event.tag) != "!"):
                raise SpecError(f"{path}:{line}: tag {event.tag} is refused; write plain values")
            if stack and stack[-1].wants_key:
                stack[-1].take_key(event, kind, path, line, lines)
                continue
            place = stack[-1].next_place() if stack else ()
            lines.setdefault(place, line)
            if kind != "ScalarEvent":
                if len(stack) >= MAX_DEPTH:
                    raise SpecError(f"{path}:{line}: nested deeper than {MAX_DEPTH} levels")
                stack.append(_Open(kind == "MappingStartEvent", place))
                continue
            value = _scalar(event, path, line)
        else:
            continue
        (stack[-1].put(value) if stack else root.append(value))
    if not root:
        raise SpecError(f"{path}: the file is empty")
    return Document(path, root[0], lines)


class _Open:
    """A mapping or list that is still being read."""

    def __init__(self, is_mapping: bool, place: FieldPath) -> None:
        self.is_mapping, self.place = is_mapping, place
        self.value: Any = {} if is_mapping else []
        self.key: str | None = None

    @property
    def wants_key(self) -> bool:
        return self.is_mapping and self.key is None

    def take_key(
        self, event: Any, kind: str, path: Path, line: int, lines: dict[FieldPath, int]
    ) -> None:
        if kind != "ScalarEvent" or not event.value:
            raise SpecError(f"{path}:{line}: a key must be a plain word")
        key = str(event.value)
        if key == "<<":
            raise SpecError(f"{path}:{line}: merge keys (<<) are refused; write the fields out")
        if key in self.value:
            first = lines[(*self.place, key)]
            raise SpecError(f"{path}:{line}: {key!r} is there twice; first in line {first}")
        self.key = key
        lines[(*self.place, key)] = line

    def next_place(self) -> FieldPath:
        return (*self.place, self.key if self.key is not None else len(self.value))

    def put(self, value: Any) -> None:
        if self.is_mapping:
            self.value[self.key], self.key = value, None
        else:
            self.value.append(value)


def _scalar(event: Any, path: Path, line: int) -> Any:
    text = str(event.value)
    if not event.implicit[0]:  # quoted, or a block of text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise SpecError(f"{path}:{line}: {text} is not finite; leave out what is unknown")
    if _INT.fullmatch(text):
        return int(text)
    if len(text) <= 40 and _FLOAT.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise SpecError(f"{path}:{line}: {text} is not finite; leave out what is unknown")
        return number
    return text
