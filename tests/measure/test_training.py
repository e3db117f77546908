"""The measured training step runs on a CPU; what it measures on a GPU is in the records."""

import pytest

from roofline.hardware.training_record import read_training_record

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_the_run_refuses_without_a_device_and_says_what_works(capsys, monkeypatch):
    import torch

    from roofline.measure import training

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert training.main(["--output", "nowhere"]) == 1
    assert "--device cpu --small" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_tiny_model_trains_in_each_mode(tmp_path):
    """LoRA of rank 16 on a matrix of a × b adds 16 (a + b) values (Hu et al., arXiv:2106.09685)."""
    pytest.importorskip("peft")
    from roofline.measure import training

    arguments = ["--output", str(tmp_path), "--device", "cpu", "--small"]
    assert training.main(arguments) == 0
    (path,) = tmp_path.glob("*-training.json")
    rows = read_training_record(path).training_rows
    assert len(rows) == 6
    widths = (64 + 64) * 2 + (64 + 32) * 2 + (64 + 128) * 3  # q, o; k, v; gate, up, down
    assert {row.trainable for row in rows if row.mode == "lora"} == {2 * 16 * widths}
