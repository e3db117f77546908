"""The command line: formats, exit codes, one line per error, files whole or not at all."""

import csv
import io
import json

import pytest

from roofline import predict
from roofline.cli.main import run

JOB = ["predict", "llama-3.1-8b", "h200-sxm-141gb"]


def test_the_main_job(capsys):
    assert run(JOB) == 0
    out = capsys.readouterr().out
    assert "8,030,261,248 parameters" in out
    assert "3.19 ms" in out
    assert "Assumptions" in out


def test_a_cpu_has_measured_roofs_and_no_bound(capsys):
    """A CPU has no datasheet: its least times come from a record and are named so."""
    record = "cpu-amd-epyc-2-cores"
    assert run(["predict", "tinyllama-1.1b", "generic-cpu", "--machine", record]) == 0
    out = capsys.readouterr().out
    assert "measured roof" in out
    assert "bound  " not in out


def test_json_equals_the_api(capsys):
    assert run([*JOB, "--batch", "32", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    expected = predict("llama-3.1-8b", "h200-sxm-141gb", batch=32)
    assert document["results"]["decode"]["bound_s"] == expected.decode.bound_s
    assert document["results"]["estimate"]["ttft_s"]["mid"] == expected.ttft_s.mid
    assert document["assumptions"] == list(expected.assumptions)


def test_csv_and_markdown(capsys):
    assert run([*JOB, "-f", "csv"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0][1:] == ["bound", "estimate (low – high)", "limited by"]
    assert run([*JOB, "-f", "md"]) == 0
    assert "| TTFT |" in capsys.readouterr().out


def test_does_not_fit_is_exit_3(capsys):
    assert run(["predict", "llama-3.1-70b", "t4", "--weights", "fp16"]) == 3
    assert "DOES NOT FIT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["predict", "llama-9", "t4"], 1, "no model 'llama-9'"),
        (["predict", "llama-3.1-8b", "t4", "--batch", "0"], 2, "greater than or equal to 1"),
        (["predict", "llama-3.1-8b", "t4", "--batch", "x"], 2, "valid integer"),
        (["predict"], 2, "Missing argument"),
        (["nothing"], 2, "No such command"),
        (["predict", "llama-3.1-8b", "l40s", "--tp", "3"], 1, "these do: 1, 2, 4"),
        (["predict", "llama-3.1-8b", "l40s", "--plot", "x.gif"], 1, "a figure is written as"),
    ],
)
def test_errors_are_one_line(arguments, code, words, capsys):
    assert run(arguments) == code
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1


def test_files_are_written_whole(tmp_path, capsys):
    target = tmp_path / "answer.json"
    assert run([*JOB, "-f", "json", "-o", str(target)]) == 0
    assert json.loads(target.read_text())["command"] == "predict"
    assert run([*JOB, "-f", "json", "-o", str(tmp_path / "no" / "answer.json")]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["answer.json"]


def test_plot_is_a_picture(tmp_path):
    target = tmp_path / "roof.png"
    assert run([*JOB, "--plot", str(target), "-o", str(tmp_path / "t.txt")]) == 0
    assert target.read_bytes().startswith(b"\x89PNG")


def test_explain_has_the_numbers(capsys):
    assert run([*JOB, "--explain"]) == 0
    out = capsys.readouterr().out
    assert "989 TFLOP/s (bf16) / 4.80 TB/s = 206 FLOP/B" in out
    assert "8,030,261,248 parameters in bf16 = 16.1 GB" in out


def test_help_and_version(capsys):
    assert run(["--help"]) == 0
    assert "predict" in capsys.readouterr().out
    assert run(["--version"]) == 0
    assert run([]) == 2


@pytest.mark.parametrize(
    "verb", [["predict", "llama-3.1-8b"], ["train", "llama-3.1-8b"], ["compare", "llama-3.1-8b"]]
)
def test_a_figure_that_cannot_be_written_is_refused_before_the_answer(verb, capsys):
    assert run([*verb, "h200-sxm-141gb", "--plot", "roof.gif"]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert "roof.gif: a figure is written as .png, .svg or .pdf" in error
