"""Topology: the matrix of ``nvidia-smi topo -m`` as a graph of connections.

    NV#   a bond of # NVLinks                 PHB   through one PCIe host bridge (the CPU)
    PIX   at most one PCIe switch             NODE  several host bridges of one NUMA node
    PXB   several PCIe switches               SYS   across sockets

PIX, PXB and PHB share a root complex; NODE and SYS do not.

Shapes   ``cells[i][j]`` is the connection between ``names[i]`` and ``names[j]``.
Limits   A bond on a machine with NVLink switches is a device's whole NVLink rate, to any peer.
Sources  [1] NVIDIA, nvidia-smi manual, section topo (legend).
         [2] NVIDIA, GPUDirect RDMA documentation, "Supported systems": the two devices share a
             root complex; best under one PCIe switch.
"""

import re
from dataclasses import dataclass, field

from roofline.errors import InputError

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_DEVICE = re.compile(r"(GPU|NIC|mlx|bnxt|hfi|ib|rocep|efa|roce)[\w-]*\d\w*", re.IGNORECASE)
_CELL = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC|PSB|N/A")
_NIC_NAME = re.compile(r"^\s*(NIC\d+):\s*(\S+)", re.MULTILINE)

RANK = {"NV": 0, "PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5, "SOC": 5, "PSB": 5}


@dataclass(frozen=True)
class Topology:
    """Devices of one node and how each pair is connected."""

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    cpu_affinity: tuple[str, ...] = ()
    numa: tuple[str, ...] = ()
    nics: dict[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> tuple[int, ...]:
        """Positions of the GPUs."""
        return tuple(i for i, name in enumerate(self.names) if name.upper().startswith("GPU"))

    def connection(self, first: int, second: int) -> str:
        """Connection of two GPUs by their numbers."""
        places = self.gpus
        return self.cells[places[first]][places[second]]

    def nvlinks(self, first: int, second: int) -> int:
        """Bonded NVLinks between two GPUs; 0 without."""
        return bond(self.connection(first, second))

    def nearest_nics(self, gpu: int) -> tuple[tuple[str, str], ...]:
        """Network adapters from near to far, each with its connection."""
        row = self.cells[self.gpus[gpu]]
        found = [
            (self.nics.get(name, name), row[i])
            for i, name in enumerate(self.names)
            if i not in self.gpus and i < len(row)
        ]
        return tuple(sorted(found, key=lambda item: RANK.get(item[1], 9)))


def bond(cell: str) -> int:
    """Number of NVLinks in a cell of the matrix.

    >>> bond("NV18"), bond("PHB")
    (18, 0)
    """
    return int(cell[2:]) if cell.startswith("NV") and cell[2:].isdigit() else 0


def has_topology(text: str) -> bool:
    """Whether a text holds the matrix of ``nvidia-smi topo -m``."""
    return _header(_lines(text)) is not None


def parse_topology(text: str) -> Topology:
    """Read what ``nvidia-smi topo -m`` prints.

    Raises:
        InputError: no matrix in the text, or one that is cut.

    >>> text = "        GPU0  GPU1  CPU Affinity\\nGPU0  X  NV12  0-31\\nGPU1  NV12  X  0-31"
    >>> topology = parse_topology(text)
    >>> topology.nvlinks(0, 1), topology.cpu_affinity
    (12, ('0-31', '0-31'))
    """
    lines = _lines(text)
    at = _header(lines)
    if at is None:
        raise InputError(
            "no GPU matrix in the text; give what 'nvidia-smi topo -m' prints (header GPU0 GPU1 …)"
        )
    header = lines[at]
    columns = _DEVICE.findall(header.split("CPU")[0])
    count = len(columns)
    names: list[str] = []
    cells: list[tuple[str, ...]] = []
    affinity: list[str] = []
    numa: list[str] = []
    for line in lines[at + 1 :]:
        words = line.split()
        if not words or not _DEVICE.fullmatch(words[0]) or len(names) == count:
            if len(names) == count or (names and not words):
                break
            continue
        row = words[1 : count + 1]
        if len(row) < count or not all(_CELL.fullmatch(cell) for cell in row):
            raise InputError(
                f"row {words[0]} of the topology has {len(row)} readable cells where {count} are "
                "needed; is the output cut?"
            )
        names.append(words[0])
        cells.append(tuple(row))
        rest = words[count + 1 :]
        affinity.append(rest[0] if rest else "")
        numa.append(rest[1] if len(rest) > 1 else "")
    if len(names) < count:
        raise InputError(
            f"the topology has {len(names)} of {count} rows; is the output of topo -m cut?"
        )
    for i in range(count):
        for j in range(i):
            if bond(cells[i][j]) != bond(cells[j][i]):
                raise InputError(
                    f"the topology says {names[i]}→{names[j]} {cells[i][j]} and back "
                    f"{cells[j][i]}; is the output mangled?"
                )
    return Topology(
        tuple(names),
        tuple(cells),
        tuple(affinity),
        tuple(numa),
        dict(_NIC_NAME.findall(_ANSI.sub("", text))),
    )


def _lines(text: str) -> list[str]:
    return _ANSI.sub("", text).replace("\t", "  ").splitlines()


def _header(lines: list[str]) -> int | None:
    for i, line in enumerate(lines):
        words = line.split()
        if words and words[0] == "GPU0" and (len(words) == 1 or not _CELL.fullmatch(words[1])):
            return i
    return None


@dataclass(frozen=True)
class Path:
    """How two devices reach each other, in words."""

    connection: str
    transport: str
    same_root_complex: bool | None


def path_between(topology: Topology, first: int, second: int) -> Path:
    """Say whether two GPUs talk peer to peer or through the host.

    >>> text = "        GPU0  GPU1\\nGPU0  X  SYS\\nGPU1  SYS  X"
    >>> path_between(parse_topology(text), 0, 1).same_root_complex
    False
    """
    cell = topology.connection(first, second)
    if bond(cell):
        return Path(cell, f"peer to peer over {bond(cell)} NVLinks", None)
    match cell:
        case "PIX" | "PXB":
            return Path(cell, "peer to peer over PCIe switches, past the CPU", True)
        case "PHB":
            return Path(cell, "over PCIe through the CPU's host bridge; peer to peer where the "
                        "platform lets it (no IOMMU translation, no ACS)", True)  # fmt: skip
        case "NODE":
            return Path(cell, "through the host: two root complexes of one NUMA node", False)
        case "X":
            return Path(cell, "itself", None)
        case _:
            return Path(cell, "through the host: across sockets", False)


def gpudirect(topology: Topology, gpu: int) -> str:
    """Say what GPUDirect RDMA needs between a GPU and its nearest network adapter."""
    nics = topology.nearest_nics(gpu)
    if not nics:
        return "no network adapter in the matrix"
    name, cell = nics[0]
    if cell in ("PIX", "PXB"):
        return f"{name} ({cell}): GPUDirect RDMA works; needs nvidia-peermem or DMA-BUF, ACS off"
    if cell == "PHB":
        return (
            f"{name} (PHB): same root complex, GPUDirect RDMA through the CPU, slower; "
            "NCCL needs NCCL_NET_GDR_LEVEL=PHB to use it"
        )
    return f"{name} ({cell}): another root complex, no GPUDirect RDMA; traffic goes through memory"
