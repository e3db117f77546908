"""``roofline models``: list and show."""

import csv
import io
import json

import pytest

from roofline.cli.main import run
from roofline.models.catalogue import model_names


@pytest.fixture
def say(capsys):
    """Run one command and give exit code, stdout and stderr."""

    def command(*words):
        code = run([str(word) for word in words])
        output = capsys.readouterr()
        return code, output.out, output.err

    return command


def test_list_has_every_model(say):
    code, out, _ = say("models", "list", "-f", "csv")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(out))}
    assert code == 0
    assert tuple(rows) == model_names()
    assert rows["tinyllama-1.1b"]["KV B/token"] == "22528"  # 2 × 4 heads × 64 × 22 layers × 2 bytes


@pytest.mark.parametrize(
    ("name", "parameters", "calls"),
    [("tinyllama-1.1b", 1_100_048_384, 7 * 22 + 1), ("llama-3.1-8b", 8_030_261_248, 7 * 32 + 1)],
)
def test_show_has_exact_counts(say, name, parameters, calls):
    """Totals of the checkpoints as their hub pages print them."""
    code, out, _ = say("models", "show", name, "--format", "json")
    results = json.loads(out)["results"]
    assert code == 0
    assert (results["parameters"], results["linear_calls_per_step"]) == (parameters, calls)


def test_show_says_what_the_layers_are(say):
    _, out, _ = say("models", "show", "deepseek-v3", "-f", "md")
    assert "latent 512 + 64, 128 heads" in out
    assert "8 of 256 experts" in out
    assert "70,272 B/token" in out  # arXiv:2505.09343, table 1


def test_show_a_config_file(say, tmp_path):
    config = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 1000,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    code, out, _ = say("models", "show", path, "-f", "json")
    assert code == 0
    # by hand: embeddings 2 × 64,000; per layer q, o 4,096 each, k, v 2,048 each, three of 64 × 128,
    # two norms of 64; a last norm of 64
    assert json.loads(out)["results"]["parameters"] == 128_000 + 2 * (12_288 + 24_576 + 128) + 64


def test_unknown_names_and_files(say, tmp_path):
    code, out, err = say("models", "show", "llama-9")
    assert (code, out) == (1, "")
    assert err.startswith("error: no model 'llama-9'")
    code, _, err = say("models", "show", tmp_path)
    assert code == 1
    assert err.count("\n") == 1


def test_tables(say):
    for form in ("table", "md"):
        assert "llama-3.1-8b" in say("models", "list", "-f", form)[1]
        assert "8,030,261,248" in say("models", "show", "llama-3.1-8b", "-f", form)[1]


def test_left_out_it_is_list(say):
    assert say("models", "-f", "csv") == say("models", "list", "-f", "csv")


@pytest.fixture
def folder(tmp_path):
    """TinyLlama's config beside weight files of 6 bf16 and 4 fp8 values: 12 + 4 bytes."""
    config = {
        "model_type": "llama", "num_hidden_layers": 22, "hidden_size": 2048,
        "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632,
        "vocab_size": 32000, "tie_word_embeddings": False,
    }  # fmt: skip
    snapshot = tmp_path / "models--someone--Tiny" / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    snapshot.joinpath("config.json").write_text(json.dumps(config))
    header = json.dumps({
        "a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]},
        "b": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [12, 16]},
    }).encode()  # fmt: skip
    content = len(header).to_bytes(8, "little") + header + bytes(16)
    snapshot.joinpath("model.safetensors").write_bytes(content)
    return snapshot


def test_weight_files_beside_a_config_are_counted(say, folder):
    for asked in (folder, folder / "config.json"):
        code, out, _ = say("models", "show", asked, "-f", "json")
        files = json.loads(out)["results"]["checkpoint"]
        assert (code, files["total_bytes"]) == (0, 16)
        assert files["by_dtype"] == {"bf16": 12, "fp8": 4}
    _, out, _ = say("predict", folder, "l40s", "-f", "json")
    said = [line for line in json.loads(out)["assumptions"] if "weight files" in line]
    assert said == [
        "weight files hold 16 bytes (bf16 12, fp8 4), all that is in them; the text model of the "
        "config is 2,200,096,768"
    ]


def test_weight_files_that_are_cut_are_said(say, folder):
    folder.joinpath("model.safetensors").write_bytes(b"\xff" * 20)
    assert say("models", "show", folder)[0] == 1
    code, out, _ = say("predict", folder, "l40s", "-f", "json")
    assert code == 0
    assert any("weight files are not counted" in line for line in json.loads(out)["assumptions"])


def test_a_hub_name_offline(say, folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(folder.parents[2]))
    code, out, _ = say("models", "show", "someone/Tiny", "--hub", "--offline", "-f", "json")
    results = json.loads(out)["results"]
    assert (code, results["parameters"]) == (0, 1_100_048_384)
    assert results["checkpoint"]["total_bytes"] == 16
    code, _, err = say("models", "show", "someone/Other", "--hub", "--offline")
    assert code == 1
    assert "offline was asked for" in err
    assert say("models", "show", "someone/Tiny", "--offline")[0] == 1
