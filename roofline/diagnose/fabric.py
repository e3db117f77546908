"""Fabric: everything that is known of a node's links, read together, and what to do with it.

    predicted all-reduce   ring over the group: 2(n − 1)/n · bytes / rate + 2(n − 1) · latency

Units    bytes, seconds, bytes per second and direction.
Limits   Rates are nominal (links that are up × nominal rate of one), so times are the least that
         the link allows; a PCIe path has the slot's nominal rate, whatever it crosses.
Sources  [1] Patarasuk & Yuan 2009, JPDC 69(2) (ring).
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofline.diagnose.mapping import Mapping, best_mapping
from roofline.diagnose.network import (
    NcclPaths,
    Port,
    has_ibstat,
    has_nccl_log,
    parse_ibstat,
    parse_nccl_log,
    port_faults,
)
from roofline.diagnose.nvlink import (
    GpuLinks,
    LinkHealth,
    find_variant,
    has_nvlinks,
    link_health,
    parse_nvlinks,
)
from roofline.diagnose.topology import (
    RANK,
    Topology,
    gpudirect,
    has_topology,
    parse_topology,
    path_between,
)
from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.timing.collectives import LinkTerms, ring_all_reduce_s
from roofline.units import GB, MIB

if TYPE_CHECKING:
    import pandas as pd

_BUS_ID = re.compile(r"\b(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]\b")
_LARGEST_TEXT = 8 * MIB
_ASSUMED_LINK = 25 * GB
_ASSUMED_PCIE = 31.5 * GB
_TIE = 1e-6
"""Paths of one nominal rate rank by how much they cross: a millionth a level."""
MESSAGE_BYTES = (2**20, 2**26, 2**30)


@dataclass(frozen=True)
class Group:
    """One tensor-parallel group and its predicted all-reduces."""

    devices: tuple[int, ...]
    bytes_per_s: float
    all_reduce_s: dict[int, float]
    """Message bytes to seconds."""


@dataclass(frozen=True)
class Fabric:
    """The links of one node."""

    topology: Topology | None
    links: tuple[GpuLinks, ...]
    health: tuple[LinkHealth, ...]
    nccl: NcclPaths | None
    ports: tuple[Port, ...]
    bus_ids: tuple[str, ...]
    accelerator: str | None
    nominal_link_bytes_per_s: float
    pcie_bytes_per_s: float
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]

    @property
    def n_gpus(self) -> int:
        """GPUs of the node."""
        return len(self.topology.gpus) if self.topology else len(self.links)

    def rate(self, first: int, second: int) -> float:
        """Nominal rate between two GPUs in one direction."""
        if self.topology is None:
            limits = [self._limit(first), self._limit(second)]
            return min(limits) if all(limits) else self.pcie_bytes_per_s
        links = self.topology.nvlinks(first, second)
        if links:
            bonded = links * self.nominal_link_bytes_per_s
            limits = [limit for limit in (self._limit(first), self._limit(second)) if limit]
            return min([bonded, *limits])
        level = RANK.get(self.topology.connection(first, second), len(RANK))
        return self.pcie_bytes_per_s * (1 - _TIE * level)

    def _limit(self, gpu: int) -> float:
        own = [state for state in self.health if state.gpu == gpu]
        return own[0].limit_bytes_per_s if own else 0.0

    def mapping(self, tp: int) -> Mapping:
        """Best groups of ``tp`` GPUs and order of stages.

        Raises:
            InputError: tp does not divide the GPUs.
        """
        return best_mapping(self.n_gpus, tp, self.rate)

    def groups(self, tp: int, latency_s: float = 0.0) -> tuple[Group, ...]:
        """Groups of the best mapping with their predicted all-reduces."""
        mapping = self.mapping(tp)
        return tuple(
            Group(
                devices,
                rate,
                {
                    size: float(ring_all_reduce_s(float(size), tp, LinkTerms(rate, latency_s)))
                    for size in MESSAGE_BYTES
                }
                if tp > 1
                else {},
            )
            for devices, rate in zip(mapping.groups, mapping.group_bytes_per_s, strict=True)
        )

    def pairs(self) -> list[dict[str, Any]]:
        """Every pair of GPUs with its path."""
        found = []
        for i in range(self.n_gpus):
            for j in range(i + 1, self.n_gpus):
                path = path_between(self.topology, i, j) if self.topology else None
                found.append(
                    {
                        "first": i,
                        "second": j,
                        "connection": path.connection if path else "NVLink",
                        "transport": path.transport if path else "peer to peer over NVLink",
                        "same_root_complex": path.same_root_complex if path else None,
                        "bytes_per_s": self.rate(i, j),
                    }
                )
        return found

    def to_dict(self, tp: int | None = None) -> dict[str, Any]:
        """Everything in base units; ``tp`` adds the mapping for it."""
        topology = self.topology
        answer: dict[str, Any] = {
            "gpus": self.n_gpus,
            "accelerator": self.accelerator,
            "pairs": self.pairs(),
            "nvlink": [asdict(state) for state in self.health],
            "gpudirect": [gpudirect(topology, i) for i in range(self.n_gpus)] if topology else [],
            "numa": list(topology.numa) if topology else [],
            "bus_ids": list(self.bus_ids),
            "nccl": asdict(self.nccl) if self.nccl else None,
            "adapters": [asdict(port) for port in self.ports],
            "faults": list(self.faults),
            "notes": list(self.notes),
            "assumptions": list(self.assumptions),
        }
        if tp is not None:
            mapping = self.mapping(tp)
            answer["mapping"] = {
                "tp": tp,
                "pp": len(mapping.groups),
                "rank_to_device": list(mapping.devices),
                "paste": mapping.paste,
                "boundary_bytes_per_s": list(mapping.boundary_bytes_per_s),
                "groups": [
                    {
                        "devices": list(group.devices),
                        "bytes_per_s": group.bytes_per_s if tp > 1 else None,
                        "all_reduce_s": {str(k): v for k, v in group.all_reduce_s.items()},
                    }
                    for group in self.groups(tp)
                ],
            }
        return answer

    def to_frame(self) -> "pd.DataFrame":
        """One row per pair of GPUs."""
        import pandas as pd

        return pd.DataFrame(self.pairs())


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
    path = Path(source)
    try:
        if path.stat().st_size > _LARGEST_TEXT:
            raise InputError(f"{path.name}: larger than {_LARGEST_TEXT // MIB} MiB; no topology")
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or "no path"
        raise InputError(f"{str(source)[:100]!r}: {reason}; give a file or the text") from None
