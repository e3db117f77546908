"""Results of other tools: nvbandwidth and nccl-tests, in JSON and as they print them.

nvbandwidth gives matrices of bandwidth (or latency) by source and target, which become link rows;
nccl-tests gives a table by size, which becomes collective rows. What a file says of machines and
people (environment, host names, process ids) is not read at all.

Shapes   A cell of nvbandwidth's matrix is text, "N/A" where a device does not meet itself.
Units    nvbandwidth: GB/s (10⁹ bytes) or ns; nccl-tests: bytes, µs, GB/s.
Limits   A record of such a file is of level ``import``: it answers for no spec id by itself.
Sources  [1] NVIDIA nvbandwidth, README (output formats). [2] NVIDIA nccl-tests, README.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roofline.errors import SpecError
from roofline.files import read_text
from roofline.hardware.measured_rows import (
    COLLECTIVE_OPS,
    CollectiveRow,
    LinkRow,
    bus_factor,
)
from roofline.hardware.measurement import Device, Measurement
from roofline.units import MIB

_LARGEST_FILE = 64 * MIB
_GB = 1e9
_MICROSECOND = 1e-6
_NANOSECOND = 1e-9
_NCCL_TYPES = {"half": "fp16", "float": "fp32", "double": "fp64", "bfloat16": "bf16"}
_OP_NAMES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all", "sendrecv": "send_recv", "broadcast": "broadcast",
    "reduce": "reduce", "gather": "gather", "scatter": "scatter", "hypercube": "hypercube",
}  # fmt: skip


def import_file(path: str | Path, device: Device, *, op: str = "", n_ranks: int = 0) -> Measurement:
    """Read a file of either tool into a record.

    Args:
        path: the file.
        device: what was measured; such files name it loosely or not at all.
        op: nccl-tests' collective, when neither its file nor the file's name says.
        n_ranks: ranks, when the file does not say.

    Raises:
        SpecError: neither tool's output, or the collective or the ranks are not known.
    """
    path = Path(path)
    text = read_text(path, most_bytes=_LARGEST_FILE, what="output of nvbandwidth or nccl-tests")
    name = path.name
    kept: dict[str, Any] = {}
    if text.lstrip().startswith("{"):
        data = _json(text, name)
        if "nvbandwidth" in data:
            kept["link_rows"] = tuple(nvbandwidth_json(data, name))
        elif "results" in data:
            kept["collective_rows"] = tuple(nccl_json(data, name, op=op, n_ranks=n_ranks))
        else:
            raise SpecError(f"{name}: JSON of neither nvbandwidth nor nccl-tests")
    elif "algbw" in text and "busbw" in text:
        kept["collective_rows"] = tuple(nccl_text(text, name, op=op, n_ranks=n_ranks))
    elif re.search(r"nvbandwidth|\bSUM\b.*\d|memcpy .*(GB/s|bandwidth)", text):
        kept["link_rows"] = tuple(nvbandwidth_text(text, name))
    else:
        raise SpecError(f"{name}: output of neither nvbandwidth nor nccl-tests")
    if not any(kept.values()):
        raise SpecError(f"{name}: no measurement in it")
    tool = "nvbandwidth" if "link_rows" in kept else "nccl-tests"
    sections = ("link",) if tool == "nvbandwidth" else ("collective",)
    return Measurement(
        device=device,
        date=datetime.fromtimestamp(int(path.stat().st_mtime), UTC),
        level="import",
        command=f"roofline measure import ({tool})",
        source=f"{tool}, imported; the date is the file's",
        complete_sections=sections,
        **kept,
    )


def _json(text: str, name: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{name}: no JSON: {error}") from None
    if not isinstance(data, dict):
        raise SpecError(f"{name}: JSON of neither nvbandwidth nor nccl-tests")
    return data


def _number(value: Any) -> float | None:
    """A positive finite number, from text or not; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def nvbandwidth_json(data: dict[str, Any], name: str = "nvbandwidth") -> Iterator[LinkRow]:
    """Rows of ``nvbandwidth -j`` [1]; test cases that were waived or failed give none.

    Raises:
        SpecError: not of that form.

    >>> case = {"name": "device_to_device_memcpy_read_ce", "status": "Passed",
    ...         "bandwidth_matrix": [["N/A", "276.07"], ["276.36", "N/A"]]}
    >>> [(row.source, row.target, row.bytes_per_s / 1e9)
    ...  for row in nvbandwidth_json({"nvbandwidth": {"testcases": [case]}})]
    [('0', '1', 276.07), ('1', '0', 276.36)]
    """
    body = data.get("nvbandwidth")
    cases = body.get("testcases") if isinstance(body, dict) else None
    if not isinstance(cases, list):
        raise SpecError(f"{name}: no nvbandwidth test cases in it")
    for case in cases:
        if not isinstance(case, dict) or case.get("status") != "Passed":
            continue
        test = str(case.get("name", "unnamed"))[:100]
        matrix = case.get("bandwidth_matrix")
        if isinstance(matrix, list):
            yield from _matrix_rows(test, matrix)


def _link(test: str, source: str, target: str, value: float) -> LinkRow:
    if "latency" in test:
        return LinkRow(test=test, source=source, target=target, latency_s=value * _NANOSECOND)
    return LinkRow(test=test, source=source, target=target, bytes_per_s=value * _GB)


def _from_host(test: str) -> bool:
    return test.startswith(("host_to_device", "device_to_host", "host_device"))


def _matrix_rows(test: str, matrix: list[Any]) -> Iterator[LinkRow]:
    for row, cells in enumerate(matrix):
        for column, cell in enumerate(cells if isinstance(cells, list) else []):
            value = _number(cell)
            if value is not None:
                source = "host" if _from_host(test) and len(matrix) == 1 else str(row)
                yield _link(test, source, str(column), value)


def nvbandwidth_text(text: str, name: str = "nvbandwidth") -> Iterator[LinkRow]:
    """Rows of what nvbandwidth prints: a line ``Running NAME.``, a header of columns, a matrix.

    Raises:
        SpecError: no matrix in it.
    """
    test, found = "", False
    columns: list[str] = []
    for line in text.splitlines():
        if running := re.match(r"\s*Running ([\w.-]+?)\.?\s*$", line):
            test, columns = running[1], []
            continue
        words = line.split()
        if words and all(word.isdigit() for word in words):
            columns = words
            continue
        if test and columns and len(words) == len(columns) + 1 and words[0].isdigit():
            cells = [_number(word) for word in words[1:]]
            if any(cell is not None for cell in cells):
                found = True
                source = "host" if _from_host(test) else words[0]
                for column, value in zip(columns, cells, strict=True):
                    if value is not None:
                        yield _link(test, source, column, value)
    if not found:
        raise SpecError(f"{name}: no bandwidth matrix in it")


def nccl_json(
    data: dict[str, Any], name: str = "nccl-tests", *, op: str = "", n_ranks: int = 0
) -> Iterator[CollectiveRow]:
    """Rows of nccl-tests' JSON [2]; ``env`` and the devices' host names are not read.

    Raises:
        SpecError: no results, or the collective or the number of ranks is not known.
    """
    results = data.get("results")
    config = data.get("config") if isinstance(data.get("config"), dict) else {}
    devices = config.get("devices") if isinstance(config, dict) else None
    ranks = n_ranks or (len(devices) if isinstance(devices, list) else 0)
    words = " ".join(str(word) for word in data.get("args") or [] if isinstance(word, str))
    found = _op(op, f"{words} {name}")
    _need(found, ranks, name)
    if not isinstance(results, list):
        raise SpecError(f"{name}: no results in it")
    for result in results:
        if not isinstance(result, dict):
            continue
        size = _number(result.get("size"))
        for place in ("out_of_place", "in_place"):
            timed = result.get(place)
            if size is None or not isinstance(timed, dict):
                continue
            time_us = _number(timed.get("time", timed.get("cpu_time")))
            if time_us is None:
                continue
            wrong = str(timed.get("nwrong", "0"))
            yield _collective(
                found, ranks, size, time_us, place == "in_place",
                str(result.get("type", "")), str(result.get("redop", "")), wrong,
            )  # fmt: skip


def nccl_text(
    text: str, name: str = "nccl-tests", *, op: str = "", n_ranks: int = 0
) -> Iterator[CollectiveRow]:
    """Rows of what nccl-tests prints: 13 columns, comments behind ``#``.

    Raises:
        SpecError: no rows, or the collective or the number of ranks is not known.

    >>> table = '''# Rank  0 Group  0 Pid 1 on a device  0
    ... # Rank  1 Group  0 Pid 2 on a device  1
    ... #  size count type redop root time algbw busbw #wrong time algbw busbw #wrong
    ...  1073741824 268435456 float sum -1 3315 323.9 323.9 0 3320 323.4 323.4 0'''
    >>> row = next(nccl_text(table, op="all_reduce"))
    >>> row.n_ranks, row.bus_bytes_per_s / 1e9
    (2, 323.9)
    """
    comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    ranks = n_ranks or sum(1 for line in comments if re.match(r"\s*#\s+Rank\s+\d+", line))
    found = _op(op, " ".join(comments) + " " + name)
    _need(found, ranks, name)
    count = 0
    for line in text.splitlines():
        words = line.split()
        if line.lstrip().startswith("#") or len(words) < 8 or not words[0].isdigit():
            continue
        size = _number(words[0])
        for place, at in (("out", 5), ("in", 9)):
            if size is None or len(words) < at + 3:
                continue
            time_us = _number(words[at])
            if time_us is None:
                continue
            wrong = words[at + 3] if len(words) > at + 3 else "0"
            count += 1
            yield _collective(found, ranks, size, time_us, place == "in", words[2], words[3], wrong)
    if not count:
        raise SpecError(f"{name}: no rows of nccl-tests in it")


def _collective(
    op: str, ranks: int, size: float, time_us: float, in_place: bool, kind: str, redop: str,
    wrong: str,
) -> CollectiveRow:  # fmt: skip
    time_s = time_us * _MICROSECOND
    rate = size / time_s
    bad = wrong not in ("0", "N/A", "None", "")
    return CollectiveRow(
        op=op, n_ranks=ranks, bytes=int(size), mode="eager", in_place=in_place,
        dtype=_NCCL_TYPES.get(kind, kind) or "unknown", redop=redop or "none",
        median_s=time_s, alg_bytes_per_s=rate, bus_bytes_per_s=rate * bus_factor(op, ranks),
        flags=(f"{wrong} wrong results",) if bad else (),
    )  # fmt: skip


def _op(asked: str, text: str) -> str:
    if asked:
        key = asked.lower().replace("_", "").replace("-", "")
        return _OP_NAMES.get(key, asked)
    squeezed = re.sub(r"[\s_-]", "", text.lower())
    # the longest name first: reduce is a part of all-reduce
    for key in sorted(_OP_NAMES, key=len, reverse=True):
        if f"{key}perf" in squeezed or f"nccl{key}" in squeezed:
            return _OP_NAMES[key]
    for key in sorted(_OP_NAMES, key=len, reverse=True):
        if key in squeezed:
            return _OP_NAMES[key]
    return ""


def _need(op: str, ranks: int, name: str) -> None:
    if op not in COLLECTIVE_OPS:
        raise SpecError(
            f"{name} does not say which collective it timed; give it with --op, one of "
            f"{', '.join(COLLECTIVE_OPS)}"
        )
    if ranks < 1:
        raise SpecError(f"{name} does not say how many ranks took part; give it with --ranks")
