"""Showing: what every page has below its answer: formula, assumptions, sources, copies, files.

Limits   No number is made here; files are made when they are asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

import streamlit as st

from roofline.app.words import escaped
from roofline.report.answer import Answer, Table, csv_text, json_text, markdown_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_DPI = 150
MISSING = "–"
METRIC_WIDTH = 170
"""Pixels: two figures side by side on a telephone."""


@dataclass(frozen=True)
class Closing:
    """What stands below an answer.

    Args:
        answer: what CSV, JSON and Markdown hold.
        figure: makes the figure of the PNG; None: there is none.
        formulas: formulas with their numbers.
        sources: where facts are from.
        python, shell: the same question to copy.
        name: begins the files' names.
    """

    answer: Answer
    python: str
    shell: str
    name: str
    figure: "Callable[[], Figure] | None" = None
    formulas: Sequence[str] = ()
    sources: Table | None = None
    files: Sequence[tuple[str, str, Callable[[], str]]] = field(default_factory=tuple)


def close(closing: Closing, side: str) -> None:
    """Show formula, assumptions, sources, the question to copy, and the downloads."""
    answer = closing.answer
    for warning in answer.warnings:
        st.warning(escaped(warning), icon=":material/warning:")
    if closing.formulas:
        with st.expander("Show the formula, with its numbers"):
            st.code("\n".join(closing.formulas), language=None, wrap_lines=True)
    with st.expander(f"Assumptions ({len(answer.assumptions)})"):
        if answer.assumptions:
            st.markdown("\n".join(f"- {escaped(line)}" for line in answer.assumptions))
        else:
            st.markdown("None was made.")
    if closing.sources is not None:
        with st.expander(f"Sources ({len(closing.sources.rows)})"):
            show_table(closing.sources)
    with st.expander("The same question in Python and in a shell"):
        st.code(closing.python, language="python", wrap_lines=True)
        st.code(closing.shell, language="shell", wrap_lines=True)
    _downloads(closing, side)


def _downloads(closing: Closing, side: str) -> None:
    answer, name = closing.answer, closing.name
    files: list[tuple[str, str, str, Callable[[], Any]]] = [
        ("JSON", f"{name}.json", "application/json", lambda: json_text(answer)),
        ("CSV", f"{name}.csv", "text/csv", lambda: csv_text(answer)),
        ("Markdown", f"{name}.md", "text/markdown", lambda: markdown_text(answer)),
    ]
    figure = closing.figure
    if figure is not None:
        files.append(("PNG", f"{name}.png", "image/png", lambda: png(figure())))
    for label, file_name, make in closing.files:
        files.append((label, file_name, "text/plain", make))
    with st.container(horizontal=True):
        for label, file_name, mime, data in files:
            st.download_button(
                label, data=data, file_name=file_name, mime=mime, on_click="ignore",
                key=f"download-{name}-{label}{side}", icon=":material/download:",
                help=f"Download {file_name}",
            )  # fmt: skip


def png(figure: "Figure") -> bytes:
    """Draw a figure as PNG."""
    image = BytesIO()
    figure.savefig(image, format="png", dpi=FIGURE_DPI)
    return image.getvalue()


def show_table(table: Table, *, height: int | None = None) -> None:
    """Show a table; its title above it."""
    import pandas

    if table.title:
        st.markdown(f"**{escaped(table.title)}**")
    columns = _distinct_names(table.columns)
    frame = pandas.DataFrame([list(row) for row in table.rows], columns=columns)
    for name in frame.columns:
        missing = frame[name].isna()
        if len(frame) and missing.all():
            frame = frame.drop(columns=name)
        elif missing.any() or frame[name].map(type).nunique() > 1:
            frame[name] = [MISSING if gone else str(cell)
                           for cell, gone in zip(frame[name], missing, strict=True)]  # fmt: skip
    st.dataframe(
        frame, hide_index=True, height=height or "auto",
        alt=table.title or "table with the columns " + ", ".join(columns),
    )  # fmt: skip


def _distinct_names(columns: Sequence[str]) -> list[str]:
    """Columns need names of their own; one without a name gets a blank."""
    names: list[str] = []
    for column in columns:
        name = str(column) or " "
        while name in names:
            name += " "
        names.append(name)
    return names


def metric_row(metrics: Sequence[tuple[str, str, str]]) -> None:
    """Show figures side by side: label with its class, value, what stands below it."""
    with st.container(horizontal=True):
        for label, value, below in metrics:
            st.metric(
                label, value, delta=below or None, delta_color="off", delta_arrow="off",
                width=METRIC_WIDTH, border=True,
            )  # fmt: skip
