"""Training: whether it fits, what a step takes, how long the run is and what it costs."""

import streamlit as st

from roofline.api.training_result import Training
from roofline.app.asking import ask_all
from roofline.app.charts import draw, stacked_bar
from roofline.app.fields import TRAINING
from roofline.app.questions import frozen, train_command, train_python, trained
from roofline.app.scenario import Scenario
from roofline.app.showing import Closing, close, metric_row, show_table
from roofline.app.words import between, escaped
from roofline.report.answer import Table
from roofline.report.sources import accelerator_sources
from roofline.report.training import training_figure
from roofline.report.training_answer import headline, percent, tables, training_answer
from roofline.training.memory import PART_WORDS
from roofline.training.step_time import PHASE_WORDS
from roofline.units import number, show

ABOUT = "Memory, step time, utilisation, days and cost of a training run of the scenario's model."


def show_page(scenario: Scenario, side: str) -> None:
    """Show one scenario's training run."""
    with st.expander("The run", expanded=True):
        values = ask_all(TRAINING, side, 4)
    given = frozen(values)
    result = trained(scenario, given)
    lines = headline(result)
    st.markdown("  \n".join(escaped(line) for line in lines[:-1]))
    if result.fits:
        st.success(escaped(lines[-1][:1].upper() + lines[-1][1:]), icon=":material/check_circle:")
    else:
        st.error(escaped(lines[-1]), icon=":material/cancel:")
    metric_row(_metrics(result))
    st.markdown(f"The bound of a step is set by **{escaped(result.step.bound.limited_by)}**.")
    times, phases, held = tables(result)
    _memory(result, side)
    _step(result, side)
    for table in (times, phases, held):
        show_table(table)
    close(
        Closing(
            answer=training_answer(result, scenario.model_word(), scenario.accelerator_word(),
                                   values),
            python=train_python(scenario, given),
            shell=train_command(scenario, given),
            name="training",
            figure=lambda: training_figure(result),
            formulas=_formulas(result),
            sources=Table("Sources", ("what", "source"), [
                (result.arch.name, result.arch.source),
                *accelerator_sources(result.accelerator)]),
        ),
        side,
    )  # fmt: skip


def _metrics(result: Training) -> list[tuple[str, str, str]]:
    middle, ends = percent(result.mfu).split(" ", 1)
    metrics = [
        ("Step · bound", show(result.bound_s, "s"), "no schedule beats it"),
        ("Step · estimate", show(float(result.step_s.mid), "s"), between(result.step_s, "s")),
        ("Tokens/s · estimate", number(float(result.tokens_per_s.mid)),
         between(result.tokens_per_s, "")),
        ("MFU · estimate", middle, ends.strip(" ()")),
        ("Memory · estimate", show(result.peak_bytes, "GiB"), result.memory.peak_moment),
    ]  # fmt: skip
    run = result.run
    if run is not None:
        metrics.append(("Run · estimate", show(float(run.seconds.mid), "s"),
                        between(run.seconds, "s")))  # fmt: skip
        if run.usd is not None:
            metrics.append(("USD · estimate", number(float(run.usd.mid)), between(run.usd, "")))
    return metrics


def _memory(result: Training, side: str) -> None:
    parts = [
        (PART_WORDS[name], size, show(size, "GiB"))
        for name, size in result.memory.peak.by_name().items() if size > 0
    ]  # fmt: skip
    outside = result.memory.outside_bytes
    parts.append(("outside the allocator", outside, show(outside, "GiB")))
    said = ", ".join(f"{name} {words}" for name, _, words in parts)
    usable = show(result.usable_bytes, "GiB")
    st.markdown(
        f"**Memory at its peak · estimate; the dashed line is what is usable: {escaped(usable)}**"
    )
    draw(stacked_bar(parts, result.usable_bytes),
         f"Memory bar: {said}; usable {usable}", f"training-memory{side}")  # fmt: skip
    st.caption(escaped(said))


def _step(result: Training, side: str) -> None:
    parts = []
    for name, words in PHASE_WORDS.items():
        seconds = float(getattr(result.step.parts, name))
        if seconds > 0:
            parts.append((words, seconds, show(seconds, "s")))
    said = ", ".join(f"{name} {words}" for name, _, words in parts)
    bound = show(result.bound_s, "s")
    st.markdown(f"**Where a step goes · estimate; the dashed line is the bound: {escaped(bound)}**")
    draw(stacked_bar(parts, result.bound_s), f"Step bar: {said}; bound {bound}",
         f"training-step{side}")  # fmt: skip
    st.caption(escaped(said))


def _formulas(result: Training) -> list[str]:
    step = result.step
    bound = step.bound
    times = ", ".join(
        f"{name} {show(value, 's')}"
        for name, value in (("compute", bound.compute_s), ("memory", bound.memory_s),
                            ("link", bound.link_s))
    )  # fmt: skip
    phases = " + ".join(
        f"{words} {show(float(getattr(step.parts, name)), 's')}"
        for name, words in PHASE_WORDS.items() if getattr(step.parts, name) > 0
    )  # fmt: skip
    return [
        f"bound of a step = max({times}) = {show(bound.seconds, 's')}, limited by "
        f"{bound.limited_by}",
        f"estimate of a step = {phases} = {show(float(step.step_s.mid), 's')}",
        f"MFU = {show(step.model_flop, 'FLOP')} a step ÷ ({result.plan.accelerators} accelerators "
        f"× dense {step.compute} peak × {show(float(step.step_s.mid), 's')}) = "
        f"{percent(result.mfu)}",
        f"memory at the peak ({result.memory.peak_moment}) = "
        + " + ".join(
            f"{PART_WORDS[name]} {show(size, 'GiB')}"
            for name, size in result.memory.peak.by_name().items()
            if size > 0
        )
        + f" = {show(result.peak_bytes, 'GiB')}, and "
        f"{show(result.memory.outside_bytes, 'GiB')} outside the allocator",
    ]
