"""Columns: what a sweep computes of each row, by the functions that ``predict`` uses.

    bounds      decode_bound_s, ttft_bound_s
    estimates   decode_s, ttft_s, tokens_per_s_per_user, tokens_per_s_per_accelerator

Shapes   Every column has the grid's shape, [batch, lengths], or broadcasts to it.
Units    As the names say; ``decode`` is the step at mid-output context, estimates are middles.
Limits   A row that does not fit in memory is infeasible and is not evaluated further.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roofline.api.sweep.space import Cell, Space
from roofline.serving.budget import budget
from roofline.serving.deployment import Deployment
from roofline.serving.inverse import max_batch
from roofline.serving.placement import Placement
from roofline.units import Numeric
from roofline.work.kv_cache import cache_bytes, state_bytes
from roofline.work.operators import Step

COLUMNS = {
    "decode_bound_s": "s",
    "ttft_bound_s": "s",
    "decode_s": "s",
    "ttft_s": "s",
    "tokens_per_s_per_user": "1/s",
    "tokens_per_s_per_accelerator": "1/s",
}
"""Column to unit."""
LARGER_IS_BETTER = ("tokens_per_s_per_user", "tokens_per_s_per_accelerator")
_BATCH_DEPENDENT = ("transformers", "gpt-fast")
"""Engines whose activations follow the batch."""
_FIXED_POOL = ("ideal", "plain", "cuda-graph", "vllm", "sglang", "tensorrt-llm")
"""Engines whose pool does not depend on what is asked, and whose cache is plain pages."""


@dataclass(frozen=True)
class Grid:
    """Columns of part of a cell, and which of its rows fit.

    Args:
        cell: whose part it is.
        first_batch: place of its first batch on the axis.
        lengths: places of its pairs of lengths, ascending; the others fit at none of its batches.
        columns: what was computed.
        feasible: which rows fit, [batch, lengths].
    """

    cell: Cell
    first_batch: int
    lengths: NDArray[np.int64]
    columns: Mapping[str, Numeric]
    feasible: NDArray[np.bool_]

    def numbers(self, space: Space, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers in the space of the rows at these places of the flattened grid."""
        batch, column = np.divmod(places, max(len(self.lengths), 1))
        width = space.lengths[0].shape[1]
        begin = self.cell.number * space.rows_per_cell + self.first_batch * width
        number: NDArray[np.int64] = begin + batch * width + self.lengths[column]
        return number


def evaluate(
    space: Space, cell: Cell, names: Iterable[str], batches: slice, lengths: slice
) -> Grid:
    """Evaluate some batches of a cell at some lengths, without those at which none fits."""
    deployment = _deployment(cell, space.machine)
    largest = _largest_batches(cell, space)[:, lengths]
    batch = _worth_evaluating(space.batch_axis[batches], float(largest.max()))
    held = largest[0] >= (batch.min() if batch.size else np.inf)
    places = np.flatnonzero(held)
    prompt, output = (axis[:, lengths] for axis in space.lengths)
    if len(places) < len(held):
        largest, prompt, output = (axis[:, places] for axis in (largest, prompt, output))
    columns = _columns(deployment, tuple(names), batch, prompt, output)
    return Grid(cell, batches.start, places + lengths.start, columns, batch <= largest)


def _worth_evaluating(batch: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """Leave out the end of a rising axis that fits at no length: it is not computed at all."""
    if len(batch) > 1 and not np.all(np.diff(batch[:, 0]) > 0):
        return batch
    return batch[: int(np.searchsorted(batch[:, 0], most, side="right"))]


@lru_cache(maxsize=64)
def _deployment(cell: Cell, machine: str | None) -> Deployment:
    return cell.deployment(machine)


def _columns(
    deployment: Deployment,
    names: tuple[str, ...],
    batch: NDArray[np.float64],
    prompt: NDArray[np.float64],
    output: NDArray[np.float64],
) -> dict[str, Numeric]:
    found: dict[str, Numeric] = {}
    decode = Step(decode_sequences=batch, context_tokens=prompt + output / 2)
    prefill = Step(prefill_sequences=batch, prefill_tokens=prompt)
    if "decode_bound_s" in names:
        found["decode_bound_s"] = deployment.bound(decode).seconds
    if "ttft_bound_s" in names:
        found["ttft_bound_s"] = deployment.bound(prefill).seconds
    if "ttft_s" in names:
        found["ttft_s"] = deployment.timed(prefill, long_phase=True).estimate_s.mid
    rates = [name for name in names if name.startswith("tokens_per_s")]
    if "decode_s" in names or rates:
        step_s = deployment.timed(decode, long_phase=False).estimate_s.mid
        found["decode_s"] = step_s
        if "tokens_per_s_per_user" in names:
            found["tokens_per_s_per_user"] = 1 / step_s
        if "tokens_per_s_per_accelerator" in names:
            stages, accelerators = deployment.parallel.pp, deployment.parallel.accelerators
            in_flight = batch * stages * deployment.parallel.dp
            found["tokens_per_s_per_accelerator"] = in_flight / (step_s * accelerators)
    return {name: found[name] for name in names}


_KEPT: dict[tuple[Cell, int], NDArray[np.float64]] = {}
_KEPT_BYTES = 32 * 2**20
"""What remembered limits may take: a long axis of lengths is worked out again instead."""


def batches_that_can_fit(cell: Cell, space: Space) -> int:
    """Length of the batch axis up to the most that fit at the shortest lengths, at least 1."""
    shortest = replace(
        space,
        prompt_tokens=(min(space.prompt_tokens),),
        output_tokens=(min(space.output_tokens),),
    )
    most = float(_find_largest(_deployment(cell, space.machine), shortest).max())
    return max(len(_worth_evaluating(space.batch_axis, most)), 1)


def _largest_batches(cell: Cell, space: Space) -> NDArray[np.float64]:
    """Most sequences that fit at each pair of lengths, [1, lengths]; infinite: no limit."""
    key = (cell, hash((tuple(space.prompt_tokens), tuple(space.output_tokens), space.machine)))
    if key not in _KEPT:
        found = _find_largest(_deployment(cell, space.machine), space)
        if sum(each.nbytes for each in _KEPT.values()) + found.nbytes > _KEPT_BYTES:
            _KEPT.clear()
        _KEPT[key] = found
    return _KEPT[key]


def _find_largest(deployment: Deployment, space: Space) -> NDArray[np.float64]:
    placement = Placement(
        deployment.arch,
        deployment.accelerator,
        deployment.parallel,
        deployment.formats.weights,
        deployment.formats.kv,
        deployment.engine,
    )
    prompt, output = space.lengths
    contexts, prompts = (prompt + output)[0], prompt[0]
    if deployment.engine.name in _BATCH_DEPENDENT:
        found = [
            max_batch(placement, float(context), float(tokens))
            for context, tokens in zip(contexts, prompts, strict=True)
        ]
        return np.array([[np.inf if most is None else most for most in found]], dtype=float)
    ends = (float(contexts.min()), float(contexts.max()))
    pools = {context: budget(placement, 1, context).kv_pool_bytes for context in ends}
    if placement.groups is None and deployment.engine.name in _FIXED_POOL:
        rank, kv = placement.rank, placement.kv_format
        held = cache_bytes(rank, contexts, kv, page_tokens=placement.page_tokens)
        each = np.asarray(held, dtype=float) + state_bytes(rank)
        if len(set(pools.values())) == 1:
            return _quotient(np.full(each.shape, next(iter(pools.values()))), each)
    most = [_most(placement, float(c), float(p)) for c, p in zip(contexts, prompts, strict=True)]
    return np.array([most])


def _quotient(pool: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole sequences that a pool holds; infinite where a sequence takes nothing."""
    none = np.full(held.shape, np.inf if pool.min() > 0 else 0.0)
    return np.floor(np.divide(pool, held, out=none, where=held > 0))[None, :]


def _most(placement: Placement, context_tokens: float, prompt_tokens: float) -> float:
    """Pool over one sequence's cache: what bisecting the budget gives where the pool is fixed."""
    memory = budget(placement, 1, context_tokens, prompt_tokens)
    if memory.missing_bytes > 0:
        return 0.0
    if memory.kv_cache_bytes == 0:
        return float("inf")
    return float(np.floor(memory.kv_pool_bytes / memory.kv_cache_bytes))
