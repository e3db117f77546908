"""Accuracy, Specs and models, and the desk itself: numbers are those of the library."""

import tomllib
from pathlib import Path

import pytest

from roofline.app.desk import VIEWS
from roofline.app.uploads import accelerator_of
from roofline.app.views.specs import spec_text
from roofline.cli.app import OPTIONS, server_command
from roofline.models.catalogue import load_named
from roofline.validation.validate import validate

ROOT = Path(__file__).parents[2]
OWN = """\
id: my-accelerator
name: My accelerator 96GB
vendor: ACME
kind: gpu
device_names: [ACME X1]
memory:
  type: HBM3
  marketed_bytes: 96 GB
  usable_bytes: 95.1 GiB
  bytes_per_s: 4 TB/s
  source: ACME X1 datasheet, 2026-05, page 2
compute:
  flop_per_s: {bf16: 500 TFLOP/s, fp16: 500 TFLOP/s, fp8: 1 PFLOP/s}
  source: ACME X1 datasheet, 2026-05, page 3 (dense)
power:
  tdp_w: 600 W
  source: ACME X1 datasheet, 2026-05, page 4
"""


def test_accuracy_page(opened):
    at = opened("accuracy", data="decoder")
    overall = validate("decoder").overall()
    shown = {metric.label: metric.value for metric in at.metric}
    assert shown["Bounds above a run"] == "0"
    assert shown["Median error · estimate"] == f"{overall.median_error:.1%}"
    assert shown["Inside the interval"] == f"{overall.coverage:.0%}"


def test_accuracy_without_rows_says_so(opened):
    assert opened("accuracy", data="decoder", of_engine="sglang").error


def test_specs_page(opened):
    """NVIDIA T4 datasheet: 16 GB, 320 GB/s, 65 TFLOP/s fp16, 70 W."""
    at = opened("specs", accelerator="t4", model="qwen3-8b")
    facts = at.dataframe[0].value.set_index("fact")["value"]
    assert facts["memory.bytes_per_s"] == "320 GB/s"
    assert facts["compute.flop_per_s.fp16"] == "65 TFLOP/s"
    assert facts["power.tdp_w"] == "70 W"
    of_model = at.dataframe[2].value.set_index("fact")["value"]
    assert of_model["parameters"] == f"{load_named('qwen3-8b').parameters:,}"


def test_own_accelerator_is_added_and_predicted_with(opened):
    """4 TB/s is what a decode step of Llama-3.1-8B reads its 15.0 GB of weights with: 3.75 ms."""
    at = opened("specs")
    at.text_area(key="spec_text").set_value(OWN).run()
    at.button(key="spec_add").click().run()
    assert not at.exception
    assert not at.error
    at.selectbox(key="accelerator").set_value("own/my-accelerator").run()
    facts = at.dataframe[0].value.set_index("fact")["value"]
    assert facts["memory.bytes_per_s"] == "4 TB/s"
    other = opened("specs")
    assert "own/my-accelerator" not in other.selectbox(key="accelerator").options


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OWN.replace("  source: ACME X1 datasheet, 2026-05, page 2\n", ""), "source"),
        (OWN.replace("4 TB/s", "4800"), "4800"),
        (OWN.replace("memory:", "memroy:"), "memroy"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "anchors"),
        ("x: !!python/object/apply:os.system ['true']", "tag"),
        ("[" * 5000, "nested"),
        ("", "empty"),
    ],
    ids=["no source", "no unit", "typo", "bomb", "tag", "deep", "empty"],
)
def test_own_accelerator_that_is_wrong_says_what(opened, text, words):
    at = opened("specs")
    at.text_area(key="spec_text").set_value(text).run()
    at.button(key="spec_add").click().run()
    assert not at.exception
    assert words in at.error[0].value.replace("\\", "")
    assert "own_specs" not in at.session_state or not at.session_state["own_specs"]


def test_text_that_own_accelerators_begin_with_loads():
    assert accelerator_of(spec_text("h200-sxm-141gb")).memory_bandwidth() == 4.8e12
    assert spec_text("../../README") == ""


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_page_opens_alone_and_side_by_side(opened, view):
    for query in ({}, {"two": "true", "model_b": "qwen3-8b"}):
        at = opened(view.name, **query)
        assert at.title[0].value == view.title
        labels = [button.label for button in at.get("download_button")]
        assert "Save as YAML" in labels
        if view.name != "diagnose":  # which says nothing before it has a file
            assert {"JSON", "CSV", "Markdown"} <= set(labels)


def test_both_ways_to_start_have_the_same_settings():
    file = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    of_file = {f"{group}.{name}": value for group, names in file.items()
               for name, value in names.items()}  # fmt: skip
    assert of_file == OPTIONS
    assert OPTIONS["server.address"] == "127.0.0.1"
    assert OPTIONS["browser.gatherUsageStats"] is False


def test_command_serves_the_script_of_the_package():
    line = server_command(8599, open_browser=False)
    script = Path(line[4])
    assert script.is_file()
    assert "--server.headless=true" in line
    assert "--server.port=8599" in line
    top = (ROOT / "app.py").read_text()
    assert top.split("\n\n", 1)[1] == script.read_text().split("\n\n", 1)[1]
