"""Network: what NCCL's log says about the paths it took, and what ``ibstat`` says about adapters.

Sources  [1] NVIDIA NCCL, log lines of ``NCCL_DEBUG=INFO`` (versions 2.10 to 2.27):
             ``Channel 00/08 : 0[0] -> 1[1] via P2P/CUMEM``, ``via SHM``, ``via NET/IB/0/GDRDMA``.
         [2] rdma-core, ibstat(8): state, physical state, rate in Gb/s, link layer.
"""

import re
from collections import Counter
from dataclasses import dataclass

from roofline.errors import InputError
from roofline.units import parse

_CHANNEL = re.compile(
    r"Channel\s+(\d{1,6})(?:/\d+)?\s*:\s*(\d{1,9})(?:\[[0-9a-f]+\])?"
    r"\s*->\s*(\d{1,9})(?:\[[0-9a-f]+\])?"
    r"(?:\s*\[\w+\])?\s+via\s+(\S+)",
    re.IGNORECASE,
)
_VERSION = re.compile(r"NCCL version (\S+)")
_RANKS = re.compile(r"nranks (\d{1,9})", re.IGNORECASE)
_ADAPTER = re.compile(r"^CA '([^']+)'")


@dataclass(frozen=True)
class NcclPaths:
    """Paths of the channels in a log, by transport."""

    version: str | None
    ranks: int | None
    transports: dict[str, int]
    host_pairs: tuple[tuple[int, int], ...]
    uses_nvls: bool
    notes: tuple[str, ...]


def has_nccl_log(text: str) -> bool:
    """Whether a text is a log with NCCL's lines."""
    return "NCCL INFO" in text or _CHANNEL.search(text) is not None


def parse_nccl_log(text: str) -> NcclPaths:
    """Read the transports that NCCL chose.

    Raises:
        InputError: no channel lines; NCCL_DEBUG=INFO prints them.

    >>> parse_nccl_log("Channel 00/02 : 0[0] -> 1[1] via SHM/direct/direct").host_pairs
    ((0, 1),)
    """
    counts: Counter[str] = Counter()
    host: dict[tuple[int, int], None] = {}
    for channel in _CHANNEL.finditer(text):
        transport = _transport(channel[4])
        counts[transport] += 1
        if transport.startswith("host memory"):
            host[int(channel[2]), int(channel[3])] = None
    if not counts:
        raise InputError(
            "no 'Channel … via …' lines; run with NCCL_DEBUG=INFO and give the whole log"
        )
    version, ranks = _VERSION.search(text), _RANKS.search(text)
    return NcclPaths(
        version[1] if version else None,
        int(ranks[1]) if ranks else None,
        dict(counts.most_common()),
        tuple(host),
        "NVLS" in text and "NVLS multicast support is not available" not in text,
        tuple(_notes(counts, host)),
    )


def _transport(via: str) -> str:
    upper = via.upper()
    if upper.startswith("P2P"):
        return "peer to peer"
    if upper.startswith("SHM"):
        return "host memory (SHM)"
    if upper.startswith("NET/SOCKET"):
        return "sockets (Ethernet)"
    if upper.startswith("NET"):
        return "network, GPUDirect RDMA" if "GDR" in upper else "network, through host memory"
    return via


def _notes(counts: Counter[str], host: dict[tuple[int, int], None]) -> list[str]:
    notes = []
    if host:
        pairs = ", ".join(f"{a}→{b}" for a, b in list(host)[:6])
        notes.append(
            f"ranks {pairs} go through host memory: peer to peer is off or not possible "
            "(NCCL_P2P_DISABLE, ACS, IOMMU, another socket)"
        )
    if "sockets (Ethernet)" in counts:
        notes.append("sockets carry traffic: no RDMA adapter was used (NCCL_IB_DISABLE, drivers)")
    if "network, through host memory" in counts:
        notes.append(
            "RDMA without GPUDirect: needs nvidia-peermem or DMA-BUF, and adapter near GPU"
        )
    return notes


@dataclass(frozen=True)
class Port:
    """One port of one adapter."""

    adapter: str
    port: int
    state: str
    physical_state: str
    bytes_per_s: float | None
    link_layer: str

    @property
    def up(self) -> bool:
        """Whether it carries traffic."""
        return self.state.lower() == "active" and "linkup" in self.physical_state.lower()


def has_ibstat(text: str) -> bool:
    """Whether a text is what ``ibstat`` prints."""
    return re.search(r"^CA '", text, re.MULTILINE) is not None


def parse_ibstat(text: str) -> tuple[Port, ...]:
    """Read the ports of ``ibstat``.

    Raises:
        InputError: no adapter in it.

    >>> port, = parse_ibstat("CA 'mlx5_0'\\n  Port 1:\\n    State: Active\\n"
    ...                      "    Physical state: LinkUp\\n    Rate: 400\\n")
    >>> port.up, port.bytes_per_s
    (True, 50000000000.0)
    """
    ports: list[dict[str, str]] = []
    adapter = ""
    for line in text.splitlines():
        named = _ADAPTER.match(line.strip())
        if named is not None:
            adapter = named[1]
            continue
        key, _, value = line.strip().partition(":")
        if re.fullmatch(r"Port \d{1,6}", key) and adapter:
            ports.append({"adapter": adapter, "port": key.split()[1]})
        elif ports and adapter:
            ports[-1][key.lower()] = value.strip()
    if not ports:
        raise InputError("no adapter with a port in it; give what 'ibstat' prints")
    return tuple(
        Port(
            entry["adapter"],
            int(entry["port"]),
            entry.get("state", "unknown"),
            entry.get("physical state", "unknown"),
            parse(f"{entry['rate']} Gb/s", "B/s") if _is_number(entry.get("rate", "")) else None,
            entry.get("link layer", "unknown"),
        )
        for entry in ports
    )


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None


def port_faults(ports: tuple[Port, ...]) -> tuple[str, ...]:
    """Ports that are down, or slower than the others."""
    rates = [port.bytes_per_s for port in ports if port.up and port.bytes_per_s]
    faults = [
        f"{port.adapter} port {port.port} is {port.state}/{port.physical_state}"
        for port in ports
        if not port.up
    ]
    faults += [
        f"{port.adapter} port {port.port} runs at {100 * (port.bytes_per_s / max(rates)):.0f} % "
        "of the "
        "fastest adapter's rate"
        for port in ports
        if port.up and port.bytes_per_s and port.bytes_per_s < max(rates)
    ]
    return tuple(faults)
