"""Turning points: where a step changes the side of the roofline that it lies on.

Units    sequences, tokens.
Limits   Of bounds, so on datasheet roofs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from roofline.serving.deployment import Deployment
from roofline.work.kv_cache import cache_bytes
from roofline.work.operators import Kind, Step, step_operators

LARGEST = 2.0**24
"""Beyond this many sequences or tokens a step is said not to turn."""


@dataclass(frozen=True)
class TurningPoints:
    """Where steps of a deployment turn.

    Args:
        decode_batch: sequences from which a decode step at the context is compute-bound; None: it
            stays memory-bound, since each sequence's cache weighs more than its arithmetic.
        prefill_tokens: prompt tokens of one sequence from which prefill is compute-bound.
        context_cache_equals_weights: tokens of context of one sequence at which a step reads as
            many bytes of cache as of weights, at batch 1; None: windows keep it from that.
    """

    decode_batch: int | None
    prefill_tokens: int | None
    context_cache_equals_weights: int | None


def turning_points(deployment: Deployment, context_tokens: float) -> TurningPoints:
    """Find where the steps of a deployment turn.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> from roofline.serving.deployment import deploy
    >>> found = turning_points(deploy(LLAMA_3_8B, load_accelerator("h200-sxm-141gb")), 2176.0)
    >>> found.prefill_tokens, found.decode_batch
    (222, None)
    """

    def decode_excess(batch: float) -> float:
        return _compute_over_memory(deployment, Step(batch, context_tokens))

    def prefill_excess(tokens: float) -> float:
        return _compute_over_memory(deployment, Step(prefill_sequences=1.0, prefill_tokens=tokens))

    return TurningPoints(
        decode_batch=_first(decode_excess),
        prefill_tokens=_first(prefill_excess),
        context_cache_equals_weights=_first(_cache_over_weights(deployment)),
    )


def _compute_over_memory(deployment: Deployment, step: Step) -> float:
    times = deployment.bound(step).by_resource
    compute = max(float(time) for name, time in times.items() if name.startswith("compute"))
    return compute - float(times["memory"])


def _cache_over_weights(deployment: Deployment) -> Callable[[float], float]:
    operators = step_operators(deployment.rank, Step(1.0, 1.0), deployment.formats)
    weights = sum(float(np.max(operator.least_weight_bytes)) for operator in operators)
    if all(operator.kind is not Kind.DECODE_ATTENTION for operator in operators):
        return lambda tokens: -1.0

    def excess(tokens: float) -> float:
        return float(cache_bytes(deployment.rank, tokens, deployment.formats.kv)) - weights

    return excess


def _first(excess: Callable[[float], float]) -> int | None:
    """Find the first whole number from which an excess is not negative."""
    if excess(1.0) >= 0:
        return 1
    if excess(LARGEST) < 0:
        return None
    low, high = 1, int(LARGEST)
    while high - low > 1:
        middle = (low + high) // 2
        if excess(float(middle)) >= 0:
            high = middle
        else:
            low = middle
    return high
