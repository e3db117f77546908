"""Node faults: what one record shows alone, without a second one to compare it with.

Missing links, uncorrected memory errors, fewer PCIe lanes, a thermal or power brake, a clock under
load far below the maximum, heat.

Units    as in ``roofline.hardware.node_record``.
"""

from dataclasses import dataclass

from roofline.diagnose.fabric_reader import read_fabric
from roofline.diagnose.nvlink import has_nvlinks, link_health, parse_nvlinks
from roofline.diagnose.topology import has_topology
from roofline.hardware.node_record import NodeRecord
from roofline.hardware.smi import FAULT_REASONS
from roofline.units import show

_LOW_CLOCK = 0.65
"""Below this share of the maximum clock under a matmul load something holds the clock down: a
700 W limit brings an H200 to 0.73."""
_HOT_C = 88.0
_LEAST_OF_LINK = 0.6
"""Healthy copies reach 0.83 to 0.91 of the links (H100, H200, A100; a bridged pair 0.86)."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a node, or has changed."""

    node: str
    what: str
    where: str
    value: float | str | None
    reference: float | str | None
    change: float | None
    against: str
    severity: str
    """``fault``, ``slower``, ``faster`` or ``changed``."""
    text: str
    next_step: str


def _fault(
    record: NodeRecord,
    what: str,
    where: str,
    text: str,
    step: str,
    *,
    value: float | str | None = None,
    reference: float | str | None = None,
    change: float | None = None,
) -> Finding:
    return Finding(
        record.node, what, where, value, reference, change, "itself", "fault", text, step
    )


def own_faults(record: NodeRecord) -> tuple[list[Finding], int]:
    """Faults of one record, and how many values were looked at."""
    found: list[Finding] = []
    checked = 0
    if has_nvlinks(record.nvlink_text):
        gpus = parse_nvlinks(record.nvlink_text)
        for gpu in gpus:
            state = link_health(gpu, peers=gpus)
            checked += 1
            if state.fault:
                found.append(
                    _fault(
                        record, "NVLink", f"GPU {gpu.gpu}", f"GPU {gpu.gpu}: {state.reason}",
                        "reseat or reset the GPU (nvidia-smi -r), read nvidia-smi nvlink -e and "
                        "dmesg for Xid 74; open a case with the vendor when it stays",
                        value=float(state.active), reference=float(state.expected or state.listed),
                        change=state.share - 1,
                    )
                )  # fmt: skip
    for device in record.devices:
        checked += 4
        where = f"GPU {device.index}"
        if device.ecc_uncorrected:
            found.append(
                _fault(
                    record, "ECC", where,
                    f"{where}: {device.ecc_uncorrected} uncorrected memory errors",
                    "drain the node, reset the GPU and watch; replace it when they return",
                    value=float(device.ecc_uncorrected), reference=0.0,
                )
            )  # fmt: skip
        if device.rows_pending:
            found.append(
                _fault(record, "ECC", where, f"{where}: memory rows wait to be remapped",
                       "reset the GPU to remap them")
            )  # fmt: skip
        narrow = device.pcie_lanes and device.pcie_lanes_max
        if narrow and device.pcie_lanes < device.pcie_lanes_max:  # type: ignore[operator]
            found.append(
                _fault(
                    record, "PCIe", where,
                    f"{where}: PCIe runs {device.pcie_lanes} of {device.pcie_lanes_max} lanes",
                    "reseat the card or the riser; check the slot",
                    value=float(device.pcie_lanes or 0),
                    reference=float(device.pcie_lanes_max or 0),
                )
            )  # fmt: skip
        bad = [reason for reason in device.throttle if reason in FAULT_REASONS]
        if bad:
            found.append(_throttled(record, where, bad, "idle"))
    slow, pairs = _slow_pairs(record)
    found += slow
    checked += pairs
    maximum = {device.index: device.max_sm_clock_hz for device in record.devices}
    for probe in record.probes:
        bad = [reason for reason in probe.throttle if reason in FAULT_REASONS]
        where = f"GPU {probe.device}"
        if bad:
            found.append(_throttled(record, where, bad, f"during {probe.name}"))
        top = maximum.get(probe.device if probe.device is not None else -1)
        if top and probe.sm_clock_hz:
            checked += 1
            share = probe.sm_clock_hz / top
            if share < _LOW_CLOCK:
                found.append(
                    _fault(
                        record, "clock", where,
                        f"{where}: SM clock {show(probe.sm_clock_hz, 'Hz')} under load, "
                        f"{100 * share:.0f} % of {show(top, 'Hz')}",
                        "look at nvidia-smi -q -d PERFORMANCE,CLOCK,POWER: power limit, locked "
                        "clocks (nvidia-smi -rgc), cooling",
                        value=probe.sm_clock_hz, reference=top, change=share - 1,
                    )
                )  # fmt: skip
        if probe.temperature_c is not None and probe.temperature_c >= _HOT_C:
            found.append(
                _fault(
                    record, "temperature", where,
                    f"{where}: {probe.temperature_c:.0f} °C during {probe.name}",
                    "check fans, inlet temperature and the heat sink",
                    value=probe.temperature_c, reference=_HOT_C,
                )
            )  # fmt: skip
    return found, checked


def _throttled(record: NodeRecord, where: str, reasons: list[str], when: str) -> Finding:
    return _fault(
        record, "throttle", where, f"{where}: {', '.join(reasons)} {when}",
        "thermal: fans and inlet temperature; power brake: power supply and rack limit",
        value=", ".join(reasons),
    )  # fmt: skip


def _slow_pairs(record: NodeRecord) -> tuple[list[Finding], int]:
    """Peer-to-peer rates far below what the bond between the two devices gives."""
    if not (has_topology(record.topology_text) and has_nvlinks(record.nvlink_text)):
        return [], 0
    fabric = read_fabric(f"{record.topology_text}\n{record.nvlink_text}\n")
    found = []
    rows = [p for p in record.probes if p.name == "p2p" and p.peer is not None]
    for probe in rows:
        first, second = probe.device or 0, probe.peer or 0
        if fabric.topology is None or max(first, second) >= fabric.n_gpus:
            continue
        if not fabric.topology.nvlinks(first, second):
            continue
        limit = fabric.rate(first, second)
        share = probe.rate / limit
        if share < _LEAST_OF_LINK:
            found.append(
                _fault(
                    record, "p2p", f"GPU {first}→{second}",
                    f"{probe.label()}: {show(probe.rate, 'B/s')}, {100 * share:.0f} % of its "
                    "links' "
                    f"{show(limit, 'B/s')}",
                    "check that peer access is on (ACS, IOMMU, container) and the links' errors",
                    value=probe.rate, reference=limit, change=share - 1,
                )
            )  # fmt: skip
    return found, len(rows)
