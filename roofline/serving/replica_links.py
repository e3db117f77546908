"""Links of a replica: what its ranks speak over, inside a scale-up domain and between domains.

    tensor parallel   inside a domain its link; over n domains of r ranks each rank sends its
                      buffer inside, and its share 1/r of it to the other domains:
                      time ≥ message / min(link, r · network)
    pipeline          a boundary between stages runs over the network where it leaves the domain

Units    bytes per second and direction, of one accelerator.
Limits   Ranks are placed in order, a stage's tensor-parallel ranks side by side. Cards whose bridge
         joins fewer than a host holds speak over PCIe past it.
Sources  [1] Klenk et al. 2020, ISCA (least volume of an all-reduce), in ``timing.collectives``.
"""

import math
from dataclasses import dataclass, replace

from roofline.calibration.typical import PORT_LATENCY_S, PORT_SHARE, port_terms
from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator
from roofline.hardware.links import load_link
from roofline.timing.collectives import LinkTerms
from roofline.timing.parallel import Parallel
from roofline.timing.terms import DeviceTerms
from roofline.units import show

HOST_ACCELERATORS = 8
"""Cards of one host that reach each other over its PCIe."""


@dataclass(frozen=True)
class ReplicaLinks:
    """What the ranks of a replica speak over.

    Args:
        tensor_bytes_per_s: rate at which an all-reduce's least volume passes; None: not bounded.
        stage_bytes_per_s: rate of the boundaries between stages, on average; None: not bounded.
        domain: ranks that the inner link joins.
        between: what the network between domains reaches; None: none is used.
        assumptions: what was taken, in words.
    """

    tensor_bytes_per_s: float | None = None
    stage_bytes_per_s: float | None = None
    domain: int = 1
    between: LinkTerms | None = None
    assumptions: tuple[str, ...] = ()

    def reached(self, device: DeviceTerms) -> DeviceTerms:
        """Terms of a device whose ranks speak over these links."""
        return replace(device, domain=self.domain, between=self.between)


def replica_links(
    accelerator: Accelerator, parallel: Parallel, network: str | None = None
) -> ReplicaLinks:
    """Find the links that a replica's ranks speak over.

    Raises:
        InputError: tensor parallelism leaves the scale-up domain, and no network was named.
        UnknownNameError: no such network.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> h200 = load_accelerator("h200-sxm-141gb")
    >>> links = replica_links(h200, Parallel(tp=16), "infiniband-ndr")
    >>> links.tensor_bytes_per_s / 1e9  # the lesser of 450 of NVLink and 8 ports of 50 GB/s
    400.0
    >>> replica_links(h200, Parallel(tp=8, pp=2), "infiniband-ndr").tensor_bytes_per_s / 1e9
    450.0
    """
    ranks = parallel.tp * parallel.pp
    outer = None if network is None else load_link(network)
    if ranks == 1 and parallel.ep == 1:
        return ReplicaLinks()
    inner, domain, words = _inside(accelerator)
    outer_rate = None if outer is None else outer.bytes_per_s
    outer_terms = None if outer is None else port_terms(outer)
    if max(ranks, parallel.ep) <= domain:
        if outer is not None:
            words.append(f"network {outer.name}: unused, all ranks are in one domain of {domain}")
        return ReplicaLinks(inner, inner, domain, None, tuple(words))
    if outer is not None:
        words.append(
            f"between domains of {domain}: {outer.name}, {show(outer.bytes_per_s, 'B/s')} for each "
            f"accelerator"
        )
    elif accelerator.link.bytes_per_s is not None and domain < HOST_ACCELERATORS:
        outer_rate = accelerator.pcie.bytes_per_s
        if outer_rate is not None and ranks <= HOST_ACCELERATORS:
            outer_terms = LinkTerms(outer_rate * PORT_SHARE, PORT_LATENCY_S, origin="PCIe")
            words.append(f"past the {domain} of {accelerator.link.kind}: PCIe of one host")
        else:
            outer_rate = None
    if outer_rate is None:
        _past_without_network(accelerator, parallel, domain, words)
        return ReplicaLinks(inner, inner, domain, None, tuple(words))
    tensor = inner
    if parallel.tp > domain:
        ports = parallel.tp / math.ceil(parallel.tp / domain)
        tensor = min(inner or math.inf, ports * outer_rate)
    stage = _stage_rate(parallel, domain, inner, outer_rate)
    return ReplicaLinks(tensor, stage, domain, outer_terms, tuple(words))


def _inside(accelerator: Accelerator) -> tuple[float | None, int, list[str]]:
    """Rate and size of the domain that an accelerator stands in, and the words for it."""
    link = accelerator.link
    if link.bytes_per_s is not None:
        said = f"{link.kind or 'scale-up link'}, {show(link.bytes_per_s, 'B/s')} per direction"
        return link.bytes_per_s, link.domain or 1, [f"ranks linked by {said}"]
    pcie = accelerator.pcie
    if pcie.bytes_per_s is not None:
        said = f"PCIe {pcie.generation} x{pcie.lanes}, {show(pcie.bytes_per_s, 'B/s')}"
        return pcie.bytes_per_s, HOST_ACCELERATORS, [f"ranks linked by {said} per direction"]
    said = f"{accelerator.id} has no sourced link: link time is not bounded"
    return None, link.domain or HOST_ACCELERATORS, [said]


def _past_without_network(
    accelerator: Accelerator, parallel: Parallel, domain: int, words: list[str]
) -> None:
    """Refuse tensor parallelism that leaves a scale-up domain; say what else was taken."""
    if parallel.tp > domain and accelerator.link.bytes_per_s is not None:
        raise InputError(
            f"tp={parallel.tp} leaves the scale-up domain of {accelerator.id} "
            f"({domain} by {accelerator.link.kind}); name the network between nodes, or use tp of "
            f"{domain} or less and pp"
        )
    what = "experts" if parallel.ep > domain else "ranks"
    words.append(
        f"{what} reach past the {domain} accelerators of a domain and no network was named: "
        "taken to be linked as inside it"
    )


def _stage_rate(parallel: Parallel, domain: int, inner: float | None, outer: float) -> float | None:
    """Mean rate of the boundaries between stages: those that leave a domain run over the network.

    >>> _stage_rate(Parallel(tp=4, pp=4), 8, 450e9, 50e9) / 1e9  # one of three: 3 / (2/450 + 1/50)
    122.72727272727273
    """
    boundaries = parallel.pp - 1
    if not boundaries:
        return inner
    crossing = min(math.ceil(parallel.tp * parallel.pp / domain) - 1, boundaries)
    if parallel.tp >= domain:
        crossing = boundaries
    inside_s = 0.0 if inner is None else (boundaries - crossing) / inner
    taken_s = inside_s + crossing / outer
    return boundaries / taken_s if taken_s else inner
