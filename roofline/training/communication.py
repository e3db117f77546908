"""Communication of a training step: what each rank sends, and the part that compute cannot hide.

    tensor      2 all-reduces a layer and pass (or all-gather + reduce-scatter, the same volume)
    expert      2 all-to-alls a layer and pass
    context     keys and values around the ring, behind attention
    pipeline    one send a micro-batch, stage boundary and pass
    data        ZeRO 0: all-reduce of gradients; 1, 2: reduce-scatter, all-gather of parameters;
                3: all-gather before each pass, reduce-scatter after

Shapes   One rank, one step unless said otherwise.
Units    Bytes and seconds.
Limits   Ranks are laid out tp, then cp and dp, then pp: tp stays inside a node where it fits, and
         pipeline stages lie on different nodes. No congestion between groups.
Sources  [1] Shoeybi et al. 2019, arXiv:1909.08053, section 3; Korthikanti et al. 2022,
             arXiv:2205.05198, section 4.2.2 (the volumes are equal).
         [2] Rajbhandari et al. 2020, arXiv:1910.02054, section 7 (1, 1, 1.5 of baseline volume).
         [3] Li et al. 2020, PyTorch Distributed, VLDB 13(12) (gradient exchange behind backward).
"""

from dataclasses import dataclass

from roofline.timing.collectives import (
    LinkTerms,
    all_reduce_s,
    all_to_all_s,
    gather_s,
    hierarchical_all_reduce_s,
    send_s,
)
from roofline.training.plan import TrainingPlan


@dataclass(frozen=True)
class Network:
    """The links of a cluster.

    Args:
        inner: inside a node (or scale-up domain).
        outer: across nodes, the rate of one accelerator's own port.
        node: accelerators of a node.
    """

    inner: LinkTerms
    outer: LinkTerms
    node: int


def tensor_link(plan: TrainingPlan, network: Network) -> LinkTerms:
    """The link that a tensor-parallel group uses."""
    return network.inner if plan.tp <= network.node else network.outer


def tensor_s(message_bytes: float, plan: TrainingPlan, network: Network) -> float:
    """Time of one layer's tensor-parallel collectives in one pass: two of them [1].

    >>> network = Network(LinkTerms(300e9, 0.0), LinkTerms(25e9, 0.0), 8)
    >>> tensor_s(1e9, TrainingPlan(), network)
    0.0
    """
    if plan.tp == 1:
        return 0.0
    link = tensor_link(plan, network)
    if plan.sequence_parallel:  # an all-gather into each block, a reduce-scatter out of it
        return 4.0 * float(gather_s(message_bytes, plan.tp, link))
    return 2.0 * float(all_reduce_s(message_bytes, plan.tp, link))


def expert_s(message_bytes: float, plan: TrainingPlan, network: Network) -> float:
    """Time of one MoE layer's dispatch and combine in one pass."""
    if plan.ep == 1:
        return 0.0
    link = network.inner if plan.ep <= network.node else network.outer
    return 2.0 * float(all_to_all_s(message_bytes, plan.ep, link))


def context_s(message_bytes: float, plan: TrainingPlan, network: Network) -> float:
    """Time of one layer's exchange of keys and values in one pass."""
    if plan.cp == 1:
        return 0.0
    link = network.inner if plan.tp * plan.cp <= network.node else network.outer
    return float(gather_s(message_bytes, plan.cp, link))


def pipeline_s(message_bytes: float, plan: TrainingPlan, network: Network) -> float:
    """Time of one micro-batch's sends, both passes, over all its chunks on a rank."""
    if plan.pp == 1:
        return 0.0
    inside = plan.accelerators <= network.node
    link = network.inner if inside else network.outer
    sent = message_bytes / plan.tp  # each rank sends its part; the receivers gather inside
    return 2.0 * plan.interleave * float(send_s(sent, link))


def data_link(plan: TrainingPlan, network: Network) -> tuple[int, int, LinkTerms]:
    """Ranks of a data-parallel group in a node, its nodes, and the link across.

    >>> network = Network(LinkTerms(300e9, 0.0), LinkTerms(25e9, 0.0), 8)
    >>> data_link(TrainingPlan(tp=2, dp=16), network)[:2]
    (4, 4)
    """
    inside = min(max(network.node // plan.tp, 1), plan.shards)
    nodes = max(1, -(-plan.shards // inside))
    return inside, nodes, network.outer


def data_s(
    gradient_bytes: float, parameter_bytes: float, plan: TrainingPlan, network: Network
) -> float:
    """Time of a step's data-parallel exchange, nothing hidden [2].

    Args:
        gradient_bytes: a rank's gradients before ZeRO divides them.
        parameter_bytes: its parameters in the type that is gathered.
        plan: the plan.
        network: the links.

    >>> network = Network(LinkTerms(300e9, 0.0), LinkTerms(25e9, 0.0), 8)
    >>> round(data_s(140e9, 140e9, TrainingPlan(dp=8), network), 3)  # 245 GB on each link
    0.817
    """
    ranks = plan.shards
    if ranks == 1:
        return 0.0
    inside, nodes, outer = data_link(plan, network)
    if nodes == 1:
        reduce = float(all_reduce_s(gradient_bytes, ranks, network.inner))
    else:
        reduce = float(
            hierarchical_all_reduce_s(gradient_bytes, inside, nodes, network.inner, outer)
        )

    def gather(n_bytes: float) -> float:  # a reduce-scatter takes as long
        across = float(gather_s(n_bytes / inside, nodes, outer))
        return across + float(gather_s(n_bytes, inside, network.inner))

    match plan.zero_stage:
        case 0:
            return reduce
        case 1 | 2:
            return gather(gradient_bytes) + gather(parameter_bytes)
        case _:
            passes = 2 * plan.micro_batches  # forward and backward fetch the parameters each time
            return gather(gradient_bytes) + passes * gather(parameter_bytes)


def exposed_s(exchange_s: float, hiding_s: float) -> float:
    """The part of an exchange that outlasts the compute it runs behind [3].

    >>> exposed_s(3.0, 2.0), exposed_s(1.0, 2.0)
    (1.0, 0.0)
    """
    return max(exchange_s - hiding_s, 0.0)
