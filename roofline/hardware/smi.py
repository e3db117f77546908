"""nvidia-smi: what its query prints, as the state of each device; text only, no NVML.

Units    nvidia-smi prints MiB, MHz, W and °C (``--format=csv,noheader,nounits``); the result is
         in bytes, hertz, watts and degrees Celsius.
Sources  [1] NVIDIA, nvidia-smi manual, ``--help-query-gpu`` (field names; driver 535 renamed
             ``clocks_throttle_reasons`` to ``clocks_event_reasons``).
         [2] NVIDIA, NVML API reference, nvmlClocksEventReasons (bits of the mask).
"""

import csv
import io
from typing import Any

from roofline.errors import InputError
from roofline.hardware.node_record import DeviceHealth
from roofline.units import MIB

_MHZ = 1e6

# our field, the query's name, and how its text is read
_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("index", "index", "count"),
    ("name", "name", "text"),
    ("pci_bus_id", "pci.bus_id", "text"),
    ("memory_bytes", "memory.total", "mib"),
    ("memory_used_bytes", "memory.used", "mib"),
    ("temperature_c", "temperature.gpu", "number"),
    ("memory_temperature_c", "temperature.memory", "number"),
    ("power_w", "power.draw", "number"),
    ("power_limit_w", "power.limit", "number"),
    ("sm_clock_hz", "clocks.sm", "mhz"),
    ("memory_clock_hz", "clocks.mem", "mhz"),
    ("max_sm_clock_hz", "clocks.max.sm", "mhz"),
    ("max_memory_clock_hz", "clocks.max.mem", "mhz"),
    ("pcie_generation", "pcie.link.gen.current", "count"),
    ("pcie_generation_max", "pcie.link.gen.max", "count"),
    ("pcie_lanes", "pcie.link.width.current", "count"),
    ("pcie_lanes_max", "pcie.link.width.max", "count"),
    ("ecc_corrected", "ecc.errors.corrected.volatile.total", "count"),
    ("ecc_uncorrected", "ecc.errors.uncorrected.volatile.total", "count"),
    ("rows_pending", "retired_pages.pending", "yes"),
    ("throttle", "clocks_event_reasons.active", "mask"),
    ("driver", "driver_version", "text"),
)
QUERY_FIELDS = tuple(query for _, query, _ in _FIELDS)
OLDER_NAMES = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}

# bits of the mask [2]; "idle" is no reason to worry
_REASONS = {
    0x1: "idle", 0x2: "application clocks", 0x4: "software power cap", 0x8: "hardware slowdown",
    0x10: "sync boost", 0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown",
    0x80: "hardware power brake", 0x100: "display clocks",
}  # fmt: skip
FAULT_REASONS = (
    "hardware slowdown", "software thermal slowdown", "hardware thermal slowdown",
    "hardware power brake",
)  # fmt: skip


def parse_query(text: str, fields: tuple[str, ...] = QUERY_FIELDS) -> tuple[DeviceHealth, ...]:
    """Read ``nvidia-smi --query-gpu=… --format=csv,noheader,nounits``.

    Args:
        text: what it printed.
        fields: names of the columns, as they were asked for.

    Raises:
        InputError: rows of another width.

    >>> device, = parse_query("0, NVIDIA H200, 143771, 1980", ("index", "name", "memory.total",
    ...                       "clocks.max.sm"))
    >>> device.memory_bytes, device.max_sm_clock_hz, device.throttle
    (150754820096, 1980000000.0, ())
    """
    readers = {query: (ours, kind) for ours, query, kind in _FIELDS}
    readers |= {old: readers[new] for new, old in OLDER_NAMES.items()}
    devices: list[DeviceHealth] = []
    for row in csv.reader(io.StringIO(text.strip())):
        if len(row) != len(fields):
            raise InputError(
                f"nvidia-smi printed {len(row)} columns where {len(fields)} were asked for: "
                f"{', '.join(row)[:80]!r}"
            )
        values: dict[str, Any] = {}
        for query, cell in zip(fields, row, strict=True):
            ours, kind = readers.get(query, ("", ""))
            if ours and ours != "driver":
                values[ours] = _read(cell.strip(), kind)
        if values.get("index") is None:
            values["index"] = len(devices)
        values["name"] = values.get("name") or "unknown"
        values["throttle"] = values.get("throttle") or ()
        devices.append(DeviceHealth(**values))
    return tuple(devices)


def _read(cell: str, kind: str) -> Any:
    if not cell or cell.startswith("[") or cell in ("N/A", "Not Supported"):
        return None
    if kind == "text":
        return cell
    if kind == "yes":
        return cell.lower() == "yes"
    try:
        if kind == "mask":
            return reasons_of(int(cell, 16))
        number = float(cell)
    except ValueError:
        return None
    match kind:
        case "count":
            return int(number)
        case "mib":
            return int(number * MIB)
        case "mhz":
            return number * _MHZ
        case _:
            return number


def reasons_of(mask: int) -> tuple[str, ...]:
    """Names of the reasons in a mask of NVML, idle left out.

    >>> reasons_of(0x5), reasons_of(0x40)
    (('software power cap',), ('hardware thermal slowdown',))
    """
    return tuple(name for bit, name in _REASONS.items() if mask & bit and name != "idle")
