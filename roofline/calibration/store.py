"""Calibration files: fitted terms as JSON, with what they were fitted on and how well.

A file of a machine holds its ``DeviceTerms`` and the spreads of its engines; ``engines.json`` holds
the terms of engines fitted on published rows. Both say which rows were fitted and which judged.

Sources  Each file names its own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from roofline.errors import SpecError
from roofline.files import write_text
from roofline.hardware.folders import data_folders
from roofline.hardware.measured_rows import first_problem
from roofline.timing.terms import DeviceTerms, Spread


@dataclass(frozen=True)
class EngineFit:
    """Numbers of one engine that were fitted, by the names of ``EngineTerms``.

    Args:
        kernels: name of its set of small kernels.
        numbers: fitted fields of ``EngineTerms``, or ``field:device class``.
        folds: the same, fitted without one share of the accelerator-model pairs each: what judges
            those pairs.
        spreads: residual spreads by the names of ``calibration.engines.spread_keys``; a phase is
            decode, prefill or whole.
        fitted_on, judged_on: rows, in words.
    """

    kernels: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    folds: tuple[Mapping[str, float], ...] = ()
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    fitted_on: str = ""
    judged_on: str = ""


@dataclass(frozen=True)
class Calibration:
    """What a calibration file holds.

    Args:
        schema_version: of the file.
        spec_id: machine that it is of; empty: of engines in general.
        origin: records or tables that it comes from, with dates.
        device: terms of the machine; None in a file of engines.
        engines: what was fitted of engines, by name.
        residuals: fit, rows, mean and worst error, and the numbers, for the reader.
    """

    schema_version: int
    spec_id: str
    origin: str
    device: DeviceTerms | None
    engines: Mapping[str, EngineFit]
    residuals: tuple[tuple[str, int, float, float, str], ...] = ()


@lru_cache(maxsize=1)
def _adapter() -> "TypeAdapter[Calibration]":
    return TypeAdapter(Calibration)


def calibration_path(name: str) -> Path | None:
    """Find the calibration file of a spec id (or ``engines``) that roofline ships."""
    for folder in data_folders("measurements"):
        path = folder / "calibration" / f"{name}.json"
        if path.is_file():
            return path
    return None


def read_calibration(path: Path) -> Calibration:
    """Read a calibration file.

    Raises:
        SpecError: the file does not exist, is cut, or holds something else.
    """
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise SpecError(f"cannot read calibration {path}: {error.strerror}") from None


@lru_cache(maxsize=32)
def _read(path: Path, mtime_ns: int) -> Calibration:
    del mtime_ns  # part of the key, so that a changed file is read again
    try:
        return _adapter().validate_json(path.read_bytes())
    except ValidationError as error:
        raise SpecError(f"{path}: no calibration: {first_problem(error)}") from None


def write_calibration(calibration: Calibration, path: Path) -> Path:
    """Write a calibration file whole or not at all."""
    content = json.loads(_adapter().dump_json(calibration))
    return write_text(path, json.dumps(_rounded(content), indent=1) + "\n", make_folder=True)


def _rounded(value: Any) -> Any:
    """Keep six digits: more is noise of the fit."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
