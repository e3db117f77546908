"""Answers: what a verb says, in a shape that a command, a page and a file all show alike.

JSON is ``{"schema_version", "command", "inputs", "assumptions", "results", "warnings"}`` in base
units with the unit in the key; it holds no NaN and no infinity. CSV has the first table, with units
in its header.

Limits   No number is made here.
"""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Table:
    """A table for readers; cells are text or numbers already in the header's unit."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Answer:
    """What a command says.

    Args:
        command: the verb.
        inputs: what was asked.
        results: the numbers in base units, for JSON.
        tables: for readers; the first is what CSV holds.
        lines: sentences above the tables.
        assumptions: defaults and inferences made.
        warnings: what the reader should doubt.
    """

    command: str
    inputs: Mapping[str, Any]
    results: Any
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    assumptions: Sequence[str] = ()
    warnings: Sequence[str] = field(default_factory=tuple)


def plain(value: Any) -> Any:
    """Turn a result into what JSON holds: no NaN, no infinity, no numpy."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, str | int | bool) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return str(value)


def json_text(answer: Answer) -> str:
    """Write an answer as JSON."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "command": answer.command,
        "inputs": plain(answer.inputs),
        "assumptions": list(answer.assumptions),
        "results": plain(answer.results),
        "warnings": list(answer.warnings),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def csv_text(answer: Answer) -> str:
    """Write an answer's first table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if answer.tables:
        writer.writerow(answer.tables[0].columns)
        writer.writerows([[cell_text(cell) for cell in row] for row in answer.tables[0].rows])
    return text.getvalue()


def cell_text(value: Any) -> str:
    """Write one cell; nothing where there is nothing."""
    return "" if value is None else str(value)


def markdown_table(table: Table) -> str:
    """Write a table in Markdown; pipes in cells are escaped."""
    lines = [f"**{table.title}**", ""] if table.title else []
    lines.append("| " + " | ".join(_md(column) for column in table.columns) + " |")
    lines.append("|" + "---|" * len(table.columns))
    lines += ["| " + " | ".join(_md(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"


def _md(value: Any) -> str:
    return cell_text(value).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def markdown_text(answer: Answer) -> str:
    """Write an answer in Markdown."""
    parts = [f"# roofline {answer.command}", ""]
    parts += [f"{line}  " for line in answer.lines]
    for table in answer.tables:
        parts += ["", markdown_table(table)]
    if answer.assumptions:
        parts += ["", "Assumptions:", ""] + [f"- {line}" for line in answer.assumptions]
    return "\n".join(parts).rstrip() + "\n"


def frame_table(title: str, frame: "pandas.DataFrame") -> Table:
    """Make a table of a data frame, every column as it is."""
    return Table(title, [str(name) for name in frame.columns], frame.values.tolist())
