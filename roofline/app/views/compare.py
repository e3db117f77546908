"""Compare: accelerators for one workload, by nominal and by effective cost."""

from typing import Any

import streamlit as st

from roofline.api.comparison import Comparison
from roofline.app.asking import ask_all
from roofline.app.charts import bars, draw
from roofline.app.fields import BY_NAME, COMPARE, SERVED_BY
from roofline.app.questions import compare_command, compare_python, compared, frozen
from roofline.app.scenario import Scenario
from roofline.app.showing import Closing, close, show_table
from roofline.app.words import between, escaped
from roofline.hardware.accelerator import load_accelerator
from roofline.report.answer import Answer, Table, frame_table
from roofline.report.plan_figures import cost_figure
from roofline.report.sources import offer_sources
from roofline.units import number, show

ABOUT = "A procurement table: bound, estimate, nominal and effective cost, side by side."


def show_page(scenario: Scenario, side: str) -> None:
    """Show one scenario's comparison."""
    with st.expander("What is compared", expanded=True):
        values = ask_all((*COMPARE, SERVED_BY, BY_NAME["term"]), side, 2)
    given = frozen(values)
    with st.spinner("Predicting each accelerator …", show_time=True):
        found = compared(scenario, given)
    words = "\n".join(f"- {escaped(line)}" for line in found.recommendation)
    (st.success if found.fits else st.error)(words)
    speed, cost = tables(found)
    show_table(speed)
    _chart(found, side)
    show_table(cost)
    if found.excluded:
        show_table(_out(found))
    close(
        Closing(
            answer=_answer(found, scenario, values),
            python=compare_python(scenario, given),
            shell=compare_command(scenario, given),
            name="compare",
            figure=lambda: cost_figure(found),
            formulas=_formulas(found),
            sources=offer_sources(
                scenario.architecture(),
                [(load_accelerator(row.accelerator), row.price_basis) for row in found.rows],
            ),
        ),
        side,
    )


def tables(found: Comparison) -> tuple[Table, Table]:
    """Speed and cost of each row, for readers."""
    speed = Table(
        "Speed of a replica",
        ("accelerator", "replica", "fits", "tokens/s · bound", "tokens/s · estimate", "low – high",
         "TTFT · estimate", "TPOT · estimate", "limited by"),
        [
            (row.accelerator, row.plan, "yes" if row.fits else "NO",
             number(row.bound_tokens_per_s), number(float(row.tokens_per_s.mid)),
             between(row.tokens_per_s, ""),
             show(None if row.ttft_s is None else float(row.ttft_s.mid), "s"),
             show(None if row.tpot_s is None else float(row.tpot_s.mid), "s"), row.limited_by)
            for row in found.rows
        ],
    )  # fmt: skip
    cost = Table(
        "Cost at full load; place by nominal → effective cost",
        ("accelerator", "USD/h · listed", "USD/M tokens · estimate", "GPU-hours/M · estimate",
         "USD/TFLOP-h · nominal", "USD/TFLOP-h · estimate", "place", "of peak · estimate",
         "price from"),
        [
            (row.accelerator, _or_dash(row.usd_per_hour), _or_dash(row.usd_per_million_tokens),
             _or_dash(row.gpu_hours_per_million_tokens),
             _or_dash(row.usd_per_nominal_tflop_hour), _or_dash(row.usd_per_effective_tflop_hour),
             "–" if row.nominal_rank is None else f"{row.nominal_rank} → {row.effective_rank}",
             f"{row.achieved_share:.0%}", row.price_basis)
            for row in found.rows
        ],
    )  # fmt: skip
    return speed, cost


def _or_dash(value: float | None) -> str:
    return "–" if value is None else number(value)


def _chart(found: Comparison, side: str) -> None:
    kinds = (("nominal, datasheet peak", "usd_per_nominal_tflop_hour"),
             ("effective, this workload · estimate", "usd_per_effective_tflop_hour"))  # fmt: skip
    rows = [
        {"accelerator": row.accelerator, "USD per TFLOP-hour": getattr(row, key), "cost": kind,
         "words": number(getattr(row, key))}
        for row in found.rows if row.usd_per_effective_tflop_hour is not None
        for kind, key in kinds
    ]  # fmt: skip
    if not rows:
        st.caption("No accelerator here has a price.")
        return
    st.markdown("**Cost of a TFLOP-hour, nominal beside effective**")
    draw(
        bars(rows, "USD per TFLOP-hour", "accelerator", "USD per TFLOP-hour", mark="cost",
             text="words"),
        "Bars, USD per TFLOP-hour: " + "; ".join(
            f"{row['accelerator']} {row['cost']} {row['words']}" for row in rows),
        f"cost{side}",
    )  # fmt: skip


def _out(found: Comparison) -> Table:
    return Table("Out, and why", ("accelerator", "reason"),
                 [(one.accelerator, one.reason) for one in found.excluded])  # fmt: skip


def _formulas(found: Comparison) -> list[str]:
    return [
        f"{row.accelerator}: effective = {number(row.usd_per_nominal_tflop_hour)} USD per nominal "
        f"TFLOP-hour ÷ {row.achieved_share:.1%} of the {row.compute} peak of "
        f"{show(row.peak_flop_per_s, 'FLOP/s')} = {number(row.usd_per_effective_tflop_hour)} USD"
        for row in found.rows
        if row.usd_per_nominal_tflop_hour is not None
        and row.usd_per_effective_tflop_hour is not None
    ]


def _answer(found: Comparison, scenario: Scenario, values: dict[str, Any]) -> Answer:
    shown = [frame_table("In base units", found.to_frame()), *tables(found)]
    if found.excluded:
        shown.append(_out(found))
    inputs = {"model": scenario.model_word(), "prompt_tokens": scenario.prompt_tokens,
              "output_tokens": scenario.output_tokens, "batch": scenario.batch,
              **scenario.formats(), **values}  # fmt: skip
    return Answer(
        command="compare",
        inputs=inputs,
        results=found.to_dict(),
        tables=shown,
        lines=list(found.recommendation),
        assumptions=found.assumptions,
        warnings=found.warnings,
    )
