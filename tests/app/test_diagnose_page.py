"""Uploads of examples/diagnosis and measurements/traces give what the library says of the files."""

from pathlib import Path

import pytest

from roofline.diagnose import diagnose
from roofline.trace.result import summarise

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "diagnosis"
TRACE = ROOT / "measurements" / "traces" / "h200-TinyLlama-1.1B_b1.json.gz"


def handed_in(opened, kind, *files, **query):
    at = opened("diagnose", **query)
    uploads = [(path.name, path.read_bytes(), "application/octet-stream") for path in files]
    many = kind not in ("baseline", "earlier")
    at.file_uploader(key=f"{kind}_file").set_value(uploads if many else uploads[0]).run()
    assert not at.exception
    return at


def words(at):
    every = [*at.markdown, *at.warning, *at.success, *at.error]
    return "\n".join(one.value for one in every).replace("\\", "")


def test_nothing_handed_in_is_said(opened):
    assert "Nothing is handed in" in opened("diagnose").info[0].value


@pytest.mark.parametrize("name", ["scaling_flattens.yaml", "fp8_no_time.yaml", "out_of_memory.txt"])
def test_symptoms(opened, name):
    at = handed_in(opened, "symptoms", EXAMPLES / name)
    found = diagnose(symptoms=[EXAMPLES / name], accelerator="h200-sxm-141gb")
    assert found.verdicts[0].statement in words(at)


def test_topology_with_a_broken_link(opened):
    name = "topology_v100_two_links_down.txt"
    at = handed_in(opened, "topology", EXAMPLES / name, accelerator="v100-sxm2-32gb")
    found = diagnose(topology=EXAMPLES / name, accelerator="v100-sxm2-32gb")
    assert found.headline in words(at)


def test_trace(opened):
    at = handed_in(opened, "trace", TRACE)
    busy = summarise(TRACE, machine=None).only.summary.busy_share
    assert f"busy {busy * 100:.1f} %" in words(at)
    assert "roofline-" not in words(at)  # the temporary folder


def test_benchmark_stands_beside_its_prediction(opened, tmp_path):
    """Fields of `vllm bench serve --save-result`, one small run."""
    file = tmp_path / "run.json"
    file.write_text(
        '{"date": "20261101-000000", "backend": "vllm", "model_id": "llama-3.1-8b", '
        '"num_prompts": 100, "max_concurrency": 8, "request_rate": 2.0, '
        '"duration": 50.0, "completed": 100, '
        '"total_input_tokens": 102400, "total_output_tokens": 12800, "request_throughput": 2.0, '
        '"output_throughput": 256.0, "total_token_throughput": 2304.0, "mean_ttft_ms": 60.0, '
        '"median_ttft_ms": 55.0, "p99_ttft_ms": 100.0, "mean_tpot_ms": 9.0, '
        '"median_tpot_ms": 9.0, "p99_tpot_ms": 12.0, "mean_itl_ms": 9.0, "median_itl_ms": 9.0, '
        '"p99_itl_ms": 12.0}'
    )
    at = handed_in(opened, "benchmark", file, engine="vllm")
    (frame,) = [one.value for one in at.dataframe if "measured" in one.value.columns]
    assert "9.00 ms" in set(frame["measured"])


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("trace", "../../../tmp/x.json", b'{"traceEvents": ['),
        ("trace", "x.json.gz", b"\x1f\x8b\x08\x00cut"),
        ("trace", "<script>alert(1)</script>.json", b"[1, 2"),
        ("benchmark", "x.json", b'{"a": 1}'),
        ("topology", "x.txt", b"no table"),
        ("symptoms", "x.yaml", b"a: &a [x]\nb: [*a, *a]"),
        ("baseline", "x.json", b"[1, 2"),
        ("symptoms", "x.yaml", b""),
    ],
)
def test_upload_that_is_wrong_is_one_line(opened, kind, name, content):
    at = opened("diagnose")
    given = (name, content, "application/octet-stream")
    many = kind not in ("baseline", "earlier")
    at.file_uploader(key=f"{kind}_file").set_value([given] if many else given).run()
    assert not at.exception
    assert len(at.error) == 1
    assert "<script" not in at.error[0].value
    assert "/tmp" not in at.error[0].value


def test_a_trace_that_unpacks_to_gigabytes_is_refused(opened, monkeypatch):
    import gzip

    from roofline.app.views import diagnose as view

    monkeypatch.setattr(view, "LARGEST_UNPACKED", 10**6)
    at = opened("diagnose")
    bomb = gzip.compress(b" " * (3 * 10**6))
    at.file_uploader(key="trace_file").set_value([("bomb.json.gz", bomb, "x/x")]).run()
    assert "more than" in at.error[0].value
