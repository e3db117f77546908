"""Baselines: a node's record against its own earlier one and against its fleet.

    own       |now / earlier − 1| above the larger of 5 % and the scatter of both records
    fleet     |value − median| above 5 robust deviations and above 5 % of the median,
              robust deviation = 1.4826 · MAD

Units    as in ``roofline.hardware.node_record``.
Limits   A fleet needs three nodes; with fewer a difference does not say which one is sick.
Sources  [1] Leys et al. 2013, J. Exp. Soc. Psychol. 49(4): median absolute deviation, 1.4826.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline.diagnose.node_faults import Finding, own_faults
from roofline.diagnose.nvlink import has_nvlinks, parse_nvlinks
from roofline.errors import InputError
from roofline.hardware.node_record import NodeRecord, Probe, read_merged, read_node_record
from roofline.units import show

if TYPE_CHECKING:
    import pandas as pd

_LEAST_CHANGE = 0.05
_LEAST_LATENCY_CHANGE = 0.25
"""Host times scatter far more than rates."""
_DEVIATIONS = 5.0
_MAD_TO_SIGMA = 1.4826
_LEAST_FLEET = 3


@dataclass(frozen=True)
class BaselineComparison:
    """What a comparison found, node by node."""

    nodes: tuple[str, ...]
    findings: tuple[Finding, ...]
    compared: int
    notes: tuple[str, ...] = ()

    @property
    def sick_nodes(self) -> tuple[str, ...]:
        """Nodes with a fault or something slower, the worst first."""
        bad = [f for f in self.findings if f.severity in ("fault", "slower")]
        weight: dict[str, float] = {}
        for finding in bad:
            extra = abs(finding.change or 0.0) + (10.0 if finding.severity == "fault" else 1.0)
            weight[finding.node] = weight.get(finding.node, 0.0) + extra
        return tuple(sorted(weight, key=lambda node: -weight[node]))

    @property
    def verdict(self) -> str:
        """One sentence."""
        sick = self.sick_nodes
        if not sick:
            return f"no fault in {self.compared:,} compared values of {len(self.nodes)} node(s)"
        worst = next(f for f in self.findings if f.node == sick[0] and f.severity != "changed")
        return f"node {sick[0]} is sick: {worst.text}"

    def to_dict(self) -> dict[str, Any]:
        """In base units."""
        return {
            "nodes": list(self.nodes),
            "sick_nodes": list(self.sick_nodes),
            "verdict": self.verdict,
            "compared": self.compared,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
        }

    def to_frame(self) -> "pd.DataFrame":
        """One row per finding."""
        import pandas as pd

        return pd.DataFrame([asdict(finding) for finding in self.findings])


def read_nodes(sources: "Iterable[str | Path | NodeRecord]") -> tuple[NodeRecord, ...]:
    """Read records of nodes: files, merged files, folders of files, or records.

    Raises:
        SpecError: a file is no record.
        InputError: a folder without one.
    """
    found: list[NodeRecord] = []
    for source in sources:
        if isinstance(source, NodeRecord):
            found.append(source)
            continue
        path = Path(source)
        if path.is_dir():
            files = sorted(file for file in path.glob("*.json") if not file.name.startswith("."))
            if not files:
                raise InputError(f"no .json file in the folder {path}")
            found.extend(read_node_record(file) for file in files)
        elif path.suffix == ".jsonl":
            found.extend(read_merged(path))
        else:
            found.append(read_node_record(path))
    return tuple(found)


def compare_baselines(
    current: "str | Path | NodeRecord | Sequence[str | Path | NodeRecord]",
    *,
    earlier: "str | Path | NodeRecord | None" = None,
    fleet: "Sequence[str | Path | NodeRecord]" = (),
) -> BaselineComparison:
    """Compare records of nodes with themselves, with an earlier one and with a fleet.

    Args:
        current: one record or several; several are each other's fleet.
        earlier: an earlier record of the same node; only with one ``current``.
        fleet: records of other nodes.

    Raises:
        InputError: nothing to compare, or ``earlier`` with several nodes.
        SpecError: a file is no record.
    """
    single = isinstance(current, (str, Path, NodeRecord))
    own = read_nodes([current] if single else list(current))  # type: ignore[arg-type, list-item]
    if not own:
        raise InputError("no record of a node to compare")
    if earlier is not None and len(own) != 1:
        raise InputError("an earlier record is compared with one node; give that node alone")
    newest = _newest(own)
    others = _newest(read_nodes(fleet))
    findings: list[Finding] = []
    notes: list[str] = []
    compared = 0
    for record in newest:
        faults, checked = own_faults(record)
        findings += faults
        compared += checked
    if earlier is not None:
        before = read_nodes([earlier])[0]
        if before.node != newest[0].node:
            notes.append(f"the earlier record is of node {before.node}, not {newest[0].node}")
        changes, checked = _changes(newest[0], before)
        findings += changes
        compared += checked
    everyone = _newest((*others, *newest))
    if len(everyone) >= _LEAST_FLEET:
        outliers, checked = _outliers(everyone)
        judged = {record.node for record in newest}
        findings += [finding for finding in outliers if finding.node in judged]
        compared += checked
    elif len(everyone) > 1:
        notes.append(f"{len(everyone)} nodes are no fleet: a median needs {_LEAST_FLEET}")
    order = {"fault": 0, "slower": 1, "faster": 2, "changed": 3}
    findings.sort(key=lambda f: (order[f.severity], -abs(f.change or 0.0)))
    return BaselineComparison(
        tuple(record.node for record in newest), tuple(findings), compared, tuple(notes)
    )


def _newest(records: Sequence[NodeRecord]) -> tuple[NodeRecord, ...]:
    by_node: dict[str, NodeRecord] = {}
    for record in sorted(records, key=lambda r: r.date):
        by_node[record.node] = record
    return tuple(by_node.values())


def merge_nodes(records: Sequence[NodeRecord]) -> str:
    """Write many nodes as one JSON Lines text, one record a line.

    >>> merge_nodes([])
    ''
    """
    lines = [
        json.dumps(record.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
        for record in records
    ]
    return "".join(f"{line}\n" for line in lines)


def _compared_values(record: NodeRecord) -> dict[tuple[Any, ...], tuple[str, float, float, str]]:
    """Every number that is compared: its label, value, scatter and unit."""
    values: dict[tuple[Any, ...], tuple[str, float, float, str]] = {}
    for probe in record.probes:
        values[probe.key] = (probe.label(), probe.rate, probe.spread, probe.unit)
        if probe.sm_clock_hz:
            key = ("clock", probe.device, probe.name)
            values[key] = (f"SM clock {probe.device} in {probe.name}", probe.sm_clock_hz, 0.0, "Hz")
    if has_nvlinks(record.nvlink_text):
        for gpu in parse_nvlinks(record.nvlink_text):
            values["nvlink", gpu.gpu] = (f"NVLink {gpu.gpu}", gpu.bytes_per_s, 0.0, "B/s")
    return values


def _tolerance(unit: str, *spreads: float) -> float:
    least = _LEAST_LATENCY_CHANGE if unit == "s" else _LEAST_CHANGE
    return float(np.maximum(least, np.max(np.array(spreads))))


def _changes(now: NodeRecord, before: NodeRecord) -> tuple[list[Finding], int]:
    found: list[Finding] = []
    mine, theirs = _compared_values(now), _compared_values(before)
    shared = [key for key in mine if key in theirs]
    for key in shared:
        label, value, spread, unit = mine[key]
        _, reference, other_spread, _ = theirs[key]
        change = value / reference - 1 if reference else 0.0
        if abs(change) <= _tolerance(unit, spread, other_spread):
            continue
        found.append(
            _changed(now.node, label, value, reference, change, unit, "its earlier record")
        )
    for name in sorted({*now.software, *before.software}):
        old, new = before.software.get(name), now.software.get(name)
        if old != new and old is not None and new is not None:
            found.append(
                Finding(now.node, "software", name, new, old, None, "its earlier record", "changed",
                        f"{name} {old} → {new}", "keep in mind when rates changed too")
            )  # fmt: skip
    for key in theirs:
        if key not in mine:
            label, reference, _, unit = theirs[key]
            found.append(
                Finding(now.node, "missing", label, None, reference, -1.0, "its earlier record",
                        "fault", f"{label} ({show(reference, unit)} before) is not there any more",
                        "see the record's warnings: the probe failed or the device is gone")
            )  # fmt: skip
    return found, len(shared)


def _changed(
    node: str, label: str, value: float, reference: float, change: float, unit: str, against: str
) -> Finding:
    worse = change > 0 if unit == "s" else change < 0
    return Finding(
        node,
        label.split(" ")[0],
        label,
        value,
        reference,
        change,
        against,
        "slower" if worse else "faster",
        f"{label}: {show(value, unit)}, {100 * change:+.0f} % against {show(reference, unit)} of "
        f"{against}",
        _step_for(label),
    )


def _step_for(label: str) -> str:
    if label.startswith(("p2p", "all_reduce", "NVLink")):
        return "read nvidia-smi nvlink -s and -e, topo -m and dmesg (Xid 74)"
    if label.startswith(("host_to_device", "device_to_host")):
        return "check PCIe lanes and generation under load, NUMA binding and IOMMU"
    if label.startswith(("matmul", "attention", "SM clock")):
        return "look at clocks, power limit and throttle reasons under load"
    if label.startswith("launch"):
        return "look at the CPU: governor, other processes, NUMA binding"
    return "repeat the probe alone on the node; compare clocks and memory clocks"


def _outliers(records: Sequence[NodeRecord]) -> tuple[list[Finding], int]:
    found: list[Finding] = []
    compared = 0
    tables = [(record, _compared_values(record)) for record in records]
    keys = {key: None for _, table in tables for key in table}
    for key in keys:
        rows = [(record, table[key]) for record, table in tables if key in table]
        if len(rows) < _LEAST_FLEET:
            continue
        values = np.array([row[1][1] for row in rows])
        median = float(np.median(values))
        deviation = _MAD_TO_SIGMA * float(np.median(np.abs(values - median)))
        compared += len(rows)
        for record, (label, value, _, unit) in rows:
            change = value / median - 1 if median else 0.0
            far = abs(value - median) > _DEVIATIONS * deviation
            if far and abs(change) > _tolerance(unit, 0.0):
                found.append(
                    _changed(record.node, label, value, median, change, unit, "the fleet's median")
                )
    for name in sorted({name for record in records for name in record.software}):
        versions = [record.software.get(name, "none") for record in records]
        usual = max(set(versions), key=versions.count)
        for record, version in zip(records, versions, strict=True):
            if version != usual:
                found.append(
                    Finding(record.node, "software", name, version, usual, None, "the fleet",
                            "changed", f"{name} is {version}, {usual} on most nodes",
                            "install the fleet's version")
                )  # fmt: skip
    return found, compared


def numa_slowdown(near: Probe, far: Probe) -> float:
    """How much slower a host copy is from the far socket's memory than from the near one's.

    >>> near, far = (Probe(name="host_to_device", device=0, unit="B/s", work=rate, median_s=1.0)
    ...              for rate in (12150.7e6, 3783.4e6))
    >>> round(numa_slowdown(near, far), 2)  # a P100 on socket 0, memory of socket 1
    3.21
    """
    return near.rate / far.rate
