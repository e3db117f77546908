"""Gate: the errors that were accepted, committed, and what has grown since.

``measurements/validation/expected.json`` holds the rows and errors of every group (data set,
engine, quantity). A group fails when its error grows past the slack, when rows fall out of
judgement, or when any bound rises above a measurement.

Limits   Groups of fewer than ``FEWEST_ROWS`` rows are shown and gate nothing: their medians jump.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roofline.errors import MissingDataError, SpecError
from roofline.hardware.folders import data_folders
from roofline.validation.scores import Score
from roofline.validation.validate import DEFAULT_BY, Validation

SCHEMA_VERSION = 1
FEWEST_ROWS = 8
SLACK = 0.01
"""A group's median or 90th percentile may grow by this much (a point of per cent): rounding."""


def expected_path() -> Path:
    """Find the committed expectations.

    Raises:
        MissingDataError: this installation has none.
    """
    for folder in data_folders("measurements"):
        path = folder / "validation" / "expected.json"
        if path.is_file():
            return path
    raise MissingDataError("no measurements/validation/expected.json; write it with --record FILE")


def expectations(validation: Validation) -> dict[str, Any]:
    """Write down what a validation gave, to be committed."""
    return {
        "schema_version": SCHEMA_VERSION,
        "groups": {
            _name(each): {
                "rows": each.rows,
                "median_error": round(each.median_error, 4),
                "p90_error": round(each.p90_error, 4),
                "coverage": round(each.coverage, 4),
            }
            for each in validation.scores(DEFAULT_BY)
            if each.rows
        },
        "bounded": {each.name: _bounded(validation, each.name) for each in validation.data_sets},
    }


def _bounded(validation: Validation, name: str) -> int:
    return sum(
        math.isfinite(point.over_bound) for point in validation.points if point.dataset == name
    )


def _name(each: Score) -> str:
    return " / ".join(each.key[field] for field in DEFAULT_BY)


def read_expectations(path: Path) -> dict[str, Any]:
    """Read committed expectations.

    Raises:
        SpecError: the file does not load or is of another version.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SpecError(f"{path} does not load: {str(error)[:120]}") from None
    if not isinstance(found, dict) or found.get("schema_version") != SCHEMA_VERSION:
        raise SpecError(f"{path} is no file of expectations of version {SCHEMA_VERSION}")
    groups = found.get("groups")
    if not isinstance(groups, dict) or not all(_sound(group) for group in groups.values()):
        raise SpecError(f"{path}: every group needs rows, median_error, p90_error as numbers")
    return found


def _sound(group: Any) -> bool:
    return isinstance(group, dict) and all(
        isinstance(group.get(name), int | float) and not isinstance(group.get(name), bool)
        for name in ("rows", "median_error", "p90_error")
    )


def grown(validation: Validation, expected: Mapping[str, Any]) -> tuple[str, ...]:
    """Say in words what is worse than expected; nothing is the good answer.

    >>> grown(Validation(()), {"groups": {}, "bounded": {}})
    ()
    """
    lines = [
        f"{point.id}: bound {point.bound:.4g} is above the measured {point.measured:.4g}"
        for point in validation.violations()
    ]
    present = {_name(each): each for each in validation.scores(DEFAULT_BY)}
    names = {each.name for each in validation.data_sets}
    for name, group in expected["groups"].items():
        if name.split(" / ")[0] not in names:
            continue
        now = present.get(name)
        rows = now.rows if now is not None else 0
        if rows < group["rows"]:
            lines.append(f"{name}: {rows} rows judged, {group['rows']} expected")
        if now is None or now.rows < FEWEST_ROWS:
            continue
        for field in ("median_error", "p90_error"):
            value = getattr(now, field)
            if value > group[field] + SLACK:
                words = field.removesuffix("_error")
                lines.append(f"{name}: {words} error {value:.1%}, {group[field]:.1%} expected")
    for name, count in expected.get("bounded", {}).items():
        if name in names and _bounded(validation, name) < count:
            now_count = _bounded(validation, name)
            lines.append(f"{name}: {now_count} rows bounded, {count} expected")
    return tuple(lines)
