"""Columns: the decoded events of a trace file to arrays, with what is invalid left out and counted.

Sources  [1] PyTorch, torch.profiler output of torch 1.8 to 2.11: categories in lower case since
             2.0 (``kernel``), capitalised before (``Kernel``); HIP and XPU use the same fields.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from roofline.errors import InputError
from roofline.trace.events import COPY, FILL, KERNEL, DeviceEvents, HostEvents, Shapes, Trace
from roofline.trace.operators import HAS_MODEL

_DEVICE_KINDS = {
    "kernel": KERNEL, "gpu_memcpy": COPY, "memcpy": COPY, "gpu_memset": FILL, "memset": FILL,
}  # fmt: skip
_OPERATOR_KINDS = frozenset({"cpu_op", "operator", "autograd", "python_op"})
_STEP = re.compile(r"ProfilerStep#\d+")
_MICROSECOND = 1e-6
_FAR_US = 1e6
"""A stamp of 0 is invalid when everything else is more than a second later."""


class _Table:
    """Rows being collected: a table of names, and one list a column."""

    def __init__(self, n_columns: int) -> None:
        self.names: dict[str, int] = {}
        self.columns: list[list[float]] = [[] for _ in range(n_columns)]

    def add(self, name: str, *values: float) -> None:
        """Append one row."""
        self.columns[0].append(self.names.setdefault(name, len(self.names)))
        for column, value in zip(self.columns[1:], values, strict=True):
            column.append(value)


def columns_of(document: Any, *, source: str, read_by: str) -> Trace:
    """Sort the events of a decoded file into tables.

    Raises:
        InputError: the file holds no list of events.
    """
    head, events = _events(document, source)
    device, runtime, operators, python, steps = (
        _Table(12), _Table(5), _Table(5), _Table(5), _Table(5),
    )  # fmt: skip
    raw_shapes: dict[int, tuple[str, Any]] = {}
    threads: dict[Any, int] = {}
    n_events = 0
    for event in events:
        n_events += 1
        if event.ph != "X":
            continue
        category = (event.cat or "").lower()
        start, length = _number(event.ts), _number(event.dur)
        arguments = event.args
        name = event.name
        kind = _DEVICE_KINDS.get(category)
        if kind is not None:
            device.add(
                name, kind, start, length,
                _whole(_of(arguments, "device"), _whole(event.pid, 0)),
                _whole(_of(arguments, "stream"), _whole(event.tid, 0)),
                _whole(_of(arguments, "correlation"), -1),
                _whole(_of(arguments, "external_id"), -1),
                _whole(_of(arguments, "registers"), -1),
                _number(_of(arguments, "occupancy")),
                _number(_of(arguments, "moved")),
                1 if _whole(_of(arguments, "graph_node"), 0) else 0,
            )  # fmt: skip
            continue
        thread = threads.setdefault((event.pid, event.tid), len(threads))
        if category in _OPERATOR_KINDS:
            key = _whole(_of(arguments, "external_id"), -1)
            operators.add(name, start, length, thread, key)
            if name in HAS_MODEL and key >= 0:
                raw_shapes[key] = (name, arguments)
        elif category.endswith(("runtime", "driver")):
            runtime.add(name, start, length, thread, _whole(_of(arguments, "correlation"), -1))
        elif category == "python_function":
            python.add(name, start, length, thread, -1)
        elif category == "user_annotation" and _STEP.fullmatch(name):
            steps.add(name, start, length, thread, int(name.rsplit("#", 1)[1]))
    return _assemble(
        head, device, (runtime, operators, python, steps), raw_shapes, n_events, source, read_by
    )


def _assemble(
    head: Any,
    device: _Table,
    host: tuple[_Table, ...],
    raw_shapes: dict[int, tuple[str, Any]],
    n_events: int,
    source: str,
    read_by: str,
) -> Trace:
    warnings: list[str] = []
    columns = [np.array(values, np.float64) for values in device.columns]
    start_us, length_us = columns[2], columns[3]
    host_us = np.concatenate(
        [np.array(table.columns[1], np.float64) for table in host] or [np.zeros(0)]
    )
    host_us = host_us[np.isfinite(host_us)]
    known = start_us[np.isfinite(start_us) & (length_us > 0) & (start_us > 0)]
    earliest = float(np.min(np.concatenate((host_us[host_us > 0], known)), initial=math.inf))
    with np.errstate(invalid="ignore"):
        valid = np.isfinite(start_us) & np.isfinite(length_us) & (length_us > 0)
        valid &= ~((start_us <= 0) & (earliest > _FAR_US))
    invalid = int(len(valid) - np.count_nonzero(valid))
    if invalid:
        warnings.append(
            f"{invalid:,} of {len(valid):,} device events have no valid time (ts or dur is 0): "
            "counted, left out of totals, gaps and the start; CUPTI before CUDA 13.1 does this"
        )
    zero_us = earliest if earliest > _FAR_US and math.isfinite(earliest) else 0.0
    kept = [column[valid] for column in columns]
    names = tuple(device.names)
    whole = [column.astype(np.int64) for column in (kept[0], kept[1], *kept[4:9], kept[11])]
    kept_start = (kept[2] - zero_us) * _MICROSECOND
    events = DeviceEvents(
        names, whole[0], whole[1], kept_start, kept_start + kept[3] * _MICROSECOND,
        whole[2], whole[3], whole[4], whole[5], whole[6], kept[9], kept[10], whole[7],
    )  # fmt: skip
    runtime, operators, python, steps = (_host(table, zero_us) for table in host)
    rank, n_ranks = _rank(head.distributedInfo)
    return Trace(
        source=source,
        rank=rank,
        n_ranks=n_ranks,
        device_names=_device_names(head.deviceProperties),
        device=events,
        runtime=runtime,
        operators=operators,
        python=python,
        steps=steps,
        shapes=ShapeTable(raw_shapes),
        n_events=n_events,
        invalid_kernels=invalid,
        read_by=read_by,
        warnings=tuple(warnings),
    )


def _host(table: _Table, zero_us: float) -> HostEvents:
    columns = [np.array(values, np.float64) for values in table.columns]
    with np.errstate(invalid="ignore"):
        keep = np.isfinite(columns[1]) & np.isfinite(columns[2]) & (columns[2] >= 0)
    name, start, length, thread, key = (column[keep] for column in columns)
    start_s = (start - zero_us) * _MICROSECOND
    return HostEvents(
        tuple(table.names),
        name.astype(np.int64),
        start_s,
        start_s + length * _MICROSECOND,
        thread.astype(np.int64),
        key.astype(np.int64),
    )


def _events(document: Any, source: str) -> tuple[Any, Iterable[Any]]:
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
            arguments = {ours: given.get(theirs) for ours, theirs in _FIELDS.items()}
            if arguments["external_id"] is None:
                arguments["external_id"] = given.get("external id")
        category, pid, tid = entry.get("cat"), entry.get("pid"), entry.get("tid")
        yield SimpleNamespace(
            ph=entry.get("ph"),
            cat=category if isinstance(category, str) else "",
            name=str(entry.get("name", "")),
            ts=entry.get("ts"),
            dur=entry.get("dur", 0.0),
            pid=pid if isinstance(pid, (int, str, float)) else None,
            tid=tid if isinstance(tid, (int, str, float)) else None,
            args=None if arguments is None else SimpleNamespace(**arguments),
        )


def _of(arguments: Any, field: str) -> Any:
    return None if arguments is None else getattr(arguments, field)


def _number(value: Any) -> float:
    if value.__class__ is float:
        return float(value)
    if value is None or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


_LARGEST = 2**53


def _whole(value: Any, default: int) -> int:
    if value.__class__ is int:
        return int(value) if -_LARGEST < value < _LARGEST else default
    number = _number(value)
    return int(number) if abs(number) < _LARGEST else default


def _decoded(value: Any) -> Any:
    """A raw piece of JSON, decoded when it is needed; None when there is none."""
    if value is None or isinstance(value, (list, str)):
        return value
    raw = bytes(value)
    return json.loads(raw) if raw else None


class ShapeTable(Mapping[int, Shapes]):
    """Shapes of operator calls by external id, decoded when they are asked for."""

    def __init__(self, raw: dict[int, tuple[str, Any]]) -> None:
        self._raw = raw

    def __getitem__(self, key: int) -> Shapes:
        return _shapes(*self._raw[key])

    def __iter__(self) -> Iterator[int]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __contains__(self, key: object) -> bool:
        return key in self._raw


def _shapes(name: str, arguments: Any) -> Shapes:
    dims, types, inputs = (_decoded(_of(arguments, f)) for f in ("dims", "types", "inputs"))
    return Shapes(
        name,
        tuple(dims) if isinstance(dims, list) else (),
        tuple(str(entry) for entry in types) if isinstance(types, list) else (),
        tuple(str(entry) for entry in inputs) if isinstance(inputs, list) else (),
    )


def _rank(info: Any) -> tuple[int | None, int | None]:
    if not isinstance(info, dict):
        return None, None
    rank, size = info.get("rank"), info.get("world_size")
    return (
        rank if isinstance(rank, int) and not isinstance(rank, bool) else None,
        size if isinstance(size, int) and not isinstance(size, bool) else None,
    )


def _device_names(properties: Any) -> dict[int, str]:
    if not isinstance(properties, list):
        return {}
    return {
        entry["id"]: str(entry.get("name", "")).strip()
        for entry in properties
        if isinstance(entry, dict) and isinstance(entry.get("id"), int)
    }
