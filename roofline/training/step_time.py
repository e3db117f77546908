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
         [2] measurements/h200-sxm-141gb/*-transformers-eager.json: 924 kernels in 77 ms, 83 µs.
         [3] measurements/training/h200-sxm-141gb/2026-11-reference.json: what autograd's C++ needs
             to start a kernel (12 µs), fitted to its rows of micro-batch 1 × 2,048 tokens.
"""

import math
from dataclasses import dataclass

from roofline.models.architecture import Architecture
from roofline.timing.terms import DeviceTerms
from roofline.training.activations import SIXTEEN_BIT
from roofline.training.communication import Network, data_s, exposed_s, pipeline_s
from roofline.training.layer_time import (
    KINDS,
    Pass,
    cast_s,
    head_passes,
    layer_passes,
    optimiser_s,
    score_s,
)
from roofline.training.optimisers import value_bytes
from roofline.training.parameters import rank_share, trainable_share
from roofline.training.plan import TrainingPlan, check_plan
from roofline.training.states import parameter_bytes

PYTHON_KERNEL_S = 83e-6
"""Host time of a kernel that Python modules start, on the host of [2]."""
AUTOGRAD_KERNEL_S = 12e-6
"""Host time of a kernel that autograd starts [3]."""


@dataclass(frozen=True)
class Host:
    """What starting a kernel costs the host in eager mode; zero: kernels are fused or captured."""

    python_kernel_s: float = PYTHON_KERNEL_S
    autograd_kernel_s: float = AUTOGRAD_KERNEL_S


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
        by_kind: seconds of the passes by kind: matmul, attention, elementwise, tensor, ...;
            ``hidden`` is exchange that runs behind them and takes no time of its own.
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
            scores = Pass(attention=one_f.attention, elementwise=score_s(group, plan, device))
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
    if plan.zero_stage == 3:  # frozen parameters are sharded and fetched too
        held = rank_share(arch, plan)
        gathered = min(parameter_bytes(held, plan), SIXTEEN_BIT * held.base)
    whole = data_s(each.gradient * values, gathered, plan, network)
    hiding = (again.device + backward.device) * (m if plan.zero_stage == 3 else 1)
    data = exposed_s(whole, hiding) if plan.overlap else whole
    by_kind = tuple(
        (name, m * (getattr(forward, name) + getattr(again, name) + getattr(backward, name)))
        for name in KINDS[:-1]
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
