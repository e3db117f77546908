"""Predict: does it fit, how fast can it be, how fast will it be, and what limits it."""

import streamlit as st

from roofline.api.explain import explain
from roofline.api.prediction import Prediction
from roofline.app.charts import bars, draw, stacked_bar
from roofline.app.copies import command_line, python_line
from roofline.app.scenario import Scenario, config_file, predicted
from roofline.app.showing import Closing, close, metric_row, show_table
from roofline.app.words import between, escaped
from roofline.report.memory import memory_figure, segments
from roofline.report.prediction_answer import (
    bound_word,
    headline,
    prediction_answer,
    prediction_tables,
)
from roofline.report.sources import prediction_sources
from roofline.units import number, show

_BEATS = "no schedule beats it"
ABOUT = "Bounds and estimates of a static batch, the memory it takes, and what limits it."


def show_page(scenario: Scenario, side: str) -> None:
    """Show one scenario's prediction."""
    prediction = predicted(scenario)
    lines = headline(prediction)
    st.markdown("  \n".join(escaped(line) for line in lines[:-1]))
    _fits(prediction, lines[-1])
    metric_row(_metrics(prediction))
    st.markdown(_limits(prediction))
    times, memory, facts, operators = prediction_tables(prediction)
    _memory(prediction, side)
    show_table(times)
    _operators(prediction, side)
    left, right = st.tabs(["Memory, part by part", "Where it turns"])
    with left:
        show_table(memory)
    with right:
        show_table(facts)
    show_table(operators)
    _close(scenario, prediction, side)


def _fits(prediction: Prediction, line: str) -> None:
    if prediction.fits:
        st.success(escaped(line[:1].upper() + line[1:]), icon=":material/check_circle:")
    else:
        st.error(escaped(line), icon=":material/cancel:")


def _metrics(prediction: Prediction) -> list[tuple[str, str, str]]:
    bound, word = prediction.bound, bound_word(prediction)
    rows = [
        ("TTFT", "s", bound.ttft_s, prediction.ttft_s),
        ("TPOT", "s", bound.tpot_s, prediction.tpot_s),
        ("Tokens/s", "", bound.output_tokens_per_s, prediction.output_tokens_per_s),
    ]
    metrics = []
    beats = "reached by its record" if prediction.accelerator.is_measured else _BEATS
    for name, unit, least, interval in rows:
        metrics.append((f"{name} · {word}", show(least, unit), beats))
        if interval is not None:
            middle = show(float(interval.mid), unit)
            metrics.append((f"{name} · estimate", middle, between(interval, unit)))
    cost = prediction.cost
    if cost.usd_per_million_output_tokens is not None:
        usd = cost.usd_per_million_output_tokens
        metrics.append(("USD per M output tokens · estimate", number(float(usd.mid)),
                        between(usd, "")))  # fmt: skip
    return metrics


def _limits(prediction: Prediction) -> str:
    decode = prediction.decode.limited_by
    claim = prediction.deployment.terms.engine
    words = [
        f"Prefill is limited by **{escaped(prediction.prefill.limited_by)}**, decode by "
        f"**{escaped(decode)}**."
    ]
    if prediction.deployment.engine.name == "ideal":
        words.append("No engine is assumed: the estimate has no host time and claims no coverage.")
    elif claim.spread_decode.rows:
        words.append("Four of five measurements are expected inside an estimate's interval.")
    return " ".join(words)


def _memory(prediction: Prediction, side: str) -> None:
    memory = prediction.memory
    parts = [(name, size, show(size, "GiB")) for name, size in segments(memory)]
    said = ", ".join(f"{name} {words}" for name, size, words in parts if size)
    usable = show(memory.usable_bytes, "GiB")
    st.markdown(f"**Memory of one accelerator: {escaped(usable)} usable**")
    draw(
        stacked_bar(parts, memory.usable_bytes),
        f"Memory bar: {said}; usable {usable}", f"memory{side}",
    )  # fmt: skip
    st.caption(escaped(said))


def _operators(prediction: Prediction, side: str) -> None:
    rows = [
        {"operator": row.name, "estimate (s)": row.estimate_s,
         "words": f"{show(row.estimate_s, 's')}, {row.share:.0%}", "limited by": row.limited_by}
        for row in prediction.decode.operators
    ]  # fmt: skip
    st.markdown("**A decode step by operator · estimate**")
    said = "; ".join(f"{row['operator']} {row['words']}" for row in rows[:6])
    draw(
        bars(rows, "estimate (s)", "operator", "seconds of one step", text="words"),
        f"Bars of a decode step's operators: {said}", f"operators{side}",
    )  # fmt: skip


def _close(scenario: Scenario, prediction: Prediction, side: str) -> None:
    config = config_file(scenario)
    files = [("config.json", "config.json", lambda: config)] if config else []
    if scenario.spec:
        files.append(("Accelerator YAML", scenario.accelerator_word(), lambda: scenario.spec))
    close(
        Closing(
            answer=prediction_answer(prediction, scenario.inputs()),
            python=python_line(scenario),
            shell=command_line(scenario),
            name="predict",
            figure=lambda: memory_figure({prediction.accelerator.id: prediction.memory}),
            formulas=explain(prediction),
            sources=prediction_sources(prediction),
            files=files,
        ),
        side,
    )
