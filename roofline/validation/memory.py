"""Memory against what engines logged: weights, pools and peaks, each line's error and its reason.

    engine pools    lines with model, card, parallelism and memory fraction: weights and KV cache
    loaded weights  what loading took, where the rest is not stated
    logged tokens   the cache of the tokens that a log states, against the pool it states
    llama.cpp       weights on the card, cache and compute buffer as printed
    transformers    peak of torch's allocator for one prompt and 2,048 generated tokens
    files           GGUF files

Lines that a constant was read from are shown as ``fit`` and judge nothing.

Units    GiB, as the logs have it (several print "GB" and divide by 2³⁰); errors are relative.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roofline.errors import RooflineError
from roofline.validation.memory_lines import Line, MemoryRow, line_rows
from roofline.validation.memory_reasons import BRANCH, FITTED, LARGER_ERRORS
from roofline.validation.published import table_lines


@dataclass(frozen=True)
class Refused:
    """A line that has no prediction, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class MemoryValidation:
    """All rows, and the lines that have no prediction."""

    rows: tuple[MemoryRow, ...]
    refused: tuple[Refused, ...]

    def judged(self, group: str | None = None) -> tuple[MemoryRow, ...]:
        """Rows that judge, of one group or of all."""
        return tuple(
            row for row in self.rows if row.role == "judged" and group in (None, row.group)
        )

    def summary(self) -> list[dict[str, Any]]:
        """Number, median and 90th percentile of the errors, and the worst row, group by group."""
        groups = list(dict.fromkeys(row.group for row in self.rows))
        return [_summary(group, self.judged(group)) for group in groups if self.judged(group)] + [
            _summary("all", self.judged())
        ]

    def largest(self, count: int = 10) -> tuple[MemoryRow, ...]:
        """Rows with the largest errors, those that judge nothing too."""
        return tuple(sorted(self.rows, key=lambda row: -abs(row.error))[:count])

    def unexplained(self) -> tuple[MemoryRow, ...]:
        """Judged rows that miss by more than 5 % without a reason: a finding."""
        return tuple(row for row in self.judged() if abs(row.error) > 0.05 and not row.reason)


def _summary(group: str, rows: tuple[MemoryRow, ...]) -> dict[str, Any]:
    errors = np.array([abs(row.error) for row in rows])
    worst = rows[int(errors.argmax())]
    return {
        "group": group,
        "rows": len(rows),
        "median error": float(np.median(errors)),
        "90th percentile": float(np.percentile(errors, 90)),
        "within 5 %": float(np.mean(errors <= 0.05)),
        "worst": f"{worst.id} {worst.quantity} {worst.error:+.1%}",
    }


def validate_memory() -> MemoryValidation:
    """Compare every line of the memory tables with the budget.

    >>> validate_memory().summary()[-1]["median error"] < 0.01
    True
    """
    rows: list[MemoryRow] = []
    refused: list[Refused] = []
    for line in (*table_lines("capacity"), *table_lines("startup")):
        try:
            found = [_annotated(row, line) for row in line_rows(line)]
        except RooflineError as error:
            refused.append(Refused(line["id"], str(error)))
            continue
        rows += found
        if not found:
            refused.append(Refused(line["id"], "the line states nothing that can be compared"))
    return MemoryValidation(tuple(rows), tuple(refused))


def _annotated(row: MemoryRow, line: Line) -> MemoryRow:
    key = (row.id, row.quantity)
    if key in FITTED:
        return replace(row, role="fit", reason=FITTED[key])
    if "PR " in line["engine_version"] and "before" not in line["engine_version"]:
        return replace(row, role="not judged", reason=LARGER_ERRORS.get(key, BRANCH))
    return replace(row, reason=LARGER_ERRORS.get(key, ""))
