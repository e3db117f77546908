"""Activations: the tensors that the forward pass keeps for the backward pass, layer by layer.

Two ways of running a layer are known. ``transformers`` is PyTorch eager: every elementwise operator
keeps its own operands, norms keep an fp32 copy of their input, and under autocast each matrix keeps
its own 16-bit copy of an fp32 input. ``megatron`` has fused kernels that keep one tensor each.

Shapes   Widths are values a token; everything here is bytes of one token in one layer on one rank.
Units    Bytes a token.
Limits   Attention is fused (no score matrix) unless the plan says otherwise. Routed experts are
         counted as n_active feed-forwards a token with even routing, recurrent layers as the inputs
         and outputs of their matrices: both are estimates and said to be.
Sources  [1] PyTorch, saved tensors of the operators that transformers' Llama calls: counted with
             ``torch.autograd.graph.saved_tensors_hooks``, which the tests repeat.
         [2] Korthikanti et al. 2022, arXiv:2205.05198, section 4 (34 + 5·a·s/h bytes a value).
         [3] Dao 2023, FlashAttention-2, arXiv:2307.08691 (keeps q, k, v, output, log-sum-exp).
"""

from dataclasses import dataclass

from roofline.models.architecture import Architecture, LayerGroup
from roofline.training.layer_parts import (
    LAYER_NORM_TYPES,
    attention_widths,
    belongs_to_attention,
    feed_forwards,
    is_output,
    norm_widths,
)
from roofline.training.parameters import linear_share
from roofline.training.plan import TrainingPlan

FP32, SIXTEEN_BIT, MASK = 4, 2, 1
"""Bytes of a value, and of one entry of a dropout mask."""

_FP32_WEIGHT_NORM_TYPES = frozenset(
    {"flex_olmo", "gemma", "gemma2", "gemma3", "gemma3_text", "olmo2", "olmo3"}
)


@dataclass(frozen=True)
class Saved:
    """Bytes a token that one layer keeps, by part."""

    norms: float = 0.0
    attention: float = 0.0
    feed_forward: float = 0.0
    linear_inputs: float = 0.0
    adapters: float = 0.0
    scores: float = 0.0
    masks: float = 0.0

    @property
    def total(self) -> float:
        """All parts."""
        return (
            self.norms + self.attention + self.feed_forward + self.linear_inputs + self.adapters
            + self.scores + self.masks
        )  # fmt: skip


@dataclass(frozen=True)
class Types:
    """Bytes of the values that pass through a layer.

    Args:
        stream: between layers (the residual stream).
        compute: inside matrices and attention.
        trained: whether the layer's own weights get gradients.
        adapter: bytes of an adapter's values; 0: none.
        rank: rank of the adapters.
    """

    stream: int
    compute: int
    trained: bool
    adapter: int
    rank: int


def types(plan: TrainingPlan) -> Types:
    """What the plan's precision makes of a layer.

    >>> types(TrainingPlan(precision="amp"))
    Types(stream=4, compute=2, trained=True, adapter=0, rank=0)
    """
    stream = FP32 if plan.precision in ("amp", "fp32") and not plan.adapters else SIXTEEN_BIT
    compute = FP32 if plan.precision == "fp32" and not plan.adapters else SIXTEEN_BIT
    return Types(
        stream=stream,
        compute=compute,
        trained=not plan.adapters,
        adapter=plan.adapter_bytes if plan.adapters else 0,
        rank=plan.lora_rank if plan.adapters else 0,
    )


def norm_bytes(arch: Architecture, types_: Types, width: float, rows: float) -> float:
    """Bytes a token that one norm keeps [1].

    RMS norm in eager PyTorch: the fp32 input (its square and its product need it), a reciprocal
    root a row, and, where the weight is trained, what the weight multiplies.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> bf16 = types(TrainingPlan(precision="bf16"))
    >>> norm_bytes(LLAMA_3_8B, bf16, 4096, 1)  # 4 + 2 bytes a value, 4 a row
    24580
    """
    if arch.model_type in LAYER_NORM_TYPES:
        return types_.stream * width + 2 * FP32 * rows  # one fused kernel: input, mean, deviation
    kept = FP32 * width + FP32 * rows
    if not types_.trained:
        return kept
    # some families multiply by the weight before they cast back
    each = FP32 if arch.model_type in _FP32_WEIGHT_NORM_TYPES else types_.stream
    return kept + each * width


def eager_layer(arch: Architecture, group: LayerGroup, plan: TrainingPlan) -> Saved:
    """Bytes a token that one layer keeps in transformers' eager PyTorch [1].

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> saved = eager_layer(LLAMA_3_8B, LLAMA_3_8B.layers[0], TrainingPlan(precision="bf16"))
    >>> saved.total, saved.norms  # 4096 × (16 + 5) + 14336 × 8, and a few rows
    (200840.0, 49160.0)
    """
    kinds = types(plan)
    full, inner = norm_widths(arch, group)
    norms = full * norm_bytes(arch, kinds, arch.hidden_size, 1.0)
    attention_kinds = Types(kinds.compute, kinds.compute, kinds.trained, kinds.adapter, kinds.rank)
    norms += sum(norm_bytes(arch, attention_kinds, width, rows) for width, rows in inner)
    widths = attention_widths(group)
    attention = (
        kinds.compute * (widths.queries + widths.keys + widths.values + widths.outputs)
        + FP32 * widths.heads
    )
    scores = 0.0
    if not plan.flash_attention:  # probabilities in fp32 and 16 bit, as eager attention keeps them
        scores = widths.heads * plan.sequence_tokens * (FP32 + kinds.compute)
    inputs = _linear_inputs(arch, group, kinds)
    feed_forward = 0.0
    for block in feed_forwards(group.linears):
        # what the activation function reads and gives, and the other half
        feed_forward += kinds.compute * block.width * (3 if block.halves > 1 else 1)
        inputs += kinds.compute * block.width if kinds.trained else 0.0
    feed_forward += _expert_bytes(group, kinds, plan)
    if group.recurrent is not None:
        outputs = sum(linear.n_out for linear in group.linears if belongs_to_attention(linear))
        attention += kinds.compute * 2 * outputs
    adapters = 0.0
    if kinds.adapter:
        adapters = sum(
            kinds.adapter * linear.n_in + kinds.adapter * kinds.rank
            for linear in group.linears
            if linear.quantisable and linear.calls > 0
        )
        if kinds.adapter == kinds.compute:  # no cast: matrices with the same input share it
            adapters = inputs_shared(group, kinds) + sum(
                kinds.adapter * kinds.rank for linear in group.linears if linear.quantisable
            )
    return Saved(
        norms=norms,
        attention=attention,
        feed_forward=feed_forward,
        linear_inputs=inputs,
        adapters=adapters,
        scores=scores,
    )


def inputs_shared(group: LayerGroup, kinds: Types) -> float:
    """Inputs of the matrices, each distinct one kept once, those of block outputs left out."""
    distinct = {
        (linear.n_in, belongs_to_attention(linear))
        for linear in group.linears
        if linear.calls > 0 and not is_output(linear)
    }
    return float(sum(kinds.compute * width for width, _ in distinct))


def _linear_inputs(arch: Architecture, group: LayerGroup, kinds: Types) -> float:
    if not kinds.trained:
        return 0.0  # a frozen matrix keeps no input
    if kinds.stream == kinds.compute:
        return inputs_shared(group, kinds)
    # under autocast the norm's fp32 output is cast for each matrix anew
    return float(
        sum(
            kinds.compute * linear.n_in
            for linear in group.linears
            if linear.calls > 0 and not is_output(linear)
        )
    )


def _expert_bytes(group: LayerGroup, kinds: Types, plan: TrainingPlan) -> float:
    """Feed-forwards of the chosen experts, the copied inputs and the weighted outputs."""
    if group.experts is None:
        return 0.0
    active = group.experts.mean_active
    total = 0.0
    for block in feed_forwards(group.experts.linears):
        per_expert = (4 if block.halves > 1 else 2) * block.width
        total += active * kinds.compute * per_expert
    hidden = group.experts.linears[0].n_in
    total += active * kinds.compute * 2 * hidden  # tokens copied to experts, outputs to weigh
    return total + FP32 * group.experts.routed * 2  # router logits and probabilities


def fused_layer(arch: Architecture, group: LayerGroup, plan: TrainingPlan) -> Saved:
    """Bytes a token that one layer keeps on one rank with Megatron's fused kernels [2].

    Without tensor parallelism and with scores in memory GPT's layer keeps 34·h + 5·a·s bytes.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> plan = TrainingPlan(framework="megatron", precision="mixed", tp=8, sequence_parallel=True)
    >>> fused_layer(LLAMA_3_8B, LLAMA_3_8B.layers[0], plan).total
    17424.0
    """
    two = FP32 if plan.precision == "fp32" else SIXTEEN_BIT
    tp = plan.tp
    whole = 1.0 / tp if plan.sequence_parallel else 1.0  # what sequence parallelism divides
    hidden = arch.hidden_size
    norms = 2 * two * hidden * whole
    widths = attention_widths(group, tp)
    attention = two * (widths.queries + widths.keys + widths.values)
    scores = 0.0
    mask = MASK if plan.dropout else 0
    if plan.flash_attention:
        attention += FP32 * widths.heads  # log-sum-exp
    else:
        pairs = widths.heads * plan.sequence_tokens / plan.cp
        dropped = two if plan.dropout else 0
        scores = pairs * (two + mask + dropped)  # softmax output, its mask, what dropout gives
    inputs = two * widths.outputs  # of the output projection
    if group.attention is not None or group.recurrent is not None:
        inputs += two * hidden * whole  # of the q, k, v projection
    feed_forward = 0.0
    blocks = feed_forwards(group.linears)
    for block in blocks:
        feed_forward += two * block.halves * block.width / tp
        inputs += two * block.width / tp
    if blocks:
        inputs += two * hidden * whole
    kinds = types(plan)
    feed_forward += _expert_bytes(group, kinds, plan) / (tp if plan.ep == 1 else 1)
    masks = 2 * MASK * hidden * whole if plan.dropout else 0.0
    adapters = 0.0
    if plan.adapters:
        adapters = sum(
            plan.adapter_bytes * plan.lora_rank * linear_share(linear, group, tp)
            for linear in group.linears
            if linear.quantisable
        )
    return Saved(
        norms=norms,
        attention=attention,
        feed_forward=feed_forward,
        linear_inputs=inputs,
        adapters=adapters,
        scores=scores,
        masks=masks,
    )


def saved_by_layer(arch: Architecture, group: LayerGroup, plan: TrainingPlan) -> Saved:
    """Bytes a token that one layer would keep without recomputation, in the plan's framework."""
    if plan.framework == "transformers":
        return eager_layer(arch, group, plan)
    return fused_layer(arch, group, plan)


def checkpoint_bytes(arch: Architecture, plan: TrainingPlan) -> float:
    """Bytes a token of one layer's input, which is all that full recomputation keeps of it [2].

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> checkpoint_bytes(LLAMA_3_8B, TrainingPlan(precision="bf16", recompute="full"))
    8192.0
    """
    each = types(plan).stream if plan.framework == "transformers" else SIXTEEN_BIT
    divided = plan.tp if plan.framework == "megatron" and plan.sequence_parallel else 1
    return each * arch.hidden_size / divided


def kept_by_layer(arch: Architecture, group: LayerGroup, plan: TrainingPlan) -> float:
    """Bytes a token that one layer keeps until its backward pass.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> layer = LLAMA_3_8B.layers[0]
    >>> kept_by_layer(LLAMA_3_8B, layer, TrainingPlan(precision="bf16", recompute="full"))
    8192.0
    """
    saved = saved_by_layer(arch, group, plan)
    match plan.recompute:
        case "none":
            return saved.total
        case "selective":
            return saved.total - saved.scores
        case "full":
            return min(saved.total, checkpoint_bytes(arch, plan))


def final_bytes(arch: Architecture, plan: TrainingPlan) -> float:
    """Bytes a token kept after the layers and before the logits: the last norm, lm_head's input.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> final_bytes(LLAMA_3_8B, TrainingPlan(precision="bf16")) == 4096 * 8 + 4
    True
    """
    hidden = arch.hidden_size
    if plan.framework == "megatron":
        whole = plan.tp if plan.sequence_parallel else 1
        return 2 * SIXTEEN_BIT * hidden / whole
    kinds = types(plan)
    inputs = kinds.compute * hidden if kinds.trained else 0.0
    return norm_bytes(arch, kinds, hidden, 1.0) + inputs
