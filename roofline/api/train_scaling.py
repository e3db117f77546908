"""``training_scaling``: what more replicas give, and the micro-batch that hides the exchange."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofline.api.train import Mode, train
from roofline.calibration.lookup import find_terms
from roofline.hardware.accelerator import Accelerator
from roofline.hardware.measurement import Measurement
from roofline.models.architecture import Architecture
from roofline.training.scaling import ScalingPoint, hiding_micro_batches, scaling_curve

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class TrainingScaling:
    """A scaling curve.

    Args:
        points: one a number of accelerators, the first is what the others are compared with.
        hiding_micro_batch: sequences of a micro-batch from which the gradient exchange hides behind
            the backward pass at the largest size; None: none up to 64 does.
        assumptions: as ``train`` gives them, at the largest size.
    """

    points: tuple[ScalingPoint, ...]
    hiding_micro_batch: int | None
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The curve in base units, with the unit in the key."""
        return {
            "points": self.rows(),
            "hiding_micro_batch": self.hiding_micro_batch,
            "assumptions": list(self.assumptions),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One mapping a point."""
        return [
            {
                "accelerators": point.accelerators,
                "tokens_per_s": float(point.step.tokens_per_s.mid),
                "tokens_per_s_low": float(point.step.tokens_per_s.low),
                "tokens_per_s_high": float(point.step.tokens_per_s.high),
                "speed_up": point.speed_up,
                "efficiency": point.efficiency,
                "lost_to": point.lost_to,
            }
            for point in self.points
        ]

    def to_frame(self) -> "DataFrame":
        """One row a point."""
        import pandas

        return pandas.DataFrame(self.rows())


def training_scaling(
    model: str | Path | dict[str, Any] | Architecture,
    accelerator: str | Path | Accelerator,
    replicas: Sequence[int],
    *,
    mode: Mode | None = None,
    network: str | None = None,
    machine: str | Path | Measurement | None = None,
    strong: bool = False,
    **changes: Any,
) -> TrainingScaling:
    """Estimate the same training on more and more data-parallel replicas.

    Args:
        model, accelerator, mode, network, machine: as ``train`` takes them.
        replicas: data-parallel degrees, rising.
        strong: keep the global batch of the first point instead of each replica's work.
        **changes: fields of ``TrainingPlan``.

    Raises:
        RooflineError: an unknown name, or a value that cannot be.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> curve = training_scaling(
    ...     LLAMA_3_8B, "h100-sxm5-80gb", (8, 32), mode="mixed", framework="megatron",
    ...     recompute="full", micro_batch=2, network="ethernet-200gbe")
    >>> round(curve.points[1].speed_up, 1), curve.points[1].lost_to  # of 4
    (3.3, 'gradient exchange, exposed')
    """
    largest = train(
        model, accelerator, mode=mode, network=network, machine=machine,
        **{**changes, "dp": max(replicas, default=1)},
    )  # fmt: skip
    arch, spec = largest.arch, largest.accelerator
    device = find_terms(spec, "ideal", machine).device
    points = scaling_curve(
        arch, largest.plan, spec, device, replicas, network=network, strong=strong
    )
    hides = hiding_micro_batches(arch, points[-1].plan, spec, device, network=network)
    return TrainingScaling(points, hides, largest.assumptions)
