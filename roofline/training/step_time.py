"""Step time of training: compute, memory and links, what hides behind what, and the bubble.

    micro-batch   Σ layers (matmuls + attention + elementwise + tensor and expert exchange)
    step          (m + (pp − 1)/interleave) · slowest stage + exposed data exchange + optimiser
    eager         no phase of a micro-batch is shorter than the host needs to start its kernels

The bound beside it is the largest of three: model FLOPs at the datasheet's peak, bytes that each
parameter has to move at the datasheet's bandwidth, least link volume at the links' nominal rate.

Shapes   One plan, one step; times of the slowest stage's rank.
Units    Seconds, FLOP, bytes.
Limits   Even work over ranks: no stragglers, no data loading, no checkpoints, even routing.
Sources  [1] Narayanan et al. 2021, arXiv:2104.04473, section 2.2: bubble (p − 1)/m, over v chunks.
         [2] Dao 2023, FlashAttention-2, arXiv:2307.08691, section 4.1: the backward pass does 2.5 ×
             the forward's FLOPs, at 0.86 of its rate (196 of 227 TFLOP/s on A100).
         [3] measurements/h200-sxm-141gb/*-transformers-eager.json: 924 kernels in 77 ms, 83 µs.
         [4] measurements/training/h200-sxm-141gb/2026-11-reference.json: what autograd's C++ needs
             to start a kernel (12 µs), fitted to its rows of micro-batch 1 × 2,048 tokens.
"""

import math
from dataclasses import dataclass

from roofline.models.architecture import Architecture, GroupedQuery, LayerGroup
from roofline.timing.terms import Curve, DeviceTerms
from roofline.training.activations import SIXTEEN_BIT, types
from roofline.training.communication import (
    Network,
    context_s,
    data_s,
    expert_s,
    exposed_s,
    pipeline_s,
    tensor_s,
)
from roofline.training.flop import attention_flop, mean_pairs
from roofline.training.kernels import (
    BACKWARD_TRAFFIC,
    layer_elementwise,
    loss_bytes,
    optimiser_bytes,
)
from roofline.training.optimisers import value_bytes
from roofline.training.parameters import linear_share, rank_share, trainable_share
from roofline.training.plan import TrainingPlan, check_plan

FLASH_BACKWARD_FLOP = 2.5
FLASH_BACKWARD_RATE = 0.86
PYTHON_KERNEL_S = 83e-6
"""Host time of a kernel that Python modules start, on the host of [3]."""
AUTOGRAD_KERNEL_S = 12e-6
"""Host time of a kernel that autograd starts [4]."""


@dataclass(frozen=True)
class Host:
    """What starting a kernel costs the host in eager mode; zero: kernels are fused or captured."""

    python_kernel_s: float = PYTHON_KERNEL_S
    autograd_kernel_s: float = AUTOGRAD_KERNEL_S


@dataclass(frozen=True)
class Pass:
    """Seconds of one pass of a micro-batch over something, by kind, and what the host needs."""

    matmul: float = 0.0
    attention: float = 0.0
    elementwise: float = 0.0
    tensor: float = 0.0
    expert: float = 0.0
    context: float = 0.0
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
        return Pass(*(getattr(self, name) + getattr(other, name) for name in _KINDS))

    def times(self, factor: float) -> "Pass":
        """Repeated."""
        return Pass(*(getattr(self, name) * factor for name in _KINDS))


_KINDS = ("matmul", "attention", "elementwise", "tensor", "expert", "context", "kernels")


@dataclass(frozen=True)
class StepParts:
    """Where a step's time goes, on the slowest stage's rank.

    Args:
        forward, again, backward: seconds of all micro-batches' passes over layers and head.
        bubble: waiting for the pipeline to fill and drain.
        pipeline: sends between stages.
        data: exposed part of the data-parallel exchange; ``data_whole`` is all of it.
        optimiser: updating the parameters.
        host: waiting for the host to start kernels.
        by_kind: seconds of the passes by kind: matmul, attention, elementwise, tensor, ...
    """

    forward: float
    again: float
    backward: float
    bubble: float
    pipeline: float
    data: float
    data_whole: float
    optimiser: float
    host: float
    by_kind: tuple[tuple[str, float], ...]

    @property
    def total(self) -> float:
        """Seconds of the step."""
        return (
            self.forward + self.again + self.backward + self.bubble + self.pipeline + self.data
            + self.optimiser + self.host
        )  # fmt: skip


PHASES = ("forward", "again", "backward", "bubble", "pipeline", "data", "optimiser", "host")
PHASE_WORDS = {
    "forward": "forward",
    "again": "recomputation",
    "backward": "backward",
    "bubble": "pipeline bubble",
    "pipeline": "stage-to-stage sends",
    "data": "gradient exchange, exposed",
    "optimiser": "optimiser",
    "host": "waiting for the host",
}
"""What a reader sees for each phase."""


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
    forward = Pass(
        forward_s, attention_f, elementwise_f, exchanged, routed,
        exposed_s(context_f, attention_f), kernels,
    )  # fmt: skip
    backward = Pass(
        backward_s, attention_b, elementwise_b, exchanged, routed,
        exposed_s(2 * context_f, attention_b), 2 * kernels,
    )  # fmt: skip
    return forward, backward


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


def step_parts(
    arch: Architecture,
    plan: TrainingPlan,
    device: DeviceTerms,
    network: Network,
    host: Host | None = None,
) -> StepParts:
    """Estimate where the time of one step goes; the middle of the estimate's interval.

    Args:
        arch: the model.
        plan: how it is trained.
        device: what the device reaches.
        network: the links.
        host: cost of starting kernels; None: what the framework's usual host needs.

    Raises:
        InputError: the plan cannot be laid over this model.
    """
    check_plan(arch, plan)
    if host is None:
        host = Host() if plan.framework == "transformers" else Host(0.0, 0.0)
    forward, backward = Pass(), Pass()
    cut = arch.n_layers - plan.trainable_layers if plan.method == "partial" else 0
    position = 0
    again = Pass()
    for group in arch.layers:
        one_f, one_b = layer_passes(arch, group, plan, device, network)
        reached = max(0, min(group.n_layers, position + group.n_layers - cut))
        position += group.n_layers
        forward = forward.plus(one_f.times(group.n_layers))
        backward = backward.plus(one_b.times(reached))
        if plan.recompute == "full":
            again = again.plus(one_f.times(reached))
        elif plan.recompute == "selective" and not plan.flash_attention:
            scores = Pass(attention=one_f.attention, elementwise=_score_s(group, plan, device))
            again = again.plus(scores.times(reached))
    stage = math.ceil(arch.n_layers / plan.pp) / arch.n_layers
    head_f, head_b = head_passes(arch, plan, device)
    forward, backward, again = forward.times(stage), backward.times(stage), again.times(stage)
    forward, backward = forward.plus(head_f), backward.plus(head_b)
    copies_f, copies_b = cast_s(arch, plan, device)
    forward = forward.plus(Pass(elementwise=copies_f))
    backward = backward.plus(Pass(elementwise=copies_b))
    if plan.recompute == "full":
        again = again.plus(Pass(elementwise=copies_f))
    m = plan.micro_batches
    device_s = forward.device + again.device + backward.device
    host_f = max(forward.kernels * host.python_kernel_s - forward.device, 0.0)
    host_b = max(
        again.kernels * host.python_kernel_s
        + backward.kernels * host.autograd_kernel_s
        - again.device
        - backward.device,
        0.0,
    )
    message = SIXTEEN_BIT * plan.micro_tokens / plan.cp * arch.hidden_size
    sends = pipeline_s(message, plan, network)
    one = device_s + host_f + host_b + sends
    bubble = (plan.pp - 1) / plan.interleave * one
    trained = trainable_share(arch, plan)
    each = value_bytes(plan)
    values = trained.base + trained.adapters
    gathered = min(each.parameter, SIXTEEN_BIT) * values
    whole = data_s(each.gradient * values, gathered, plan, network)
    hiding = (again.device + backward.device) * (m if plan.zero_stage == 3 else 1)
    data = exposed_s(whole, hiding) if plan.overlap else whole
    by_kind = tuple(
        (name, m * (getattr(forward, name) + getattr(again, name) + getattr(backward, name)))
        for name in _KINDS[:-1]
    )
    return StepParts(
        forward=m * forward.device,
        again=m * again.device,
        backward=m * backward.device,
        bubble=bubble,
        pipeline=m * sends,
        data=data,
        data_whole=whole,
        optimiser=optimiser_s(arch, plan, device),
        host=m * (host_f + host_b),
        by_kind=by_kind,
    )


def _score_s(group: LayerGroup, plan: TrainingPlan, device: DeviceTerms) -> float:
    """Memory time of making the scores of one layer again."""
    heads = group.attention.query_heads if isinstance(group.attention, GroupedQuery) else 0
    scores = heads / plan.tp * plan.sequence_tokens / plan.cp * plan.micro_tokens / plan.cp
    per_score = 4 * SIXTEEN_BIT + (2 * SIXTEEN_BIT + 1 if plan.dropout else 0)
    return scores * per_score / device.small.bytes_per_s
