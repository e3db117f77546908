"""Plan, Compare and Training: what the page shows is what the library and the command give."""

import json
import shlex

import pytest

import roofline
from roofline.app.fields import BY_NAME, COMPARE, PLAN, SERVED_BY, TRAINING
from roofline.app.questions import (
    compare_command,
    compare_python,
    compared,
    frozen,
    plan_command,
    plan_python,
    planned,
    train_command,
    train_python,
    trained,
)
from roofline.app.scenario import scenario_of
from roofline.cli.main import run
from roofline.report.answer import plain
from roofline.units import number, show


def values(fields, **given):
    return frozen({field.name: given.get(field.name, field.default) for field in fields})


def metrics(at):
    return {metric.label: metric.value for metric in at.metric}


def evaluated(text):
    """Run the lines that a page shows, and give what the last one gives."""
    *lines, last = text.split("\n\n") if "\n\n" in text else ["", text]
    space = {"roofline": roofline}
    exec("\n".join(lines), space)
    return eval(last, space)


def command_results(line, capsys):
    assert run([*shlex.split(line)[1:], "--format", "json"]) in (0, 3)
    return json.loads(capsys.readouterr().out)["results"]


PLANNED = values((SERVED_BY, *PLAN), candidates=["h200-sxm-141gb", "l40s"], requests_per_s=5.0)


def test_plan_page(opened):
    at = opened("plan", requests_per_s="5", candidates=["h200-sxm-141gb", "l40s"])
    plan = planned(scenario_of({}), PLANNED)
    best, shown = plan.options[0], metrics(at)
    assert shown["Accelerators · estimate"] == f"{best.accelerators:,}"
    assert shown["TTFT · estimate"] == show(best.latencies_s["ttft_s"], "s")
    assert shown["USD per hour · listed"] == number(best.money.usd_per_hour)
    frame = at.dataframe[0].value
    assert list(frame["accelerator"]) == [option.accelerator for option in plan.options]


def test_plan_by_api_and_command(capsys):
    scenario = scenario_of({"weights": "fp8"})
    plan = planned(scenario, PLANNED)
    assert evaluated(plan_python(scenario, PLANNED)).to_dict() == plan.to_dict()
    assert command_results(plan_command(scenario, PLANNED), capsys) == plain(plan.to_dict())


def test_plan_that_misses_its_targets_says_so(opened):
    at = opened("plan", tpot_s="0.0001", candidates=["l4"])
    assert at.error
    assert not at.metric


COMPARED = values((*COMPARE, SERVED_BY, BY_NAME["term"]), against=["h200-sxm-141gb", "l40s"])


def test_compare_page(opened):
    at = opened("compare", against=["h200-sxm-141gb", "l40s"])
    found = compared(scenario_of({}), COMPARED)
    speed = at.dataframe[0].value
    assert list(speed["accelerator"]) == [row.accelerator for row in found.rows]
    assert list(speed["tokens/s · bound"]) == [number(row.bound_tokens_per_s) for row in found.rows]
    cost = at.dataframe[1].value
    assert list(cost["USD/M tokens · estimate"]) == [
        number(row.usd_per_million_tokens) for row in found.rows
    ]


def test_compare_by_api_and_command(capsys):
    scenario = scenario_of({"kv": "fp8"})
    found = compared(scenario, COMPARED)
    assert evaluated(compare_python(scenario, COMPARED)).to_dict() == found.to_dict()
    assert command_results(compare_command(scenario, COMPARED), capsys) == plain(found.to_dict())


def test_training_page(opened):
    at = opened("training", mode="lora", recompute="full", tokens="1e9", usd_per_hour="2")
    given = values(TRAINING, mode="lora", recompute="full", tokens=1e9)
    result = trained(scenario_of({"usd_per_hour": 2.0}), given)
    shown = metrics(at)
    assert shown["Step · bound"] == show(result.bound_s, "s")
    assert shown["Step · estimate"] == show(float(result.step_s.mid), "s")
    assert shown["Memory · estimate"] == show(result.peak_bytes, "GiB")
    assert shown["USD · estimate"] == number(float(result.run.usd.mid))


@pytest.mark.parametrize(
    "given", [{}, {"mode": "qlora", "micro_batch": 2, "global_batch": 8}], ids=["full", "qlora"]
)
def test_training_by_api_and_command(given, capsys):
    scenario, asked = scenario_of({"machine": "recorded"}), values(TRAINING, **given)
    result = trained(scenario, asked)
    assert evaluated(train_python(scenario, asked)).to_dict() == result.to_dict()
    assert command_results(train_command(scenario, asked), capsys) == plain(result.to_dict())


def test_training_that_does_not_fit_says_so(opened):
    at = opened("training", model="llama-3.1-70b")
    assert "DOES NOT FIT" in at.error[0].value
