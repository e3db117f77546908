"""How every command shows its answer: a table, JSON, CSV or Markdown, on stdout or into a file.

The shapes are ``report.answer``'s. Progress and warnings go to stderr.
"""

import sys
from collections.abc import Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from roofline.errors import InputError
from roofline.files import write_text
from roofline.report.answer import (
    Answer,
    Table,
    cell_text,
    csv_text,
    json_text,
    markdown_text,
    plain,
)

__all__ = [
    "Answer", "Format", "FormatOption", "OutputOption", "Table", "emit", "figure_path",
    "given_options", "plain",
    "refuse_unused",
]  # fmt: skip


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


def figure_path(path: Path | None) -> Path | None:
    """Refuse a figure that could not be written, before its numbers are worked out."""
    if path is not None:
        from roofline.report.figure_file import checked_figure_path

        checked_figure_path(path)
    return path


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


def given_options(context: typer.Context) -> list[str]:
    """Names of the arguments and options that were typed, in the order of the command's."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source and source.name != "DEFAULT"]


def refuse_unused(given: Sequence[str], used: Collection[str], question: str) -> None:
    """Refuse options that a question would not look at, rather than ignore them.

    Raises:
        InputError: ``given`` has names that are not in ``used``.

    >>> refuse_unused(["tp", "zero_stage"], ["tp"], "--scale")
    Traceback (most recent call last):
    roofline.errors.InputError: --scale has no use for --zero-stage; leave out one or the other
    """
    unused = [name for name in given if name not in used]
    if unused:
        words = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
        raise InputError(f"{question} has no use for {words}; leave out one or the other")


def _plain_table(answer: Answer) -> str:
    from io import StringIO

    from rich.console import Console

    text = StringIO()
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
            side: Literal["left", "right"] = "right" if numeric and table.rows else "left"
            grid.add_column(Text(column), justify=side, overflow="fold")
        for row in table.rows:
            grid.add_row(*(Text(cell_text(cell)) for cell in row))
        console.print(grid)
    if answer.assumptions:
        console.print(Text("Assumptions", style="bold"))
        for line in answer.assumptions:
            console.print(Text(f"  · {line}"))


_TEXT = {
    Format.TABLE: _plain_table, Format.JSON: json_text, Format.CSV: csv_text,
    Format.MD: markdown_text,
}  # fmt: skip
