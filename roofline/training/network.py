"""The network of a cluster: the scale-up link inside a node, the ports between nodes.

Units    Bytes per second and direction of one accelerator; seconds.
Limits   Where nobody says what lies between nodes, the port that vendors' reference systems of that
         generation have is taken, and said to be.
Sources  [1] NVIDIA DGX A100 (8 × HDR 200 Gb/s), DGX H100 and H200 (8 × NDR 400 Gb/s) user guides;
             AMD MI300X reference systems (8 × 400 Gb/s).
"""

from roofline.calibration.typical import port_terms
from roofline.errors import InputError, MissingDataError
from roofline.hardware.accelerator import Accelerator
from roofline.hardware.links import load_link
from roofline.timing.collectives import LinkTerms
from roofline.timing.terms import DeviceTerms
from roofline.training.communication import Network
from roofline.training.plan import TrainingPlan

_PORTS = (
    (("ampere", "a100", "mi250", "mi210"), "infiniband-hdr"),
    (("hopper", "h100", "h200", "mi300", "mi325"), "infiniband-ndr"),
    (("b200", "b300", "gb200", "gb300", "mi350", "mi355"), "infiniband-ndr"),
)
_OTHER_PORT = "ethernet-100gbe"


def usual_port(accelerator: Accelerator) -> str:
    """Name the port that reference systems give each accelerator [1].

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> usual_port(load_accelerator("h100-sxm5-80gb"))
    'infiniband-ndr'
    """
    text = f"{accelerator.architecture} {accelerator.id}".lower()
    for words, port in _PORTS:
        if any(word in text for word in words):
            return port
    return _OTHER_PORT


def cluster_network(
    accelerator: Accelerator, device: DeviceTerms, plan: TrainingPlan, network: str | None = None
) -> tuple[Network, tuple[str, ...]]:
    """Lay out the links that a plan uses, and say what was assumed.

    Args:
        accelerator: the device.
        device: what it reaches, its collectives included.
        plan: how many there are.
        network: link between nodes, by name; None: the usual one.

    Raises:
        MissingDataError: several accelerators, and neither link nor PCIe rate is known.
        UnknownNameError: no such link.
    """
    inner = device.all_reduce
    words: list[str] = []
    node = accelerator.link.domain or 8
    if inner is None:
        if plan.accelerators > 1:
            raise MissingDataError(
                f"{accelerator.id} has no sourced link or PCIe rate; {plan.accelerators} of them "
                "cannot be planned"
            )
        inner = LinkTerms(1e9, 1e-5, origin="none")
    if plan.accelerators > 1:
        words.append(f"inside a node of {node}: {inner.origin}")
    name = network or usual_port(accelerator)
    link = load_link(name)
    if link.bytes_per_s <= 0:
        raise InputError(f"link {link.name!r} has no rate")
    outer = port_terms(link)
    if plan.accelerators > node:
        asked = "" if network else ", the usual port of such systems: name another with network="
        words.append(
            f"between nodes: {link.name} at {outer.bytes_per_s / link.bytes_per_s:.0%} of its rate "
            f"for each accelerator{asked}"
        )
    return Network(inner, outer, node), tuple(words)
