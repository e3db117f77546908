"""NVLinks: which are up, and which should be, on this exact variant.

    expected links = rate of the variant's specification ÷ rate of one link

An inactive link is a fault only where the variant has it: an H100 PCIe lists 18 and its bridge
wires 12.

Units    bytes per second and direction. nvidia-smi prints the signalling rate of a link (25.781 or
         26.562 GB/s, 53.125 from Blackwell on); its nominal rate is 25 or 50.
Sources  [1] NVIDIA, nvidia-smi manual, ``nvlink -s``.
         [2] NVIDIA datasheets: 600 GB/s of an H100 PCIe pair are 12 links of 25 GB/s each way.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator, accelerator_ids, load_accelerator
from roofline.units import GB

_GPU = re.compile(r"^\s*GPU\s+(\d{1,6})\s*:\s*(.*?)\s*(?:\(UUID.*)?$", re.IGNORECASE)
_LINK = re.compile(r"^\s*Link\s+(\d{1,6})\s*:\s*(.+?)\s*$", re.IGNORECASE)
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*GB/s", re.IGNORECASE)
_NOMINAL_GB_PER_S = (14.0625, 20.0, 25.0, 50.0, 100.0)
_SAME_RATE = 0.02


@dataclass(frozen=True)
class LinkState:
    """One NVLink of one GPU; the rate is None when it is inactive."""

    number: int
    bytes_per_s: float | None


@dataclass(frozen=True)
class GpuLinks:
    """The NVLinks of one GPU as the driver prints them."""

    gpu: int
    name: str
    links: tuple[LinkState, ...]

    @property
    def active(self) -> tuple[LinkState, ...]:
        """Links that are up."""
        return tuple(link for link in self.links if link.bytes_per_s is not None)

    @property
    def bytes_per_s(self) -> float:
        """Signalling rate of all active links in one direction."""
        return sum(link.bytes_per_s or 0.0 for link in self.links)


@dataclass(frozen=True)
class LinkHealth:
    """Whether a GPU has the links that its variant should have."""

    gpu: int
    name: str
    active: int
    listed: int
    expected: int | None
    degraded: tuple[int, ...]
    missing: tuple[int, ...]
    signalling_bytes_per_s: float
    limit_bytes_per_s: float
    share: float
    fault: bool
    reason: str

    def measured_share(self, bytes_per_s: float) -> float:
        """Share of the limit that a measured rate is."""
        return bytes_per_s / self.limit_bytes_per_s if self.limit_bytes_per_s else 0.0


def has_nvlinks(text: str) -> bool:
    """Whether a text holds lines of ``nvidia-smi nvlink -s``."""
    return any(_LINK.match(line) for line in text.splitlines())


def parse_nvlinks(text: str) -> tuple[GpuLinks, ...]:
    """Read what ``nvidia-smi nvlink -s`` prints.

    Raises:
        InputError: no GPU line in it, or a link before any.

    >>> gpu, = parse_nvlinks("GPU 0: Tesla V100-SXM2-32GB\\n Link 0: 25.781 GB/s\\n"
    ...                      " Link 1: <inactive>")
    >>> len(gpu.active), gpu.bytes_per_s
    (1, 25781000000.0)
    """
    found: list[GpuLinks] = []
    for line in text.splitlines():
        gpu, link = _GPU.match(line), _LINK.match(line)
        if gpu is not None:
            found.append(GpuLinks(int(gpu[1]), gpu[2].strip(), ()))
        elif link is not None:
            if not found:
                raise InputError(
                    f"{line.strip()!r} stands before any GPU line; give all of 'nvidia-smi "
                    "nvlink -s'"
                )
            rate = _RATE.search(link[2])
            state = LinkState(int(link[1]), float(rate[1]) * GB if rate else None)
            last = found[-1]
            found[-1] = GpuLinks(last.gpu, last.name, (*last.links, state))
    if not found:
        raise InputError("no 'GPU 0: …' line; give what 'nvidia-smi nvlink -s' prints")
    return tuple(found)


def find_variant(name: str) -> Accelerator | None:
    """The accelerator that a driver's device name is; None when none or several fit.

    >>> find_variant("NVIDIA H100 PCIe").link.bytes_per_s
    300000000000.0
    """
    wanted = " ".join(name.replace("_", " ").split()).casefold()
    fits = [
        spec
        for spec in map(load_accelerator, accelerator_ids())
        if wanted in {known.casefold() for known in spec.device_names}
    ]
    rates = {spec.link.bytes_per_s for spec in fits}
    return fits[0] if len(rates) == 1 else None


def nominal_link(signalling_bytes_per_s: float) -> float:
    """Nominal rate of one link, from the rate that the driver prints.

    >>> nominal_link(26.562e9), nominal_link(53.125e9), nominal_link(14.062e9)
    (25000000000.0, 50000000000.0, 14062500000.0)
    """
    fits = [rate * GB for rate in _NOMINAL_GB_PER_S if rate * GB <= signalling_bytes_per_s * 1.01]
    return max(fits, default=signalling_bytes_per_s)


def link_health(
    gpu: GpuLinks, accelerator: Accelerator | None = None, peers: Sequence[GpuLinks] = ()
) -> LinkHealth:
    """Compare the links of a GPU with what its variant should have.

    Args:
        gpu: its links.
        accelerator: the variant; found by the device's name when left out.
        peers: the GPUs of the node; where the variant is unknown, the best of the same name says
            what should be up.
    """
    spec = accelerator or find_variant(gpu.name)
    rates = [link.bytes_per_s for link in gpu.active if link.bytes_per_s is not None]
    usual = Counter(rates).most_common(1)[0][0] if rates else 0.0
    nominal = nominal_link(usual) if usual else 0.0
    expected = _expected(spec, nominal)
    if spec is None:
        alike = [len(peer.active) for peer in peers if peer.name == gpu.name]
        expected = max(alike) if len(alike) > 1 else None
    degraded = tuple(
        link.number
        for link in gpu.active
        if link.bytes_per_s is not None and link.bytes_per_s < usual * (1 - _SAME_RATE)
    )
    inactive = tuple(link.number for link in gpu.links if link.bytes_per_s is None)
    wanted = len(rates) if expected is None else expected
    lacking = max(wanted - len(rates), 0)
    absent_bridge = not rates and spec is not None and "bridge" in (spec.link.kind or "")
    fault = (lacking > 0 and not absent_bridge) or bool(degraded)
    scale = nominal / usual if usual else 0.0
    return LinkHealth(
        gpu=gpu.gpu,
        name=gpu.name,
        active=len(rates),
        listed=len(gpu.links),
        expected=expected,
        degraded=degraded,
        missing=inactive if lacking and not absent_bridge else (),
        signalling_bytes_per_s=gpu.bytes_per_s,
        limit_bytes_per_s=gpu.bytes_per_s * scale,
        share=len(rates) / wanted if wanted else 0.0,
        fault=fault,
        reason=_reason(gpu, expected, len(rates), lacking, degraded, absent_bridge),
    )


def _expected(spec: Accelerator | None, nominal: float) -> int | None:
    if spec is None or not spec.link.bytes_per_s:
        return 0 if spec is not None and spec.link.kind is None else None
    listed = re.search(r"\((\d+) links\)", spec.link.kind or "")
    if listed is not None:
        return int(listed[1])
    return round(spec.link.bytes_per_s / nominal) if nominal else None


def _reason(
    gpu: GpuLinks,
    expected: int | None,
    active: int,
    lacking: int,
    degraded: tuple[int, ...],
    absent_bridge: bool,
) -> str:
    if absent_bridge:
        return f"no active link: no NVLink bridge is fitted to this {gpu.name}; not a fault"
    parts = []
    if lacking:
        parts.append(f"{active} of the {expected} links that a {gpu.name} should have are up")
    if degraded:
        numbers = ", ".join(map(str, degraded))
        parts.append(f"link {numbers} runs below the rate of the others")
    if parts:
        return "; ".join(parts)
    if active < len(gpu.links) and expected is None:
        return (
            f"{active} of {len(gpu.links)} listed links are up; how many a {gpu.name} wires is not "
            "known: name the accelerator to judge it"
        )
    if active < len(gpu.links):
        return f"{active} of {len(gpu.links)} links are up, all that this variant wires; no fault"
    return f"all {active} links are up"
