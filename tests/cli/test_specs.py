"""``roofline specs``: list, show, check, in every format, with exit codes."""

import csv
import io
import json

import pytest

from roofline.cli.main import run
from roofline.hardware.accelerator import accelerator_ids
from roofline.hardware.folders import data_folders

MINE = """\
id: mine
name: Mine
vendor: ACME
kind: gpu
memory: {bytes_per_s: 1 TB/s, marketed_bytes: 10 GB, source: my own datasheet}
compute:
  flop_per_s: {bf16: 100 TFLOP/s}
  source: my own datasheet
"""


@pytest.fixture
def say(capsys):
    """Run one command and give exit code, stdout and stderr."""

    def command(*words):
        code = run([str(word) for word in words])
        output = capsys.readouterr()
        return code, output.out, output.err

    return command


def test_list_has_every_accelerator(say):
    code, out, _ = say("specs", "list", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [row["id"] for row in rows] == list(accelerator_ids())
    h200 = next(row for row in rows if row["id"] == "h200-sxm-141gb")
    assert (h200["TB/s"], h200["16-bit TFLOP/s"], h200["link GB/s"]) == ("4.8", "989.4", "450")


def test_list_in_json_has_base_units(say):
    _, out, _ = say("specs", "list", "--vendor", "amd", "-f", "json")
    document = json.loads(out)
    assert document["schema_version"] == 1
    assert len(document["results"]) == 7
    mi300x = next(row for row in document["results"] if row["id"] == "mi300x")
    assert mi300x["memory_bytes_per_s"] == 5.3e12


def test_list_tables_are_whole(say):
    for form in ("table", "md"):
        _, out, _ = say("specs", "list", "-f", form)
        assert all(spec_id in out for spec_id in accelerator_ids())


def test_list_links(say):
    _, out, _ = say("specs", "list", "--links", "-f", "csv")
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(out))}
    assert rows["nvlink-4"]["GB/s"] == "450"


def test_show_has_each_fact_with_its_source(say):
    code, out, _ = say("specs", "show", "h200-sxm-141gb", "--format", "md")
    assert code == 0
    assert "| memory.usable_bytes | 139.8 GiB (150,109,880,320 B) | [1][2][3] |" in out
    assert "| link.bytes_per_s | 450 GB/s |" in out
    assert "| [4] | NVIDIA H100 specification table" in out


def test_show_says_what_a_rule_gave(say):
    _, out, _ = say("specs", "show", "a100-sxm4-80gb", "-f", "json")
    document = json.loads(out)
    assert "median of NVIDIA HBM parts" in document["assumptions"][0]
    assert document["results"]["usable_memory_bytes"] == pytest.approx(85e9, rel=0.01)


def test_show_a_link(say):
    code, out, _ = say("specs", "show", "nvlink-4")
    assert code == 0
    assert "450 GB/s" in out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("h100", "error: 'h100' is several variants; write one of h100-nvl-94gb,"),
        ("h20O", "error: no accelerator 'h20O'; did you mean"),
    ],
)
def test_names_that_are_none(say, name, message):
    code, out, err = say("specs", "show", name)
    assert (code, out) == (1, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_check_a_good_file(say, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    code, out, _ = say("specs", "check", path)
    assert code == 0
    assert "ok" in out
    assert "1 files, 0 with problems" in out


def test_check_names_every_line(say, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        MINE.replace("1 TB/s", "1000").replace("100 TF", "1 TF").replace("kind", "sort")
    )
    code, out, _ = say("specs", "check", path, "-f", "json")
    assert code == 1
    problems = json.loads(out)["results"][0]["problems"]
    assert [p.removeprefix(str(path)).split()[0] for p in problems] == [":1:", ":4:", ":5:"]


def test_check_says_what_is_missing(say, tmp_path):
    path = tmp_path / "other.yaml"
    path.write_text(MINE.split("memory:")[0])
    code, out, _ = say("specs", "check", path, "-f", "json")
    assert code == 0
    missing = " ".join(json.loads(out)["results"][0]["missing"])
    assert "name the file mine.yaml" in missing
    assert "no sourced memory bandwidth" in missing
    assert "no sourced peak" in missing


def test_check_all_of_ours(say):
    folder = data_folders("gpu_specs")[-1]
    assert say("specs", "check", folder)[0] == 0
    assert say("specs", "check", folder / "links")[0] == 0
    code, out, _ = say("specs", "check", "-f", "json")
    n_files = len(list(folder.glob("*.yaml"))) + len(list((folder / "links").glob("*.yaml")))
    assert (code, len(json.loads(out)["results"])) == (0, n_files)


def test_check_what_is_not_there(say, tmp_path):
    assert say("specs", "check", tmp_path / "gone.yaml")[0] == 1
    code, _, err = say("specs", "check", tmp_path)
    assert code == 1
    assert "no .yaml file in" in err


def test_the_example_in_the_help_is_good(say, tmp_path):
    _, out, _ = say("specs", "check", "--help")
    lines = out.split("like this", 1)[1].split("Use it by its path")[0].splitlines()[1:]
    path = tmp_path / "my-accelerator.yaml"
    path.write_text("\n".join(line.removeprefix("    ") for line in lines))
    code, out, _ = say("specs", "check", path, "-f", "json")
    assert (code, json.loads(out)["results"][0]["missing"]) == (0, [])


def test_a_broken_file_of_the_user_hides_no_other(say, tmp_path, monkeypatch):
    (tmp_path / "broken.yaml").write_text("id: [")
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    code, out, err = say("specs", "list")
    assert code == 0
    assert "h200-sxm-141gb" in out
    assert "warning: left out: " in err


def test_output_goes_to_a_file(say, tmp_path):
    path = tmp_path / "specs.csv"
    code, out, _ = say("specs", "list", "-f", "csv", "-o", path)
    assert (code, out) == (0, "")
    assert path.read_text().startswith("id,GB,TB/s")


def test_left_out_it_is_list(say):
    assert say("specs", "-f", "json") == say("specs", "list", "-f", "json")


def test_usage(say):
    code, _, err = say("specs", "--format", "json", "list")
    assert code == 1
    assert "write options behind the word: specs list" in err
    assert say("specs", "show")[0] == 2
    assert say("specs", "list", "--format", "xml")[0] == 2
