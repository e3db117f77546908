"""Roofline: nominal and measured roofs, their ridges, the steps, and the batch on its way up."""

import streamlit as st

from roofline.api.explain import explain
from roofline.api.over_batch import over_batch
from roofline.api.prediction import Prediction
from roofline.app.charts import draw, roofline_chart
from roofline.app.copies import command_line, python_line
from roofline.app.scenario import Scenario, has_record, predicted
from roofline.app.showing import Closing, close, metric_row, show_table
from roofline.app.words import escaped
from roofline.hardware.measurement import Measurement, load_measurement
from roofline.report.answer import Answer, Table
from roofline.report.prediction_answer import bound_word, headline
from roofline.report.roofline_plot import roofline_figure
from roofline.report.roofline_rows import (
    batch_rows,
    measured_roofs,
    ridge_rows,
    roof_rows,
    span_flop_per_byte,
    step_rows,
)
from roofline.report.sources import prediction_sources
from roofline.units import number, show

ABOUT = "Where prefill and decode lie under the roofs, and where the batch leaves the slope."


def show_page(scenario: Scenario, side: str) -> None:
    """Show one scenario's roofline."""
    prediction = predicted(scenario)
    word, used = bound_word(prediction), prediction.deployment.compute_used
    st.markdown("  \n".join(escaped(line) for line in headline(prediction)[:-1]))
    sweep = over_batch(prediction)
    span = span_flop_per_byte(prediction, sweep)
    roofs = prediction.deployment.roofs
    lines, ridges = roof_rows(roofs, used, span, word), ridge_rows(roofs, used, word)
    record = _record(scenario)
    reached = None if record is None else measured_roofs(record)
    if reached is not None and not prediction.accelerator.is_measured:
        lines += roof_rows(reached, used, span, "measured")
        ridges += ridge_rows(reached, used, "measured")
    elif record is None:
        st.caption("No measured record of this accelerator is here: its roofs are the datasheet's.")
    steps, trail = step_rows(prediction), batch_rows(sweep, word)
    shown = [row for row in ridges if row["used"]]
    draw(roofline_chart(lines, shown, steps, trail), _words(prediction), f"roofline{side}")
    metric_row(_metrics(prediction, ridges))
    st.markdown(_leaves(prediction))
    _tables(ridges, steps, trail)
    close(
        Closing(
            answer=_answer(scenario, prediction, lines, ridges, steps, trail),
            python=f"p = {python_line(scenario)}\n"
            "roofline.report.roofline_plot.roofline_figure(p).savefig('roofline.png')",
            shell=command_line(scenario) + " --plot roofline.png",
            name="roofline",
            figure=lambda: roofline_figure(prediction),
            formulas=explain(prediction),
            sources=prediction_sources(prediction),
        ),
        side,
    )


def _record(scenario: Scenario) -> Measurement | None:
    given = scenario.measurement()
    if given is None and has_record(scenario):
        return load_measurement(scenario.device().id)
    return given


def _words(prediction: Prediction) -> str:
    prefill, decode = prediction.prefill, prediction.decode
    return (
        f"Roofline chart, both axes logarithmic. {prediction.ridge}. Prefill at "
        f"{show(prefill.intensity_flop_per_byte, 'FLOP/B')}, limited by {prefill.limited_by}; "
        f"decode at {show(decode.intensity_flop_per_byte, 'FLOP/B')}, limited by "
        f"{decode.limited_by}."
    )


def _metrics(prediction: Prediction, ridges: list[dict[str, object]]) -> list[tuple[str, str, str]]:
    metrics = [
        (f"Ridge · {row['class']}", number(float(str(row["ridge_flop_per_byte"]))),
         f"FLOP/B, {row['compute']}")
        for row in ridges if row["used"]
    ]  # fmt: skip
    for name, step in (("Prefill", prediction.prefill), ("Decode", prediction.decode)):
        metrics.append(
            (f"{name}, FLOP/B", number(step.intensity_flop_per_byte),
             step.limited_by)
        )  # fmt: skip
    return metrics


def _leaves(prediction: Prediction) -> str:
    points = prediction.turning_points
    batch, prompt = points.decode_batch, points.prefill_tokens
    words = (
        f"Decode leaves the slope at batch **{batch:,}**."
        if batch is not None
        else "Decode **never** leaves the slope: each sequence's cache weighs more than its "
        "arithmetic."
    )
    if prompt is not None:
        words += f" Prefill of one sequence leaves it at **{prompt:,}** prompt tokens."
    return words


def _tables(
    ridges: list[dict[str, object]],
    steps: list[dict[str, object]],
    trail: list[dict[str, object]],
) -> None:
    tabs = st.tabs(["Batch sweep", "Ridges", "Steps"])
    for tab, table in zip(tabs, (_readable(_sweep_table(trail)),
                                 _readable(_table("Ridge points", ridges)),
                                 _readable(_table("Steps", steps))), strict=True):  # fmt: skip
        with tab:
            show_table(table)


def _sweep_table(trail: list[dict[str, object]]) -> Table:
    names = ("batch", "class", "time", "limited by", "fits", "intensity_flop_per_byte",
             "flop_per_s", "time_s")  # fmt: skip
    return Table("Decode step over the batch", names, [[row[name] for name in names]
                                                       for row in trail])  # fmt: skip


_UNITS = {"flop_per_s": "FLOP/s", "bytes_per_s": "B/s", "flop_per_byte": "FLOP/B"}


def _readable(table: Table) -> Table:
    """The same table with units in its cells and without seconds that stand there in words."""
    kept = [place for place, name in enumerate(table.columns) if name != "time_s"]
    units = [
        next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
        for name in table.columns
    ]
    rows = [[_cell(row[place], units[place]) for place in kept] for row in table.rows]
    names = [table.columns[place].replace("_", " ") for place in kept]
    return Table(table.title, names, rows)


def _cell(value: object, unit: str) -> object:
    return show(value, unit) if unit and isinstance(value, float) else value


def _table(title: str, rows: list[dict[str, object]]) -> Table:
    names = list(rows[0])
    return Table(title, names, [[row.get(name) for name in names] for row in rows])


def _answer(
    scenario: Scenario,
    prediction: Prediction,
    lines: list[dict[str, object]],
    ridges: list[dict[str, object]],
    steps: list[dict[str, object]],
    trail: list[dict[str, object]],
) -> Answer:
    return Answer(
        command="roofline",
        inputs=scenario.inputs(),
        results={"roofs": lines, "ridges": ridges, "steps": steps, "batch_sweep": trail,
                 "turning_points": prediction.to_dict()["turning_points"]},
        tables=[_sweep_table(trail), _table("Ridge points", ridges), _table("Steps", steps)],
        lines=headline(prediction),
        assumptions=prediction.assumptions,
    )  # fmt: skip
