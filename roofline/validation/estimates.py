"""Estimates of published rows: what the engine's terms say of each, in one array call per group.

    tpot   decode step of the running batch at mid-output context, and, where requests come and go,
           its share of their prefill: n / (output − 1) prompts enter per step of n sequences
    ttft   prefill of one prompt, or of a whole fixed batch
    e2e    ttft + (output − 1) · tpot of the whole batch

Units    seconds.
Limits   Requests that wait outside the batch are not charged to the engine: TTFT is judged of
         requests alone. A fixed batch that memory does not hold ran in waves and is refused.
         Engine terms are those of ``measurements/calibration/engines.json``; ``held_out`` takes for
         each row the terms that were fitted without its accelerator and model.
Sources  Definitions in ``serving.deployment``; folds in ``validation.fitting.engines``.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roofline.calibration.engines import engine_fit, engine_terms, is_early, with_numbers
from roofline.calibration.typical import device_class
from roofline.errors import InputError, RooflineError
from roofline.hardware.accelerator import load_accelerator
from roofline.serving.deployment import Deployment, deploy
from roofline.timing.interval import Interval, whole_request
from roofline.timing.parallel import Parallel
from roofline.validation.fitting.engines import fold_of
from roofline.validation.rows import Row
from roofline.validation.storage import cache_format, likely_architecture, on_device
from roofline.work.kv_cache import cache_bytes
from roofline.work.operators import Step
from roofline.work.weights import stored_bytes

Array = NDArray[np.float64]
ENGINE_SHARE = 0.9
"""Share of memory that engines give to weights and cache by default."""


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


def row_deployment(row: Row) -> Deployment:
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
    ep = row.ep if arch.has_experts else 1
    return deploy(
        arch,
        accelerator,
        parallel=Parallel(tp=tp, dp=dp, ep=ep),
        kv=on_device(cache_format(row, arch), accelerator),
        engine=row.engine,
    )


def held_out_deployment(row: Row) -> Deployment:
    """Deploy a row with the engine's terms of a fit that left its accelerator and model out.

    An engine without folds keeps its terms, which then saw no row.
    """
    deployment = row_deployment(row)
    fit = engine_fit(row.engine or "")
    if fit is None or not fit.folds:
        return deployment
    terms = deployment.terms
    fold = fit.folds[fold_of(f"{row.accelerator} {row.model}")]
    bare = engine_terms(row.engine or "", weights_bits=deployment.weights_dtype.bits)
    early = is_early(row.engine or "", row.engine_version)
    numbers = with_numbers(bare, fold, device_class(deployment.accelerator).name, early=early)
    engine = replace(
        numbers,
        spread_decode=terms.engine.spread_decode,
        spread_prefill=terms.engine.spread_prefill,
        spread_whole=terms.engine.spread_whole,
    )
    return replace(deployment, terms=replace(terms, engine=engine))


def estimate_rows(
    rows: Iterable[Row],
    *,
    deployment_of: Callable[[Row], Deployment] | None = None,
) -> tuple[Estimated, ...]:
    """Estimate every row; rows that cannot be estimated say why.

    Args:
        rows: judged rows.
        deployment_of: deploys a row; None: with the terms that are shipped.

    >>> from roofline.validation.exclusions import judged_rows
    >>> estimated = estimate_rows(judged_rows(engine="gpt-fast"))
    >>> all(0 < each.low <= each.mid <= each.high for each in estimated)
    True
    """
    kept = list(rows)
    groups: dict[tuple[object, ...], list[int]] = {}
    for position, row in enumerate(kept):
        key = (row.model, row.weights_label, row.kv, row.accelerator, row.tp, row.dp, row.ep,
               row.n_gpu, row.plain, row.engine, row.engine_label, row.quantity,
               is_early(row.engine or "", row.engine_version))  # fmt: skip
        groups.setdefault(key, []).append(position)
    found: dict[int, Estimated] = {}
    for positions in groups.values():
        members = [kept[position] for position in positions]
        try:
            deployment = (deployment_of or row_deployment)(members[0])
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
            row = kept[position]
            low, mid, high = (float(end[i]) for end in table)
            if holds_batch(deployment, row):
                found[position] = Estimated(row, low, mid, high)
            else:
                found[position] = Estimated(row, math.nan, math.nan, math.nan, _IN_WAVES)
    return tuple(found[position] for position in range(len(kept)))


_IN_WAVES = "the stated batch does not fit in memory: it ran in waves, not as a batch"


def holds_batch(deployment: Deployment, row: Row) -> bool:
    """Whether memory holds a fixed batch with its prompt and output."""
    if row.load != "fixed_batch":
        return True
    tokens = row.cached_tokens + (row.prompt_tokens or 0.0) + (row.output_tokens or 0.0)
    batch = (row.batch or 1.0) / deployment.parallel.dp
    rank = deployment.rank
    held = stored_bytes(rank) + batch * float(cache_bytes(rank, tokens, deployment.formats.kv))
    usable, _ = deployment.accelerator.usable_memory()
    return held <= ENGINE_SHARE * usable


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
    steps = np.maximum(output - 1, 0)
    first = Step(prefill_sequences=together, prefill_tokens=prompt, cached_tokens=cached)
    least = deployment.bound(first).seconds + steps * deployment.bound(Step(batch, context)).seconds
    return whole_request(ttft, decode.scaled(steps), deployment.terms.engine.spread_whole, least)


def prefill_share(
    deployment: Deployment, batch: Array, context: Array, prompt: Array, output: Array
) -> Array:
    """Mean time per output token over that of a step without prompts, in steady state.

        1 + share · n / (output − 1) · t_prefill / t_decode

    The engine's scheduler share says how much of a prompt the others wait for; a prompt's own host
    work hides behind the steps of the others.
    """
    terms = deployment.terms.engine
    alone = np.asarray(deployment.middle(Step(batch, context), long_phase=False).seconds)
    step = Step(prefill_sequences=1.0, prefill_tokens=np.maximum(prompt, 1.0))
    prefill = np.asarray(deployment.middle(step, long_phase=True).seconds)
    device = np.maximum(prefill - terms.prefill_step_s - terms.step_s, 0.0)
    waits = terms.scheduler_share * batch / np.maximum(output - 1, 1)
    share: Array = 1 + waits * device / alone
    return share
