"""Fabric: everything that is known of a node's links, read together, and what to do with it.

    predicted all-reduce   ring over the group: 2(n − 1)/n · bytes / rate + 2(n − 1) · latency
    expected               the best algorithm at the fraction of the rate that such links reach

Units    bytes, seconds, bytes per second and direction.
Limits   Rates are nominal (links that are up × nominal rate of one), so times are the least that
         the link allows; a PCIe path has the slot's nominal rate, whatever it crosses.
Sources  [1] Patarasuk & Yuan 2009, JPDC 69(2) (ring).
"""

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from roofline.diagnose.mapping import Mapping, best_mapping
from roofline.diagnose.network import (
    NcclPaths,
    Port,
)
from roofline.diagnose.nvlink import (
    GpuLinks,
    LinkHealth,
)
from roofline.diagnose.topology import (
    RANK,
    Topology,
    gpudirect,
    path_between,
)
from roofline.hardware.accelerator import load_accelerator
from roofline.hardware.links import Link, link_names, load_link
from roofline.timing.collectives import LinkTerms, all_reduce_s, ring_all_reduce_s

if TYPE_CHECKING:
    import pandas as pd

_TIE = 1e-6
"""Paths of one nominal rate rank by how much they cross: a millionth a level."""
MESSAGE_BYTES = (2**20, 2**26, 2**30)


@dataclass(frozen=True)
class Group:
    """One tensor-parallel group and its predicted all-reduces."""

    devices: tuple[int, ...]
    bytes_per_s: float
    all_reduce_s: dict[int, float]
    """Message bytes to seconds: the least that the nominal rate allows."""
    expected_all_reduce_s: dict[int, float]
    """The same at the fraction of the rate that such links reach; empty where none is known."""


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

    def groups(self, tp: int) -> tuple[Group, ...]:
        """Groups of the best mapping with their predicted all-reduces."""
        mapping = self.mapping(tp)
        return tuple(
            self._group(devices, rate)
            for devices, rate in zip(mapping.groups, mapping.group_bytes_per_s, strict=True)
        )

    def _group(self, devices: tuple[int, ...], rate: float) -> Group:
        n = len(devices)
        if n < 2:
            return Group(devices, rate, {}, {})
        least = LinkTerms(rate, 0.0)
        link = self._usual_link(devices)
        expected = {}
        if link is not None and link.achieved_fraction is not None:
            terms = LinkTerms(rate * link.achieved_fraction, link.latency_s or 0.0)
            expected = {size: float(all_reduce_s(float(size), n, terms)) for size in MESSAGE_BYTES}
        bounds = {size: float(ring_all_reduce_s(float(size), n, least)) for size in MESSAGE_BYTES}
        return Group(devices, rate, bounds, expected)

    def _usual_link(self, devices: tuple[int, ...]) -> Link | None:
        """The kind of link that the slowest edge of a group uses, with what it usually reaches."""
        spec = load_accelerator(self.accelerator) if self.accelerator is not None else None
        ring = zip(devices, (*devices[1:], devices[0]), strict=True)
        bonded = self.topology is None or all(self.topology.nvlinks(a, b) for a, b in ring)
        name = None
        if bonded and spec is not None:
            generation = re.match(r"NVLink (\d)", spec.link.kind or "")
            name = f"nvlink-{generation[1]}" if generation else None
        elif not bonded and spec is not None and spec.pcie.generation and spec.pcie.lanes == 16:
            name = f"pcie-{spec.pcie.generation}.0-x16"
        return load_link(name) if name in link_names() else None

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
                        "expected_all_reduce_s": {
                            str(k): v for k, v in group.expected_all_reduce_s.items()
                        },
                    }
                    for group in self.groups(tp)
                ],
            }
        return answer

    def to_frame(self) -> "pd.DataFrame":
        """One row per pair of GPUs."""
        import pandas as pd

        return pd.DataFrame(self.pairs())
