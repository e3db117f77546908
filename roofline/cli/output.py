"""How every command shows its answer: a table, JSON, CSV or Markdown, on stdout or into a file.

JSON is ``{"schema_version", "command", "inputs", "assumptions", "results", "warnings"}`` in base
units with the unit in the key; it holds no NaN and no infinity. CSV has the first table, with units
in its header. Progress and warnings go to stderr.
"""

import csv
import io
import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from roofline.errors import InputError

SCHEMA_VERSION = 1


class Format(StrEnum):
    """Formats of an answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How to show the answer.", show_default=True)
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the answer to this file instead of stdout."),
]


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


def emit(answer: Answer, form: Format, output: Path | None = None) -> None:
    """Show an answer, or write it to ``output`` (to a temporary file first, then renamed)."""
    if form is Format.TABLE and output is None:
        _print_tables(answer)
    else:
        text = _TEXT[form](answer)
        if output is None:
            sys.stdout.write(text)
        else:
            write_text(output, text)
            print(f"wrote {output}", file=sys.stderr)
    for warning in answer.warnings:
        print(f"warning: {warning}", file=sys.stderr)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    folder = path.parent if str(path.parent) else Path()
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


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


def _json(answer: Answer) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "command": answer.command,
        "inputs": plain(answer.inputs),
        "assumptions": list(answer.assumptions),
        "results": plain(answer.results),
        "warnings": list(answer.warnings),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _csv(answer: Answer) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if answer.tables:
        writer.writerow(answer.tables[0].columns)
        writer.writerows([[_cell(cell) for cell in row] for row in answer.tables[0].rows])
    return text.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def markdown_table(table: Table) -> str:
    """Write a table in Markdown; pipes in cells are escaped."""
    lines = [f"**{table.title}**", ""] if table.title else []
    lines.append("| " + " | ".join(_md(column) for column in table.columns) + " |")
    lines.append("|" + "---|" * len(table.columns))
    lines += ["| " + " | ".join(_md(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"


def _md(value: Any) -> str:
    return _cell(value).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _markdown(answer: Answer) -> str:
    parts = [f"# roofline {answer.command}", ""]
    parts += [f"{line}  " for line in answer.lines]
    for table in answer.tables:
        parts += ["", markdown_table(table)]
    if answer.assumptions:
        parts += ["", "Assumptions:", ""] + [f"- {line}" for line in answer.assumptions]
    return "\n".join(parts).rstrip() + "\n"


def _plain_table(answer: Answer) -> str:
    from rich.console import Console

    text = io.StringIO()
    _render(answer, Console(file=text, width=120, no_color=True))
    return text.getvalue()


def _print_tables(answer: Answer) -> None:
    from rich.console import Console

    width = None if sys.stdout.isatty() else 120
    _render(answer, Console(width=width, highlight=False))


def _render(answer: Answer, console: Any) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    for line in answer.lines:
        console.print(Text(line))
    for table in answer.tables:
        title = Text(table.title, style="bold") if table.title else None
        grid = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for position, column in enumerate(table.columns):
            numeric = all(
                isinstance(row[position], int | float) or row[position] is None
                for row in table.rows
            )
            grid.add_column(Text(column), justify="right" if numeric and table.rows else "left")
        for row in table.rows:
            grid.add_row(*(Text(_cell(cell)) for cell in row))
        console.print(grid)
    if answer.assumptions:
        console.print(Text("Assumptions", style="bold"))
        for line in answer.assumptions:
            console.print(Text(f"  · {line}"))


_TEXT = {Format.TABLE: _plain_table, Format.JSON: _json, Format.CSV: _csv, Format.MD: _markdown}
