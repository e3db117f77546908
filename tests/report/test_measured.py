"""A measured record for readers: its table, its figures' data, the batch off the slope.

Expected rates: NVIDIA's H200 datasheet (4.8 TB/s, 989 TFLOP/s dense bf16) and the record of
2026-11-29; ridge points by hand, P / B.
"""

import pytest

from roofline.errors import InputError, MissingDataError
from roofline.hardware.batch_curve import batch_curve
from roofline.hardware.measurement import DecoderRow, load_measurement
from roofline.report.measured import measured_pair, record_curves, roof_lines
from roofline.report.measured_figures import (
    bandwidth_figure,
    batch_figure,
    figures,
    matmul_figure,
    roofline_record_figure,
    save_figures,
)


@pytest.fixture(scope="module")
def h200():
    return load_measurement("h200-sxm-141gb")


def test_nominal_measured_percent(h200):
    lines = {line.what: line for line in roof_lines(h200)}
    assert lines["memory, read"].nominal == 4.8e12
    assert lines["bf16 matmul, burst"].nominal == pytest.approx(989.4e12)
    assert lines["memory, write"].share == pytest.approx(4.69 / 4.8, abs=0.02)
    # what no kernel reaches is said
    assert "kernels never" in lines["memory, copy engine"].why
    assert lines["memory, copy engine"].measured == pytest.approx(2.77e12, rel=0.05)
    assert "hold the clock" in lines["bf16 matmul, sustained"].why
    assert all(line.why for line in lines.values())


def test_both_ridges_are_drawn(h200):
    """Datasheet: 989.4 TFLOP/s over 4.8 TB/s = 206 FLOP per byte."""
    figure = roofline_record_figure(h200)
    text = [item.get_text() for item in figure.axes[0].texts]
    assert any("datasheet: ridge 206" in word for word in text)
    peak, sustained, memory = measured_pair(h200, "bf16")
    assert any(f"ridge {peak / memory:.0f}" in word for word in text)
    assert sustained < peak < 989.4e12


def test_figures_hold_the_records_rows(h200):
    lines = {line.get_label(): line for line in bandwidth_figure(h200).axes[0].lines}
    assert {"copy", "read", "write", "add", "triad", "copy engine"} <= set(lines)
    assert max(lines["write"].get_ydata()) == pytest.approx(4.69, rel=0.02)
    marks = [line.get_xdata()[0] for line in bandwidth_figure(h200).axes[0].lines]
    assert h200.device.l2_bytes in marks  # the cache's step
    assert {"bf16", "fp8", "bf16 sustained"} <= {
        line.get_label() for line in matmul_figure(h200).axes[0].lines
    }


def test_the_batch_off_the_slope(h200):
    """Experts: Mixtral reads more experts with each sequence, so batch 4 has left the slope."""
    curves = {
        (curve.model, curve.mode, curve.context_tokens, curve.tp): curve
        for curve in record_curves(h200, h200)
        if curve.weights == "bf16"
    }
    mixtral = curves["mixtral-8x7b", "graph", 256, 1]
    assert mixtral.leaves_at == 4
    assert mixtral.why.startswith("bytes")
    dense = curves["qwen2.5-14b", "graph", 256, 1]
    assert dense.leaves_at == 128
    assert [point.batch for point in dense.points] == [1, 2, 4, 8, 16, 32, 64, 128]
    text = " ".join(item.get_text() for item in batch_figure(h200, h200, dense).axes[0].texts)
    assert "leaves the slope at batch 128" in text


def row(batch, seconds, **more):
    base = {
        "phase": "decode", "model": "m", "weights": "bf16", "mode": "graph", "context_tokens": 8,
        "least_flop": 1e9 * batch, "least_bytes": 1e9,
    }  # fmt: skip
    return DecoderRow(batch=batch, median_s=seconds, **{**base, **more})


def test_curves_that_stay_and_curves_that_cannot_be():
    roofs = {"flop_per_s": 1e12, "bytes_per_s": 1e10}
    assert batch_curve([row(1, 1.0), row(8, 1.2)], **roofs).leaves_at is None
    with pytest.raises(MissingDataError, match="two batches"):
        batch_curve([row(1, 1.0)], **roofs)
    with pytest.raises(InputError, match="one model"):
        batch_curve([row(1, 1.0), row(8, 1.0, model="other")], **roofs)


def test_kernels_are_named_when_neither_roof_explains():
    curve = batch_curve([row(1, 1.0), row(8, 3.0)], flop_per_s=1e12, bytes_per_s=1e10)
    assert curve.leaves_at == 8
    assert curve.why.startswith("kernels")


def test_saved_figures(tmp_path, h200):
    small = h200.model_copy(update={"decoder_rows": ()})
    saved = save_figures(small, tmp_path / "figures")
    assert sorted(path.name for path in saved) == ["bandwidth.png", "matmul.png", "roofline.png"]
    assert all(path.stat().st_size > 10_000 for path in saved)
    with pytest.raises(InputError, match="cannot make"):
        save_figures(small, saved[0] / "x")


def test_an_empty_record_draws_nothing(h200):
    empty = h200.model_copy(update={"copy_rows": (), "matmul_rows": ()})
    assert figures(empty) == {}
    with pytest.raises(MissingDataError, match="copy rows"):
        bandwidth_figure(empty)
