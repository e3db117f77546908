"""``roofline measure``: a CPU record, a model, an import, a record shown; errors in one line."""

import json

import pytest

from roofline.cli.main import run

pytest.importorskip("torch")

CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "vocab_size": 128, "torch_dtype": "float32",
}  # fmt: skip


def test_launch_costs_of_the_cpu(tmp_path, capsys):
    code = run(["measure", "--quick", "--device", "cpu", "--sections", "launch", "--output-dir",
                str(tmp_path), "--format", "json"])  # fmt: skip
    assert code == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["command"] == "measure"
    whats = {row["what"] for row in answer["results"]["record"]["launch_rows"]}
    assert {"host_linear", "host_python_call", "host_attention"} <= whats
    assert len(list(tmp_path.rglob("*-quick.json"))) == 1


def test_a_model_on_the_cpu(tmp_path, capsys):
    config = tmp_path / "small.json"
    config.write_text(json.dumps(CONFIG))
    code = run(["measure", "model", str(config), "--weights", "fp32", "--batch", "1,2",
                "--context", "8", "--prompt-tokens", "4", "--device", "cpu", "--output-dir",
                str(tmp_path / "m")])  # fmt: skip
    assert code == 0
    shown = capsys.readouterr()
    assert "Models with random weights" in shown.out
    assert "wrote" in shown.err


def test_show_the_h200(capsys, tmp_path):
    code = run(["measure", "show", "h200-sxm-141gb", "--format", "json"])
    assert code == 0
    roofs = {line["what"]: line for line in json.loads(capsys.readouterr().out)["results"]["roofs"]}
    assert roofs["memory, write"]["measured"] == pytest.approx(4.69e12, rel=0.02)
    assert roofs["memory, add"]["measured"] == pytest.approx(4.37e12, rel=0.02)


def test_import_of_nccl_tests(tmp_path, capsys):
    file = tmp_path / "all_reduce_perf.txt"
    file.write_text("# size count type redop root time algbw busbw #wrong\n"
                    "1048576 262144 float sum -1 20.0 52.43 52.43 0\n")  # fmt: skip
    arguments = ["measure", "import", str(file), "--spec", "h100-sxm5-80gb", "--output-dir",
                 str(tmp_path / "m")]  # fmt: skip
    assert run(arguments) == 1
    assert "how many ranks" in capsys.readouterr().err
    assert run([*arguments, "--ranks", "2"]) == 0
    assert "all-reduce" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--quick", "--full"], 2, "exclude each other"),
        (["--device", "cpu", "--sections", "coppy"], 1, "no sweep 'coppy'"),
        (["--device", "cpu", "--sections", ","], 1, "names such as copy,matmul, got ','"),
        (["--device", "cpu", "--spec", "h200-sxm-141gb"], 1, "is a gpu, and the CPU is measured"),
        (["--device", "tpu"], 1, "can measure cuda and cpu"),
        (["model", "nothing-like-it", "--device", "cpu"], 1, "no model"),
        (["model", "llama-3.1-8b", "--batch", "0", "--device", "cpu"], 1, "--batch takes"),
        (["collectives", "--ranks", "1"], 1, "2 ranks or more"),
        (["import", "nothing.txt", "--spec", "t4"], 1, "cannot be read"),
        (["import", "nothing.txt"], 1, "--spec ID"),
        (["show", "h999"], 1, "no measured machine"),
        (["show", "nothing.json"], 1, "cannot be read"),
    ],
)
def test_errors_are_one_line(arguments, code, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["measure", *arguments]) == code
    err = capsys.readouterr().err.strip()
    assert says in err
    assert len(err.splitlines()) == 1
