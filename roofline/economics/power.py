"""Power: draw of a deployment, racks at a limit, tokens per joule and per megawatt.

    node = accelerators × draw + overhead,  overhead = share × accelerators × TDP
    racks = ⌈nodes / ⌊rack limit / node⌋⌉

Units    watt; token per joule; token per second and megawatt.
Limits   Draw is the board's TDP while busy, an upper limit: decoding draws less. Overhead (CPUs,
         fans, network) is 0.82 of the accelerators' TDP when not given: DGX H100, 10.2 kW at most
         with eight boards of 700 W [1]. A rack limit is without its switches.
Sources  [1] NVIDIA DGX H100 datasheet, 2023, "System power usage ~10.2 kW max".
"""

import math
from dataclasses import dataclass

from roofline.errors import InputError
from roofline.units import MEGA

NODE_OVERHEAD_SHARE = 0.82


@dataclass(frozen=True)
class Power:
    """Power of a deployment: at the accelerators, at the nodes, and in racks."""

    accelerators_w: float
    nodes: int
    node_w: float
    total_w: float
    racks: int | None
    tokens_per_joule: float | None
    tokens_per_s_per_megawatt: float | None

    def to_dict(self) -> dict[str, float | int | None]:
        """All numbers by name, in base units."""
        return dict(vars(self))


def joules_per_token(
    power_per_accelerator_w: float, accelerators: int, tokens_per_s: float
) -> float:
    """Energy of a token: the power of all accelerators, not their mean.

    >>> joules_per_token(600, 8, 12_000)
    0.4
    """
    if accelerators < 1 or not power_per_accelerator_w > 0 or not tokens_per_s > 0:
        raise InputError(
            "need power, accelerators and tokens_per_s above 0, got "
            f"{power_per_accelerator_w}, {accelerators} and {tokens_per_s}"
        )
    return power_per_accelerator_w * accelerators / tokens_per_s


def draw_w(tdp_w: float, *, busy_share: float = 1.0, idle_w: float = 0.0) -> float:
    """Mean draw of one accelerator: TDP while busy, idle draw else.

    >>> draw_w(700, busy_share=0.5, idle_w=100)
    400.0
    """
    if not (tdp_w > 0 and 0 <= busy_share <= 1 and 0 <= idle_w <= tdp_w):
        raise InputError(
            f"need tdp_w above 0, busy_share 0 to 1 and idle_w up to tdp_w, got {tdp_w}, "
            f"{busy_share} and {idle_w}"
        )
    return busy_share * tdp_w + (1 - busy_share) * idle_w


def deployment_power(
    *,
    accelerators: int,
    draw_per_accelerator_w: float,
    tdp_w: float,
    accelerators_per_node: int = 8,
    overhead_share: float = NODE_OVERHEAD_SHARE,
    rack_limit_w: float | None = None,
    output_tokens_per_s: float | None = None,
) -> Power:
    """Add up the power of a deployment and place its nodes in racks.

    Raises:
        InputError: numbers out of range, or a node above the rack's limit.

    >>> power = deployment_power(accelerators=16, draw_per_accelerator_w=700, tdp_w=700,
    ...                          rack_limit_w=40e3, output_tokens_per_s=20_000)
    >>> power.nodes, power.node_w, power.racks
    (2, 10192.0, 1)
    """
    if accelerators < 1 or accelerators_per_node < 1:
        raise InputError(
            f"need accelerators and accelerators_per_node of at least 1, got {accelerators} and "
            f"{accelerators_per_node}"
        )
    if not (0 < draw_per_accelerator_w <= tdp_w * 1.5 and 0 <= overhead_share < 10):
        raise InputError(
            f"need a draw above 0 and near tdp_w, and overhead_share at least 0, got "
            f"{draw_per_accelerator_w}, {tdp_w} and {overhead_share}"
        )
    nodes = math.ceil(accelerators / accelerators_per_node)
    boards_w = accelerators * draw_per_accelerator_w
    in_node = min(accelerators, accelerators_per_node)
    node_w = in_node * (draw_per_accelerator_w + overhead_share * tdp_w)
    # A node has its CPUs and fans whether or not all of its accelerators are used.
    total_w = boards_w + nodes * overhead_share * tdp_w * in_node
    racks = None
    if rack_limit_w is not None:
        per_rack = math.floor(rack_limit_w / node_w + 1e-9) if rack_limit_w > 0 else 0
        if per_rack < 1:
            raise InputError(
                f"one node of {in_node} accelerators draws {node_w:,.0f} W, above the rack's limit "
                f"of {rack_limit_w:,.0f} W"
            )
        racks = math.ceil(nodes / per_rack)
    rate = output_tokens_per_s
    return Power(
        boards_w,
        nodes,
        node_w,
        total_w,
        racks,
        None if rate is None else rate / total_w,
        None if rate is None else rate / total_w * MEGA,
    )


@dataclass(frozen=True)
class CappedRoofs:
    """Roofs of a device whose clocks a power cap holds down."""

    flop_per_s: float
    bytes_per_s: float
    compute_factor: float
    memory_factor: float


def capped_roofs(
    flop_per_s: float,
    bytes_per_s: float,
    *,
    sm_clock_hz: float,
    boost_clock_hz: float,
    memory_clock_ratio: float = 1.0,
) -> CappedRoofs:
    """Scale roofs under a power cap: compute by the SM clock, bandwidth by the memory clock alone.

    >>> capped = capped_roofs(71e12, 936e9, sm_clock_hz=1642e6, boost_clock_hz=1695e6)
    >>> round(capped.compute_factor, 3), capped.bytes_per_s
    (0.969, 936000000000.0)
    """
    if not (sm_clock_hz > 0 and boost_clock_hz > 0 and 0 < memory_clock_ratio <= 1):
        raise InputError(
            "need clocks above 0 and memory_clock_ratio in (0, 1], got "
            f"{sm_clock_hz}, {boost_clock_hz} and {memory_clock_ratio}"
        )
    factor = min(sm_clock_hz / boost_clock_hz, 1.0)
    return CappedRoofs(
        flop_per_s * factor, bytes_per_s * memory_clock_ratio, factor, memory_clock_ratio
    )
