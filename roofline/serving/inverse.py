"""Inverses of the memory budget: how many sequences, how long a context, how many accelerators.

Each answer is found by asking the budget itself, so that windows, pages, fixed states and an
activation peak that grows with the context all count. Batch and context are monotone and are
bisected; accelerators are not (a tensor-parallel degree past the KV heads copies them, one that
does not divide is refused) and are tried one by one.

Units    sequences per replica, tokens of one sequence, accelerators.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from roofline.errors import InputError
from roofline.serving.budget import budget, check_counts
from roofline.serving.memory import Memory
from roofline.serving.pages import concurrency
from roofline.serving.placement import Placement
from roofline.timing.parallel import Parallel

HOST_ACCELERATORS = 8
"""Cards of one host, over which tensor parallelism runs without a scale-up link."""

MOST = 2**40
"""Where a search ends: past it, memory is not what limits."""


def max_batch(
    placement: Placement, context_tokens: float, prompt_tokens: float | None = None
) -> int | None:
    """Find the largest batch per replica that fits at a context; None: memory does not limit it.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> from roofline.serving.engines import Engine
    >>> h100 = Placement(LLAMA_3_8B, load_accelerator("h100-sxm5-80gb"), engine=Engine("vllm"))
    >>> max_batch(h100, 8192)
    54
    """
    check_counts(1, context_tokens, prompt_tokens)
    return _largest(lambda batch: budget(placement, batch, context_tokens, prompt_tokens).fits)


def max_context_tokens(
    placement: Placement, batch: int = 1, output_tokens: int | None = None
) -> int | None:
    """Find the longest context that fits at a batch; None: memory does not limit it.

    Args:
        placement: what is placed where.
        batch: sequences per replica.
        output_tokens: of the context, tokens that are generated; None: all is prompt.
    """
    check_counts(batch, 1, output_tokens)

    def fits(context: int) -> bool:
        prompt = None if output_tokens is None else max(context - output_tokens, 0)
        return budget(placement, batch, context, prompt).fits

    return _largest(fits)


def _largest(fits: Callable[[int], bool]) -> int | None:
    """Largest count that fits, 0 when not even one does, None when no count is too many."""
    if not fits(1):
        return 0
    low = 1
    while fits(low * 2):
        low *= 2
        if low >= MOST:
            return None
    high = low * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def reported_concurrency(placement: Placement, context_tokens: int) -> float:
    """Say the concurrency at a context as the engine's start-up log reports it.

    A share of a request counts, and in vLLM with mixed layers the pages that a whole step of
    prefill would take.
    """
    check_counts(1, context_tokens)
    pool = budget(placement, 1, context_tokens).kv_pool_bytes
    if placement.groups is None:
        need = placement.sequence_bytes(context_tokens)
        return pool / need if need else float(MOST)
    blocks = placement.groups.blocks(pool)
    step = int(placement.chunk_tokens(context_tokens))
    return concurrency(placement.groups, blocks, context_tokens, chunk_tokens=step)


@dataclass(frozen=True)
class Holding:
    """A number of accelerators that holds the model, and what each then holds."""

    parallel: Parallel
    memory: Memory


def fewest_accelerators(
    placement: Placement,
    batch: int = 1,
    context_tokens: float = 1,
    prompt_tokens: float | None = None,
    *,
    most: int = 64,
) -> Holding | None:
    """Find the plan with the fewest accelerators that holds one replica; None: none up to ``most``.

    Tensor parallelism inside the scale-up domain first, then pipeline stages of it.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> found = fewest_accelerators(Placement(LLAMA_3_8B, load_accelerator("t4")), 1, 2048)
    >>> found.parallel.accelerators
    2
    """
    check_counts(batch, context_tokens, prompt_tokens)
    for parallel in _plans(placement, most):
        try:
            memory = budget(replace(placement, parallel=parallel), batch, context_tokens,
                            prompt_tokens)  # fmt: skip
        except InputError:
            continue  # this degree does not divide the model
        if memory.fits:
            return Holding(parallel, memory)
    return None


def _plans(placement: Placement, most: int) -> Iterator[Parallel]:
    """Plans of one replica by their number of accelerators; of equal ones the least pipelining."""
    link = placement.accelerator.link
    domain = link.domain if link.kind and link.domain else HOST_ACCELERATORS
    for n in range(1, most + 1):
        for pp in (p for p in range(1, n + 1) if n % p == 0):
            tp = n // pp
            if (tp <= domain and tp & (tp - 1) == 0) or (tp in (3, 5, 6, 7) and tp <= domain):
                yield Parallel(tp=tp, pp=pp)
