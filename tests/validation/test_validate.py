"""Validation: scores worked by hand, the gate, and the command."""

import contextlib
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.cli.main import run
from roofline.errors import InputError, RooflineError, SpecError, UnknownNameError
from roofline.report.validation_plot import save_validation_figure, validation_figure
from roofline.validation.beside import beside, beside_frame
from roofline.validation.datasets import DataSet
from roofline.validation.gate import expectations, expected_path, grown, read_expectations
from roofline.validation.scores import Point, score, scores
from roofline.validation.validate import Validation, validate


def point(name, measured, mid, *, over_bound=2.0, engine="vllm", **more):
    return Point(
        id=name, dataset="serving", group="g", source="s", engine=engine, accelerator="a",
        model="m", quantity="tpot", setting="", measured=measured, bound=measured / over_bound,
        over_bound=over_bound, low=0.8 * mid, mid=mid, high=1.25 * mid, **more,
    )  # fmt: skip


POINTS = (
    point("a", 1.0, 1.1), point("b", 1.0, 0.9), point("c", 1.0, 2.0), point("d", 1.0, 1.3),
    point("e", 2.0, 2.0, over_bound=0.9, fitted=True),
)  # fmt: skip


def test_score_by_hand():
    """Errors +10, −10, +100, +30 %: median size 20 %, median +20 %; inside are the first two."""
    found = score(POINTS, {})
    assert (found.rows, found.bounded, found.violations) == (4, 5, 1)
    assert found.median_error == pytest.approx(0.2)
    assert found.bias == pytest.approx(0.2)
    assert found.coverage == 0.5
    assert found.tightest == pytest.approx(0.9)
    assert found.width == pytest.approx(1.25 / 0.8)


def test_fitted_rows_judge_no_estimate_but_are_bounded():
    [found] = scores(POINTS[4:], ("engine",))
    assert found.rows == 0
    assert math.isnan(found.median_error)
    assert found.violations == 1


def test_groups():
    points = (*POINTS, point("f", 1.0, 1.0, engine="sglang"))
    found = scores(points, ("engine",))
    assert [(each.key["engine"], each.rows) for each in found] == [("sglang", 1), ("vllm", 4)]


@pytest.fixture
def validation():
    return Validation((DataSet("serving", 7, POINTS[:4] * 3, ()),))


def test_gate_is_quiet_when_nothing_grew(validation):
    assert grown(validation, expectations(validation)) == ()


def test_gate_names_the_group_whose_error_grew(validation):
    expected = expectations(validation)
    name = "serving / vllm / tpot"
    expected["groups"][name]["median_error"] = 0.1
    assert grown(validation, expected) == (
        "serving / vllm / tpot: median error 20.0%, 10.0% expected",
    )
    expected["groups"][name] |= {"median_error": 0.2, "rows": 99}
    assert grown(validation, expected) == ("serving / vllm / tpot: 12 rows judged, 99 expected",)


def test_gate_fails_on_a_violation():
    worse = Validation((DataSet("serving", 7, POINTS, ()),))
    assert any("bound" in line for line in grown(worse, {"groups": {}, "bounded": {}}))


@pytest.mark.parametrize("text", ["", "[]", '{"schema_version": 9}', '{"schema_version": 1}',
    '{"schema_version": 1, "groups": {"a": {"rows": true}}}'])  # fmt: skip
def test_broken_expectations_are_one_clear_line(tmp_path, text):
    path = tmp_path / "expected.json"
    path.write_text(text)
    with pytest.raises(SpecError, match=r"expected\.json"):
        read_expectations(path)


@pytest.fixture(scope="module")
def everything():
    return validate()


def test_no_error_has_grown_since_it_was_committed(everything):
    """measurements/validation/expected.json, written by ``roofline validate --record``."""
    assert grown(everything, read_expectations(expected_path())) == ()


def test_no_violations_anywhere(everything):
    assert everything.violations() == ()


def test_no_decoder_row_comes_nearer_its_bound_than_1_24(everything):
    """Llama-3.1-8B, batch 16, context 32k, one H200: 21.58 ms (2026-11-29), 1.24 × its bound;
    22.87 ms, 1.31 ×, in the reference run."""
    decoder = [p for p in everything.points if p.dataset == "decoder"]
    assert min(p.over_bound for p in decoder) == pytest.approx(1.24, abs=0.01)
    closest = min(decoder, key=lambda p: p.over_bound)
    assert "batch 16" in closest.setting
    assert "32768" in closest.setting


def test_every_row_is_judged_or_left_out_with_a_reason(everything):
    for each in everything.data_sets:
        left = sum(left.rows for left in each.left if left.use == "bound")
        if each.name != "decoder":
            assert left + sum(math.isfinite(p.over_bound) for p in each.points) == each.total
    assert all(left.reason for left in everything.left)


def test_frame_and_dict_agree(everything):
    frame = everything.to_frame()
    assert len(frame) == len(everything.points)
    result = everything.to_dict()
    json.dumps(result, allow_nan=False)
    assert len(result["worst"]) == 10


def test_filters(everything):
    found = validate("engines", engine="vllm", accelerator="h100-sxm5-80gb")
    assert {p.engine for p in found.points} == {"vllm"}
    with pytest.raises(UnknownNameError, match="no engine among the rows 'vlm'; did you mean vllm"):
        validate("engines", engine="vlm")
    with pytest.raises(UnknownNameError, match="no data set 'serfing'; did you mean serving"):
        validate("serfing")
    assert validate("decoder", by=["device"]).by == ("accelerator",)
    with pytest.raises(UnknownNameError, match="no field to group by 'colour'"):
        validate("decoder", by=["colour"])


def test_figure(everything, tmp_path):
    figure = validation_figure(everything)
    drawn = sum(len(c.get_offsets()) for axes in figure.axes for c in axes.collections[1:])
    assert drawn == sum(p.judged for p in everything.points)
    save_validation_figure(everything, tmp_path / "v.png")
    assert (tmp_path / "v.png").stat().st_size > 10_000
    with pytest.raises(InputError, match="no row here has an estimate"):
        validation_figure(Validation((DataSet("serving", 0, (), ()),)))


SERVE = {
    "model_id": "meta-llama/Llama-3.1-8B", "request_rate": "inf", "max_concurrency": 32,
    "duration": 50.0, "completed": 100, "failed": 0, "total_input_tokens": 200_000,
    "total_output_tokens": 25_600, "request_throughput": 2.0, "output_throughput": 512.0,
    "total_token_throughput": 4512.0, "mean_ttft_ms": 250.0, "mean_tpot_ms": 9.0,
}  # fmt: skip


@pytest.fixture
def serve(tmp_path):
    path = tmp_path / "serve.json"
    path.write_text(json.dumps(SERVE))
    return path


def test_a_users_run_is_predicted_at_its_running_batch(serve):
    """2 requests a second × 255 steps × 9 ms = 4.59 sequences, not the 32 of the cap."""
    [found] = beside(serve, "h100-sxm5-80gb")
    assert found.batch == pytest.approx(4.59)
    by_name = {q.name: q for q in found.quantities}
    tpot = by_name["tpot_s"]
    assert tpot.bound < tpot.measured
    assert tpot.bound == pytest.approx(0.00486, rel=0.01)  # 15.0 GB + 4.59 × 279 MB at 3.35 TB/s
    assert by_name["output_tokens_per_s"].bound > 512
    assert any("4.59 sequences decode together of at most 32" in line for line in found.assumptions)
    assert len(beside_frame([found])) == 3


@settings(max_examples=60, deadline=None)
@given(
    field=st.sampled_from([name for name in SERVE if name != "model_id"]),
    value=st.floats() | st.integers() | st.text(max_size=4) | st.none(),
)
def test_no_number_in_a_file_gives_a_traceback(tmp_path_factory, field, value):
    path = tmp_path_factory.mktemp("odd") / "serve.json"
    path.write_text(json.dumps({**SERVE, field: value}))
    with contextlib.suppress(RooflineError):  # one clear line; anything else fails the test
        for found in beside(path, "h100-sxm5-80gb"):
            assert all(0 < q.bound < math.inf for q in found.quantities)


def test_a_file_without_model_asks_for_it(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({k: v for k, v in SERVE.items() if k != "model_id"}))
    with pytest.raises(Exception, match="does not state the model; give model="):
        beside(path, "h100-sxm5-80gb")
    [found] = beside(path, "h100-sxm5-80gb", model="llama-3.1-8b", engine="sglang")
    assert found.deployment.engine.name == "sglang"


def test_a_batch_latency_needs_its_lengths(tmp_path):
    path = tmp_path / "latency.json"
    path.write_text(json.dumps({"avg_latency": 5.0, "latencies": [5.0], "percentiles": {"50": 5}}))
    with pytest.raises(Exception, match="does not state the lengths"):
        beside(path, "h100-sxm5-80gb", model="llama-3.1-8b")
    [found] = beside(path, "h100-sxm5-80gb", model="llama-3.1-8b", prompt_tokens=512,
                     output_tokens=128, batch=8)  # fmt: skip
    [quantity] = found.quantities
    assert quantity.name == "e2e_s"
    assert quantity.bound == pytest.approx(0.68, rel=0.1)  # prefill 70 ms, 127 steps of 4.8 ms


def test_command_shows_scores_and_exclusions(capsys):
    assert run(["validate", "decoder", "--format", "json", "--worst", "3"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "validate"
    assert document["results"]["overall"]["violations"] == 0
    assert len(document["results"]["worst"]) == 3
    assert run(["validate", "decoder", "--format", "csv"]) == 0
    header = capsys.readouterr().out.splitlines()[0]
    assert header.startswith("dataset,engine,quantity,rows,median error")


def test_command_checks_the_gate(tmp_path, monkeypatch, capsys):
    own = tmp_path / "measurements" / "validation"
    own.mkdir(parents=True)
    written = own / "expected.json"
    assert run(["validate", "decoder", "--record", str(written)]) == 0
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    assert run(["validate", "decoder", "--check"]) == 0
    groups = json.loads(written.read_text())
    for group in groups["groups"].values():
        group["p90_error"] = 0.0
    written.write_text(json.dumps(groups))
    capsys.readouterr()
    assert run(["validate", "decoder", "--check"]) == 3
    assert "0.0% expected" in capsys.readouterr().err


def test_command_takes_benchmark_files(serve, capsys):
    assert run(["validate", str(serve)]) == 1
    assert "give --accelerator" in capsys.readouterr().err
    assert run(["validate", str(serve), "--accelerator", "h100-sxm5-80gb", "-f", "json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["results"]
    assert found["running_batch_per_replica"] == pytest.approx(4.59)
    assert run(["validate", str(serve), "serving", "--accelerator", "t4"]) == 1
    assert run(["validate", "none.json", "--accelerator", "t4"]) == 1
    assert "cannot read none.json" in capsys.readouterr().err


def test_command_validates_memory_and_training(capsys):
    assert run(["validate", "memory", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("group,rows,median error")
    assert run(["validate", "training", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("group,rows,mean error")
    assert run(["validate", "memory", "serving"]) == 1
    assert "memory is judged by itself" in capsys.readouterr().err


def test_scores_are_finite_where_rows_are(everything):
    for each in everything.scores():
        if each.rows:
            assert np.isfinite([each.median_error, each.p90_error, each.coverage]).all()


def test_no_measured_rate_exceeds_a_datasheet_roof(everything):
    """Closest: an H100 PCIe that writes at 2,016 of 2,039 GB/s (gpu-benches, 2024)."""
    peaks = [p for p in everything.points if p.dataset == "peaks"]
    assert len(peaks) > 650
    closest = min(peaks, key=lambda p: p.over_bound)
    assert (closest.accelerator, round(closest.over_bound, 3)) == ("h100-pcie-80gb", 1.011)


def test_a_recorded_machine_by_the_beginning_of_its_name():
    found = validate("h200")
    assert {p.dataset for p in found.points} == {"decoder"}
    assert {p.accelerator for p in found.points} == {"h200-sxm-141gb"}
