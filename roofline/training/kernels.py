"""Elementwise work of a training step: the bytes that move between matrix products.

Training's small kernels are limited by memory: each reads its operands and writes its result. What
follows counts those bytes for one token of one layer in each framework, and how many kernels the
host has to start.

Shapes   One token, one layer, one rank.
Units    Bytes; kernels.
Limits   The backward pass of an elementwise operator moves about twice what the forward one does:
         the incoming gradient, the saved operands, the outgoing gradients.
Sources  [1] transformers, models/llama/modeling_llama.py (the operators and their order).
         [2] Korthikanti et al. 2022, arXiv:2205.05198, section 4.1 (which kernels Megatron fuses).
"""

from dataclasses import dataclass

from roofline.models.architecture import Architecture, LayerGroup
from roofline.training.activations import FP32, MASK, SIXTEEN_BIT, Types, types
from roofline.training.layer_parts import attention_widths, feed_forwards, norm_widths
from roofline.training.optimisers import value_bytes
from roofline.training.parameters import linear_share
from roofline.training.plan import TrainingPlan

BACKWARD_TRAFFIC = 2.0
"""Elementwise bytes of the backward pass over those of the forward pass."""


@dataclass(frozen=True)
class Elementwise:
    """Elementwise work of one token's forward pass through one layer.

    Args:
        n_bytes: bytes read and written.
        kernels: kernels started, matrix products not counted.
    """

    n_bytes: float
    kernels: float


def eager_elementwise(arch: Architecture, group: LayerGroup, plan: TrainingPlan) -> Elementwise:
    """Elementwise work of a layer in eager PyTorch [1].

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> work = eager_elementwise(LLAMA_3_8B, LLAMA_3_8B.layers[0], TrainingPlan(precision="bf16"))
    >>> work.n_bytes / 4096, work.kernels
    (144.0, 26.0)
    """
    kinds = types(plan)
    hidden = arch.hidden_size
    s, c = kinds.stream, kinds.compute
    full, inner = norm_widths(arch, group)
    n_bytes = full * _norm_bytes(s) * hidden + sum(_norm_bytes(c) * width for width, _ in inner)
    kernels = 6.0 * (full + len(inner))
    widths = attention_widths(group)
    turned = widths.queries + widths.keys
    # q·cos, the halves swapped (a negation, a copy), ·sin, their sum
    n_bytes += 10 * s * turned + (FP32 + SIXTEEN_BIT) * (s != c) * (turned + widths.values)
    kernels += 10.0 if group.attention is not None else 0.0
    for block in feed_forwards(group.linears):
        n_bytes += c * block.width * (5 if block.halves > 1 else 2)  # activation, product
        kernels += block.halves
    if group.experts is not None:
        for block in feed_forwards(group.experts.linears):
            n_bytes += group.experts.mean_active * c * block.width * 5
        n_bytes += group.experts.mean_active * c * 6 * hidden  # gather, weigh, scatter
        kernels += 20.0
    n_bytes += 2 * (2 * s + c) * hidden  # two residual sums
    kernels += 2.0
    if s != c:  # autocast: fp32 inputs cast for each matrix, by the dispatcher and not by Python
        into = [linear.n_in for linear in group.linears if linear.n_in == hidden]
        n_bytes += (s + c) * sum(into)
    if kinds.adapter:
        n_bytes += _adapter_bytes(group, kinds)
        kernels += 6 * len(group.linears)
    return Elementwise(float(n_bytes), float(kernels))


def _norm_bytes(stream: int) -> int:
    """Bytes a value of an RMS norm run as separate operators: cast, square, mean, scale, weight."""
    casts = 2 * (FP32 + SIXTEEN_BIT) if stream == SIXTEEN_BIT else 0
    return casts + FP32 * (2 + 1 + 2) + 2 * stream


def _adapter_bytes(group: LayerGroup, kinds: Types) -> float:
    """An adapter beside its two products: input cast, output scaled, added, cast back."""
    total = 0.0
    for linear in group.linears:
        if linear.quantisable:
            total += (kinds.compute + kinds.adapter) * linear.n_in
            total += (5 * kinds.adapter + 2 * kinds.compute) * linear.n_out
    return total


def fused_elementwise(arch: Architecture, group: LayerGroup, plan: TrainingPlan) -> Elementwise:
    """Elementwise work of a layer on one rank with fused kernels [2].

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> plan = TrainingPlan(framework="megatron", precision="mixed")
    >>> fused_elementwise(LLAMA_3_8B, LLAMA_3_8B.layers[0], plan).n_bytes / 4096
    46.0
    """
    two = FP32 if plan.precision == "fp32" else SIXTEEN_BIT
    whole = plan.tp if plan.sequence_parallel else 1
    hidden = arch.hidden_size / whole
    mask = MASK if plan.dropout else 0
    n_bytes = 2 * 2 * two * hidden  # two norms, each read and written
    n_bytes += 2 * (3 * two + mask) * hidden  # bias, dropout and residual in one kernel
    widths = attention_widths(group, plan.tp)
    n_bytes += 2 * two * (widths.queries + widths.keys)  # rotary, or a copy to the heads' layout
    if not plan.flash_attention:
        scores = widths.heads * plan.sequence_tokens / plan.cp
        # product written, softmax, dropout, product read
        n_bytes += scores * (4 * two + (2 * two + mask if plan.dropout else 0))
    for block in feed_forwards(group.linears):
        n_bytes += two * block.width * (block.halves + 1) / plan.tp
    if group.experts is not None:
        divided = plan.tp if plan.ep == 1 else 1
        for block in feed_forwards(group.experts.linears):
            n_bytes += group.experts.mean_active * two * block.width * 3 / divided
        n_bytes += group.experts.mean_active * two * 6 * arch.hidden_size / divided
    if plan.adapters:
        n_bytes += sum(
            plan.adapter_bytes * (linear.n_in + linear.n_out) * linear_share(linear, group, plan.tp)
            for linear in group.linears
        )
    return Elementwise(float(n_bytes), 10.0 + (8.0 if group.experts is not None else 0.0))


def layer_elementwise(arch: Architecture, group: LayerGroup, plan: TrainingPlan) -> Elementwise:
    """Elementwise work of one token's forward pass through a layer in the plan's framework."""
    if plan.framework == "transformers":
        return eager_elementwise(arch, group, plan)
    return fused_elementwise(arch, group, plan)


def loss_bytes(arch: Architecture, plan: TrainingPlan) -> tuple[float, float]:
    """Bytes a token of loss, forward and backward, on one rank.

    Eager: to fp32, log-softmax; zeros and scatter, its gradient, back to 16 bit.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> [value / 128256 for value in loss_bytes(LLAMA_3_8B, TrainingPlan(precision="bf16"))]
    [14.0, 22.0]
    """
    vocabulary = (arch.vocab_size if arch.lm_head is None else arch.lm_head.n_out) / plan.tp
    if plan.framework == "transformers" and not plan.fused_loss:
        return 14.0 * vocabulary, 22.0 * vocabulary
    return 10.0 * vocabulary, 8.0 * vocabulary


def optimiser_bytes(plan: TrainingPlan) -> float:
    """Bytes that updating one trained value moves: gradient, moments, parameter, master copy.

    >>> [optimiser_bytes(TrainingPlan(precision=name)) for name in ("amp", "bf16", "mixed")]
    [28.0, 14.0, 30.0]
    """
    each = value_bytes(plan)
    moments = {"adam": 2.0, "adam8bit": 2.0, "muon": 1.2, "momentum": 1.0}.get(plan.optimiser, 0.0)
    state = 1.0 if plan.optimiser == "adam8bit" else each.state
    main = each.master or each.parameter
    written = each.parameter if each.master else 0.0
    return each.gradient + 2 * moments * state + 2 * main + written
