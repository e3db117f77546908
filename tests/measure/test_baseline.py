"""The baseline command on a CPU, and what it makes of nvidia-smi's text."""

import pytest

pytest.importorskip("torch")

from pathlib import Path

from roofline.hardware.node_record import read_node_record
from roofline.measure import baseline

PROBES = ("copy", "add", "matmul", "matmul under load", "attention", "norm", "kv_read", "launch")


def test_a_cpu_node(tmp_path, capsys):
    assert baseline.main(["--output", str(tmp_path), "--node", "cpu-1", "--device", "cpu"]) == 0
    path = Path(capsys.readouterr().out.strip())
    record = read_node_record(path)
    assert record.node == "cpu-1"
    assert tuple(probe.name for probe in record.probes) == PROBES
    assert all(probe.rate > 0 for probe in record.probes)
    assert "torch" in record.software
    assert record.command == "python -m roofline.measure.baseline"


@pytest.mark.parametrize("name", ["LOCAL_RANK", "SLURM_LOCALID"])
def test_only_local_rank_0_measures(monkeypatch, tmp_path, capsys, name):
    monkeypatch.setenv(name, "3")
    assert baseline.main(["--output", str(tmp_path)]) == 0
    assert "local rank 0 measures" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_cuda_asked_for_and_not_there(capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert baseline.main(["--device", "cuda"]) == 1
    assert capsys.readouterr().err.strip() == (
        "error: no CUDA device here; use device='cpu' or run it on the server"
    )


def fake_smi(folder, monkeypatch, body):
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_states_from_text_alone(tmp_path, monkeypatch):
    row = (
        "0, NVIDIA H200, 00000000:19:00.0, 143771, 4, 34, 36, 76.51, 700.00, 345, 3201, 1980, "
        "3201, 5, 5, 16, 16, 0, 0, No, 0x0000000000000004, 580.95.05"
    )
    fake_smi(tmp_path, monkeypatch, f"echo '{row}'")
    (device,) = baseline.device_states()
    assert (device.name, device.throttle) == ("NVIDIA H200", ("software power cap",))


def test_an_older_driver_is_asked_by_its_own_names(tmp_path, monkeypatch):
    """A driver that knows index, name and the older name of the reasons, and refuses the rest."""
    fake_smi(
        tmp_path,
        monkeypatch,
        'case "$1" in\n'
        "--query-gpu=index) echo 0;;\n--query-gpu=name) echo Tesla T4;;\n"
        "--query-gpu=clocks_throttle_reasons.active) echo 0x40;;\n"
        "--query-gpu=index,name,clocks_throttle_reasons.active) echo '0, Tesla T4, 0x40';;\n"
        "*) exit 2;;\nesac",
    )
    (device,) = baseline.device_states()
    assert (device.name, device.throttle) == ("Tesla T4", ("hardware thermal slowdown",))


@pytest.mark.parametrize("body", ["exit 9", "echo garbage", "printf '\\377'"])
def test_a_broken_tool_gives_no_state(tmp_path, monkeypatch, body):
    fake_smi(tmp_path, monkeypatch, body)
    assert baseline.device_states() == ()


def test_no_tool(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert baseline.device_states() == ()
    assert baseline.run_tool("nvidia-smi", "topo", "-m") == ""
