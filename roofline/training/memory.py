"""Training memory: what one accelerator holds at the moments when it holds most.

Memory goes up while the forward pass keeps activations, peaks at the loss or at the end of the
backward pass (activations give way to gradients), and is level at the optimiser. Each moment is a
sum of named parts; the peak is the largest moment.

    states       parameters + master weights + optimiser states (+ gradients once there are any)
    loss         states + 16-bit copies kept + activations + 3 fp32 tensors of the logits' size
    embedding    states + gradients + the input table's gradient (summed with lm_head's when tied)

Shapes   One rank: the fullest pipeline stage, before and after ZeRO's division.
Units    Bytes of live tensors. What the allocator holds beyond them (fragmentation) and what lies
         outside it (context, communication buffers) are not in the peak; see ``outside_bytes``.
Limits   Fixed sizes: no padding removal, no host swapping but ``offload``. Between micro-batches
         gradients stay. The optimiser's step is fused and has no temporaries.
Sources  [1] PyTorch: torch.autograd's InputBuffer sums gradients of a shared weight, in place where
             it owns the first; ATen/cuda (cuBLAS workspace: 32 MiB a handle on Hopper and later,
             4096 × 2 + 16 × 8 KiB before; a handle for each of the two threads with kernels).
         [2] Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054, section 3 and figure 1.
         [3] Korthikanti et al. 2022, arXiv:2205.05198, section 4.2 (first stage, interleaving).
         [4] Dettmers et al. 2023, QLoRA, arXiv:2305.14314, section 3 (nf4, 0.127 bit of scales).
         [5] llm-d-planner, empirical vLLM memory results (non-torch memory 0.25 GiB on one GPU, 2.1
             GiB with NCCL), https://github.com/llm-d-incubation/llm-d-planner
"""

import math
from dataclasses import dataclass, replace

from roofline.dtypes import Dtype
from roofline.models.architecture import Architecture, LayerGroup
from roofline.training.activations import (
    FP32,
    SIXTEEN_BIT,
    eager_layer,
    final_bytes,
    kept_by_layer,
    norm_bytes,
    saved_by_layer,
    types,
)
from roofline.training.layer_parts import attention_widths, feed_forwards
from roofline.training.optimisers import master_bytes, state_bytes, value_bytes
from roofline.training.parameters import Share, rank_share, trainable_share
from roofline.training.plan import TrainingPlan, check_plan
from roofline.units import GIB, KIB, MIB

LOSS_TENSORS = 3
"""fp32 tensors of the logits' size at the loss: log-probabilities, their gradient, the logits'."""
LOSS_CHUNK_TOKENS = 1024
"""Tokens whose logits a chunked loss holds at a time."""
GATHERED_LAYERS = 2
"""Layers whose whole parameters ZeRO-3 holds: the one at work and the one fetched ahead."""
WORKSPACES = 2
"""cuBLAS handles with a workspace: the forward's thread and autograd's [1]."""


@dataclass(frozen=True)
class Parts:
    """Bytes of one moment by part."""

    parameters: float = 0.0
    master: float = 0.0
    optimiser: float = 0.0
    gradients: float = 0.0
    copies: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    buffers: float = 0.0
    workspace: float = 0.0

    @property
    def total(self) -> float:
        """All parts."""
        return float(sum(self.by_name().values()))

    def by_name(self) -> dict[str, float]:
        """Each part by its name."""
        return {name: float(getattr(self, name)) for name in PART_NAMES}


PART_NAMES = (
    "parameters", "master", "optimiser", "gradients", "copies", "activations", "logits",
    "buffers", "workspace",
)  # fmt: skip
PART_WORDS = {
    "parameters": "parameters",
    "master": "fp32 master weights",
    "optimiser": "optimiser states",
    "gradients": "gradients",
    "copies": "16-bit weight copies",
    "activations": "activations",
    "logits": "logits and loss",
    "buffers": "gather and reduce buffers",
    "workspace": "matmul workspace",
}
"""What a reader sees for each part."""


@dataclass(frozen=True)
class TrainingMemory:
    """Memory of one accelerator over a step.

    Args:
        moments: the parts at each moment, in the order of the step.
        host_bytes: bytes that offloading moves to the host, for each accelerator.
        outside_bytes: device memory outside the allocator: context, communication buffers [5].
    """

    moments: tuple[tuple[str, Parts], ...]
    host_bytes: float
    outside_bytes: float

    @property
    def peak_moment(self) -> str:
        """Name of the moment that holds most."""
        return max(self.moments, key=lambda moment: moment[1].total)[0]

    @property
    def peak(self) -> Parts:
        """Parts of the moment that holds most."""
        return max(self.moments, key=lambda moment: moment[1].total)[1]

    @property
    def peak_bytes(self) -> float:
        """Bytes of live tensors at the peak: what max_memory_allocated reads."""
        return self.peak.total

    @property
    def needed_bytes(self) -> float:
        """Peak and what lies outside the allocator: what has to be free."""
        return self.peak_bytes + self.outside_bytes


@dataclass(frozen=True)
class States:
    """Bytes that a rank holds the whole step, gradients when complete."""

    parameters: float
    master: float
    optimiser: float
    gradients: float

    @property
    def total(self) -> float:
        """All four."""
        return self.parameters + self.master + self.optimiser + self.gradients


def parameter_bytes(share: Share, plan: TrainingPlan) -> float:
    """Bytes of a rank's parameters before ZeRO.

    >>> parameter_bytes(Share(matrices=64), TrainingPlan(method="qlora"))  # nf4, 4.127 bit
    33.016
    """
    if not plan.adapters:
        return value_bytes(plan).parameter * share.base
    blocks = Dtype.NF4.bytes_per_value if plan.method == "qlora" else float(SIXTEEN_BIT)
    frozen = blocks * (share.matrices + share.experts)
    rest = SIXTEEN_BIT * (share.embedding + share.head + share.small)
    return frozen + rest + plan.adapter_bytes * share.adapters


def model_states(arch: Architecture, plan: TrainingPlan) -> States:
    """Parameters, master weights, optimiser states and gradients of a rank under ZeRO [2].

        stage 1: (master + optimiser) / shards;  2: gradients too;  3: parameters too

    Raises:
        InputError: the plan cannot be laid over this model.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> plan = TrainingPlan(precision="mixed", gradient_bytes=2, dp=64, zero_stage=3)
    >>> model_states(LLAMA_3_8B, plan).total / LLAMA_3_8B.parameters * 64
    16.0
    """
    check_plan(arch, plan)
    held, trained = rank_share(arch, plan), trainable_share(arch, plan)
    each = value_bytes(plan)
    values = trained.base + trained.adapters
    stage = plan.zero_stage
    parameters = parameter_bytes(held, plan)
    master = master_bytes(plan, trained)
    optimiser = state_bytes(arch, plan, trained)
    gradients = each.gradient * values
    routed = held.experts / held.base if held.base else 0.0
    divide = _divisor(plan, routed)
    return States(
        parameters=parameters / (divide if stage >= 3 else 1.0),
        master=master / (divide if stage >= 1 else 1.0),
        optimiser=optimiser / (divide if stage >= 1 else 1.0),
        gradients=gradients / (divide if stage >= 2 else 1.0),
    )


def _divisor(plan: TrainingPlan, routed: float) -> float:
    """Ranks that share each value: fewer for experts, of which ep ranks hold different ones."""
    dense = plan.shards
    if plan.ep == 1:
        return float(dense)
    same_experts = max(plan.tp * plan.cp * plan.dp // plan.ep, 1)
    return 1.0 / ((1 - routed) / dense + routed / same_experts)


def workspace_bytes(compute_capability: str | None) -> float:
    """Bytes that cuBLAS keeps for matrix products [1].

    >>> workspace_bytes("9.0"), workspace_bytes("8.0")
    (67108864.0, 17039360.0)
    """
    try:
        major = int((compute_capability or "9.0").split(".")[0])
    except ValueError:
        major = 9
    each = 32 * MIB if major >= 9 else (4096 * 2 + 16 * 8) * KIB
    return float(WORKSPACES * each)


def in_flight(plan: TrainingPlan) -> float:
    """Micro-batches whose activations the first pipeline stage holds [3].

        1F1B: pp;  interleaved: pp + (pp − 1) / interleave; never more than there are

    >>> in_flight(TrainingPlan(pp=8, micro_batches=64))
    8.0
    >>> in_flight(TrainingPlan(pp=8, micro_batches=64, interleave=3)) / 8  # 1 + 7/24 in [3]
    1.2917
    """
    if plan.pp == 1:
        return 1.0
    held = plan.pp + ((plan.pp - 1) / plan.interleave if plan.interleave > 1 else 0.0)
    return min(held, float(plan.micro_batches * plan.interleave))


def activation_bytes(arch: Architecture, plan: TrainingPlan) -> float:
    """Bytes that the layers of the first pipeline stage keep for the backward pass.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> few = TrainingPlan(precision="bf16", recompute="full")
    >>> activation_bytes(LLAMA_3_8B, few) == 2048 * 32 * 4096 * 2  # each layer's input
    True
    """
    tokens = plan.micro_tokens / plan.cp
    left = arch.n_layers if plan.method != "partial" else plan.trainable_layers
    per_token = 0.0
    for group in reversed(arch.layers):
        taken = min(group.n_layers, left)
        per_token += taken * kept_by_layer(arch, group, plan)
        left -= taken
    if plan.adapters and plan.recompute == "none" and plan.framework == "transformers":
        # the first norm's input, the frozen embedding's output, needs no gradient
        per_token -= norm_bytes(arch, types(plan), arch.hidden_size, 1.0)
    stage = math.ceil(arch.n_layers / plan.pp) / arch.n_layers
    kept = tokens * per_token * stage * in_flight(plan)
    if plan.dropout:
        divided = plan.tp if plan.sequence_parallel else 1
        kept += tokens * arch.hidden_size * in_flight(plan) / divided  # the embedding's mask
    return kept


def _vocabulary(arch: Architecture, plan: TrainingPlan) -> float:
    entries = arch.vocab_size if arch.lm_head is None else arch.lm_head.n_out
    return entries / plan.tp


def _layer_peak(arch: Architecture, plan: TrainingPlan) -> float:
    """Bytes beside the kept activations while one layer's backward pass runs.

    With full recomputation that layer's activations are there again; gradients of the widest block
    pass through: of its product and of both halves, and of the stream.
    """
    kinds = types(plan)
    tokens = plan.micro_tokens / plan.cp

    def one(group: LayerGroup) -> float:
        again = 0.0
        saved = saved_by_layer(arch, group, plan)
        if plan.recompute == "full":
            again = saved.total
        elif plan.recompute == "selective":
            again = saved.scores
        blocks = feed_forwards(group.linears)
        if group.experts is not None:
            blocks += feed_forwards(group.experts.linears) * round(group.experts.mean_active)
        widest = max(
            (
                block.width * (kinds.compute * (1 + block.halves) + kinds.adapter)
                for block in blocks
            ),
            default=0.0,
        )
        heads = attention_widths(group, plan.tp)
        mixing = heads.queries + heads.keys + heads.values + heads.outputs
        gradients = max(widest / plan.tp, kinds.compute * mixing)
        return again + gradients + 2 * kinds.stream * arch.hidden_size

    return tokens * max(one(group) for group in arch.layers)


def _gathered(arch: Architecture, plan: TrainingPlan, held: Share) -> float:
    """Whole parameters that ZeRO-3 holds at a time, the rank's own part not counted twice."""
    if plan.shards == 1 or plan.zero_stage < 3:
        return 0.0
    layers = math.ceil(arch.n_layers / plan.pp)
    whole = min(GATHERED_LAYERS, layers) / layers
    held_bytes = min(SIXTEEN_BIT * held.base, parameter_bytes(held, plan))
    return whole * held_bytes * (1 - 1 / plan.shards)


def _reduced(arch: Architecture, plan: TrainingPlan, trained: Share) -> float:
    """Whole gradients of the layer that ZeRO-2 is about to reduce, likewise."""
    if plan.shards == 1 or plan.zero_stage < 2:
        return 0.0
    layers = math.ceil(arch.n_layers / plan.pp)
    whole = value_bytes(plan).gradient * (trained.base + trained.adapters)
    return whole * min(1 / layers, layers / (layers + 1)) * (1 - 1 / plan.shards)


def training_memory(
    arch: Architecture, plan: TrainingPlan, *, compute_capability: str | None = None
) -> TrainingMemory:
    """What one accelerator holds over a step, by moment and part.

    Args:
        arch: the model.
        plan: how it is trained.
        compute_capability: of the device, for the size of the matmul workspace; None: Hopper's.

    Raises:
        InputError: the plan cannot be laid over this model.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> memory = training_memory(LLAMA_3_8B, TrainingPlan(precision="bf16", recompute="full"))
    >>> memory.peak_moment, round(memory.peak_bytes / 1e9, 1)
    ('first layer backward', 64.4)
    """
    states = model_states(arch, plan)
    held, trained = rank_share(arch, plan), trainable_share(arch, plan)
    kinds, each = types(plan), value_bytes(plan)
    tokens = plan.micro_tokens / plan.cp
    vocabulary = _vocabulary(arch, plan)
    eager = plan.framework == "transformers"
    logit_tokens = min(tokens, LOSS_CHUNK_TOKENS) if plan.fused_loss else tokens
    kept = activation_bytes(arch, plan)
    final = tokens * final_bytes(arch, plan)
    accumulated = states.gradients if plan.micro_batches > 1 else 0.0
    head = held.embedding if arch.tied else held.head
    head_trained = trained.embedding if arch.tied else trained.head
    all_copies = kept_copies = 0.0
    if plan.precision == "amp" and not plan.adapters and plan.zero_stage < 3 and eager:
        all_copies = SIXTEEN_BIT * (held.matrices + held.experts + head)
        kept_copies = SIXTEEN_BIT * head if plan.recompute == "full" else all_copies
    base = Parts(
        parameters=states.parameters,
        master=states.master,
        optimiser=states.optimiser,
        gradients=accumulated,
        buffers=_gathered(arch, plan, held),
        workspace=workspace_bytes(compute_capability),
    )
    host = 0.0
    if "optimiser" in plan.offload:
        host += base.master + base.optimiser
        base = replace(base, master=0.0, optimiser=0.0)
    if "parameters" in plan.offload:
        host += base.parameters
        base = replace(base, parameters=0.0)
    if "activations" in plan.offload:
        host += kept
        kept = min(kept, 2 * kept / arch.n_layers)  # the layer at work and the one under way
    if eager:
        at_forward = (kinds.compute + 2 * FP32) * vocabulary * logit_tokens
        at_loss = LOSS_TENSORS * FP32 * vocabulary * logit_tokens
    else:  # fused: 16-bit logits, and fp32 ones that turn into their own gradient
        at_forward = at_loss = (SIXTEEN_BIT + FP32) * vocabulary * logit_tokens
    head_copies = kinds.compute if eager and each.gradient != kinds.compute else 0
    head_gradient = (each.gradient + head_copies) * head_trained
    table = each.gradient * held.embedding if eager and arch.tied and trained.embedding else 0.0
    # autograd sums a shared weight's gradients in place where it owns the first, as after a cast
    summed = table if plan.precision == "amp" else 2 * table
    stream = tokens * kinds.stream * arch.hidden_size
    layer = _layer_peak(arch, plan)
    moments = (
        (
            "end of forward",
            replace(base, copies=all_copies, activations=kept + final, logits=at_forward),
        ),
        (
            "loss backward",
            replace(base, copies=kept_copies, activations=kept + final, logits=at_loss),
        ),
        (
            "lm_head backward",
            replace(
                base,
                copies=kept_copies,
                activations=kept + final + stream,
                logits=kinds.compute * vocabulary * logit_tokens,
                gradients=max(accumulated, 0.0) + head_gradient,
            ),
        ),
        (
            "last layer backward",
            replace(
                base,
                copies=kept_copies,
                activations=kept + layer,
                gradients=max(accumulated, each.gradient * head_trained),
            ),
        ),
        (
            "first layer backward",
            replace(
                base,
                activations=layer
                + (kept / max(arch.n_layers, 1) if plan.recompute != "full" else 0.0),
                # all but this layer's own, which come as its activations go
                gradients=states.gradients * (1 - 1 / (arch.n_layers + 1)),
                buffers=base.buffers + _reduced(arch, plan, trained),
            ),
        ),
        (
            "embedding backward",
            replace(base, gradients=states.gradients + table, activations=stream),
        ),
        ("shared gradients summed", replace(base, gradients=states.gradients + summed)),
        ("optimiser step", replace(base, gradients=states.gradients)),
    )
    alone = plan.accelerators == 1
    return TrainingMemory(
        moments=moments,
        host_bytes=host,
        outside_bytes=(0.25 if alone else 2.1) * GIB,
    )


def eager_bytes_per_token(arch: Architecture, plan: TrainingPlan) -> float:
    """Bytes a token that all layers would keep in eager PyTorch without recomputation.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> eager_bytes_per_token(LLAMA_3_8B, TrainingPlan(precision="bf16")) / 32
    200840.0
    """
    return sum(group.n_layers * eager_layer(arch, group, plan).total for group in arch.layers)
