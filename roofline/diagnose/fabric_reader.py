"""Fabric reader: texts of nvidia-smi, NCCL and ibstat, in any order, to a node's fabric."""

import re
from collections.abc import Sequence
from pathlib import Path

from roofline.diagnose.fabric import Fabric
from roofline.diagnose.network import (
    NcclPaths,
    has_ibstat,
    has_nccl_log,
    parse_ibstat,
    parse_nccl_log,
    port_faults,
)
from roofline.diagnose.nvlink import (
    LinkHealth,
    find_variant,
    has_nvlinks,
    link_health,
    parse_nvlinks,
)
from roofline.diagnose.topology import Topology, has_topology, parse_topology
from roofline.errors import InputError
from roofline.files import read_text
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.units import GB, MIB

_BUS_ID = re.compile(r"\b(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]\b")
_LARGEST_TEXT = 8 * MIB
_ASSUMED_LINK = 25 * GB
_ASSUMED_PCIE = 31.5 * GB


def read_fabric(*sources: "str | Path", accelerator: "str | Accelerator | None" = None) -> Fabric:
    """Read files or texts: topo -m, nvlink -s, NCCL's log, ibstat, PCI bus ids, in any order.

    Args:
        sources: paths, or the texts themselves; one may hold several of them.
        accelerator: the variant; found by the device's name when left out.

    Raises:
        InputError: nothing in them is known, or one of them is cut.
        UnknownNameError: no such accelerator.
    """
    text = "\n".join(_text(source) for source in sources)
    spec = load_accelerator(accelerator) if accelerator is not None else None
    topology = parse_topology(text) if has_topology(text) else None
    links = parse_nvlinks(text) if has_nvlinks(text) else ()
    nccl = parse_nccl_log(text) if has_nccl_log(text) else None
    ports = parse_ibstat(text) if has_ibstat(text) else ()
    bus_ids = tuple(dict.fromkeys(_BUS_ID.findall(text)))
    if topology is None and not links and nccl is None and not ports:
        raise InputError(
            "no topology in it; give what 'nvidia-smi topo -m', 'nvidia-smi nvlink -s', ibstat or "
            "NCCL_DEBUG=INFO prints"
        )
    spec = spec or next((s for s in (find_variant(gpu.name) for gpu in links) if s), None)
    health = tuple(link_health(gpu, spec, links) for gpu in links)
    assumptions: list[str] = []
    nominal = _nominal(health, spec, assumptions, topology)
    pcie = spec.pcie.bytes_per_s if spec is not None else None
    if pcie is None:
        pcie = _ASSUMED_PCIE
        assumptions.append("PCIe rate not known: 31.5 GB/s a direction (4.0 x16) is used")
    faults = [f"GPU {state.gpu}: {state.reason}" for state in health if state.fault]
    faults += port_faults(ports)
    notes = [f"GPU {s.gpu}: {s.reason}" for s in health if not s.fault and s.active < s.listed]
    notes += nccl.notes if nccl else ()
    notes += _topology_notes(topology, nccl)
    return Fabric(
        topology, links, health, nccl, ports, bus_ids, spec.id if spec else None, nominal, pcie,
        tuple(faults), tuple(notes), tuple(assumptions),
    )  # fmt: skip


def _nominal(
    health: Sequence[LinkHealth],
    spec: Accelerator | None,
    assumptions: list[str],
    topology: Topology | None,
) -> float:
    for state in health:
        if state.active:
            return state.limit_bytes_per_s / state.active
    listed = re.search(r"\((\d+) links\)", (spec.link.kind or "") if spec else "")
    if spec is not None and spec.link.bytes_per_s and listed is not None:
        return spec.link.bytes_per_s / int(listed[1])
    if topology is not None and any(
        cell.startswith("NV") for row in topology.cells for cell in row
    ):
        assumptions.append(
            "rate of one NVLink not known: 25 GB/s a direction is used; give nvlink -s or the "
            "accelerator"
        )
    return _ASSUMED_LINK


def _topology_notes(topology: Topology | None, nccl: NcclPaths | None) -> list[str]:
    if topology is None:
        return []
    notes = []
    n = len(topology.gpus)
    bonded = [(i, j) for i in range(n) for j in range(i) if topology.nvlinks(i, j)]
    counts = {topology.nvlinks(i, j) for i, j in bonded}
    if len(counts) > 1 and len(bonded) == n * (n - 1) // 2:
        notes.append(f"pairs have different bonds ({', '.join(f'NV{c}' for c in sorted(counts))})")
    if nccl is not None and nccl.host_pairs:
        wrong = [p for p in nccl.host_pairs if max(p) < n and topology.nvlinks(*p)]
        if wrong:
            pairs = ", ".join(f"{a}→{b}" for a, b in wrong)
            notes.append(f"NCCL goes through host memory between {pairs}, which NVLinks join")
    sockets = {node for node in topology.numa[:n] if node.isdigit()}
    if len(sockets) > 1:
        notes.append(
            f"GPUs hang on NUMA nodes {', '.join(sorted(sockets))}: pin each process to its GPU's "
            "node (numactl --cpunodebind --membind), or host copies lose a factor of three"
        )
    return notes


def _text(source: "str | Path") -> str:
    if isinstance(source, str) and ("\n" in source or len(source) > 400):
        return source
    return read_text(Path(source), most_bytes=_LARGEST_TEXT, what="a topology", errors="replace")
