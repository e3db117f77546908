"""Estimates of published rows: the fit's own route and the deployment's must say the same."""

import numpy as np
import pytest

from roofline.calibration.engines import engine_fit, engine_terms
from roofline.validation.estimates import estimate_rows, held_out_deployment
from roofline.validation.exclusions import judged_rows
from roofline.validation.fitting.engines import held_out
from roofline.validation.fitting.published import row_parts

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "gpt-fast", "transformers")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_fit_and_the_deployment_agree(engine):
    """Two routes to one number: parts of steps with terms on them, and predict's own path."""
    rows = judged_rows(engine=engine)
    fit = engine_fit(engine)
    parts, _ = row_parts(rows, engine)
    fitted = {p.row: held_out(p, engine_terms(engine), fit.folds).estimate_s for p in parts}
    found = {e.row: e for e in estimate_rows(rows, deployment_of=held_out_deployment)}
    shared = [row for row in fitted if not found[row].refused]
    assert len(shared) >= 0.95 * len(fitted)
    ratios = np.array([found[row].mid / fitted[row] for row in shared])
    assert np.median(ratios) == pytest.approx(1, abs=1e-6)
    assert np.percentile(np.abs(ratios - 1), 95) < 0.01


def test_rows_together_equal_rows_alone():
    rows = judged_rows()[::97]
    together = estimate_rows(rows)
    alone = [estimate_rows([row])[0] for row in rows]
    np.testing.assert_allclose(
        [e.mid for e in together], [e.mid for e in alone], rtol=1e-12, equal_nan=True
    )


def test_an_estimate_is_never_below_the_bound():
    for each in estimate_rows(judged_rows(engine="vllm")):
        assert each.refused or 0 < each.low <= each.mid <= each.high


def test_a_batch_that_memory_does_not_hold_is_refused():
    """Argonne's A100 40 GB: Llama-3-8B at batch 64 with 4,096 tokens each needs 50 GB."""
    refused = [e for e in estimate_rows(judged_rows(quantity="e2e")) if "in waves" in e.refused]
    assert any(e.row.accelerator == "a100-sxm4-40gb" and e.row.batch == 64 for e in refused)
