"""Fit engine terms on published rows, with whole accelerator-model pairs left out to judge.

    general    step_s, sequence_s, prefill_step_s, scheduler_share, decode_rate, prefill_rate,
               weight_only_rate, expert_rate, collective_rate
    by class   decode_rate, prefill_rate, near the general ones

Every pair falls into one of ``FOLDS`` shares by a fixed hash; a share is judged by terms fitted on
the others, and the spread of those errors is the interval's. The terms that are shipped are fitted
on all rows. Each number stays within its limits and near 1 (or its default) unless rows pull it.

Limits   Rows whose batch is only inferred from a whole run are no ground truth of a step and are
         left out (``step_rows``).
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roofline.calibration.engines import EARLY, engine_terms, spread_keys, with_numbers
from roofline.calibration.store import EngineFit
from roofline.timing.terms import EngineTerms, Spread
from roofline.validation.fitting.published import RowParts, row_parts
from roofline.validation.rows import Row

FOLDS = 5
PRIOR_SPREAD = 0.08
"""Standard deviation of a number's logarithm around its first value, before rows speak."""
ROW_SPREAD = 0.3
"""Scatter between pairs, in logarithms, that the prior is weighed against."""
FEW = 8
"""A pair of many more rows than this weighs as one; a pair of few weighs less."""
FEWEST_CLASS_ROWS = 8
FEWEST_SPREAD_ROWS = 20
COVERAGE = (0.1, 0.9)
PHASES = {"tpot": "decode", "ttft": "prefill", "e2e": "whole"}
"""Which spread a row of a quantity speaks for."""

_GENERAL = {
    "step_s": (2e-5, 2e-2),
    "sequence_s": (1e-7, 2e-4),
    "prefill_step_s": (1e-4, 6e-2),
    "weight_only_rate": (0.4, 1.25),
    "expert_rate": (0.4, 1.6),
    "collective_rate": (0.4, 4.0),
    "scheduler_share": (0.2, 1.3),
    "decode_rate": (0.4, 1.3),
    "prefill_rate": (0.25, 1.6),
}
_BY_CLASS = ("decode_rate", "prefill_rate")
"""Numbers that a device class has of its own, near the engine's general one."""
_FREE = ("prefill_rate", "prefill_step_s")
"""Numbers whose first value says little: rows of TTFT, where there are some, move them easily."""
FREE_SPREAD = 0.5
FEWEST_FIRST_TOKEN_ROWS = 40
EARLY_REACH = 2.5
"""How far, in logarithms, early releases may lie from today's."""
_EAGER = {"eager_kernel_s": (3e-6, 2e-4)}


@dataclass(frozen=True)
class HeldOut:
    """A row with the estimate of terms that never saw its pair."""

    parts: RowParts
    estimate_s: float

    @property
    def ratio(self) -> float:
        """Measured over estimated."""
        return self.parts.row.value / self.estimate_s

    @property
    def phase(self) -> str:
        """Which spread it speaks for."""
        return PHASES[self.parts.row.quantity]


def step_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows that say how long a step takes: a batch that is stated or held by a cap."""
    return [row for row in rows if row.load != "all_at_once"]


def fold_of(pair: str) -> int:
    """Share that a pair is judged in.

    >>> fold_of("h100-sxm5-80gb qwen3-32b") == fold_of("h100-sxm5-80gb qwen3-32b")
    True
    """
    return zlib.crc32(pair.encode()) % FOLDS


def fit_engine(name: str, rows: Iterable[Row]) -> tuple[EngineFit, list[HeldOut]]:
    """Fit an engine's terms and give the held-out estimate of every row.

    Args:
        name: engine.
        rows: judged rows of it.
    """
    parts, _ = row_parts(step_rows(rows), name)
    terms = engine_terms(name)
    folds = tuple(
        fit_numbers(terms, [part for part in parts if fold_of(part.pair) != fold])
        for fold in range(FOLDS)
    )
    held = [held_out(part, terms, folds) for part in parts]
    pairs = len({part.pair for part in parts})
    fit = EngineFit(
        kernels="",
        numbers=fit_numbers(terms, parts),
        folds=folds,
        spreads=spreads(held),
        fitted_on=f"{len(parts)} published rows of {pairs} accelerator-model pairs",
        judged_on=f"the same rows, each by terms fitted without its pair's fifth ({FOLDS} folds)",
    )
    return fit, held


def held_out(part: RowParts, terms: EngineTerms, folds: Sequence[Mapping[str, float]]) -> HeldOut:
    """Estimate a row by the terms that never saw its pair."""
    numbers = folds[fold_of(part.pair)]
    chosen = with_numbers(terms, numbers, part.device_class, early=part.early)
    return HeldOut(part, part.seconds(chosen))


def fit_numbers(terms: EngineTerms, parts: Sequence[RowParts]) -> dict[str, float]:
    """Fit an engine's numbers to rows, each pair weighing alike however many rows it has."""
    from scipy.optimize import least_squares

    if not parts:
        return {}
    limits = {**_GENERAL, **(_EAGER if terms.eager_kernel_s else {})}
    classes = sorted({part.device_class for part in parts})
    kinds = {(part.device_class, part.early) for part in parts}
    general = list(limits)
    own = [
        (name, kind)
        for kind in classes
        if sum(part.device_class == kind for part in parts) >= FEWEST_CLASS_ROWS
        for name in _BY_CLASS
    ]
    if any(part.early for part in parts):
        own += [("step_s", EARLY), ("decode_rate", EARLY)]
    first = np.log([max(getattr(terms, name), limits[name][0] * 1.01) for name in general])
    reach = [EARLY_REACH if kind == EARLY else 1.0 for _, kind in own]
    low = np.array([np.log(limits[name][0]) for name in general] + [-r for r in reach])
    high = np.array([np.log(limits[name][1]) for name in general] + reach)
    first = np.concatenate([first, np.zeros(len(own))])
    first_tokens = sum(part.row.quantity == "ttft" for part in parts)
    free = _FREE if first_tokens >= FEWEST_FIRST_TOKEN_ROWS else ()
    loose = [FREE_SPREAD if name in free else PRIOR_SPREAD for name in general]
    prior_spread = np.array(loose + [PRIOR_SPREAD * r for r in reach])
    counts: dict[str, int] = {}
    for part in parts:
        counts[part.pair] = counts.get(part.pair, 0) + 1
    weights = np.array([(counts[part.pair] + FEW) ** -0.25 for part in parts]) / ROW_SPREAD

    def numbers(logs: np.ndarray) -> dict[str, float]:
        given = {name: float(value) for name, value in zip(general, np.exp(logs), strict=False)}
        for (name, kind), deviation in zip(own, logs[len(general) :], strict=True):
            rate = given[name] * float(np.exp(deviation))
            given[f"{name}:{kind}"] = float(np.clip(rate, *limits[name]))
        return given

    def errors(logs: np.ndarray) -> np.ndarray:
        given = numbers(logs)
        chosen = {key: with_numbers(terms, given, key[0], early=key[1]) for key in kinds}
        ratios = [
            part.seconds(chosen[part.device_class, part.early]) / part.row.value for part in parts
        ]
        return np.concatenate([weights * np.log(ratios), (logs - first) / prior_spread])

    start = np.clip(first, low + 1e-6, high - 1e-6)
    found = least_squares(errors, start, bounds=(low, high), loss="soft_l1")
    return numbers(found.x)


def spreads(held: Sequence[HeldOut]) -> dict[str, Spread]:
    """Spread of held-out errors of each phase: by device class, dense and experts, as rows allow.

    Groups of few rows are judged by what those of their body, or else of their phase, have in
    common, where that is enough; and else by all rows of the phase.
    """
    levels: list[dict[str, list[HeldOut]]] = [{}, {}, {}]
    for item in held:
        keys = spread_keys(item.phase, item.parts.device_class, experts=item.parts.experts)
        for level, key in zip(levels, keys, strict=True):
            level.setdefault(key, []).append(item)
    narrow, bodies, phases = levels
    result: dict[str, Spread] = {}
    alone: set[str] = set()
    for key, items in narrow.items():
        if len(items) >= FEWEST_SPREAD_ROWS:
            result[key] = _spread(items)
            alone.add(key)
    for level in (bodies, phases):
        for key, items in level.items():
            few = [item for item in items if _narrowest(item) not in alone]
            if len(few) >= FEWEST_SPREAD_ROWS:
                result[key] = _spread(few)
            elif level is phases and len(items) >= FEWEST_SPREAD_ROWS:
                result[key] = _spread(items)
    if not any(key.startswith("decode") for key in result):
        # an engine of whole requests alone: what they scatter, its steps are taken to scatter
        result |= {key.replace("whole", "decode"): spread for key, spread in result.items()
                   if key.startswith("whole")}  # fmt: skip
    return result


def _narrowest(item: HeldOut) -> str:
    return spread_keys(item.phase, item.parts.device_class, experts=item.parts.experts)[0]


def _spread(items: Sequence[HeldOut]) -> Spread:
    # ranks of n + 1 rows, so that a row not yet seen lies inside as often as is said
    low, high = np.quantile([item.ratio for item in items], COVERAGE, method="weibull")
    pairs = len({item.parts.pair for item in items})
    words = f"{len(items)} published rows of {pairs} pairs, each left out of its fit"
    return Spread(min(float(low), 1.0), max(float(high), 1.0), len(items), words)
