"""Scaling: what more accelerators give, and the batch from which the gradient exchange hides.

    efficiency(n) = tokens/s at n / (n / n₀ · tokens/s at n₀)

Shapes   One point a number of accelerators, data-parallel replicas of the same plan.
Units    Tokens per second; sequences.
Limits   Weak scaling keeps the work of each replica; strong scaling keeps the global batch, so that
         each replica has fewer micro-batches until there is one.
Sources  [1] Goyal et al. 2017, arXiv:1706.02677, section 4 (exchange behind the backward pass).
         [2] McCandlish et al. 2018, arXiv:1812.06162 (past the critical batch more data a step buys
             little: a wider run is not a faster one).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture
from roofline.timing.terms import DeviceTerms
from roofline.training.estimate import StepEstimate, training_step
from roofline.training.network import cluster_network
from roofline.training.plan import TrainingPlan


@dataclass(frozen=True)
class ScalingPoint:
    """One size of the cluster.

    Args:
        accelerators: how many.
        plan: the plan there.
        step: its estimate.
        speed_up: tokens/s over the first point's.
        efficiency: speed-up over the growth in accelerators.
        lost_to: the phase that grew most since the first point, per accelerator and token.
    """

    accelerators: int
    plan: TrainingPlan
    step: StepEstimate
    speed_up: float
    efficiency: float
    lost_to: str


def scaling_curve(
    arch: Architecture,
    plan: TrainingPlan,
    accelerator: Accelerator,
    device: DeviceTerms,
    replicas: Sequence[int],
    *,
    network: str | None = None,
    strong: bool = False,
) -> tuple[ScalingPoint, ...]:
    """Estimate the same training on more and more replicas.

    Args:
        arch: the model.
        plan: the plan of one replica; its ``dp`` is replaced.
        accelerator: the device.
        device: what it reaches.
        replicas: data-parallel degrees, rising.
        network: link between nodes.
        strong: keep the global batch of the first point instead of each replica's work.

    Raises:
        InputError: no replicas, none that rise, or a global batch that cannot be divided.
    """
    if not replicas:
        raise InputError("a scaling curve needs at least one number of replicas")
    if any(after <= before for before, after in pairwise(replicas)):
        raise InputError(f"numbers of replicas must rise, got {', '.join(map(str, replicas))}")
    total = plan.micro_batches * replicas[0]
    points: list[ScalingPoint] = []
    for dp in replicas:
        at = plan.with_(dp=dp)
        if strong:
            if total % dp:
                raise InputError(
                    f"{total} micro-batches cannot be divided over {dp} replicas; "
                    "use divisors of it, or strong=False"
                )
            at = at.with_(micro_batches=total // dp)
        links, _ = cluster_network(accelerator, device, at, network)
        step = training_step(arch, at, accelerator, device, links)
        if not points:
            points.append(ScalingPoint(at.accelerators, at, step, 1.0, 1.0, ""))
            continue
        first = points[0]
        speed_up = float(step.tokens_per_s.mid / first.step.tokens_per_s.mid)
        grown = at.accelerators / first.accelerators
        points.append(
            ScalingPoint(
                at.accelerators, at, step, speed_up, speed_up / grown, _lost_to(first.step, step)
            )
        )
    return tuple(points)


def _lost_to(first: StepEstimate, step: StepEstimate) -> str:
    from roofline.training.step_time import PHASE_WORDS, PHASES

    def per_token(estimate: StepEstimate, phase: str) -> float:
        work = estimate.tokens / estimate.accelerators
        return float(getattr(estimate.parts, phase)) / work

    grown = {phase: per_token(step, phase) - per_token(first, phase) for phase in PHASES}
    worst = max(grown, key=lambda phase: grown[phase])
    return PHASE_WORDS[worst] if grown[worst] > 0 else ""


def hiding_micro_batches(
    arch: Architecture,
    plan: TrainingPlan,
    accelerator: Accelerator,
    device: DeviceTerms,
    *,
    network: str | None = None,
    most: int = 64,
) -> int | None:
    """Fewest sequences of a micro-batch at which the whole gradient exchange hides behind backward.

    Gives None when even ``most`` sequences do not hide it.

    >>> from roofline.calibration.typical import typical_terms
    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> a100 = load_accelerator("a100-sxm4-80gb")
    >>> hiding_micro_batches(LLAMA_3_8B, TrainingPlan(dp=1), a100, typical_terms(a100))
    1
    """
    for sequences in range(1, most + 1):
        at = plan.with_(micro_batch=sequences)
        links, _ = cluster_network(accelerator, device, at, network)
        if training_step(arch, at, accelerator, device, links).parts.data <= 0:
            return sequences
    return None


def scaling_efficiency(speed_up: float, accelerators: int, of: int) -> float:
    """Scaling efficiency that a speed-up from ``of`` to ``accelerators`` means.

    >>> scaling_efficiency(3.0, 32, 8), scaling_efficiency(4.0, 32, 8)  # 3-4 × of 4 × is 0.75-1.0
    (0.75, 1.0)
    """
    return speed_up / (accelerators / of)
