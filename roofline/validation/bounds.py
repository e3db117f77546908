"""Bounds against measurements: no bound may be above one.

    ratio = measured / bound      (for rates: the bound's rate / the measured one)

A ratio below 1 is a violation: a wrong bound, or a row that is not what it says. Rows of one model,
device and plan are bounded together through the array path.

    tpot          the decode step of the running batch at mid-output context
    ttft          the prefill of one prompt, or of a whole fixed batch
    e2e           the largest over resources of prefill + (output − 1) decode steps
    output_rate   the same for the requests in flight, whose prefills share the decode steps' reads

Units    seconds, or tokens per second for ``output_rate``.
Limits   A plan of tensor parallelism alone is bounded as ``predict`` bounds it, its copies of KV
         heads and its link included; any other plan by all its accelerators as if one: every demand
         divided by their number, no link.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from roofline.dtypes import Dtype
from roofline.errors import InputError, MissingDataError, RooflineError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.models.architecture import Architecture
from roofline.timing.parallel import Parallel, shard
from roofline.timing.roofs import datasheet_roofs
from roofline.timing.steps import step_bound
from roofline.units import Numeric
from roofline.validation.rows import Row
from roofline.validation.storage import cache_format, on_device, row_architecture
from roofline.work.operators import Formats, Step

MANY_SEQUENCES = 1e6
"""A batch so large that weights no longer count: the bound of a throughput at an unstated batch."""


@dataclass(frozen=True)
class Bounded:
    """A row with its bound.

    Args:
        row: the measurement.
        bound: in the unit of the row's quantity; NaN when there is none.
        ratio: measured over bound as times; below 1 is a violation; NaN without a bound.
        route: ``plan`` or ``pooled``, see the module.
        limited_by: the resource that sets the bound.
        refused: why there is no bound, or empty.
    """

    row: Row
    bound: float
    ratio: float
    route: str
    limited_by: str
    refused: str = ""


@dataclass(frozen=True)
class _Case:
    """What rows must share to be bounded together."""

    arch: Architecture
    kv: Dtype
    accelerator: Accelerator
    parallel: Parallel
    pooled: bool


def bound_rows(rows: Iterable[Row]) -> tuple[Bounded, ...]:
    """Bound every row; rows that cannot be bounded say why.

    >>> from roofline.validation.rows import serving_rows
    >>> [bounded] = bound_rows(serving_rows()[360:361])
    >>> bounded.ratio > 1
    True
    """
    kept = list(rows)
    groups: dict[tuple[object, ...], list[int]] = {}
    for position, row in enumerate(kept):
        key = (row.model, row.weights, row.head, row.kv, row.accelerator, row.tp, row.n_gpu,
               row.plain, row.quantity, row.engine_label, row.load == "unstated",
               "clock starts" in row.flag)  # fmt: skip
        groups.setdefault(key, []).append(position)
    found: list[Bounded | None] = [None] * len(kept)
    for positions in groups.values():
        for position, bounded in zip(
            positions, _bound_group([kept[position] for position in positions]), strict=True
        ):
            found[position] = bounded
    return tuple(bounded for bounded in found if bounded is not None)


def _bound_group(rows: list[Row]) -> list[Bounded]:
    try:
        case = _case(rows[0])
        times = _times(rows, case)
    except RooflineError as error:
        return [Bounded(row, math.nan, math.nan, "", "", str(error)) for row in rows]
    route = "pooled" if case.pooled else "plan"
    names = list(times)
    table = np.stack([np.broadcast_to(np.asarray(times[n], float), len(rows)) for n in names])
    longest = table.max(axis=0)
    which = table.argmax(axis=0)
    bounded = []
    for i, row in enumerate(rows):
        bound, ratio = _compared(row, float(longest[i]))
        bounded.append(Bounded(row, bound, ratio, route, names[int(which[i])]))
    return bounded


def _compared(row: Row, least_s: float) -> tuple[float, float]:
    if row.quantity != "output_rate":
        return least_s, row.value / least_s
    rate = _in_flight(row) * (row.output_tokens or 1) / least_s
    return rate, rate / row.value


def _case(row: Row) -> _Case:
    if row.model is None or row.accelerator is None or row.n_gpu is None:
        raise MissingDataError("the row names no model, accelerator or number of accelerators")
    accelerator = load_accelerator(row.accelerator)
    arch = row_architecture(row)
    arch = replace(arch, dtype=on_device(arch.dtype, accelerator))
    kv = on_device(cache_format(row, arch), accelerator)
    if row.plain and row.tp is not None and row.tp > 1 and row.dp == 1:
        parallel = Parallel(tp=row.tp)
        try:
            return _Case(shard(arch, parallel), kv, accelerator, parallel, pooled=False)
        except InputError:
            pass  # the engine pads or copies what tp does not divide; all accelerators as one hold
    return _Case(arch, kv, accelerator, Parallel(), pooled=True)


def _in_flight(row: Row) -> float:
    if row.load == "unstated":
        return MANY_SEQUENCES
    return row.batch or 1.0


def _times(rows: list[Row], case: _Case) -> Mapping[str, Numeric]:
    """Time that each resource needs for what each row did."""
    quantity = rows[0].quantity
    shortest = np.array([row.shortest for row in rows])
    prompt = np.array([row.prompt_tokens or 0.0 for row in rows]) * shortest
    output = np.array([row.output_tokens or 0.0 for row in rows])
    cached = np.array([row.cached_tokens for row in rows])
    context = np.array([row.decode_context_tokens for row in rows]) * shortest + 1
    if quantity == "tpot":
        batch = np.array([row.running_batch or 1.0 for row in rows])
        return _step(case, Step(batch, context), rows)
    if quantity == "ttft":
        together = np.array([_together(row) for row in rows])
        step = Step(prefill_sequences=together, prefill_tokens=prompt, cached_tokens=cached)
        return _step(case, step, rows)
    batch = np.array([_in_flight(row) for row in rows])
    decode = _step(case, Step(batch, context), rows)
    steps = np.maximum(output - 1, 0)
    if "clock starts" in rows[0].flag:
        return {name: time_s * output for name, time_s in decode.items()}
    step = Step(prefill_sequences=batch, prefill_tokens=prompt, cached_tokens=cached)
    prefill = _step(case, step, rows)
    total: dict[str, Numeric] = {name: time_s * steps for name, time_s in decode.items()}
    for name, time_s in prefill.items():
        if quantity == "e2e" or name.startswith("compute"):
            total[name] = total.get(name, 0.0) + time_s
    return total


def _together(row: Row) -> float:
    return (row.batch or 1.0) if row.load == "fixed_batch" else 1.0


def _step(case: _Case, step: Step, rows: list[Row]) -> dict[str, Numeric]:
    link = case.accelerator.link.bytes_per_s if not case.pooled else None
    bound = step_bound(
        case.arch, step, Formats(None, case.kv), case.accelerator,
        datasheet_roofs(case.accelerator), parallel=case.parallel, link_bytes_per_s=link,
    )  # fmt: skip
    share = rows[0].n_gpu or 1 if case.pooled else 1
    return {name: time_s / share for name, time_s in bound.by_resource.items()}
