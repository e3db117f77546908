"""Links: what moves between accelerators, hosts and nodes, per direction.

Units    ``bytes_per_s`` is per direction and, for the network of a node, per accelerator (a node's
         cards divided by its accelerators); ``total_bytes_per_s`` counts both directions.
         ``achieved_fraction`` is of ``bytes_per_s``, with its basis in words.
Limits   ``latency_s`` is one hop of the wire or of the vendor's model, never a whole collective;
         None where nobody publishes one.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from roofline.errors import UnknownNameError, unknown_name
from roofline.hardware.facts_file import facts_problems, read_facts, yaml_files
from roofline.hardware.quantity import (
    Facts,
    LinkBytesPerSecond,
    Seconds,
    Sources,
)

Word = Annotated[str, Field(min_length=1, max_length=200)]


class Link(Facts):
    """One kind of link with its rate per direction, what is reached of it, and its latency."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,79}$")]
    name: Word
    category: Literal["host", "scale-up", "switch", "scale-out"]
    generation: Word | None = None
    configuration: Word | None = None
    bytes_per_s: LinkBytesPerSecond
    total_bytes_per_s: LinkBytesPerSecond | None = None
    accelerators_per_node: Annotated[int, Field(gt=0, le=1024)] | None = None
    achieved_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    achieved_basis: str | None = None
    latency_s: Seconds | None = None
    latency_basis: str | None = None
    notes: tuple[str, ...] = ()
    source: Sources

    @field_validator("source")
    @classmethod
    def _has_source(cls, source: tuple[str, ...]) -> tuple[str, ...]:
        if not source:
            raise ValueError("a link needs a source: title, date, address")
        return source

    @model_validator(mode="after")
    def _counts_directions_once(self) -> "Link":
        total = self.total_bytes_per_s
        if total is not None and abs(total / self.bytes_per_s - 2) > 0.04:
            message = f"both directions are {total / self.bytes_per_s:.3g} × one; expected 2 ×"
            raise PydanticCustomError(
                "inconsistent", "{message}", {"message": message, "at": ("total_bytes_per_s",)}
            )
        if self.achieved_fraction is not None and not self.achieved_basis:
            message = "a fraction without achieved_basis; say what was measured"
            raise PydanticCustomError(
                "inconsistent", "{message}", {"message": message, "at": ("achieved_fraction",)}
            )
        return self

    @property
    def achieved_bytes_per_s(self) -> float | None:
        """Bytes per second and direction that are reached, None when nobody measured."""
        if self.achieved_fraction is None:
            return None
        return self.achieved_fraction * self.bytes_per_s


def link_names() -> tuple[str, ...]:
    """List the ids of all links that can be loaded, sorted.

    >>> "nvlink-4" in link_names()
    True
    """
    return tuple(sorted(yaml_files("gpu_specs/links")))


def load_link(name: str | Path | Link) -> Link:
    """Load a link by its id, by words that fit one link only, or from a YAML file.

    Raises:
        UnknownNameError: no such link, or a name that several links share.
        SpecError: the file does not load; the message has file and line.

    >>> load_link("NVLink 4").bytes_per_s, load_link("infiniband ndr").bytes_per_s
    (450000000000.0, 50000000000.0)
    >>> load_link("ndr")
    Traceback (most recent call last):
    ...
    roofline.errors.UnknownNameError: 'ndr' is several links; write one of dgx-h100-ndr,
    infiniband-ndr
    """
    if isinstance(name, Link):
        return name
    if isinstance(name, Path):
        return _read_link(name)
    if not isinstance(name, str):
        raise UnknownNameError(f"a link is an id or a path, not {type(name).__name__}")
    files = yaml_files("gpu_specs/links")
    key = re.sub(r"[\s_/]+", "-", name.strip().lower())
    if key in files:
        return _read_link(files[key])
    if name.lower().endswith((".yaml", ".yml")):
        return _read_link(Path(name).expanduser())
    words = _words(name)
    matches = [link_id for link_id in sorted(files) if words and words <= _words(link_id)]
    if len(matches) == 1:
        return _read_link(files[matches[0]])
    for link_id in sorted(files):
        link = _read_link(files[link_id])
        if link.name.casefold() == " ".join(name.split()).casefold():
            return link
    if matches:
        raise UnknownNameError(f"{name[:80]!r} is several links; write one of {', '.join(matches)}")
    raise unknown_name("link", name, files)


def _words(name: str) -> set[str]:
    """Split a name into words; a generation is the same with and without its ``.0``."""
    return {word.removesuffix(".0") for word in re.findall(r"[a-z0-9.]+", name.lower())}


def _read_link(path: Path) -> Link:
    return read_facts(path, Link, "link")


def link_problems(path: Path) -> tuple[str, ...]:
    """Everything that is wrong with a link file, one line each with file and line; empty: good."""
    return facts_problems(path, Link, "link")
