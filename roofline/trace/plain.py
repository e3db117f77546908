"""Plain events: what the standard library decodes, in the shape of the typed events.

Limits   A field that should be a number or text and is not (a list, a truth value) is absent.
"""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from roofline.errors import InputError


def events_of(document: Any, source: str) -> tuple[Any, Iterable[Any]]:
    """Head and events of a decoded document.

    Raises:
        InputError: it holds no list of events.
    """
    if hasattr(document, "traceEvents"):
        return document, document.traceEvents
    top = document if isinstance(document, dict) else {}
    listed = document if isinstance(document, list) else top.get("traceEvents")
    if not isinstance(listed, list):
        raise InputError(
            f"{source}: no list 'traceEvents' in it; give a trace of torch.profiler "
            "(export_chrome_trace)"
        )
    if listed and not any(isinstance(entry, dict) for entry in listed):
        raise InputError(f"{source}: a list without one event; give a trace of torch.profiler")
    head = SimpleNamespace(
        deviceProperties=top.get("deviceProperties"), distributedInfo=top.get("distributedInfo")
    )
    return head, _plain(listed)


def _scalar(value: Any) -> Any:
    """A number or text; None for anything else, truth values included."""
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None


class _Arguments:
    """The ``args`` of an event."""

    __slots__ = (
        "correlation", "device", "dims", "external_id", "graph_node", "inputs", "moved",
        "occupancy", "registers", "stream", "types",
    )  # fmt: skip

    def __init__(self, given: dict[str, Any]) -> None:
        find = given.get
        self.external_id = _scalar(find("External id", find("external id")))
        self.correlation = _scalar(find("correlation"))
        self.device = _scalar(find("device"))
        self.stream = _scalar(find("stream"))
        self.registers = _scalar(find("registers per thread"))
        self.occupancy = _scalar(find("est. achieved occupancy %"))
        self.moved = _scalar(find("bytes"))
        self.graph_node = _scalar(find("graph node id"))
        self.dims, self.types = find("Input Dims"), find("Input type")
        self.inputs = find("Concrete Inputs")


class _Event:
    """One entry of ``traceEvents``."""

    __slots__ = ("args", "cat", "dur", "name", "ph", "pid", "tid", "ts")

    def __init__(self, entry: dict[str, Any]) -> None:
        category, given = entry.get("cat"), entry.get("args")
        self.ph = entry.get("ph")
        self.cat = category if isinstance(category, str) else ""
        self.name = str(entry.get("name", ""))
        self.ts, self.dur = _scalar(entry.get("ts")), _scalar(entry.get("dur", 0.0))
        self.pid, self.tid = _scalar(entry.get("pid")), _scalar(entry.get("tid"))
        self.args = _Arguments(given) if isinstance(given, dict) else None


_NOT_COMPLETE = _Event({})


def _plain(listed: list[Any]) -> Iterator[Any]:
    """Events of the standard library's decoder in the shape of the typed ones."""
    for entry in listed:
        if isinstance(entry, dict):
            yield _Event(entry) if entry.get("ph") == "X" else _NOT_COMPLETE
