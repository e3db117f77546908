"""The verbs trace, topology, baseline and diagnose, with every worked example."""

import csv
import io
import json
from pathlib import Path

import pytest

from roofline.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
TRACE = str(ROOT / "measurements/traces/h200-TinyLlama-1.1B_b1.json.gz")
TRACE_32 = str(ROOT / "measurements/traces/h200-TinyLlama-1.1B_b32.json.gz")
EXAMPLES = ROOT / "examples/diagnosis"


def answer(capsys, *arguments, code=0):
    assert run([*arguments, "--format", "json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert set(document) >= {"schema_version", "inputs", "assumptions", "results", "warnings"}
    return document["results"]


def test_trace_json(capsys):
    results = answer(capsys, "trace", TRACE, "--model", "tinyllama-1.1b", "--top", "3")
    (device,) = results["devices"]
    assert device["kernels_per_step"] == 924
    assert device["linear_calls_per_step"] == 155
    assert device["model"]["agrees"] is True
    assert device["busy_share"] == pytest.approx(0.0282, abs=1e-4)
    assert len(device["top_kernels"]) == 3


def test_trace_table_csv_and_figure(capsys, tmp_path):
    figure = tmp_path / "trace.png"
    assert run(["trace", TRACE, "--machine", "h200-sxm-141gb", "--plot", str(figure)]) == 0
    text = capsys.readouterr().out
    assert "busy 2.8 % of 236 ms" in text
    assert figure.stat().st_size > 10_000
    assert run(["trace", TRACE, "--format", "csv"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0][0] == "kernel"
    assert len(rows) == 11


def test_two_traces(capsys):
    results = answer(capsys, "trace", TRACE_32, "--against", TRACE)
    assert results["kernels_per_step"] == {"before": 924.0, "after": 924.0}
    # kernels of three steps: 6,678 µs at batch 1, 8,504 at batch 32
    change = sum(part["change_s"] for part in results["parts"])
    assert change == pytest.approx((8504.46e-6 - 6677.68e-6) / 3, rel=1e-3)


def test_ranks(capsys):
    results = answer(capsys, "trace", TRACE, TRACE_32, "--ranks")
    assert "no collectives" in results["verdict"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("trace", "none.json"), "no trace file 'none.json'"),
        (("trace", TRACE, TRACE_32), "add --ranks"),
        (("trace", TRACE, "--ranks"), "two traces or more"),
        (("trace", TRACE, "--ranks", "--against", TRACE), "leave --against out"),
        (("trace", TRACE, "--model", "no-such-model"), "no-such-model"),
        (("trace", TRACE, "--machine", "no-such-machine"), "no-such-machine"),
        (("trace", str(ROOT / "README.md")), "no JSON"),
        (("topology", "none.txt"), "cannot be read as a topology"),
        (("topology", str(ROOT / "LICENSE")), "no topology in it"),
        (("baseline", "compare", "none.json"), "cannot be read"),
        (("diagnose", "--symptoms", "none.json"), "cannot be read as symptoms"),
        (("trace", TRACE, "--against", TRACE, "--model", "t", "--top", "3"), "for --model, --top"),
        (("trace", TRACE, TRACE_32, "--ranks", "--plot", "a.png"), "no use for --plot"),
        (("topology", str(EXAMPLES / "topology_h200_pair.txt"), "--ranks", "8"), "--parameters"),
        (("diagnose", "--machine", "t4", "--earlier", "a.json"), "give baseline too"),
        (("diagnose", "--machine", "t4", "--fleet", "a.json"), "give baseline too"),
        (("diagnose",), "nothing to diagnose: give --trace"),
        (("diagnose", "--model", "tinyllama-1.1b", "--accelerator", "t4"), "nothing to diagnose"),
        (("trace", "/dev/zero"), "is a device or a pipe"),
        (("topology", "/dev/zero"), "too long for a topology"),
        (("baseline", "compare", "/dev/zero"), "too long for a node record"),
        (("diagnose", "--symptoms", "/dev/zero"), "too long for symptoms"),
        (("measure", "show", "/dev/zero"), "too long for a measured record"),
        (("measure", "import", "/dev/zero", "--spec", "t4"), "too long for output of nvbandwidth"),
        (("diagnose", "--model", "tinyllama-1.1b", "--trace", TRACE), "--accelerator"),
    ],
)
def test_errors_are_one_line(capsys, arguments, says):
    assert run(list(arguments)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert says in captured.err


def test_topology(capsys, tmp_path):
    figure = tmp_path / "links.svg"
    results = answer(
        capsys, "topology", str(EXAMPLES / "topology_bridged_pairs.txt"), "--tp", "2",
        "--parameters", "70e9", "--ranks", "8", "--plot", str(figure),
    )  # fmt: skip
    assert results["mapping"]["rank_to_device"] == [0, 2, 1, 3]
    assert results["gradient_bill"]["volume_bytes"] == pytest.approx(245e9)
    assert figure.exists()
    assert run(["topology", str(EXAMPLES / "topology_h200_pair.txt"), "--tp", "1"]) == 0


def test_topology_with_a_fault_exits_3(capsys):
    path = str(EXAMPLES / "topology_v100_two_links_down.txt")
    results = answer(capsys, "topology", path, code=3)
    assert results["nvlink"][0]["signalling_bytes_per_s"] == pytest.approx(103.124e9)


def test_baseline_on_a_cpu_and_compared(capsys, tmp_path):
    pytest.importorskip("torch")
    folder = str(tmp_path)
    results = answer(
        capsys, "baseline", "run", "--folder", folder, "--node", "x", "--device", "cpu"
    )
    assert len(results["record"]["probes"]) == 8
    record = results["path"]
    same = answer(capsys, "baseline", "compare", record, "--earlier", record)
    assert same["findings"] == []
    data = json.loads(Path(record).read_text())
    for probe in data["probes"]:
        probe["median_s"] *= 20
    slow = tmp_path / "slow.json"
    slow.write_text(json.dumps(data))
    figure = tmp_path / "fleet.png"
    found = answer(
        capsys, "baseline", "compare", str(slow), "--earlier", record, "--plot", str(figure), code=3
    )
    assert figure.exists()
    assert found["sick_nodes"] == ["x"]
    merged = tmp_path / "all.jsonl"
    assert run(["baseline", "merge", record, str(slow), "--into", str(merged)]) == 0
    assert len(merged.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("--symptoms", "out_of_memory.txt"), "fragmentation"),
        (("--symptoms", "scaling_flattens.yaml"), "scaling flattens"),
        (("--symptoms", "half_idle.prom"), "utilisation is no measure of work"),
        (("--symptoms", "fp8_no_time.yaml"), "the step reads KV, not weights"),
        (("--symptoms", "small_model_big_gpu.yaml"), "a floor that the device does not set"),
        (("--topology", "topology_v100_two_links_down.txt"), "a slow or missing link"),
    ],
)
def test_worked_examples(capsys, arguments, cause):
    option, name = arguments
    results = answer(capsys, "diagnose", option, str(EXAMPLES / name))
    assert results["verdicts"][0]["cause"] == cause


def test_diagnose_with_everything(capsys, tmp_path):
    incident = tmp_path / "incident.md"
    results = answer(
        capsys, "diagnose", "--trace", TRACE, "--machine", "h200-sxm-141gb", "--accelerator",
        "h200-sxm-141gb", "--model", "tinyllama-1.1b", "--topology",
        str(EXAMPLES / "topology_h200_pair.txt"), "--incident", str(incident), "--title", "Slow",
    )  # fmt: skip
    assert results["headline"].startswith("a faster GPU will not help")
    assert incident.read_text().startswith("# Incident: Slow\n")
    assert run(["diagnose", "--trace", TRACE]) == 0
    assert "97 % of the time" in capsys.readouterr().out
