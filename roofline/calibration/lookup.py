"""Which terms an estimate uses: a machine's own, or its class's, and an engine's.

Sources  measurements/calibration and the record that was asked for.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from roofline.calibration.engines import (
    IDEAL_SPREAD,
    UNMEASURED,
    apply_fit,
    engine_fit,
    engine_terms,
    is_early,
)
from roofline.calibration.store import calibration_path, read_calibration
from roofline.calibration.typical import device_class, typical_terms
from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator
from roofline.timing.terms import DeviceTerms, EngineTerms, Spread

if TYPE_CHECKING:
    from roofline.calibration.machine import MachineFit
    from roofline.hardware.measurement import Measurement

CLASS_SPREAD = Spread(0.8, 1.6, 0, "no record of this machine: class-typical terms")
"""Widens the interval where a device was not measured."""


@dataclass(frozen=True)
class Terms:
    """Terms of a device and an engine, and where they come from in words."""

    device: DeviceTerms
    engine: EngineTerms
    measured: bool
    assumptions: tuple[str, ...]


def find_terms(
    accelerator: Accelerator,
    engine: str,
    machine: "str | Path | Measurement | None" = None,
    *,
    weights_bits: float = 16.0,
    version: str | None = None,
    experts: bool = False,
) -> Terms:
    """Find the terms of an estimate.

    Args:
        accelerator: the device.
        engine: engine name.
        machine: a measured record, its path, or a spec id; None: class-typical terms.
        weights_bits: bits of the blocks' weights.
        version: of the engine; early releases have terms of their own.
        experts: whether the model routes tokens to experts, whose estimates scatter more.

    Raises:
        InputError: the record is of another device.
    """
    terms = engine_terms(engine, weights_bits=weights_bits)
    early = is_early(engine, version)
    if machine is None:
        return _typical(accelerator, engine, terms, early=early, experts=experts)
    return _measured(accelerator, engine, terms, machine, early=early, experts=experts)


def _typical(
    accelerator: Accelerator, engine: str, terms: EngineTerms, *, early: bool, experts: bool
) -> Terms:
    device = typical_terms(accelerator)
    words = (f"no measured machine: {device.origin}",)
    fit = engine_fit(engine)
    if engine in ("ideal", "plain"):
        spreads = replace(terms, spread_decode=CLASS_SPREAD, spread_prefill=CLASS_SPREAD)
        return Terms(device, spreads, False, (*words, "no engine assumed: no coverage claimed"))
    if fit is not None and fit.spreads:
        terms = apply_fit(terms, fit, device_class(accelerator).name, early=early, experts=experts)
        return Terms(device, terms, False, words)
    terms = replace(terms, spread_decode=UNMEASURED, spread_prefill=UNMEASURED)
    return Terms(
        device, terms, False, (*words, f"engine {engine!r} has no judged rows: a wide interval")
    )


def _measured(
    accelerator: Accelerator,
    engine: str,
    terms: EngineTerms,
    machine: "str | Path | Measurement",
    *,
    early: bool,
    experts: bool,
) -> Terms:
    path = calibration_path(machine) if isinstance(machine, str) and "/" not in machine else None
    if path is not None:
        calibration = read_calibration(path)
        _check_same(accelerator, calibration.spec_id or str(machine), machine)
        if calibration.device is not None:
            fit = calibration.engines.get(engine)
            words = [f"machine terms: {calibration.origin}"]
            if fit is not None:
                terms = apply_fit(terms, fit, "", experts=experts)
                words.append(f"engine terms: {fit.fitted_on}; judged on {fit.judged_on}")
            else:
                terms = _of_published(
                    terms, engine, accelerator, words, early=early, experts=experts
                )
            return Terms(calibration.device, terms, True, tuple(words))
    from roofline.hardware.measurement import load_measurement  # records only where one is asked

    record = load_measurement(machine)
    if record.device.spec_id is not None:
        _check_same(accelerator, record.device.spec_id, machine)
    fitted = _fit(record, accelerator)
    words = [f"machine terms: {fitted.terms.origin}", *record.assumptions, *fitted.assumptions]
    terms = _of_published(terms, engine, accelerator, words, early=early, experts=experts)
    return Terms(fitted.terms, terms, True, tuple(words))


def _of_published(
    terms: EngineTerms,
    engine: str,
    accelerator: Accelerator,
    words: list[str],
    *,
    early: bool,
    experts: bool,
) -> EngineTerms:
    """Terms of an engine that this machine has no rows of: from published ones, or none."""
    if engine in ("ideal", "plain"):
        words.append("no engine assumed: no coverage claimed")
        return replace(terms, spread_decode=IDEAL_SPREAD, spread_prefill=IDEAL_SPREAD)
    fit = engine_fit(engine)
    if fit is None:
        words.append(f"engine {engine!r} has no judged rows on this machine: a wide interval")
        return replace(terms, spread_decode=UNMEASURED, spread_prefill=UNMEASURED)
    words.append(f"engine terms: {fit.fitted_on}")
    return apply_fit(terms, fit, device_class(accelerator).name, early=early, experts=experts)


def _check_same(accelerator: Accelerator, spec_id: str, machine: object) -> None:
    if accelerator.id != spec_id:
        raise InputError(
            f"machine {machine if isinstance(machine, str) else spec_id!r} is a record of "
            f"{spec_id}, not of {accelerator.id}; give a record of that device or leave it out"
        )


def _fit(record: "Measurement", accelerator: Accelerator) -> "MachineFit":
    from roofline.hardware.measurement import to_json

    return _cached_fit(to_json(record), accelerator.model_dump_json())


@lru_cache(maxsize=8)
def _cached_fit(record: str, accelerator: str) -> "MachineFit":
    from roofline.calibration.machine import fit_machine
    from roofline.hardware.measurement import parse_measurement

    return fit_machine(parse_measurement(record), Accelerator.model_validate_json(accelerator))
