"""Fit: on which accelerators a model's batch fits, how much more would, and why not elsewhere.

Units    bytes per accelerator, tokens, sequences per replica.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from roofline.errors import InputError, RooflineError
from roofline.hardware.accelerator import Accelerator
from roofline.serving.budget import budget
from roofline.serving.inverse import fewest_accelerators, max_batch, max_context_tokens
from roofline.serving.memory import Memory
from roofline.serving.placement import Placement
from roofline.timing.parallel import Parallel
from roofline.units import show


@dataclass(frozen=True)
class Fit:
    """How a model sits on one kind of accelerator.

    Args:
        accelerator: which.
        memory: what each one holds; None: it could not be worked out.
        max_batch: largest batch at the context; None: unknown, or memory does not limit it.
        max_context_tokens: longest context at the batch; None likewise.
        fewest: the plan with the fewest accelerators that holds it; None: none that was tried.
        reason: why it does not fit, or what could not be worked out; empty: it fits.
    """

    accelerator: Accelerator
    memory: Memory | None
    max_batch: int | None = None
    max_context_tokens: int | None = None
    fewest: Parallel | None = None
    reason: str = ""

    @property
    def fits(self) -> bool:
        """Whether it fits as asked."""
        return self.memory is not None and self.memory.fits


def fit(
    placement: Placement,
    accelerators: Iterable[Accelerator],
    *,
    batch: int = 1,
    context_tokens: int = 1,
    most_accelerators: int = 64,
) -> tuple[Fit, ...]:
    """Put one placement on each of some accelerators in turn.

    Raises:
        InputError: a count that cannot be, or a plan that does not divide the model.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> card = load_accelerator("t4")
    >>> [(row.fits, str(row.fewest)) for row in fit(Placement(LLAMA_3_8B, card), [card])]
    [(False, 'TP2')]
    """
    return tuple(
        _fit_one(replace(placement, accelerator=card), batch, context_tokens, most_accelerators)
        for card in accelerators
    )


def _fit_one(placement: Placement, batch: int, context_tokens: int, most: int) -> Fit:
    card = placement.accelerator
    try:
        memory = budget(placement, batch, context_tokens)
    except InputError:
        raise
    except RooflineError as error:
        return Fit(card, None, reason=str(error))
    found = fewest_accelerators(placement, batch, context_tokens, most=most)
    return Fit(
        accelerator=card,
        memory=memory,
        max_batch=max_batch(placement, context_tokens),
        max_context_tokens=max_context_tokens(placement, batch),
        fewest=None if found is None else found.parallel,
        reason="" if memory.fits else why_not(memory),
    )


def why_not(memory: Memory) -> str:
    """Say what is lacking: room for the weights, for the engine's own, or for the cache.

    >>> why_not(Memory(usable_bytes=8 * 2**30, weights_bytes=9 * 2**30, kv_cache_bytes=2**30,
    ...     activation_bytes=0.0, overhead_bytes=0.0, kv_pool_bytes=0.0,
    ...     missing_bytes=2 * 2**30, rule=""))
    'weights 9.00 GiB > 8.00 GiB'
    """
    usable = show(memory.usable_bytes, "GiB")
    if memory.weights_bytes > memory.usable_bytes:
        return f"weights {show(memory.weights_bytes, 'GiB')} > {usable}"
    if memory.pool_shortfall_bytes > 0:
        return f"no room for a cache: {show(memory.pool_shortfall_bytes, 'GiB')} short before it"
    return f"cache {show(memory.kv_cache_bytes, 'GiB')} > pool {show(memory.kv_pool_bytes, 'GiB')}"
