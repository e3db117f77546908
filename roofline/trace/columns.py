"""Columns: the decoded events of a trace file to arrays, with what is invalid left out and counted.

Sources  [1] PyTorch, torch.profiler output of torch 1.8 to 2.11: categories in lower case since
             2.0 (``kernel``), capitalised before (``Kernel``); HIP and XPU use the same fields.
"""

import math
import re
from typing import Any

import numpy as np

from roofline.trace.events import COPY, FILL, KERNEL, DeviceEvents, HostEvents, Trace
from roofline.trace.intervals import Floats, Ints
from roofline.trace.operators import HAS_MODEL
from roofline.trace.plain import events_of
from roofline.trace.shape_table import ShapeTable

_DEVICE_KINDS = {
    "kernel": KERNEL, "gpu_memcpy": COPY, "memcpy": COPY, "gpu_memset": FILL, "memset": FILL,
}  # fmt: skip
_OPERATOR_KINDS = frozenset({"cpu_op", "operator", "autograd", "python_op"})
_STEP = re.compile(r"ProfilerStep#\d{1,12}")
_MICROSECOND = 1e-6
_LARGEST = 2**53
_FAR_US = 1e6
"""A stamp of 0 is invalid when everything else is more than a second later."""


class _Empty:
    """Arguments of an event that has none."""

    external_id = correlation = device = stream = registers = occupancy = moved = None
    graph_node = None


_EMPTY = _Empty()


def columns_of(document: Any, *, source: str, read_by: str) -> Trace:
    """Sort the events of a decoded file into tables.

    Raises:
        InputError: the file holds no list of events.
    """
    head, events = events_of(document, source)
    groups: dict[str, list[Any]] = {
        name: [] for name in ("", "device", "runtime", "operators", "python", "steps")
    }
    homes: dict[str | None, list[Any]] = {}
    n_events = 0
    for event in events:
        n_events += 1
        if event.ph == "X":
            category = event.cat
            rows = homes.get(category)
            if rows is None:
                rows = homes[category] = groups[_home(category or "")]
            rows.append(event)
    groups["steps"] = [event for event in groups["steps"] if _STEP.fullmatch(event.name)]
    devices, operators = groups["device"], groups["operators"]
    start_us, length_us = _floats(devices, "ts"), _floats(devices, "dur")
    hosts = ("runtime", "operators", "python", "steps")
    host_us = {name: _floats(groups[name], "ts") for name in hosts}
    earliest = _earliest(start_us, length_us, list(host_us.values()))
    with np.errstate(invalid="ignore", over="ignore"):
        valid = np.isfinite(start_us + length_us) & (length_us > 0)
        valid &= ~((start_us <= 0) & (earliest > _FAR_US))
    zero_us = earliest if earliest > _FAR_US and math.isfinite(earliest) else 0.0
    keys = {
        "runtime": _argument(groups["runtime"], "correlation", -1),
        "operators": _argument(operators, "external_id", -1),
        "python": np.full(len(groups["python"]), -1, np.int64),
        "steps": np.array([int(e.name.rsplit("#", 1)[1]) for e in groups["steps"]], np.int64),
    }
    threads: dict[Any, int] = {}
    tables = {
        name: _host(groups[name], host_us[name], keys[name], threads, zero_us) for name in hosts
    }
    shapes = {
        key: (event.name, event.args)
        for event, key in zip(operators, keys["operators"].tolist(), strict=True)
        if key >= 0 and event.name in HAS_MODEL
    }
    rank, n_ranks = _rank(head.distributedInfo)
    invalid = int(len(valid) - np.count_nonzero(valid))
    return Trace(
        source=source,
        rank=rank,
        n_ranks=n_ranks,
        device_names=_device_names(head.deviceProperties),
        device=_device(devices, start_us, length_us, valid, zero_us),
        runtime=tables["runtime"],
        operators=tables["operators"],
        python=tables["python"],
        steps=tables["steps"],
        shapes=ShapeTable(shapes),
        n_events=n_events,
        invalid_kernels=invalid,
        read_by=read_by,
        warnings=(_invalid_words(invalid, len(valid)),) if invalid else (),
    )


def _invalid_words(invalid: int, total: int) -> str:
    return (
        f"{invalid:,} of {total:,} device events have no valid time (ts or dur is 0): counted, "
        "left "
        "out of totals, gaps and the start; CUPTI before CUDA 13.1 does this"
    )


def _home(category: str) -> str:
    lowered = category.lower()
    if lowered in _DEVICE_KINDS:
        return "device"
    if lowered in _OPERATOR_KINDS:
        return "operators"
    if lowered.endswith(("runtime", "driver")):
        return "runtime"
    return {"python_function": "python", "user_annotation": "steps"}.get(lowered, "")


def _earliest(start_us: Floats, length_us: Floats, host_us: list[Floats]) -> float:
    with np.errstate(invalid="ignore"):
        known = start_us[np.isfinite(start_us) & (length_us > 0) & (start_us > 0)]
        others = [times[np.isfinite(times) & (times > 0)] for times in host_us]
    return float(np.min(np.concatenate([known, *others]), initial=math.inf))


def _device(
    rows: list[Any], start_us: Floats, length_us: Floats, valid: Any, zero_us: float
) -> DeviceEvents:
    names, name = _names(rows)
    kind = np.array([_DEVICE_KINDS[row.cat.lower()] for row in rows], np.int64)
    device, stream = _argument(rows, "device", -1), _argument(rows, "stream", -1)
    if np.any(device < 0):
        device = np.where(device < 0, _wholes(_floats(rows, "pid"), 0), device)
    if np.any(stream < 0):
        stream = np.where(stream < 0, _wholes(_floats(rows, "tid"), 0), stream)
    begin = (start_us[valid] - zero_us) * _MICROSECOND
    arguments = [row.args or _EMPTY for row in rows]
    return DeviceEvents(
        names,
        name[valid],
        kind[valid],
        begin,
        begin + length_us[valid] * _MICROSECOND,
        device[valid],
        stream[valid],
        _argument(rows, "correlation", -1)[valid],
        _argument(rows, "external_id", -1)[valid],
        _argument(rows, "registers", -1)[valid],
        _floats(arguments, "occupancy")[valid],
        _floats(arguments, "moved")[valid],
        np.minimum(np.abs(_argument(rows, "graph_node", 0)), 1)[valid],
    )


def _host(
    rows: list[Any], start_us: Floats, key: Ints, threads: dict[Any, int], zero_us: float
) -> HostEvents:
    names, name = _names(rows)
    length_us = _floats(rows, "dur")
    thread = np.array(
        [threads.setdefault((row.pid, row.tid), len(threads)) for row in rows], np.int64
    )
    with np.errstate(invalid="ignore", over="ignore"):
        keep = np.isfinite(start_us + length_us) & (length_us >= 0)
    begin = (start_us[keep] - zero_us) * _MICROSECOND
    end = begin + length_us[keep] * _MICROSECOND
    return HostEvents(names, name[keep], begin, end, thread[keep], key[keep])


def _names(rows: list[Any]) -> tuple[tuple[str, ...], Ints]:
    table: dict[str, int] = {}
    numbers = [table.setdefault(row.name, len(table)) for row in rows]
    return tuple(table), np.array(numbers, np.int64)


def _floats(rows: list[Any], field: str) -> Floats:
    """One field of all rows as floats; what is no number is NaN."""
    values = [getattr(row, field) for row in rows]
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _wholes(values: Floats, default: int) -> Ints:
    with np.errstate(invalid="ignore"):
        good = np.abs(values) < _LARGEST
    return np.where(good, values, default).astype(np.int64)


def _argument(rows: list[Any], field: str, default: int) -> Ints:
    return _wholes(_floats([row.args or _EMPTY for row in rows], field), default)


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
