"""Estimates of published rows: what the engine's terms say of each, in one array call per group.

    tpot   decode step of the running batch at mid-output context, and, where requests come and go,
           its share of their prefill: n / (output − 1) prompts enter per step of n sequences
    ttft   prefill of one prompt, or of a whole fixed batch
    e2e    ttft + (output − 1) · tpot of the whole batch

Units    seconds.
Limits   Requests that wait outside the batch are not charged to the engine: TTFT is judged of
         requests alone. Chunks of a prompt cost as much as the prompt in mixed steps of its size.
Sources  Definitions in ``serving.deployment``; share of prefill as in ``serving.steady``.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError, RooflineError
from roofline.hardware.accelerator import load_accelerator
from roofline.serving.deployment import Deployment, deploy
from roofline.timing.interval import Interval
from roofline.timing.parallel import Parallel
from roofline.validation.rows import Row
from roofline.validation.storage import likely_architecture, on_device
from roofline.work.operators import Step

Array = NDArray[np.float64]
CHUNK_TOKENS = 8192.0
"""Token budget of a step where the row does not state one: the engines' usual default."""


@dataclass(frozen=True)
class Estimated:
    """A row with its estimate.

    Args:
        row: the measurement.
        low, mid, high: the interval; NaN when there is none.
        refused: why there is none, or empty.
    """

    row: Row
    low: float
    mid: float
    high: float
    refused: str = ""

    @property
    def error(self) -> float:
        """Estimate over measurement, less one: positive when the estimate is too slow."""
        return self.mid / self.row.value - 1

    @property
    def inside(self) -> bool:
        """Whether the measurement lies in the interval."""
        return self.low <= self.row.value <= self.high


def row_deployment(row: Row, *, machine: str | None = None) -> Deployment:
    """Deploy the model of a row as the row says.

    Raises:
        RooflineError: no such model or accelerator, or a plan that does not divide.
    """
    if row.model is None or row.accelerator is None or row.engine is None or row.n_gpu is None:
        raise InputError("the row names no model, accelerator, engine or number of accelerators")
    accelerator = load_accelerator(row.accelerator)
    arch = likely_architecture(row)
    arch = replace(arch, dtype=on_device(arch.dtype, accelerator))
    tp = (row.tp or 1) if row.plain else 1
    if not row.plain and row.n_gpu != 1:
        raise InputError(f"the plan {row.plan!r} is none that Parallel says")
    dp = row.dp if row.plain else 1
    ep = row.ep if any(group.experts is not None for group in arch.layers) else 1
    return deploy(
        arch,
        accelerator,
        parallel=Parallel(tp=tp, dp=dp, ep=ep),
        kv=None if row.kv is None else on_device(row.kv, accelerator),
        engine=row.engine,
        machine=machine,
    )


def estimate_rows(
    rows: Iterable[Row],
    *,
    machine: str | None = None,
    deployment_of: Callable[[Row], Deployment] | None = None,
) -> tuple[Estimated, ...]:
    """Estimate every row; rows that cannot be estimated say why.

    Args:
        rows: judged rows.
        machine: measured record whose terms replace the class's.
        deployment_of: deploys a row; for fits that try other terms.

    >>> from roofline.validation.exclusions import judged_rows
    >>> estimated = estimate_rows(judged_rows(engine="gpt-fast"))
    >>> all(0 < each.low <= each.mid <= each.high for each in estimated)
    True
    """
    kept = list(rows)
    groups: dict[tuple[object, ...], list[int]] = {}
    for position, row in enumerate(kept):
        key = (row.model, row.weights_label, row.kv, row.accelerator, row.tp, row.dp, row.ep,
               row.n_gpu, row.plain, row.engine, row.engine_label, row.quantity)  # fmt: skip
        groups.setdefault(key, []).append(position)
    found: dict[int, Estimated] = {}
    for positions in groups.values():
        members = [kept[position] for position in positions]
        try:
            if deployment_of is None:
                deployment = row_deployment(members[0], machine=machine)
            else:
                deployment = deployment_of(members[0])
            interval = _interval(deployment, members)
        except RooflineError as error:
            for position in positions:
                found[position] = Estimated(
                    kept[position], math.nan, math.nan, math.nan, str(error)
                )
            continue
        ends = (interval.low, interval.mid, interval.high)
        table = [np.broadcast_to(np.asarray(end, dtype=float), len(members)) for end in ends]
        for i, position in enumerate(positions):
            low, mid, high = (float(end[i]) for end in table)
            found[position] = Estimated(kept[position], low, mid, high)
    return tuple(found[position] for position in range(len(kept)))


def _interval(deployment: Deployment, rows: list[Row]) -> Interval:
    prompt = np.array([row.prompt_tokens or 0.0 for row in rows])
    output = np.array([row.output_tokens or 0.0 for row in rows])
    context = np.array([row.decode_context_tokens for row in rows]) + 1
    batch = np.array([row.running_batch or 1.0 for row in rows]) / deployment.parallel.dp
    cached = np.array([row.cached_tokens for row in rows])
    quantity = rows[0].quantity
    if quantity == "tpot":
        coming = np.array([row.load in ("concurrency", "all_at_once") for row in rows])
        decode = deployment.decode_s(batch, context)
        with_prefill = prefill_share(deployment, batch, context, prompt, output)
        share = np.where(coming & (batch > 1), with_prefill, 1.0)
        return decode.scaled(share)
    together = np.where([row.load == "fixed_batch" for row in rows], batch, 1.0)
    ttft = deployment.prefill_s(together, prompt, cached)
    if quantity == "ttft":
        return ttft
    decode = deployment.decode_s(batch, context)
    return ttft.shifted(decode.scaled(np.maximum(output - 1, 0)))


def prefill_share(
    deployment: Deployment, batch: Array, context: Array, prompt: Array, output: Array
) -> Array:
    """Mean time per output token over that of a step without prompts, in steady state.

    1 + n / (output − 1) · chunks · (t_mixed / t_decode − 1)
    """
    budget = np.maximum((deployment.engine.chunk_tokens or CHUNK_TOKENS) - batch, 1.0)
    chunk = np.minimum(budget, np.maximum(prompt, 1.0))
    alone = np.asarray(deployment.middle(Step(batch, context), long_phase=False).seconds)
    mixed = np.asarray(deployment.mixed_s(Step(batch, context, 1.0, chunk)))
    entering = np.minimum(batch / np.maximum(output - 1, 1) * (prompt / chunk), 1.0)
    share: Array = 1 + entering * np.maximum(mixed / alone - 1, 0.0)
    return share
