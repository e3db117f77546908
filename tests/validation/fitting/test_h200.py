"""The H200's calibration: what was fitted, what judges, and the errors that are promised."""

import numpy as np
import pytest

from roofline import predict
from roofline.calibration.engines import engine_terms
from roofline.calibration.store import calibration_path, read_calibration
from roofline.hardware.accelerator import load_accelerator
from roofline.hardware.measurement import load_measurement
from roofline.timing.parallel import Parallel
from roofline.validation.fitting.decoder import FIT_MODELS, decoder_cases, judged_cases
from roofline.validation.fitting.machine import calibrate

SPEC = "h200-sxm-141gb"
LIMITS = {
    ("dense bf16", "decode"): (0.05, 0.12),
    ("dense bf16", "prefill"): (0.05, 0.10),
    ("dense fp8", "decode"): (0.05, 0.10),
    ("dense fp8", "prefill"): (0.05, 0.10),
    ("2 devices", "decode"): (0.05, 0.10),
    ("2 devices", "prefill"): (0.05, 0.10),
    ("experts", "decode"): (0.12, 0.20),
}
"""Mean and 90th percentile of the absolute error that each group of judged rows may have."""


@pytest.fixture(scope="module")
def cases():
    return decoder_cases(load_measurement(SPEC), load_accelerator(SPEC))


@pytest.fixture(scope="module")
def shipped():
    return read_calibration(calibration_path(SPEC))


def test_only_two_models_are_fitted(cases):
    judged = judged_cases(cases)
    names = {case.deployment.arch.name for case in judged}
    assert len(names) >= 7
    for case in judged:
        dense = case.row.tp == 1 and case.row.weights == "bf16"
        assert not (dense and case.deployment.arch.name in FIT_MODELS)


@pytest.mark.parametrize(("group", "phase"), LIMITS)
def test_judged_rows_are_met(cases, shipped, group, phase):
    engine = engine_terms("cuda-graph")
    errors = [
        abs(case.seconds(shipped.device, engine) / case.row.median_s - 1)
        for case in judged_cases(cases)
        if case.group == group and case.row.phase == phase
    ]
    mean, far = LIMITS[group, phase]
    assert len(errors) >= 10
    assert np.mean(errors) <= mean
    assert np.quantile(errors, 0.9) <= far


def test_no_bound_is_above_a_row(cases):
    assert min(case.row.median_s / case.bound_s() for case in cases) > 1.1


def test_the_shipped_file_is_what_calibrate_gives(shipped):
    fresh = calibrate(SPEC)
    old, new = shipped.device.matmul["bf16"], fresh.device.matmul["bf16"]
    assert new.bytes_per_s == pytest.approx(old.bytes_per_s, rel=1e-3)
    assert fresh.device.small.start_s == pytest.approx(shipped.device.small.start_s, rel=0.02)


def test_predict_gives_the_calibrated_numbers():
    """Qwen2.5-14B, bf16, batch 16 at 2,048 tokens: a row that no fit has seen."""
    row = next(
        row for row in load_measurement(SPEC).decoder_rows
        if (row.model, row.weights, row.tp, row.phase, row.mode) ==
        ("qwen2.5-14b", "bf16", 1, "decode", "graph")
        and (row.batch, row.context_tokens) == (16, 2048)
    )  # fmt: skip
    p = predict(
        "qwen2.5-14b", SPEC, prompt_tokens=2047, output_tokens=2, batch=16, weights="bf16",
        parallel=Parallel(), engine="cuda-graph", machine=SPEC,
    )  # fmt: skip
    assert p.decode.estimate_s.mid == pytest.approx(row.median_s, rel=0.06)
    assert any("judged on" in line for line in p.assumptions)
