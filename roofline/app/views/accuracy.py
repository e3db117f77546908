"""Accuracy: how far predictions lie from measurements that took no part in making them."""

from functools import lru_cache

import streamlit as st

from roofline.app.asking import ask_all
from roofline.app.charts import draw, points
from roofline.app.fields import ACCURACY, ALL
from roofline.app.scenario import Scenario
from roofline.app.showing import Closing, close, metric_row, show_table
from roofline.app.words import escaped
from roofline.report.answer import Table
from roofline.report.validation_answer import memory_answer, scores_answer, training_answer
from roofline.report.validation_plot import PANELS, validation_figure
from roofline.units import show
from roofline.validation.validate import Validation, validate

ABOUT = "Published and recorded runs beside their predictions; rows of a fit judge nothing."
WORST = 10


@lru_cache(maxsize=16)
def judged(data: str, engine: str, accelerator: str) -> Validation:
    """Ask the library; once a question."""
    return validate(
        None if data == ALL else data,
        engine="" if engine == ALL else engine,
        accelerator="" if accelerator == ALL else accelerator,
    )


def show_page(scenario: Scenario, side: str) -> None:
    """Show the scores of what was chosen, and the memory and training tables."""
    values = ask_all(ACCURACY, side, 3)
    data, engine, accelerator = (values[field.name] for field in ACCURACY)
    with st.spinner("Predicting every row …", show_time=True):
        found = judged(data, engine, accelerator)
    answer = scores_answer(found, [] if data == ALL else [data], WORST, ())
    _metrics(found)
    st.markdown("  \n".join(escaped(line) for line in answer.lines))
    _scatter(found, side)
    scores, left, worst, closest = answer.tables
    show_table(scores)
    tabs = st.tabs(["Worst", "Closest to the bound", "Left out, and why", "Memory", "Training"])
    for tab, tables in zip(tabs, ([worst], [closest], [left], None, None), strict=True):
        with tab:
            if tables is not None:
                show_table(tables[0])
    with tabs[3]:
        _other(list(memory_answer(WORST).tables))
    with tabs[4]:
        _other(list(training_answer(WORST).tables))
    given = {"engine": engine, "accelerator": accelerator}
    asked = {name: value for name, value in given.items() if value != ALL}
    words = [] if data == ALL else [repr(data)]
    words += [f"{name}={value!r}" for name, value in asked.items()]
    flags = [f"--{name} {value}" for name, value in asked.items()]
    close(
        Closing(
            answer=answer,
            python="from roofline.validation.validate import validate\n\n"
            f"validate({', '.join(words)})",
            shell=" ".join(["roofline validate", *([] if data == ALL else [data]), *flags]),
            name="accuracy",
            figure=lambda: validation_figure(found),
            formulas=["error = prediction ÷ measurement − 1", "bias = median error",
                      "inside = share of measurements inside their interval",
                      "closest = least measured ÷ bound: below 1 is a violation"],
            sources=_sources(found),
        ),
        side,
    )  # fmt: skip


def _metrics(found: Validation) -> None:
    overall = found.overall()
    above = len(found.violations())
    metrics = [("Rows · measured", f"{found.total:,}", f"{overall.rows:,} judge"),
               ("Bounds above a run", f"{above}", f"of {overall.bounded:,}")]  # fmt: skip
    if overall.rows:
        metrics += [
            ("Median error · estimate", f"{overall.median_error:.1%}", f"bias {overall.bias:+.1%}"),
            ("90th pct · estimate", f"{overall.p90_error:.1%}", "of the errors"),
            ("Inside the interval", f"{overall.coverage:.0%}", "of measurements"),
        ]
    metric_row(metrics)


def _scatter(found: Validation, side: str) -> None:
    for place, (title, quantities) in enumerate(PANELS):
        rows = [
            {"measured (s)": point.measured, "estimate (s)": point.mid, "engine": point.engine,
             "row": f"{point.accelerator}, {point.model}, {point.setting}",
             "words": f"measured {show(point.measured, 's')}, estimate {show(point.mid, 's')}"}
            for point in found.points if point.judged and point.quantity in quantities
        ]  # fmt: skip
        if not rows:
            continue
        st.markdown(f"**{escaped(title.capitalize())}: estimate over measured; the dashed line is "
                    "a perfect prediction**")  # fmt: skip
        draw(
            points(rows, "measured (s)", "estimate (s)", ("measured", "estimate"),
                   kind="engine", diagonal=True, unit="s",
                   tooltip=("row:N", "engine:N", "words:N")),
            f"Scatter of {len(rows):,} rows, {title}: estimate against measured, both logarithmic",
            f"scatter{place}{side}",
        )  # fmt: skip


def _other(tables: list[Table]) -> None:
    for table in tables:
        show_table(table)


def _sources(found: Validation) -> Table:
    seen = dict.fromkeys((point.dataset, point.source) for point in found.points)
    return Table("Sources", ("data", "source"), list(seen)[:500])
