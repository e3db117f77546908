"""Measured records: what one machine really reached, as files that predictions use.

A record is one run of ``roofline measure`` (or a conversion of other numbers, which says so) on
one device. Asked for by spec id, the records of that exact spec and power limit are merged: each
section comes from the newest record that ran it in full; models and numbers of ranks add up over
records, the newest row of each.

Shapes   measurements/<record id>/<date>-<level>.json; the record id is the spec id, or a slug of
         the device's name where no spec is known.
Units    As in ``measured_rows``.
Limits   A record holds no host name, user, path, serial number or UUID: text that looks like one
         does not load and is not written.
Sources  The record itself: device, versions, command and date stand in it.
"""

import json
import os
import re
from collections.abc import Iterable
from datetime import UTC
from functools import lru_cache
from pathlib import Path
from typing import Any

from roofline.errors import MissingDataError, unknown_name
from roofline.files import read_text, write_text
from roofline.hardware.folders import data_folders
from roofline.hardware.measured_record import (
    SCHEMA_VERSION,
    Conditions,
    Device,
    Environment,
    Measurement,
    Origin,
)
from roofline.hardware.measured_rows import (
    SECTIONS,
    AttentionRow,
    CollectiveRow,
    CopyRow,
    DecoderRow,
    HostLinkRow,
    LaunchRow,
    LinkRow,
    MatmulRow,
    Row,
    parse_record,
)
from roofline.units import MIB

__all__ = [
    "SCHEMA_VERSION", "AttentionRow", "CollectiveRow", "Conditions", "CopyRow", "DecoderRow",
    "Device", "Environment", "HostLinkRow", "LaunchRow", "LinkRow", "MatmulRow", "Measurement",
    "Origin", "Row", "load_measurement", "measured_ids", "measurement_files", "merge_measurements",
    "read_measurement", "save_measurement", "to_json",
]  # fmt: skip

_LARGEST_FILE = 64 * MIB
_OTHER_FOLDERS = ("calibration", "published", "training", "traces", "validation")
_JOINED = ("decoder", "collective", "link")
"""Sections whose rows add up over records: other models, other numbers of ranks."""


def to_json(measurement: Measurement) -> str:
    """Write a record as text, one row a line, without defaults.

    >>> from datetime import UTC, datetime
    >>> record = Measurement(device=Device(name="x", memory_bytes=1), level="quick",
    ...                      date=datetime(2026, 11, 1, tzinfo=UTC))
    >>> print(to_json(record))
    {"schema_version": 1,
     "device": {"name": "x", "memory_bytes": 1},
     "date": "2026-11-01T00:00:00Z",
     "level": "quick"}
    """
    data = measurement.model_dump(mode="json", exclude_defaults=True)
    data = {"schema_version": SCHEMA_VERSION, **data}
    parts = []
    for key, value in data.items():
        if key.endswith("_rows"):
            lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f'"{key}": [\n  {lines}]')
        else:
            parts.append(f'"{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{" + ",\n ".join(parts) + "}"


def read_measurement(path: str | Path) -> Measurement:
    """Read one record file.

    Raises:
        SpecError: the file is missing, too large, cut, not a record, or of another schema version.
    """
    path = Path(path)
    text = read_text(path, most_bytes=_LARGEST_FILE, what="a measured record")
    return parse_measurement(text, path.name)


def parse_measurement(text: str, name: str = "record") -> Measurement:
    """Read a record from text.

    Raises:
        SpecError: as ``read_measurement``.

    >>> parse_measurement("{}", "empty.json")
    Traceback (most recent call last):
    ...
    roofline.errors.SpecError: empty.json: no measured record: device: Field required
    """
    return parse_record(Measurement, text, name, "measured record")


def save_measurement(measurement: Measurement, folder: str | Path, name: str = "") -> Path:
    """Write a record under ``folder``/<record id>/ and give its path.

    Raises:
        InputError: the folder cannot be written.
    """
    stamp = measurement.date.astimezone(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    name = name or f"{stamp}-{measurement.level}.json"
    target = Path(folder) / measurement.device.record_id / name
    # validated once more: a copy with changed fields was not
    checked = parse_measurement(to_json(measurement), name)
    return write_text(target, to_json(checked) + "\n", make_folder=True)


def measurement_folders() -> tuple[Path, ...]:
    """Folders that records are looked for in: ROOFLINE_MEASUREMENTS, the user's, then ours."""
    own = [Path(part) for part in os.environ.get("ROOFLINE_MEASUREMENTS", "").split(os.pathsep)]
    named = [folder for folder in own if str(folder) not in ("", ".") and folder.is_dir()]
    return tuple(dict.fromkeys((*named, *data_folders("measurements"))))


def measurement_files(record_id: str = "*") -> tuple[Path, ...]:
    """Record files of one spec id (or all), in the order of their names."""
    if record_id != "*" and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", record_id):
        return ()
    found = [
        path for folder in measurement_folders() for path in folder.glob(f"{record_id}/*.json")
    ]
    kept = [path for path in found if path.parent.name not in _OTHER_FOLDERS]
    return tuple(sorted(kept, key=lambda path: path.name))


def measured_ids() -> tuple[str, ...]:
    """Spec ids (and slugs of devices without a spec) that have records.

    >>> "h200-sxm-141gb" in measured_ids()
    True
    """
    return tuple(sorted({path.parent.name for path in measurement_files()}))


@lru_cache(maxsize=64)
def _read_cached(path: Path, modified_ns: int) -> Measurement:
    return read_measurement(path)


def load_measurement(
    which: "str | Path | Measurement", *, power_limit_w: float | None = None
) -> Measurement:
    """Load a record: a path, or a spec id for its newest full records merged by section.

    Args:
        which: a record, the path of one, or a spec id.
        power_limit_w: of a spec id, only records at this limit; None: the limit of the newest.

    Raises:
        UnknownNameError: no record has that id.
        MissingDataError: there are records of it, none of them full or at that limit.
        SpecError: a file that is no record.

    >>> load_measurement("h200-sxm-141gb").device.memory_bytes
    150109880320
    >>> load_measurement("h200-sxm")
    Traceback (most recent call last):
    ...
    roofline.errors.UnknownNameError: no measured machine 'h200-sxm'; did you mean h200-sxm-141gb?
    """
    if isinstance(which, Measurement):
        return which
    text = str(which)
    if isinstance(which, Path) or text.endswith(".json") or "/" in text or os.sep in text:
        return read_measurement(which)
    files = measurement_files(text)
    if not files:
        raise unknown_name("measured machine", text, measured_ids())
    records = [(path, _read_cached(path, path.stat().st_mtime_ns)) for path in files]
    return merge_measurements(text, records, power_limit_w=power_limit_w)


def merge_measurements(
    record_id: str,
    records: Iterable[tuple[Path, Measurement]],
    *,
    power_limit_w: float | None = None,
) -> Measurement:
    """Merge records of one spec: each section from the newest that ran it in full.

    Raises:
        MissingDataError: none is full at that power limit.
    """
    full = [(path, record) for path, record in records if record.full_sections]
    if not full:
        raise MissingDataError(
            f"{record_id} has no full record; make one with: roofline measure --full"
        )
    full.sort(key=lambda pair: pair[1].date, reverse=True)
    newest_limit = full[0][1].device.power_limit_w
    limit = newest_limit if power_limit_w is None else power_limit_w
    matching = [pair for pair in full if _same_limit(pair[1].device.power_limit_w, limit)]
    if not matching:
        limits = sorted({str(record.device.power_limit_w) for _, record in full})
        raise MissingDataError(
            f"{record_id} has no full record at {limit} W; there are some at {', '.join(limits)} W"
        )
    rows: dict[str, tuple[Any, ...]] = dict.fromkeys(SECTIONS, ())
    origins: list[Origin] = []
    for path, record in matching:
        for section in record.full_sections:
            if rows[section] and section not in _JOINED:
                continue
            known = {row.identity() for row in rows[section]}
            added = tuple(row for row in record.rows(section) if row.identity() not in known)
            if added:
                rows[section] += added
                origins.append(Origin(section=section, file=path.name, date=record.date))
    newest = matching[0][1]
    listed: dict[str, list[str]] = {}
    for origin in origins:
        listed.setdefault(f"{origin.file} ({origin.date:%Y-%m-%d})", []).append(origin.section)
    assumptions = [
        f"measured {', '.join(sections)} of {record_id}: {file}"
        for file, sections in listed.items()
    ]
    if len(matching) < len(full):
        assumptions.append(f"records at other power limits than {limit} W were left out")
    missing = [name for name in SECTIONS if not rows[name] and name != "link"]
    if missing:
        assumptions.append(f"no full measurement of {', '.join(missing)} on {record_id}")
    return newest.model_copy(
        update={
            **{f"{name}_rows": found for name, found in rows.items()},
            "complete_sections": tuple(name for name in SECTIONS if rows[name]),
            "origins": tuple(origins),
            "assumptions": tuple(assumptions),
            "level": "full",
        }
    )


def _same_limit(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= 0.01 * second  # drivers round a limit to a watt
