"""Training FLOPs: exact by operator, with the usual 6·N beside them.

    forward     2 FLOP a value of every matrix that a token passes through, and attention's pairs
    backward    the same for the inputs' gradients, again for the weights' where they are trained
    recomputed  the forward pass of the layers once more (full), of attention's core (selective)

Shapes   One token of a sequence of ``sequence_tokens``; whole model, all ranks together.
Units    FLOP (a multiply-add is two).
Limits   A causal kernel scores (s + 1)/2 pairs a token; a masked one scores all s. Published MFU
         counts all s in Megatron's papers: ``causal=False``.
Sources  [1] Kaplan et al. 2020, arXiv:2001.08361, section 2.1 (6·N a token).
         [2] Narayanan et al. 2021, arXiv:2104.04473, appendix:
             96·B·s·l·h²·(1 + s/(6h) + V/(16·l·h)), with full recomputation.
         [3] Korthikanti et al. 2022, arXiv:2205.05198, appendix A (model and hardware FLOPs).
         [4] Chowdhery et al. 2022, PaLM, arXiv:2204.02311, appendix B (MFU).
"""

from dataclasses import dataclass

from roofline.models.architecture import Architecture, GroupedQuery, Latent, LayerGroup
from roofline.training.parameters import adapter_values
from roofline.training.plan import TrainingPlan

MULTIPLY_ADD = 2
FORWARD_AND_BACKWARD = 6
"""FLOP a parameter and token in the rule of thumb: 2 forward, 4 backward [1]."""


@dataclass(frozen=True)
class OperatorFlop:
    """FLOPs a token of one operator, over all layers.

    Args:
        name: matrix or function.
        forward: of the forward pass.
        backward: of the backward pass.
        again: recomputed.
    """

    name: str
    forward: float
    backward: float
    again: float = 0.0

    @property
    def model(self) -> float:
        """Without what is recomputed."""
        return self.forward + self.backward

    @property
    def hardware(self) -> float:
        """With what is recomputed."""
        return self.model + self.again


def mean_pairs(tokens: int, window: int | None = None, *, causal: bool = True) -> float:
    """Pairs that attention scores for a token, averaged over a sequence.

    >>> mean_pairs(2048), mean_pairs(4, window=2), mean_pairs(2048, causal=False)
    (1024.5, 1.75, 2048.0)
    """
    if not causal:
        return float(tokens)
    if window is None or window >= tokens:
        return (tokens + 1) / 2
    return (window * (window + 1) / 2 + (tokens - window) * window) / tokens


def attention_flop(group: LayerGroup, pairs: float) -> float:
    """FLOPs a token of scores and weighted sum; latent attention trains expanded."""
    match group.attention:
        case GroupedQuery() as a:
            return MULTIPLY_ADD * a.query_heads * (a.head_dim + a.value_dim) * pairs
        case Latent() as a:
            width = a.nope_dim + a.rope_dim + a.v_head_dim
            return MULTIPLY_ADD * a.n_heads * width * pairs
        case None:
            return 0.0


def flop_by_operator(
    arch: Architecture, plan: TrainingPlan, *, causal: bool | None = None
) -> tuple[OperatorFlop, ...]:
    """FLOPs a token of each operator.

    Args:
        arch: the model.
        plan: what is trained and recomputed.
        causal: whether masked pairs are left out; None: as the plan's attention kernel does.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> for row in flop_by_operator(LLAMA_3_8B, TrainingPlan())[-2:]:
    ...     print(row.name, round(row.forward / 1e9, 3), round(row.backward / 1e9, 3))
    attention 0.537 1.074
    lm_head 1.051 2.101
    """
    skips_masked = plan.flash_attention if causal is None else causal
    matrices: dict[str, list[float]] = {}
    trained_from = arch.n_layers - plan.trainable_layers if plan.method == "partial" else 0
    position = 0

    def add(name: str, forward: float, backward: float, again: float) -> None:
        row = matrices.setdefault(name, [0.0, 0.0, 0.0])
        row[0] += forward
        row[1] += backward
        row[2] += again

    for group in arch.layers:
        count = group.n_layers
        reached = max(0, min(count, position + count - trained_from))  # by the backward pass
        position += count
        gradients = 1.0 if plan.adapters else 2.0  # of inputs, and of weights
        whole = reached if plan.recompute == "full" else 0
        core = reached if plan.recompute != "none" else 0
        calls = [(linear, linear.calls) for linear in group.linears]
        if group.experts is not None:
            active = group.experts.mean_active
            calls += [(linear, active) for linear in group.experts.linears]
        for linear, times in calls:
            once = MULTIPLY_ADD * linear.values * times
            add(linear.name, once * count, once * gradients * reached, once * whole)
            if plan.adapters and linear.quantisable:
                low = MULTIPLY_ADD * adapter_values(linear, plan.lora_rank) * times
                add("adapters", low * count, 2 * low * count, low * whole)
        pairs = mean_pairs(plan.sequence_tokens, group.window, causal=skips_masked)
        scored = attention_flop(group, pairs)
        if scored:
            add("attention", scored * count, 2 * scored * reached, scored * core)
        if group.recurrent is not None:
            state = group.recurrent.flop_per_token
            add(group.recurrent.kind, state * count, 2 * state * reached, state * whole)
    if arch.lm_head is not None:
        once = MULTIPLY_ADD * float(arch.lm_head.values)
        frozen = plan.adapters or (plan.method == "partial" and arch.tied)
        add("lm_head", once, once * (1.0 if frozen else 2.0), 0.0)
    return tuple(OperatorFlop(name, *row) for name, row in matrices.items())


def model_flop_per_token(
    arch: Architecture, plan: TrainingPlan, *, causal: bool | None = None
) -> float:
    """FLOPs that training on a token takes, nothing recomputed.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> model_flop_per_token(LLAMA_3_8B, TrainingPlan(sequence_tokens=8192)) / 1e9
    51.5
    """
    return sum(row.model for row in flop_by_operator(arch, plan, causal=causal))


def hardware_flop_per_token(
    arch: Architecture, plan: TrainingPlan, *, causal: bool | None = None
) -> float:
    """FLOPs that the devices do for a token, recomputation included."""
    return sum(row.hardware for row in flop_by_operator(arch, plan, causal=causal))


def rule_of_thumb_flop(parameters: float, tokens: float) -> float:
    """FLOPs by the rule 6·N a token [1], without attention, embeddings counted.

    >>> rule_of_thumb_flop(70e9, 30e3) / 1e15, rule_of_thumb_flop(70e9, 1e6) / 1e15
    (12.6, 420.0)
    """
    return FORWARD_AND_BACKWARD * parameters * tokens
