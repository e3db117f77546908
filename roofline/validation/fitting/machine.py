"""Calibrate a machine: terms from its sweeps, refined on two models' decoder rows, then judged.

    fitted   small-kernel start and rate, sustained share, rates of attention by head width:
             nine numbers, on the bf16 one-device rows of TinyLlama and Llama-3.1-8B
    judged   every other decoder row of the record

Limits   A record without decoder rows keeps what its sweeps give, and says so.
Sources  The record.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from roofline.calibration.engines import engine_terms, spread_keys
from roofline.calibration.machine import fit_machine
from roofline.calibration.store import Calibration, EngineFit
from roofline.calibration.typical import typical_terms
from roofline.errors import MissingDataError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.hardware.measurement import Measurement, load_measurement
from roofline.timing.terms import DeviceTerms, Spread
from roofline.validation.fitting.decoder import (
    FIT_MODELS,
    DecoderCase,
    decoder_cases,
    fit_cases,
    judged_cases,
)

FEWEST_FIT_ROWS = 10
FEWEST_JUDGED_ROWS = 10  # the 10th and 90th percentile then have a row beyond them
NARROW_HEAD = 64
MOST_FILES = 3
COVERAGE = (0.1, 0.9)

_Setter = Callable[[DeviceTerms, float], DeviceTerms]


def _small_start(terms: DeviceTerms, value: float) -> DeviceTerms:
    return replace(terms, small=replace(terms.small, start_s=value))


def _small_rate(terms: DeviceTerms, value: float) -> DeviceTerms:
    return replace(terms, small=replace(terms.small, bytes_per_s=value))


def _sustained(terms: DeviceTerms, value: float) -> DeviceTerms:
    # the board's power limit lowers the clock of every type's long phases alike
    return replace(terms, sustained=dict.fromkeys(terms.sustained, value))


def _whole_rate(terms: DeviceTerms, value: float) -> DeviceTerms:
    whole = terms.decode_attention.whole
    if whole is None:
        return terms
    attention = replace(terms.decode_attention, whole=replace(whole, bytes_per_s=value))
    return replace(terms, decode_attention=attention)


def _narrow_decode(terms: DeviceTerms, value: float) -> DeviceTerms:
    attention = replace(terms.decode_attention, by_head_dim=((NARROW_HEAD, value), (128, 1.0)))
    return replace(terms, decode_attention=attention)


def _prefill_rate(terms: DeviceTerms, value: float) -> DeviceTerms:
    return replace(terms, prefill_attention=replace(terms.prefill_attention, flop_per_s=value))


def _prefill_start(terms: DeviceTerms, value: float) -> DeviceTerms:
    return replace(terms, prefill_attention=replace(terms.prefill_attention, start_s=value))


def _narrow_prefill(terms: DeviceTerms, value: float) -> DeviceTerms:
    attention = replace(terms.prefill_attention, by_head_dim=((NARROW_HEAD, value), (128, 1.0)))
    return replace(terms, prefill_attention=attention)


def _numbers(terms: DeviceTerms) -> list[tuple[str, _Setter, float, float, float]]:
    """Name, setter, first value and limits of each number: a term outside them is a wrong term."""
    whole = terms.decode_attention.whole
    rate = whole.bytes_per_s if whole is not None else terms.decode_attention.curve.bytes_per_s
    prefill = terms.prefill_attention
    share = terms.sustained.get("bf16", 0.85)
    small = terms.small
    return [
        ("small kernel start", _small_start, small.start_s, 0.4e-6, 8e-6),
        ("small kernel rate", _small_rate, small.bytes_per_s, 0.5 * small.bytes_per_s,
         2 * small.bytes_per_s),
        ("sustained share", _sustained, share, 0.6, 1.0),
        ("whole attention rate", _whole_rate, rate, 0.7 * rate, 1.3 * rate),
        ("64-wide decode attention", _narrow_decode, 0.9, 0.6, 1.3),
        ("prefill attention rate", _prefill_rate, prefill.flop_per_s, 0.6 * prefill.flop_per_s,
         1.3 * prefill.flop_per_s),
        ("prefill attention start", _prefill_start, 6e-6, 1e-6, 4e-5),
        ("64-wide prefill attention", _narrow_prefill, 0.85, 0.5, 1.3),
    ]  # fmt: skip


def refine(terms: DeviceTerms, cases: Sequence[DecoderCase]) -> tuple[DeviceTerms, str]:
    """Fit the numbers that sweeps do not give to decoder rows; also say them in words."""
    from scipy.optimize import least_squares

    engine = engine_terms("cuda-graph")
    numbers = _numbers(terms)

    def with_values(values: np.ndarray) -> DeviceTerms:
        changed = terms
        for (_, setter, *_), value in zip(numbers, values, strict=True):
            changed = setter(changed, float(value))
        return changed

    def errors(logs: np.ndarray) -> list[float]:
        changed = with_values(np.exp(logs))
        return [float(np.log(case.seconds(changed, engine) / case.row.median_s)) for case in cases]

    first = np.log([number[2] for number in numbers])
    low = np.log([number[3] for number in numbers])
    high = np.log([number[4] for number in numbers])
    found = least_squares(
        errors, np.clip(first, low + 1e-6, high - 1e-6), bounds=(low, high),
        loss="soft_l1", f_scale=0.05,
    )  # fmt: skip
    values = np.exp(found.x)
    words = ", ".join(
        f"{name} {value:.3g}" for (name, *_), value in zip(numbers, values, strict=True)
    )
    return with_values(values), words


def error_rows(
    cases: Sequence[DecoderCase], terms: DeviceTerms
) -> list[tuple[str, str, int, float, float, float]]:
    """Error of each group and phase: group, phase, rows, mean, 90th percentile, bias."""
    engine = engine_terms("cuda-graph")
    groups: dict[tuple[str, str], list[float]] = {}
    for case in cases:
        ratio = case.seconds(terms, engine) / case.row.median_s
        groups.setdefault((case.group, case.row.phase), []).append(ratio - 1)
    return [
        (group, phase, len(found), float(np.mean(np.abs(found))),
         float(np.quantile(np.abs(found), 0.9)), float(np.mean(found)))
        for (group, phase), found in sorted(groups.items())
    ]  # fmt: skip


def _spreads(cases: Sequence[DecoderCase], terms: DeviceTerms) -> dict[str, Spread]:
    """Spread of the judged rows' errors by phase, dense and experts apart where rows allow."""
    engine = engine_terms("cuda-graph")
    groups: dict[str, list[DecoderCase]] = {}
    for case in cases:
        for key in spread_keys(case.row.phase, "", experts=case.deployment.arch.has_experts)[1:]:
            groups.setdefault(key, []).append(case)
    found = {}
    for key, members in sorted(groups.items()):
        if len(members) < FEWEST_JUDGED_ROWS:
            continue
        ratios = [case.row.median_s / case.seconds(terms, engine) for case in members]
        low, high = np.quantile(ratios, COVERAGE, method="weibull")
        models = len({case.deployment.arch.name for case in members})
        words = f"decoder rows of {models} models outside the fit"
        found[key] = Spread(min(float(low), 1.0), max(float(high), 1.0), len(ratios), words)
    return found


def _origin(record: Measurement) -> str:
    """Name the device and the files that its sections come from, newest first."""
    files = list(dict.fromkeys(f"{o.file} ({o.date:%Y-%m-%d})" for o in record.origins))
    listed = ", ".join(files[:MOST_FILES])
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    return f"{record.device.name}: {listed + more if files else f'{record.date:%Y-%m-%d}'}"


def calibrate(
    record: str | Path | Measurement, accelerator: str | Path | Accelerator | None = None
) -> Calibration:
    """Calibrate a machine from its record.

    Args:
        record: a record, its path, or a spec id for its newest full records.
        accelerator: the device; None: the spec that the record names.

    Raises:
        MissingDataError: the record's device has no spec and none was given.
    """
    measured = load_measurement(record)
    device = accelerator or measured.device.spec_id
    if device is None:
        raise MissingDataError(
            f"the record is of {measured.device.name!r}, which has no spec; give one with "
            "accelerator=FILE.yaml"
        )
    spec = load_accelerator(device)
    fit = fit_machine(measured, spec)
    terms = fit.terms
    residuals = [(r.what, r.rows, r.mean, r.worst, r.values) for r in fit.residuals]
    cases = decoder_cases(measured, spec)
    fitted = fit_cases(cases)
    judged = judged_cases(cases)
    fitted_on = "sweeps only: the record has no decoder rows of the two fit models"
    if len(fitted) >= FEWEST_FIT_ROWS:
        terms, words = refine(terms, fitted)
        rows = error_rows(fitted, terms)
        residuals += [(f"decoder {p}, fitted rows", n, mean, p90, words if not i else "as above")
                      for i, (_, p, n, mean, p90, _) in enumerate(rows)]  # fmt: skip
        fitted_on = (
            f"sweeps, and {len(fitted)} bf16 decoder rows of {' and '.join(FIT_MODELS)} "
            "on one device"
        )
    before = {
        (group, phase): mean
        for group, phase, _, mean, _, _ in error_rows(judged, typical_terms(spec))
    }
    residuals += [
        (f"decoder {phase}, {group}, judged rows", n, mean, p90,
         f"bias {bias:+.1%}; from {before[group, phase]:.1%} by datasheet and class")
        for group, phase, n, mean, p90, bias in error_rows(judged, terms)
    ]  # fmt: skip
    engine = EngineFit(
        kernels="decoder",
        spreads=_spreads(judged, terms),
        fitted_on=fitted_on,
        judged_on=f"{len(judged)} other decoder rows" if judged else "nothing",
    )
    return Calibration(
        schema_version=1,
        spec_id=spec.id,
        origin=_origin(measured),
        device=terms,
        engines={"cuda-graph": engine},
        residuals=tuple(residuals),
    )
