"""Time of one micro-batch through one layer, the head, the optimiser: on one rank.

    matmuls      t0 + ((bytes / B)^q + (FLOP / P)^q)^(1/q), at the sustained rate
    attention    fused: the prefill kernel's terms; else two matmuls and the scores' traffic
    elementwise  bytes / B of small kernels, and a start each

Units    Seconds.
Limits   Even work over ranks.
Sources  [1] Dao 2023, FlashAttention-2, arXiv:2307.08691, section 4.1: the backward pass does 2.5 ×
             the forward's FLOPs, at 0.86 of its rate (196 of 227 TFLOP/s on A100).
"""

from dataclasses import dataclass, replace

from roofline.models.architecture import Architecture, GroupedQuery, LayerGroup
from roofline.timing.terms import Curve, DeviceTerms
from roofline.training.activations import SIXTEEN_BIT, types
from roofline.training.communication import Network, context_s, expert_s, exposed_s, tensor_s
from roofline.training.flop import attention_flop, mean_pairs
from roofline.training.kernels import (
    BACKWARD_TRAFFIC,
    layer_elementwise,
    loss_bytes,
    optimiser_bytes,
)
from roofline.training.parameters import linear_share, rank_share, trainable_share
from roofline.training.plan import TrainingPlan

FLASH_BACKWARD_FLOP = 2.5
FLASH_BACKWARD_RATE = 0.86


@dataclass(frozen=True)
class Pass:
    """Seconds of one pass of a micro-batch over something, by kind, and what the host needs."""

    matmul: float = 0.0
    attention: float = 0.0
    elementwise: float = 0.0
    tensor: float = 0.0
    expert: float = 0.0
    context: float = 0.0
    hidden: float = 0.0
    kernels: float = 0.0

    @property
    def device(self) -> float:
        """Time that the device takes, exposed exchange included."""
        return (
            self.matmul + self.attention + self.elementwise + self.tensor + self.expert
            + self.context
        )  # fmt: skip

    def plus(self, other: "Pass") -> "Pass":
        """Both."""
        return Pass(*(getattr(self, name) + getattr(other, name) for name in KINDS))

    def times(self, factor: float) -> "Pass":
        """Repeated."""
        return Pass(*(getattr(self, name) * factor for name in KINDS))


KINDS = (
    "matmul", "attention", "elementwise", "tensor", "expert", "context", "hidden", "kernels"
)  # fmt: skip


def compute_kind(plan: TrainingPlan, device: DeviceTerms) -> str:
    """The compute type of the plan's matrix products on this device."""
    if plan.precision == "fp32" and not plan.adapters:
        return "fp32"
    return next((kind for kind in ("bf16", "fp16", "fp32") if kind in device.matmul), "fp32")


def _sustained(plan: TrainingPlan, device: DeviceTerms) -> Curve:
    kind = compute_kind(plan, device)
    curve = device.matmul.get(kind) or next(iter(device.matmul.values()))
    share = device.sustained.get(kind, 1.0)
    return Curve(curve.start_s, curve.bytes_per_s, curve.flop_per_s * share, curve.softness)


def layer_passes(
    arch: Architecture,
    group: LayerGroup,
    plan: TrainingPlan,
    device: DeviceTerms,
    network: Network,
) -> tuple[Pass, Pass]:
    """Forward and backward of one micro-batch through one layer, on one rank."""
    kinds = types(plan)
    tokens = plan.micro_tokens / plan.cp
    matmul = _sustained(plan, device)
    forward_s = backward_s = 0.0
    kernels = 0.0
    gradients = 1 if plan.adapters else 2
    for linear in group.linears:
        if linear.calls == 0:
            continue
        part = linear_share(linear, group, plan.tp)
        flop = 2.0 * tokens * linear.values * part
        moved = kinds.compute * (tokens * (linear.n_in + linear.n_out) + linear.values) * part
        once = float(matmul.seconds(moved, flop)) * linear.calls
        forward_s += once
        backward_s += gradients * once
        kernels += 1
        if plan.adapters and linear.quantisable:
            wide = plan.adapter_bytes * tokens * (linear.n_in + linear.n_out) * part
            each = float(device.small.seconds(wide, 0.0)) + device.small.start_s
            forward_s += each
            backward_s += 2 * each
    if group.experts is not None:
        rows = tokens * group.experts.mean_active
        held = group.experts.n_experts / plan.ep
        divided = plan.tp if plan.ep == 1 else 1
        grouped = device.experts.get(compute_kind(plan, device), matmul)
        for linear in group.experts.linears:
            flop = 2.0 * rows * linear.values / divided
            moved = (
                kinds.compute
                * (rows * (linear.n_in + linear.n_out) + held * linear.values)
                / divided
            )
            once = float(grouped.seconds(moved, flop))
            forward_s += once
            backward_s += gradients * once
            kernels += 1
    pairs = mean_pairs(plan.sequence_tokens, group.window, causal=plan.flash_attention)
    scored = attention_flop(group, pairs) * tokens / plan.tp
    attention_f = attention_b = 0.0
    if scored:
        kernels += 1
        head_dim = group.attention.head_dim if isinstance(group.attention, GroupedQuery) else 128
        if plan.flash_attention:
            terms = device.prefill_attention
            attention_f = float(terms.seconds(scored, float(plan.sequence_tokens), head_dim))
            attention_b = attention_f * FLASH_BACKWARD_FLOP / FLASH_BACKWARD_RATE
        else:
            attention_f = float(matmul.seconds(0.0, scored))
            attention_b = 2 * attention_f
    work = layer_elementwise(arch, group, plan)
    small = device.small
    elementwise_f = tokens * work.n_bytes / small.bytes_per_s + work.kernels * small.start_s
    elementwise_b = BACKWARD_TRAFFIC * elementwise_f
    kernels += work.kernels
    message = SIXTEEN_BIT * tokens * arch.hidden_size
    exchanged = tensor_s(message, plan, network)
    routed = 0.0
    if group.experts is not None:
        routed = expert_s(message * group.experts.mean_active / plan.tp, plan, network)
    context_f = 0.0
    if plan.cp > 1 and isinstance(group.attention, GroupedQuery):
        a = group.attention
        kv = SIXTEEN_BIT * a.n_kv_heads * (a.head_dim + a.value_dim) * plan.micro_tokens / plan.tp
        context_f = context_s(kv, plan, network)
    forward = _with_exchange(
        Pass(forward_s, attention_f, elementwise_f, kernels=kernels),
        exchanged, routed, context_f, hides=plan.overlap_layers,
    )  # fmt: skip
    backward = _with_exchange(
        Pass(backward_s, attention_b, elementwise_b, kernels=2 * kernels),
        exchanged, routed, 2 * context_f, hides=plan.overlap_layers,
    )  # fmt: skip
    return forward, backward


def _with_exchange(
    compute: Pass, tensor: float, expert: float, context: float, *, hides: bool
) -> Pass:
    """Add a layer's exchanges: keys and values behind attention, the rest if asked."""
    exposed_context = exposed_s(context, compute.attention)
    hiding = compute.device if hides else 0.0
    left = exposed_s(tensor + expert, hiding)
    share = left / (tensor + expert) if tensor + expert > 0 else 0.0
    return replace(
        compute,
        tensor=tensor * share,
        expert=expert * share,
        context=exposed_context,
        hidden=tensor + expert - left + context - exposed_context,
    )


def head_passes(arch: Architecture, plan: TrainingPlan, device: DeviceTerms) -> tuple[Pass, Pass]:
    """Forward and backward of one micro-batch through lm_head and the loss, on one rank."""
    tokens = plan.micro_tokens / plan.cp
    before, after = loss_bytes(arch, plan)
    rate = device.small.bytes_per_s
    once = 0.0
    if arch.lm_head is not None:
        values = arch.lm_head.values / plan.tp
        matmul = _sustained(plan, device)
        moved = SIXTEEN_BIT * (tokens * arch.lm_head.n_out / plan.tp + values)
        once = float(matmul.seconds(moved, 2.0 * tokens * values))
    gradients = 1 if plan.adapters else 2
    return (
        Pass(matmul=once, elementwise=tokens * before / rate, kernels=10),
        Pass(matmul=gradients * once, elementwise=tokens * after / rate, kernels=10),
    )


def optimiser_s(arch: Architecture, plan: TrainingPlan, device: DeviceTerms) -> float:
    """Time of updating the parameters that a rank updates."""
    trained = trainable_share(arch, plan)
    values = trained.base + trained.adapters
    if plan.zero_stage >= 1:
        values /= plan.shards
    return values * optimiser_bytes(plan) / device.small.bytes_per_s


def cast_s(arch: Architecture, plan: TrainingPlan, device: DeviceTerms) -> tuple[float, float]:
    """Time of autocast's weight copies in a forward pass, and of its gradients' casts."""
    if plan.precision != "amp" or plan.adapters:
        return 0.0, 0.0
    share = rank_share(arch, plan)
    once = (share.matrices + share.experts + share.head) * 6.0 / device.small.bytes_per_s
    return once, once


def score_s(group: LayerGroup, plan: TrainingPlan, device: DeviceTerms) -> float:
    """Memory time of making the scores of one layer again."""
    heads = group.attention.query_heads if isinstance(group.attention, GroupedQuery) else 0
    scores = heads / plan.tp * plan.sequence_tokens / plan.cp * plan.micro_tokens / plan.cp
    per_score = 4 * SIXTEEN_BIT + (2 * SIXTEEN_BIT + 1 if plan.dropout else 0)
    return scores * per_score / device.small.bytes_per_s
