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
    head = SimpleNamespace(
        deviceProperties=top.get("deviceProperties"), distributedInfo=top.get("distributedInfo")
    )
    return head, _plain(listed)


_FIELDS = {
    "external_id": "External id", "correlation": "correlation", "device": "device",
    "stream": "stream", "registers": "registers per thread", "moved": "bytes",
    "occupancy": "est. achieved occupancy %", "graph_node": "graph node id",
    "dims": "Input Dims", "types": "Input type", "inputs": "Concrete Inputs",
}  # fmt: skip


def _plain(listed: list[Any]) -> Iterator[Any]:
    """Events of the standard library's decoder in the shape of the typed ones."""
    for entry in listed:
        if not isinstance(entry, dict):
            continue
        given = entry.get("args")
        arguments = None
        if isinstance(given, dict):
            arguments = {ours: _scalar(given.get(theirs)) for ours, theirs in _FIELDS.items()}
            for ours in ("dims", "types", "inputs"):
                arguments[ours] = given.get(_FIELDS[ours])
            if arguments["external_id"] is None:
                arguments["external_id"] = _scalar(given.get("external id"))
        category = entry.get("cat")
        yield SimpleNamespace(
            ph=entry.get("ph"),
            cat=category if isinstance(category, str) else "",
            name=str(entry.get("name", "")),
            ts=_scalar(entry.get("ts")),
            dur=_scalar(entry.get("dur", 0.0)),
            pid=_scalar(entry.get("pid")),
            tid=_scalar(entry.get("tid")),
            args=None if arguments is None else SimpleNamespace(**arguments),
        )


def _scalar(value: Any) -> Any:
    """A number or text; None for anything else, truth values included."""
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
