"""``roofline train`` from the command line."""

import json

import pytest

from roofline.cli.main import run

H200 = "h200-sxm-141gb"


def test_json_has_inputs_results_and_units_in_its_keys(capsys):
    asked = ["train", "llama-3.1-8b", H200, "--mode", "lora", "--recompute", "full"]
    assert run([*asked, "--tokens", "1e8", "--usd-per-hour", "3.5", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["command"] == "train"
    assert answer["inputs"]["recompute"] == "full"
    assert answer["results"]["trainable_parameters"] == 41_943_040  # 16 · Σ (in + out), 32 layers
    assert answer["results"]["run"]["cost_usd"]["mid"] > 0


def test_a_table_says_whether_it_fits(capsys):
    assert run(["train", "llama-3.1-8b", "rtx-4090"]) == 3
    assert "DOES NOT FIT" in capsys.readouterr().out


def test_the_best_plan_and_a_recommendation(capsys):
    asked = ["train", "llama-3.1-8b", "h100-sxm5-80gb", "--accelerators", "8"]
    assert run([*asked, "--global-batch", "64", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]["accelerators"] == 8
    assert run(["train", "llama-3.1-8b", "rtx-4090", "--scenario", "lora"]) == 0
    assert "lora on 1 ×" in capsys.readouterr().out
    assert run(["train", "llama-3.1-8b", "rtx-4090", "--scenario", "pre-training"]) == 3


def test_errors_are_one_line(capsys):
    assert run(["train", "llama-3.1-8b", H200, "--tp", "3"]) == 1
    error = capsys.readouterr().err
    assert "tp = 3 does not divide the 32 query heads" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("--scenario", "lora", "--mode", "qlora", "--tp", "2"), "no use for --mode, --tp"),
        (("--scale", "2,4", "--tokens", "1e9"), "--scale has no use for --tokens"),
        (("--scale", "2,4", "--accelerators", "8"), "--scale has no use for --accelerators"),
        (("--accelerators", "8", "--micro-batch", "2"), "no use for --micro-batch"),
        (("--lora-rank", "8"), "needs --mode lora"),
        (("--scale", "8,8"), "must rise, got 8, 8"),
        (("--scale", "8,4"), "must rise, got 8, 4"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(capsys, asked, says):
    assert run(["train", "llama-3.1-8b", H200, *asked]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_a_recommended_plan_is_answered_in_full(capsys, tmp_path):
    """The plan that is recommended gives the very answer that asking for it gives."""
    common, figure = ["train", "llama-3.1-8b", H200, "--format", "json"], tmp_path / "a.svg"
    common += ["--tokens", "1e8", "--global-batch", "8"]
    assert run([*common, "--scenario", "lora", "--plot", str(figure)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["assumptions"]
    assert figure.exists()
    plan = found["inputs"]
    chosen = ["--micro-batch", str(plan["micro_batch"]), "--recompute", plan["recompute"]]
    assert run([*common, "--mode", "lora", *chosen]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == found["results"]


def test_a_figure_is_written(tmp_path, capsys):
    target = tmp_path / "training.png"
    assert run(["train", "llama-3.1-8b", H200, "--mode", "lora", "--plot", str(target)]) == 0
    assert target.read_bytes().startswith(b"\x89PNG")
    assert "wrote" in capsys.readouterr().err


def test_scaling_says_what_is_lost_to_what(tmp_path, capsys):
    asked = ["train", "llama-3.1-8b", "a100-sxm4-80gb", "--scale", "8,32", "--mode", "mixed"]
    asked += ["--recompute", "full", "--network", "ethernet-25gbe", "--format", "json"]
    assert run([*asked, "--plot", str(tmp_path / "scaling.svg")]) == 0
    points = json.loads(capsys.readouterr().out)["results"]["points"]
    assert [point["accelerators"] for point in points] == [8, 32]
    assert points[1]["efficiency"] < 0.75
    assert "gradient exchange" in points[1]["lost_to"]
    assert "<svg" in (tmp_path / "scaling.svg").read_text()
    assert run(["train", "llama-3.1-8b", "a100-sxm4-80gb", "--scale", "a,b"]) == 1
    assert "whole numbers such as 8,16,32" in capsys.readouterr().err
