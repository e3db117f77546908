"""Parameters by what training does with them: which are trained, which lie on one rank.

Shapes   A ``Share`` is what one rank holds, counted by role: matrices of the blocks, routed
         experts, embedding and head, small values (norms, biases), adapters.
Units    Values.
Limits   The rank with the most is counted: the first or last pipeline stage. Layers are divided as
         evenly as whole layers go.
Sources  [1] Shoeybi et al. 2019, Megatron-LM, arXiv:1909.08053, section 3 (rows and columns).
         [2] Hu et al. 2021, LoRA, arXiv:2106.09685, section 4.1: r × (n_in + n_out) a matrix.
"""

import math
from dataclasses import dataclass

from roofline.models.architecture import Architecture, GroupedQuery, LayerGroup, Linear, Split
from roofline.training.plan import TrainingPlan


@dataclass(frozen=True)
class Share:
    """Values of one rank by role."""

    matrices: float = 0.0
    experts: float = 0.0
    embedding: float = 0.0
    head: float = 0.0
    small: float = 0.0
    adapters: float = 0.0

    @property
    def base(self) -> float:
        """Values of the model itself."""
        return self.matrices + self.experts + self.embedding + self.head + self.small

    @property
    def dense(self) -> float:
        """Values that are no routed expert and no adapter."""
        return self.base - self.experts

    def __add__(self, other: "Share") -> "Share":
        return Share(*(getattr(self, name) + getattr(other, name) for name in _ROLES))

    def scaled(self, factor: float) -> "Share":
        """Every role multiplied."""
        return Share(*(getattr(self, name) * factor for name in _ROLES))


_ROLES = ("matrices", "experts", "embedding", "head", "small", "adapters")


def linear_share(linear: Linear, group: LayerGroup, tp: int) -> float:
    """The part of a matrix that one tensor-parallel rank holds.

    >>> linear_share(Linear("down", 8, 4, split=Split.ROW), LayerGroup(1), 2)
    0.5
    """
    match linear.split:
        case Split.REPLICATED:
            return 1.0
        case Split.KV_HEADS:
            heads = group.attention.n_kv_heads if isinstance(group.attention, GroupedQuery) else tp
            return math.ceil(heads / tp) / heads  # past n_kv_heads, heads are copied
        case Split.COLUMN | Split.ROW:
            return 1.0 / tp


def adapter_values(linear: Linear, rank: int) -> int:
    """Values of a LoRA adapter on a matrix [2].

    >>> adapter_values(Linear("q", 2048, 512), 16)
    40960
    """
    return rank * (linear.n_in + linear.n_out)


def layer_share(group: LayerGroup, plan: TrainingPlan) -> Share:
    """What one rank holds of one layer.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> layer_share(LLAMA_3_8B.layers[0], TrainingPlan()).base
    218112000.0
    """
    matrices = small = adapters = 0.0
    for linear in group.linears:
        part = linear_share(linear, group, plan.tp)
        matrices += part * linear.values
        small += part * (linear.parameters - linear.values)
        if plan.adapters and linear.quantisable:
            adapters += part * adapter_values(linear, plan.lora_rank)
    experts = 0.0
    if group.experts is not None:
        held = group.experts.n_experts / plan.ep
        each = sum(linear.parameters for linear in group.experts.linears)
        experts = held * (each + group.experts.expert_biases)
        if plan.ep == 1:
            experts /= plan.tp  # without expert parallelism each expert is split like a matrix
        if plan.adapters:
            ranks = plan.tp if plan.ep == 1 else 1
            adapters += (
                held / ranks
                * sum(adapter_values(linear, plan.lora_rank) for linear in group.experts.linears)
            )  # fmt: skip
    return Share(
        matrices=matrices,
        experts=experts,
        small=small + group.small_parameters,
        adapters=adapters,
    )


def rank_share(arch: Architecture, plan: TrainingPlan) -> Share:
    """What the fullest rank holds before ZeRO divides it.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> rank_share(LLAMA_3_8B, TrainingPlan()).base == LLAMA_3_8B.parameters
    True
    >>> round(rank_share(LLAMA_3_8B, TrainingPlan(tp=8)).base / LLAMA_3_8B.parameters, 3)
    0.125
    """
    body = Share()
    for group in arch.layers:
        body = body + layer_share(group, plan).scaled(group.n_layers)
    body = body.scaled(math.ceil(arch.n_layers / plan.pp) / arch.n_layers)
    embedding = arch.embedding_parameters / plan.tp
    head = 0.0 if arch.lm_head is None else arch.lm_head.parameters / plan.tp
    if plan.pp == 1:
        ends = Share(
            embedding=embedding,
            head=0.0 if arch.tied else head,
            small=arch.small_parameters,
        )
    else:  # the first stage holds the embedding, the last the head (a copy when tied)
        ends = max(
            Share(embedding=embedding),
            Share(head=head, small=arch.small_parameters),
            key=lambda share: share.base,
        )
    return body + ends


def trainable_share(arch: Architecture, plan: TrainingPlan) -> Share:
    """What of the rank's values gets gradients and optimiser states.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> lora = trainable_share(LLAMA_3_8B, TrainingPlan(method="lora", lora_rank=16))
    >>> int(lora.adapters), lora.base
    (41943040, 0.0)
    """
    share = rank_share(arch, plan)
    if plan.adapters:
        return Share(adapters=share.adapters)
    if plan.method == "partial":
        last = Share()
        left = plan.trainable_layers
        for group in reversed(arch.layers):
            taken = min(left, group.n_layers)
            last = last + layer_share(group, plan).scaled(taken)
            left -= taken
        # a tied head would send gradients through every layer to the input table: it stays frozen
        head = 0.0 if arch.tied else share.head
        return last + Share(head=head, small=arch.small_parameters)
    return share
