"""Every expected number is what the library or the command gives for the same question."""

import json

import pytest

import roofline
from roofline.app.copies import command_line, python_line
from roofline.app.scenario import predicted, scenario_of
from roofline.cli.main import run
from roofline.report.answer import json_text
from roofline.report.prediction_answer import prediction_answer
from roofline.units import show

CASES = [
    {"model": "llama-3.1-8b", "accelerator": "h200-sxm-141gb", "batch": 8},
    {"model": "deepseek-v3", "accelerator": "h200-sxm-141gb", "tp": 8, "batch": 64,
     "engine": "sglang", "machine": "recorded", "usd_per_hour": 3.5},
    {"model": "qwen2.5-7b", "accelerator": "l40s", "engine": "vllm", "engine_version": "0.19",
     "memory_fraction": 0.85, "weights": "fp8", "kv": "fp8", "prompt_tokens": 500,
     "output_tokens": 100, "batch": 4},
]  # fmt: skip


def metrics(at):
    return {metric.label: metric.value for metric in at.metric}


def query(case):
    return {key: str(value) for key, value in case.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_page_shows_what_the_library_gives(opened, case):
    at = opened(**query(case))
    p = predicted(scenario_of(case))
    shown = metrics(at)
    assert shown["TTFT · bound"] == show(p.bound.ttft_s, "s")
    assert shown["TTFT · estimate"] == show(float(p.ttft_s.mid), "s")
    assert shown["TPOT · bound"] == show(p.bound.tpot_s, "s")
    assert shown["TPOT · estimate"] == show(float(p.tpot_s.mid), "s")
    assert shown["Tokens/s · bound"] == show(p.bound.output_tokens_per_s, "")
    assert shown["Tokens/s · estimate"] == show(float(p.output_tokens_per_s.mid), "")
    (said,) = at.success if p.fits else at.error
    assert ("its" if p.fits else "DOES NOT FIT") in said.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_api_command_and_app_give_the_same_numbers(case, capsys):
    scenario = scenario_of(case)
    of_app = json.loads(json_text(prediction_answer(predicted(scenario), scenario.inputs())))
    line = command_line(scenario).split()
    assert run([*line[1:], "--format", "json"]) in (0, 3)
    of_command = json.loads(capsys.readouterr().out)
    assert of_app == of_command
    of_api = eval(python_line(scenario), {"roofline": roofline})
    assert of_app["results"]["bound"]["tpot_s"] == of_api.bound.tpot_s
    assert of_app["results"]["estimate"]["ttft_s"]["high"] == of_api.ttft_s.high
    assert of_app["results"]["memory"]["weights_bytes"] == of_api.memory.weights_bytes


def test_published_weights_on_the_page(opened):
    """Llama-3.1-8B: 8,030,261,248 parameters (its card), 16.06 GB in bf16."""
    at = opened(model="llama-3.1-8b")
    assert any("8,030,261,248" in one.value.replace("\\", "") for one in at.markdown)


def test_what_does_not_fit_says_so(opened):
    at = opened(model="llama-3.1-70b", accelerator="l4")
    assert [one for one in at.error if "DOES NOT FIT" in one.value]


def test_a_type_that_the_device_lacks_is_one_line(opened):
    at = opened(model="llama-3.1-8b", accelerator="t4")
    (error,) = at.error
    assert "bf16" in error.value
    assert "Traceback" not in error.value
    assert not at.metric


def test_two_scenarios_stand_side_by_side(opened):
    at = opened(two="true", accelerator_b="b200-hgx", batch_b="16")
    values = [metric.value for metric in at.metric if metric.label == "TPOT · bound"]
    first = predicted(scenario_of({}))
    second = predicted(scenario_of({"accelerator": "b200-hgx", "batch": 16}))
    assert values == [show(first.bound.tpot_s, "s"), show(second.bound.tpot_s, "s")]


def test_second_scenario_begins_as_the_first_is(opened):
    at = opened(model="qwen3-8b")
    at.toggle(key="two").set_value(True).run()
    assert at.selectbox(key="model_b").value == "qwen3-8b"


def test_a_hub_id_is_looked_up_and_sent_nowhere(opened):
    at = opened(model_from="hub", hub="Qwen/Qwen3-8B")
    shown = metrics(at)
    p = predicted(scenario_of({"model": "qwen3-8b"}))
    assert shown["TPOT · bound"] == show(p.bound.tpot_s, "s")
    at = opened(model_from="hub", hub="nobody/nothing-7b")
    assert "no model" in at.error[0].value


def test_only_a_button_asks_the_hub(opened, monkeypatch):
    from roofline.app import asking
    from roofline.errors import MissingDataError

    asked = []

    def ask(model_id):
        asked.append(model_id)
        raise MissingDataError(f"{model_id}: no network?")

    monkeypatch.setattr(asking, "load_hub", ask)
    at = opened(model_from="hub", hub="nobody/nothing-7b")
    assert asked == []
    at.button(key="fetch").click().run()
    assert asked == ["nobody/nothing-7b"]
    assert any("no network" in one.value for one in at.error)
    assert not [
        one for one in opened(model_from="hub", hub="../../etc").button if one.key == "fetch"
    ]


def test_custom_form_is_a_model(opened):
    """Llama-3.1-8B written into the form by hand: its config.json's dimensions."""
    at = opened(model_from="form")
    assert any("8,030,261,248" in one.value.replace("\\", "") for one in at.markdown)
    moe = opened(model_from="form", experts="8", experts_used="2", vocab="32000")
    mixtral = roofline.load_model("mixtral-8x7b")
    said = "".join(one.value.replace("\\", "") for one in moe.markdown)
    assert f"{mixtral.parameters:,}" in said


def test_link_with_unknown_values_says_so(opened):
    at = opened(model="no-such-model", accelerator="../../etc/passwd", colour="red", batch="7")
    (doubt,) = [one.value.replace("\\", "") for one in at.warning]
    assert "model = no-such-model" in doubt
    assert "colour is no setting" in doubt
    assert "batch" not in doubt
    assert at.number_input(key="batch").value == 7
    assert at.selectbox(key="accelerator").value == "h200-sxm-141gb"


def test_a_path_in_the_address_opens_nothing(opened, tmp_path):
    config = tmp_path / "config.json"
    config.write_text("{}")
    at = opened(model_from="hub", hub=str(config))
    assert "no model" in at.error[0].value


def test_a_machine_without_a_datasheet_has_measured_roofs_and_no_bounds(opened):
    """measurements/cpu-amd-epyc-2-cores: a CPU that is known by its record alone."""
    at = opened(accelerator="cpu-amd-epyc-2-cores", model="tinyllama-1.1b", batch="1")
    labels = [metric.label for metric in at.metric]
    assert "TPOT · measured roof" in labels
    assert not [label for label in labels if "bound" in label]
