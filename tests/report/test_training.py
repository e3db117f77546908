"""Figures of training show the result's own numbers."""

import pytest

from roofline.api.train import train
from roofline.calibration.typical import typical_terms
from roofline.errors import InputError
from roofline.hardware.accelerator import load_accelerator
from roofline.models.architecture import LLAMA_3_8B
from roofline.report.training import save_training_figure, scaling_figure, training_figure
from roofline.training.plan import TrainingPlan
from roofline.training.scaling import scaling_curve

RESULT = train(LLAMA_3_8B, "h100-sxm5-80gb", dp=8, zero_stage=3, recompute=True, micro_batch=2)


def test_the_bars_add_up_to_the_moments_and_the_phases_to_the_step():
    memory, timeline = training_figure(RESULT).axes
    ends = {}
    for bar in memory.patches:
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends.get(row, 0), bar.get_x() + bar.get_width())
    totals = [parts.total / 2**30 for _, parts in RESULT.memory.moments]
    assert [ends[row] for row in range(len(totals))] == pytest.approx(totals)
    last = max(bar.get_x() + bar.get_width() for bar in timeline.patches)
    assert last == pytest.approx(RESULT.step.parts.total)


def test_the_scaling_figure_has_a_point_for_each_size():
    a100 = load_accelerator("a100-sxm4-80gb")
    points = scaling_curve(
        LLAMA_3_8B, TrainingPlan(recompute="full"), a100, typical_terms(a100), (8, 16, 32)
    )
    (axes,) = scaling_figure(points).axes
    estimate, perfect = axes.lines
    assert list(estimate.get_xdata()) == list(perfect.get_xdata()) == [8, 16, 32]
    assert all(got <= best * (1 + 1e-9) for got, best in zip(
        estimate.get_ydata(), perfect.get_ydata(), strict=True
    ))  # fmt: skip
    with pytest.raises(InputError, match="at least one point"):
        scaling_figure([])


def test_only_known_formats_are_written(tmp_path):
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        save_training_figure(RESULT, tmp_path / "figure.exe")
    with pytest.raises(InputError, match="cannot write"):
        save_training_figure(RESULT, tmp_path / "none" / "figure.png")
    save_training_figure(RESULT, tmp_path / "figure.svg")
    assert list(tmp_path.iterdir()) == [tmp_path / "figure.svg"]
