"""Fast decoding: typed structs of msgspec that keep only the fields that are used.

Importing this module needs msgspec; the reader falls back to the standard library without it.
"""

from typing import Any

import msgspec

_Scalar = int | float | str | None


class Arguments(msgspec.Struct, gc=False):
    """The ``args`` of an event; fields that are absent keep the default."""

    external_id: _Scalar = msgspec.field(default=None, name="External id")
    correlation: _Scalar = None
    device: _Scalar = None
    stream: _Scalar = None
    registers: _Scalar = msgspec.field(default=None, name="registers per thread")
    occupancy: _Scalar = msgspec.field(default=None, name="est. achieved occupancy %")
    moved: _Scalar = msgspec.field(default=None, name="bytes")
    graph_node: _Scalar = msgspec.field(default=None, name="graph node id")
    dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    inputs: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Concrete Inputs")


class Event(msgspec.Struct, gc=False):
    """One entry of ``traceEvents``."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    ts: _Scalar = 0.0
    dur: _Scalar = 0.0
    pid: _Scalar = None
    tid: _Scalar = None
    args: Arguments | None = None


class Document(msgspec.Struct):
    """The file: only what is used of its head."""

    traceEvents: list[Event]  # noqa: N815  the name in the file
    deviceProperties: Any = None  # noqa: N815
    distributedInfo: Any = None  # noqa: N815


def decode(text: bytes) -> Document | None:
    """Decode a trace; None when it does not fit the types, so that the other reader may try."""
    try:
        if text.lstrip()[:1] == b"[":
            return Document(traceEvents=msgspec.json.decode(text, type=list[Event]))
        return msgspec.json.decode(text, type=Document)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return None
