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
         [3] llm-d-planner, empirical vLLM memory results (non-torch memory 0.25 GiB on one GPU, 2.1
             GiB with NCCL), https://github.com/llm-d-incubation/llm-d-planner
"""

import math
from dataclasses import dataclass, replace

from roofline.models.architecture import Architecture
from roofline.training.activations import FP32, SIXTEEN_BIT, final_bytes, types
from roofline.training.optimisers import value_bytes
from roofline.training.parameters import Share, rank_share, trainable_share
from roofline.training.plan import TrainingPlan
from roofline.training.stage_activations import activation_bytes, layer_peak
from roofline.training.states import model_states, parameter_bytes
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
        outside_bytes: device memory outside the allocator: context, communication buffers [3].
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


def _vocabulary(arch: Architecture, plan: TrainingPlan) -> float:
    entries = arch.vocab_size if arch.lm_head is None else arch.lm_head.n_out
    return entries / plan.tp


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
    head_trained = trained.embedding if arch.tied else trained.head
    all_copies = kept_copies = 0.0
    if plan.precision == "amp" and not plan.adapters and plan.zero_stage < 3 and eager:
        # autocast keeps copies of weights that get gradients
        all_copies = SIXTEEN_BIT * (trained.matrices + trained.experts + head_trained)
        kept_copies = SIXTEEN_BIT * head_trained if plan.recompute == "full" else all_copies
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
    layer = layer_peak(arch, plan)
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
