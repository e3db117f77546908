"""The chart is tested by its rows; the page by the numbers that it writes."""

import pytest

from roofline.api.over_batch import over_batch
from roofline.app.charts import roofline_chart
from roofline.app.scenario import predicted, scenario_of
from roofline.hardware.measurement import load_measurement
from roofline.report.roofline_rows import (
    batch_rows,
    measured_roofs,
    ridge_rows,
    roof_rows,
    span_flop_per_byte,
    step_rows,
)


def test_page_shows_ridges_and_turning_points(opened):
    """H200 datasheet: 989.4 TFLOP/s over 4.8 TB/s = 206 FLOP/B."""
    at = opened("roofline", batch="8")
    shown = {metric.label: metric.value for metric in at.metric}
    assert shown["Ridge · bound"] == "206"
    assert 150 < float(shown["Ridge · measured"]) < 206
    p = predicted(scenario_of({"batch": 8}))
    assert float(shown["Decode, FLOP/B"]) == pytest.approx(
        p.decode.intensity_flop_per_byte, rel=0.005
    )
    prompt = p.turning_points.prefill_tokens
    assert any(f"**{prompt}** prompt tokens" in one.value for one in at.markdown)


def test_decode_that_turns_names_its_batch(opened):
    at = opened("roofline", prompt_tokens="16", output_tokens="16", batch="1")
    batch = predicted(
        scenario_of({"prompt_tokens": 16, "output_tokens": 16, "batch": 1})
    ).turning_points.decode_batch
    assert batch is not None
    assert any(f"at batch **{batch:,}**" in one.value for one in at.markdown)


def test_rows_lie_on_and_below_their_roof():
    p = predicted(scenario_of({"batch": 8}))
    span = span_flop_per_byte(p)
    roofs = p.deployment.roofs
    rows = roof_rows(roofs, "bf16", span, "bound")
    assert max(row["flop_per_s"] for row in rows if row["used"]) == roofs.flop_per_s["bf16"]
    for row in step_rows(p):
        roof = roofs.attainable_flop_per_s(row["intensity_flop_per_byte"], "bf16")
        assert row["flop_per_s"] <= roof * (1 + 1e-9)


def test_sweep_says_what_fits_and_meets_the_prediction():
    p = predicted(scenario_of({"batch": 8}))
    sweep = over_batch(p, [8, p.max_batch, p.max_batch + 1])
    assert [point.fits for point in sweep] == [True, True, False]
    assert sweep[0].decode.bound_s == p.decode.bound_s
    rows = batch_rows(sweep, "bound")
    assert [row["fits"] for row in rows] == ["yes"] * 4 + ["no"] * 2


def test_measured_roofs_lie_below_the_datasheet():
    """measurements/h200-sxm-141gb, recorded in November 2026."""
    reached = measured_roofs(load_measurement("h200-sxm-141gb"))
    p = predicted(scenario_of({}))
    assert reached.bytes_per_s < p.deployment.roofs.bytes_per_s
    assert reached.flop_per_s["bf16"] < p.deployment.roofs.flop_per_s["bf16"]


def test_chart_ends_past_the_highest_roof():
    p = predicted(scenario_of({}))
    span = span_flop_per_byte(p)
    rows = roof_rows(p.deployment.roofs, "bf16", span, "bound")
    ridges = ridge_rows(p.deployment.roofs, "bf16", "bound")
    chart = roofline_chart(rows, ridges, step_rows(p), []).to_dict()
    domain = chart["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert domain[1] >= 2 * p.deployment.roofs.flop_per_s["fp8"]
