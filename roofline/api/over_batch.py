"""Over the batch: the decode step of a prediction at other batches, for charts and tables.

Units    Those of ``StepTime``.
Limits   Context and everything else stay as predicted; whether a batch fits is said, not required.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from roofline.api.prediction import Prediction
from roofline.api.step_time import StepTime, step_time
from roofline.work.operators import Step

LARGEST_POWER = 17
"""Batches go to 2 to this power where nothing ends them before."""


@dataclass(frozen=True)
class BatchPoint:
    """A decode step at one batch, and whether that batch fits."""

    batch: int
    decode: StepTime
    fits: bool


def usual_batches(prediction: Prediction) -> tuple[int, ...]:
    """Powers of two past the largest batch that fits, the batch asked for and the turning point.

    >>> from roofline.api.predict import predict
    >>> usual_batches(predict("llama-3.1-8b", "h200-sxm-141gb", batch=3))[:5]
    (1, 2, 3, 4, 8)
    """
    turn = prediction.turning_points.decode_batch or 1
    end = max(2 * (prediction.max_batch or 1), 2 * turn, 2 * prediction.batch)
    powers = [2**power for power in range(LARGEST_POWER + 1) if 2**power <= end]
    named = [prediction.batch, prediction.turning_points.decode_batch, prediction.max_batch]
    return tuple(sorted({*powers, *(one for one in named if one)}))


def over_batch(prediction: Prediction, batches: Iterable[int] | None = None) -> list[BatchPoint]:
    """Time the decode step at mid-output context for each batch.

    >>> from roofline.api.predict import predict
    >>> p = predict("llama-3.1-8b", "h200-sxm-141gb", batch=8)
    >>> [point.decode.bound_s == p.decode.bound_s for point in over_batch(p, [1, 8])]
    [False, True]
    """
    context = prediction.prompt_tokens + prediction.output_tokens / 2
    most = prediction.max_batch
    return [
        BatchPoint(
            batch,
            step_time(
                prediction.deployment,
                Step(decode_sequences=float(batch), context_tokens=context),
                long_phase=False,
            ),
            most is None or batch <= most,
        )
        for batch in (usual_batches(prediction) if batches is None else batches)
    ]
