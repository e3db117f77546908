"""plan, compare and prices as commands: formats, exit codes, files, one line per error."""

import csv
import io
import json

import pytest

from roofline.cli.main import run
from roofline.cli.plan import seconds

LOAD = ["--requests-per-s", "20", "--prompt-tokens", "1000", "--output-tokens", "150",
        "--requests", "300"]  # fmt: skip
TARGETS = ["--ttft-s", "0.5", "--tpot-s", "30ms"]


def test_plan_in_every_format(capsys, tmp_path):
    asked = ["plan", "llama-3.1-8b", "l40s", "mi300x", *LOAD, *TARGETS]
    assert run(asked) == 0
    table = capsys.readouterr().out
    assert "replicas × " in table
    assert "vllm serve meta-llama/Llama-3.1-8B" in table
    assert run([*asked, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    option = document["results"]["options"][0]
    assert option["accelerator"] == "l40s"
    assert option["ttft_s"] <= 0.5
    assert option["tpot_s"] <= 0.03
    assert document["inputs"]["tpot_s"] == "30ms"
    assert document["assumptions"]
    assert run([*asked, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["accelerator"] for row in rows] == ["l40s", "mi300x"]
    assert float(rows[0]["usd_per_hour"]) == pytest.approx(option["usd_per_hour"])
    assert run([*asked, "--format", "md", "--output", str(tmp_path / "a.md")]) == 0
    assert "| l40s |" in (tmp_path / "a.md").read_text()


def test_plan_writes_figure_and_report(capsys, tmp_path):
    figure, page, text = (tmp_path / name for name in ("p.svg", "r.html", "r.md"))
    asked = ["plan", "llama-3.1-8b", "l40s", *LOAD, *TARGETS]
    assert run([*asked, "--plot", str(figure), "--report", str(page)]) == 0
    assert figure.read_text().lstrip().startswith("<?xml")
    content = page.read_text()
    assert "<h2>Recommendation</h2>" in content
    assert "data:image/png;base64," in content
    assert "http://" not in content.replace("http://www.w3.org", "")
    assert run([*asked, "--report", str(text)]) == 0
    assert "## Deployments" in text.read_text()
    assert "GPU-hours/month" in text.read_text()
    capsys.readouterr()


def test_exit_codes(capsys, tmp_path):
    assert run(["plan", "llama-3.1-8b", "l40s", *LOAD, "--ttft-s", "1us"]) == 3
    assert "for a request alone" in capsys.readouterr().out
    assert run(["compare", "llama-3.1-405b", "t4", "--batch", "1"]) == 3
    assert run(["plan", "llama-3.1-8b", "l40s"]) == 1
    assert run(["plan", "llama-3.1-8b", "l40s", *LOAD, "--price", "l40s"]) == 2
    assert run(["plan", "llama-3.1-8b", "l40s", *LOAD, "--draft-tokens", "2"]) == 2
    assert run(["plan", "llama-3.1-8b", "nope", *LOAD]) == 1
    assert run(["plan", "llama-3.1-8b", "l40s", *LOAD, "--lengths", str(tmp_path / "no")]) == 1
    assert run(["plan", "llama-3.1-8b", "l40s", *LOAD, "--report", str(tmp_path / "a.pdf")]) == 1
    assert run(["prices", "import", str(tmp_path), "--from", "gpuhunt"]) == 1
    assert run(["prices", "import", str(tmp_path), "--from", "excel"]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_own_price_changes_the_answer(capsys):
    asked = ["plan", "llama-3.1-8b", "l40s", "mi300x", *LOAD, *TARGETS, "--format", "json"]
    assert run([*asked, "--price", "mi300x=0.1"]) == 0
    options = json.loads(capsys.readouterr().out)["results"]["options"]
    assert options[0]["accelerator"] == "mi300x"


def test_compare_in_every_format(capsys, tmp_path):
    asked = ["compare", "llama-3.1-8b", "l40s", "h100-sxm5-80gb", "--batch", "8"]
    assert run([*asked, "--plot", str(tmp_path / "c.png")]) == 0
    assert "→" in capsys.readouterr().out
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert run([*asked, "-f", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]["rows"]
    assert {row["accelerator"] for row in rows} == {"l40s", "h100-sxm5-80gb"}
    assert run([*asked, "-f", "csv"]) == 0
    assert "usd_per_effective_tflop_hour" in capsys.readouterr().out.splitlines()[0]


def test_prices_list_and_check(capsys, tmp_path):
    assert run(["prices", "list", "t4"]) == 0
    assert "T4" not in capsys.readouterr().err
    assert run(["prices", "list", "--term", "owned", "-f", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["results"]
    assert {row["term"] for row in listed} == {"owned"}
    assert run(["prices", "check"]) == 0
    assert "0 errors" in capsys.readouterr().out
    bad = tmp_path / "bad.csv"
    bad.write_text("provider,spec_id,gpu_count,usd_per_hour,term\nA,t4,1,0,on_demand\n")
    assert run(["prices", "check", str(bad)]) == 1
    assert "above 0" in capsys.readouterr().out


def test_prices_import(capsys, tmp_path):
    folder = tmp_path / "lambda"
    folder.mkdir()
    (folder / "vms.csv").write_text(
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,"
        "Region,AvailabilityZone\ngpu_1x,A10,1,30,200,,0.75,,us,\ngpu_1x_h,H100,1,26,200,,2.5,,us,\n"
    )
    out = tmp_path / "mine.csv"
    asked = ["prices", "import", str(folder / "vms.csv"), "--from", "skypilot"]
    assert run([*asked, "--to", str(out), "--as-of", "2026-11-01"]) == 0
    assert "1 offers mapped, 1 open" in capsys.readouterr().out
    assert run(["prices", "list", "a10", "--prices", str(out), "-f", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert (row["provider"], row["usd_per_hour"], row["as_of"]) == ("lambda", 0.75, "2026-11-01")


def test_times_with_and_without_units():
    assert seconds("40ms") == pytest.approx(0.04)
    assert seconds("1.5") == 1.5
    assert seconds(None) is None
