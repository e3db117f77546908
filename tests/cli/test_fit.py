"""``roofline fit``: exit codes, every format, and the answers people ask for."""

import csv
import io
import json

import pytest

from roofline.cli.main import run


def answer(capsys, *arguments):
    code = run(["fit", *arguments])
    return code, capsys.readouterr()


def test_llama_2_on_a_t4_under_vllm(capsys):
    code, said = answer(capsys, "llama-2-7b", "--gpu", "t4", "--engine", "vllm")
    assert code == 3
    assert "0.9 × 14.74 GiB of the total" in said.out
    assert "Formats that would fit" in said.out
    assert "Largest models of the catalogue that fit here: " in said.out


def test_llama_2_on_a_t4_under_transformers(capsys):
    asked = "llama-2-7b --gpu t4 --engine transformers --prompt-tokens 1000 --output-tokens 600"
    code, said = answer(capsys, *asked.split(), "-f", "json")
    document = json.loads(said.out)
    assert code == 0
    (result,) = document["results"]
    assert result["max_context_tokens"] == 1621
    assert document["schema_version"] == 1


def test_all_lists_every_accelerator_with_a_reason(capsys):
    from roofline.hardware.accelerator import accelerator_ids

    code, said = answer(capsys, "llama-3.1-70b", "--all", "-f", "json")
    results = json.loads(said.out)["results"]
    assert code == 0
    assert sorted(row["accelerator"] for row in results) == list(accelerator_ids())
    assert all(row["fits"] or row["reason"] for row in results)


def test_csv_has_one_line_each(capsys):
    _, said = answer(capsys, "llama-3.1-8b", "--gpu", "l40s", "--gpu", "t4", "-f", "csv")
    lines = list(csv.reader(io.StringIO(said.out)))
    assert len(lines) == 3
    assert {line[0] for line in lines[1:]} == {"l40s", "t4"}


def test_markdown(capsys):
    _, said = answer(capsys, "llama-3.1-8b", "--gpu", "h100-sxm5-80gb", "-f", "md")
    assert "| h100-sxm5-80gb | yes |" in said.out


def test_a_figure_is_written(capsys, tmp_path):
    path = tmp_path / "bar.png"
    code, _ = answer(capsys, "llama-3.1-8b", "--gpu", "l40s", "--figure", str(path))
    assert code == 0
    assert path.stat().st_size > 1000


def test_adapters_and_towers_count_when_asked(capsys):
    def overhead(*extra):
        _, said = answer(capsys, "llama-3.1-8b", "--gpu", "l40s", "-f", "json", *extra)
        return json.loads(said.out)["results"][0]["memory"]["overhead_bytes"]

    assert overhead("--lora-adapters", "2") - overhead() == 2 * 41_943_040 * 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("llama-2-7b",), 1, "say on which accelerator"),
        (("llama-2-7b", "--gpu", "t4", "--all"), 1, "not both"),
        (("llama-2-7c", "--gpu", "t4"), 1, "did you mean llama-2-7b"),
        (("llama-2-7b", "--gpu", "t5"), 1, "no accelerator"),
        (("llama-2-7b", "--gpu", "t4", "--engine", "vlm"), 1, "did you mean vllm"),
        (("llama-2-7b", "--gpu", "t4", "--memory-fraction", "90"), 1, "memory_fraction is a share"),
        (("llama-2-7b", "--gpu", "t4", "--batch", "0"), 1, "batch is a number of at least 1"),
        (("llama-2-7b", "--gpu", "t4", "--tp", "3"), 1, "tp=3 does not divide"),
        (("llama-2-7b", "--gpu", "t4", "--prompt-tokens", "-1"), 1, "at least one token"),
        (("llama-2-7b", "--gpu", "t4", "--weights", "fp9"), 1, "did you mean fp8"),
        (("llama-2-7b", "--gpu", "t4", "--batch", "x"), 2, "batch"),
    ],
)
def test_errors_are_one_line(capsys, arguments, code, words):
    found, said = answer(capsys, *arguments)
    assert found == code
    assert words in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
