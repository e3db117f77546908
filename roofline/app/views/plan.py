"""Plan: how many of which accelerator carry the load within its targets, and what they cost."""

from typing import Any

import streamlit as st

from roofline.api.plan_result import Plan
from roofline.app.asking import ask_all
from roofline.app.charts import draw, points
from roofline.app.fields import PLAN, SERVED_BY
from roofline.app.questions import frozen, plan_command, plan_python, planned
from roofline.app.scenario import Scenario
from roofline.app.showing import Closing, close, metric_row, show_table
from roofline.app.words import escaped
from roofline.planning.candidate import merged
from roofline.report.answer import Answer, Table, frame_table
from roofline.report.one_page import deployments, html_report, question
from roofline.report.plan_figures import fronts, pareto_figure
from roofline.report.sources import offer_sources
from roofline.units import number, show

ABOUT = "What carries your load within your targets, the cheapest first: all times are estimates."


def show_page(scenario: Scenario, side: str) -> None:
    """Show one scenario's plan."""
    with st.expander("Load and targets", expanded=True):
        values = ask_all((SERVED_BY, *PLAN), side, 3)
    given = frozen(values)
    with st.spinner("Sizing every candidate, simulating the best …", show_time=True):
        plan = planned(scenario, given)
    st.markdown("  \n".join(escaped(line) for line in question(plan)))
    _verdict(plan)
    _front(plan, side)
    show_table(deployments(plan))
    if plan.options:
        st.markdown("**Start a replica of the first with**")
        st.code(plan.options[0].launch, language="shell", wrap_lines=True)
    answer = _answer(plan, scenario, values)
    for table in answer.tables[1:]:
        show_table(table)
    close(
        Closing(
            answer=answer,
            python=plan_python(scenario, given),
            shell=plan_command(scenario, given),
            name="plan",
            figure=lambda: pareto_figure(plan),
            formulas=_formulas(plan),
            sources=offer_sources(
                scenario.architecture(),
                [
                    (
                        option.candidate.deployment.accelerator,
                        "" if option.money is None else option.money.basis,
                    )
                    for option in plan.options
                ],
            ),
            files=[("One page, HTML", "plan.html", lambda: html_report(plan))],
        ),
        side,
    )


def _verdict(plan: Plan) -> None:
    words = "\n".join(f"- {escaped(line)}" for line in plan.recommendation)
    if not plan.met:
        st.error(words or "Nothing here meets the targets.", icon=":material/cancel:")
        return
    st.success(words, icon=":material/check_circle:")
    best = plan.options[0]
    money = best.money
    low, high = (("–" if one is None else str(one)) for one in plan.replicas_over_interval)
    metric_row([
        ("Accelerators · estimate", f"{best.accelerators:,}", best.accelerator),
        ("Replicas · estimate", f"{best.replicas:,}", f"{low} fast, {high} slow"),
        ("USD per hour · listed", "–" if money is None else number(money.usd_per_hour),
         "all of them"),
        ("USD/M out · estimate",
         "–" if money is None else number(money.at_utilisation.all_on_output_usd), "at this load"),
        ("TTFT · estimate", show(best.latencies_s.get("ttft_s"), "s"),
         f"P{plan.slo.percentile:g}"),
        ("TPOT · estimate", show(best.latencies_s.get("tpot_s"), "s"),
         f"P{plan.slo.percentile:g}"),
    ])  # fmt: skip


def _front(plan: Plan, side: str) -> None:
    rows = [
        {"accelerator": device, "tokens/s of a user": point.tokens_per_s_per_user,
         "tokens/s of an accelerator": point.tokens_per_s_per_accelerator,
         "meets the targets": "yes" if point.meets else "no"}
        for device, front in fronts(plan).items() for point in front
    ]  # fmt: skip
    if not rows:
        return
    x, y = "tokens/s of a user", "tokens/s of an accelerator"
    st.markdown("**Speed of a user against throughput · estimates; filled: meets the targets**")
    draw(
        points(rows, x, y, (x, y), kind="accelerator", filled="meets the targets", line=True,
               tooltip=("accelerator:N", f"{x}:Q", f"{y}:Q", "meets the targets:N")),
        "Pareto fronts: " + "; ".join(
            f"{device}, fastest {number(front[-1].tokens_per_s_per_user)} tokens/s for a user"
            for device, front in fronts(plan).items() if front
        ),
        f"front{side}",
    )  # fmt: skip


def _formulas(plan: Plan) -> list[str]:
    lines = []
    for option in plan.options[:3]:
        lines.append(
            f"{option.accelerator}: replicas = ⌈{number(option.requests_per_s)} requests/s ÷ "
            f"{number(option.capacity_per_s)} of a replica (ends at: {option.limited_by})⌉ + "
            f"{option.spare_replicas} spare = {option.replicas}; utilisation = "
            f"{number(option.mean_per_s)} mean ÷ capacity of all = {option.utilisation:.1%}"
        )
    return lines


def _answer(plan: Plan, scenario: Scenario, values: dict[str, Any]) -> Answer:
    tables = [frame_table("Deployments in base units", plan.to_frame())] if plan.options else [
        Table("", ("accelerator", "reason"), [])]  # fmt: skip
    if plan.splits:
        pools = [[one.accelerator, one.plan] for one in plan.splits]
        tables.append(Table("Prefill and decode apart", ("accelerator", "pools"), pools))
    out = [(one.accelerator, one.plan, one.reason) for one in merged(plan.excluded)]
    if out:
        tables.append(Table("Out, and why", ("accelerator", "plan", "reason"), out))
    inputs = {"model": scenario.model_word(), "prompt_tokens": scenario.prompt_tokens,
              "output_tokens": scenario.output_tokens, **scenario.formats(), **values}  # fmt: skip
    return Answer(
        command="plan",
        inputs=inputs,
        results=plan.to_dict(),
        tables=tables,
        lines=[*question(plan), *plan.recommendation],
        assumptions=plan.assumptions,
        warnings=plan.warnings,
    )
