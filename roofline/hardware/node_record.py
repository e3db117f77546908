"""Node records: the health of one server at one time, as a file to compare with later ones.

Shapes   one file a node and run, ``{"schema_version": 1, "node": …, "devices": [...],
         "probes": [...]}``; ``topology_text`` and ``nvlink_text`` are what ``nvidia-smi topo -m``
         and ``nvidia-smi nvlink -s`` print, without identifiers.
Units    bytes, seconds, hertz, watts, degrees Celsius; a rate is ``work / median_s`` in the unit
         that ``unit`` names.
Limits   No UUID or serial number; ``node`` is a name that its owner chose.
"""

import json
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from roofline.errors import SpecError
from roofline.files import read_text, write_text
from roofline.hardware.measured_rows import parse_record
from roofline.units import MIB

SCHEMA_VERSION = 1
_LARGEST_FILE = 64 * MIB
_UUID = re.compile(r"\(?\s*(UUID:\s*)?(GPU|MIG)-[0-9a-fA-F-]{20,}\s*\)?")
Text = Annotated[str, Field(max_length=300)]
LongText = Annotated[str, Field(max_length=200_000)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class _Frozen(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class DeviceHealth(_Frozen):
    """State of one device, idle; None where the driver does not tell."""

    index: Annotated[int, Field(ge=0)]
    name: Text
    pci_bus_id: Text | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    max_sm_clock_hz: float | None = None
    max_memory_clock_hz: float | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_lanes: int | None = None
    pcie_lanes_max: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    rows_pending: bool | None = None
    throttle: tuple[Text, ...] = ()


class Probe(_Frozen):
    """One timed thing on one device, or between two; ``work`` in the unit that is counted.

    >>> Probe(name="copy", device=0, unit="B/s", work=8.0, median_s=2.0).rate
    4.0
    """

    name: Text
    device: int | None = None
    peer: int | None = None
    ranks: int | None = None
    size_bytes: int | None = None
    unit: Literal["B/s", "FLOP/s", "s"]
    work: Positive
    median_s: Positive
    spread: NotNegative = 0.0
    times_s: tuple[NotNegative, ...] = ()
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: tuple[Text, ...] = ()
    flags: tuple[Text, ...] = ()

    @property
    def rate(self) -> float:
        """Work a second; for ``unit`` "s" the time of one."""
        return self.median_s / self.work if self.unit == "s" else self.work / self.median_s

    @property
    def key(self) -> tuple[str, int | None, int | None, int | None, int | None]:
        """What was probed, without what came out."""
        return (self.name, self.device, self.peer, self.ranks, self.size_bytes)

    def label(self) -> str:
        """Name for a reader.

        >>> Probe(name="p2p", device=0, peer=1, unit="B/s", work=1.0, median_s=1.0).label()
        'p2p 0→1'
        """
        where = "" if self.device is None else f" {self.device}"
        where += "" if self.peer is None else f"→{self.peer}"
        where += "" if self.ranks is None else f" {self.ranks} ranks"
        if self.name == "all_reduce" and self.size_bytes:
            where += f" {self.size_bytes / MIB:g} MiB"
        return f"{self.name}{where}"


class NodeRecord(_Frozen):
    """Health of one node at one time."""

    schema_version: Literal[1] = 1
    node: Text
    date: AwareDatetime
    command: Text = ""
    software: dict[Text, Text] = Field(default_factory=dict)
    runtime_path: dict[Text, Text] = Field(default_factory=dict)
    """Which libraries and kernels the probes went through, and settings that change it."""
    host: dict[Text, Text] = Field(default_factory=dict)
    devices: tuple[DeviceHealth, ...] = ()
    peer_access: tuple[tuple[int, int], ...] = ()
    topology_text: LongText = ""
    nvlink_text: LongText = ""
    probes: tuple[Probe, ...] = ()
    duration_s: NotNegative = 0.0
    warnings: tuple[Text, ...] = ()


def without_identifiers(text: str) -> str:
    """Text of a tool without the identifiers of its devices.

    >>> without_identifiers("GPU 0: NVIDIA H200 (UUID: GPU-43892aed-94c6-acaf-5490-3ee50349ef57)")
    'GPU 0: NVIDIA H200 '
    """
    return _UUID.sub("", text)


def read_node_record(path: str | Path) -> NodeRecord:
    """Read one record of a node.

    Raises:
        SpecError: no such file, too large, cut, or no record of a node.
    """
    path = Path(path)
    return parse_node_record(_text(path), path.name)


def read_merged(path: str | Path) -> tuple[NodeRecord, ...]:
    """Read the records of many nodes from one JSON Lines file.

    Raises:
        SpecError: as ``read_node_record``; the message names the line.
    """
    path = Path(path)
    lines = enumerate(_text(path).splitlines(), 1)
    found = tuple(parse_node_record(line, f"{path.name}:{n}") for n, line in lines if line.strip())
    if not found:
        raise SpecError(f"{path.name}: no record in it")
    return found


def _text(path: Path) -> str:
    return read_text(path, most_bytes=_LARGEST_FILE, what="a node record")


def parse_node_record(text: str, name: str = "record") -> NodeRecord:
    """Read a record of a node from text.

    Raises:
        SpecError: as ``read_node_record``.

    >>> parse_node_record('{"node": "a"}', "a.json")
    Traceback (most recent call last):
    ...
    roofline.errors.SpecError: a.json: no node record: date: Field required
    """
    return parse_record(NodeRecord, text, name, "node record")


def save_node_record(record: NodeRecord, path: str | Path) -> Path:
    """Write a record to a file, or under its node and date into a folder.

    Raises:
        InputError: it cannot be written there.
    """
    target = Path(path)
    if target.suffix != ".json":
        stamp = record.date.strftime("%Y-%m-%dT%H%M%SZ")
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", record.node).strip("-.") or "node"
        target = target / f"{slug}-{stamp}.json"
    checked = parse_node_record(record.model_dump_json(exclude_defaults=True), target.name)
    data = checked.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps({"schema_version": SCHEMA_VERSION, **data}, indent=1, ensure_ascii=False)
    return write_text(target, text + "\n", make_folder=True)
