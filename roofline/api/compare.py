"""compare: a procurement table of accelerators for one workload.

    effective FLOP/s       = model FLOP / estimated time, prefill and decode apart
    cost per TFLOP-hour    = price / peak (nominal), price / effective FLOP/s (effective)
    cost per million tokens at full load; GPU-hours beside it

Units    base units; USD as the names say.
Limits   One replica that runs the workload all the time; targets and queueing are ``plan``'s. A
         concurrency is a closed loop, simulated: each answer sends the next request.
Sources  ``api.predict``, ``api.train``, ``serving.simulation`` (concurrency), ``economics``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roofline.api.comparison import Comparison, Row
from roofline.api.plan import check_names
from roofline.api.serving_row import serving_row
from roofline.api.training_row import training_row
from roofline.economics.price_row import Price
from roofline.economics.prices import PriceTable, price_table
from roofline.errors import InputError, RooflineError, unknown_name
from roofline.hardware.accelerator import Accelerator, accelerator_ids, load_accelerator
from roofline.hardware.measurement import Measurement
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.planning.candidate import Excluded
from roofline.planning.machines import Record, machines_by_spec
from roofline.planning.pricing import Pricing
from roofline.serving.engines import Engine
from roofline.serving.traffic import Workload
from roofline.timing.parallel import Parallel
from roofline.units import number, show

SCENARIOS = ("serving", "pre-training", "fine-tuning")
SORTS = {
    "usd_per_million_tokens": "cost per million tokens",
    "usd_per_effective_tflop_hour": "cost per effective TFLOP-hour",
    "usd_per_nominal_tflop_hour": "cost per nominal TFLOP-hour",
    "gpu_hours_per_million_tokens": "accelerator-hours per million tokens",
    "tokens_per_s": "tokens per second of a replica",
    "tokens_per_joule": "tokens per joule",
    "tpot_s": "time per output token",
    "ttft_s": "time to first token",
}
MOST_NAMED = 8
"""Accelerators that a line about several names."""
_MORE_IS_BETTER = ("tokens_per_s", "tokens_per_joule")


@dataclass(frozen=True)
class Setting:
    """What every row of a comparison shares.

    Args:
        arch: the model.
        workload: lengths, with a batch or a concurrency; in training prompt and output together
            are the sequence and ``batch`` the global batch.
        pricing: offers and basis.
        parallel: the plan; None: the fewest accelerators that hold the workload.
        weights, kv, engine: as ``predict`` takes them.
        machine: measured record by spec id.
        most: accelerators of a replica at most.
    """

    arch: Architecture
    workload: Workload
    pricing: Pricing
    parallel: Parallel | None
    weights: str | None
    kv: str | None
    engine: str | Engine
    machine: Mapping[str, "str | Path | Measurement"]
    most: int


def compare(
    model: str | Path | dict[str, Any] | Architecture,
    workload: Workload,
    accelerators: Iterable[str | Path | Accelerator] | None = None,
    *,
    scenario: str = "serving",
    sort: str | None = None,
    parallel: Parallel | None = None,
    weights: str | None = None,
    kv: str | None = None,
    engine: str | Engine = "vllm",
    machine: Record | Iterable[Record] | Mapping[str, Record] | None = None,
    prices: str | Path | Mapping[str, float] | Sequence[Price] | PriceTable | None = None,
    term: str = "on_demand",
    provider: str | None = None,
    region: str | None = None,
    most: int = 64,
) -> Comparison:
    """Compare accelerators for a workload: fit, bound, estimate, cost, power, what limits.

    Args:
        model: catalogue name, path, dict or Architecture.
        workload: lengths, and batch or concurrency.
        accelerators: ids, paths or Accelerators; None: the whole catalogue.
        scenario: ``serving``, ``pre-training`` or ``fine-tuning`` (LoRA).
        sort: a key of ``SORTS``; None: cost per million tokens, or GPU-hours where no row has a
            price.
        parallel: plan of a replica; None: the fewest accelerators that hold the workload.
        weights, kv, engine: storage formats and engine, of serving.
        machine: measured record, several, or records by spec id.
        prices, term, provider, region: as ``plan`` takes them.
        most: accelerators of a replica at most.

    Raises:
        RooflineError: an unknown name or a value that cannot be. Accelerators that do not do are
            in ``excluded`` instead.

    >>> table = compare("llama-3.1-8b", Workload(2048, 256, batch=32), ["l40s", "h200-sxm-141gb"])
    >>> sorted(row.accelerator for row in table.rows if row.fits)
    ['h200-sxm-141gb', 'l40s']
    """
    if scenario not in SCENARIOS:
        raise unknown_name("scenario", str(scenario), SCENARIOS)
    if sort is not None and sort not in SORTS:
        raise unknown_name("sort key", str(sort), SORTS)
    if isinstance(most, bool) or most < 1:
        raise InputError(f"most needs to be at least 1, got {most!r}")
    check_names(term, (weights,), (kv,), (engine,))
    setting = Setting(
        load_model(model), workload, Pricing(price_table(prices), term, provider, region),
        parallel, weights, kv, engine, machines_by_spec(machine), most,
    )  # fmt: skip
    rows, excluded, words, warnings = _rows(setting, scenario, _devices(accelerators))
    key = sort or (
        "usd_per_million_tokens"
        if any(row.usd_per_million_tokens is not None for row in rows)
        else "gpu_hours_per_million_tokens"
    )
    ranked = _ranked(rows, key)
    return Comparison(
        model=setting.arch.name,
        scenario=scenario,
        sort=key,
        rows=ranked,
        excluded=tuple(excluded),
        recommendation=_recommendation(ranked, key, excluded),
        assumptions=tuple(words),
        warnings=tuple(warnings),
    )


def _devices(accelerators: Iterable[str | Path | Accelerator] | None) -> list[Accelerator]:
    if accelerators is None:
        loaded = [load_accelerator(name) for name in accelerator_ids()]
        return [device for device in loaded if device.kind != "cpu"]
    if isinstance(accelerators, str | Path | Accelerator):
        accelerators = [accelerators]
    devices = [load_accelerator(name) for name in accelerators]
    if not devices:
        raise InputError("no accelerators to compare; name some, or leave them out for all")
    return list({device.id: device for device in devices}.values())


def _rows(
    setting: Setting, scenario: str, devices: Sequence[Accelerator]
) -> tuple[list[Row], list[Excluded], list[str], list[str]]:
    rows: list[Row] = []
    excluded: list[Excluded] = []
    said: dict[str, list[str]] = {}
    warnings: list[str] = []
    for device in devices:
        try:
            if scenario == "serving":
                row, words, doubts = serving_row(setting, device)
            else:
                row, words, doubts = training_row(setting, device, scenario)
        except RooflineError as error:
            excluded.append(Excluded(device.id, "", str(error)))
            continue
        rows.append(row)
        for line in dict.fromkeys(words):
            said.setdefault(line.removeprefix(f"{device.id}: "), []).append(device.id)
        warnings += doubts
    return rows, excluded, _said(said, len(rows)), list(dict.fromkeys(warnings))


def _said(said: Mapping[str, Sequence[str]], rows: int) -> list[str]:
    """Lines with the accelerators that they are about: once, however many those are."""

    def named(ids: Sequence[str]) -> str:
        if len(ids) <= MOST_NAMED:
            return ", ".join(ids)
        return f"{', '.join(ids[:MOST_NAMED])}, … ({len(ids)} of {rows} accelerators)"

    return [
        line if len(ids) == rows or ids[0] in line else f"{named(ids)}: {line}"
        for line, ids in said.items()
    ]


def _value(row: Row, key: str) -> float | None:
    value = getattr(row, key)
    if value is None:
        return None
    return float(getattr(value, "mid", value))


def _ranked(rows: Sequence[Row], key: str) -> tuple[Row, ...]:
    sign = -1.0 if key in _MORE_IS_BETTER else 1.0

    def order(row: Row) -> tuple[bool, bool, float, str]:
        value = _value(row, key)
        return (not row.fits, value is None, sign * (value or 0.0), row.accelerator)

    placed = sorted(rows, key=order)
    nominal = _places(placed, "usd_per_nominal_tflop_hour")
    effective = _places(placed, "usd_per_effective_tflop_hour")
    first = _worth(placed[0]) if placed else None
    return tuple(
        replace(
            row,
            nominal_rank=nominal.get(row.accelerator),
            effective_rank=effective.get(row.accelerator),
            ratio_to_first=_ratio(_worth(row), first),
        )
        for row in placed
    )


def _places(rows: Sequence[Row], key: str) -> dict[str, int]:
    """Place of each row that has a price, by one cost."""
    priced = sorted(
        (value, row.accelerator) for row in rows if (value := _value(row, key)) is not None
    )
    return {accelerator: place for place, (_, accelerator) in enumerate(priced, 1)}


def _worth(row: Row) -> tuple[str, float]:
    """Tokens for a unit of what is paid: USD where there is a price, else accelerator-hours."""
    if row.usd_per_million_tokens is not None:
        return "usd", 1 / row.usd_per_million_tokens
    return "hours", 1 / row.gpu_hours_per_million_tokens


def _ratio(worth: tuple[str, float], first: tuple[str, float] | None) -> float | None:
    return worth[1] / first[1] if first is not None and worth[0] == first[0] else None


def _recommendation(rows: Sequence[Row], key: str, excluded: Sequence[Excluded]) -> tuple[str, ...]:
    good = [row for row in rows if row.fits and _value(row, key) is not None]
    if not good:
        return ("none of these does", *(str(one) for one in list(excluded)[:6]))
    best = good[0]
    lines = [f"take {best.plan} of {best.name}: {SORTS[key]} {_shown(best, key)}, {_why(best)}"]
    for other in good[1:3]:
        lines.append(f"next: {other.plan} of {other.name}: {_shown(other, key)}, {_why(other)}")
    turned = [
        row for row in good
        if row.nominal_rank is not None and row.nominal_rank != row.effective_rank
    ]  # fmt: skip
    if turned:
        moved = ", ".join(
            f"{row.name} {row.nominal_rank} → {row.effective_rank}" for row in turned[:4]
        )
        lines.append(f"the datasheet's order is not the real one (cost per TFLOP-hour): {moved}")
    return tuple(lines)


def _shown(row: Row, key: str) -> str:
    value = _value(row, key)
    if value is None:
        return "unknown"
    if key.startswith("usd"):
        return f"{number(value)} USD"
    if key.endswith("_s") and key != "tokens_per_s":
        return show(value, "s")
    return number(value)


def _why(row: Row) -> str:
    reached = f"reaches {row.achieved_share:.0%} of its {row.compute} peak"
    return (
        f"{number(float(row.tokens_per_s.mid))} tokens/s, limited by {row.limited_by}, {reached}, "
        f"{number(row.gpu_hours_per_million_tokens)} GPU-hours per million tokens"
    )
