"""No bound above a measurement, over every published and recorded row."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest

from roofline.validation.bounds import bound_rows
from roofline.validation.estimates import row_deployment
from roofline.validation.exclusions import BOUND, judged_rows
from roofline.validation.models import row_model
from roofline.validation.rows import all_rows, engine_rows, serving_rows
from roofline.validation.storage import row_architecture, stored_as
from roofline.work.operators import Step


@pytest.fixture(scope="module")
def bounded():
    return bound_rows(judged_rows(use=BOUND))


def test_no_bound_is_above_a_measurement(bounded):
    above = [each for each in bounded if each.ratio < 1]
    assert [(each.row.id, each.ratio) for each in above] == []


def test_most_judged_rows_are_bounded(bounded):
    counts = Counter((each.row.dataset, bool(each.refused)) for each in bounded)
    assert counts["serving", False] >= 3400
    assert counts["engines", False] >= 3700


def test_bounds_are_tight_somewhere(bounded):
    """A bound of zero would break nothing; the closest rows are near theirs."""
    ratios = np.array([each.ratio for each in bounded if math.isfinite(each.ratio)])
    assert ratios.min() < 1.2
    assert np.percentile(ratios, 10) < 2.2


def test_every_row_without_a_bound_says_why(bounded):
    for each in bounded:
        assert math.isfinite(each.bound) != bool(each.refused)


def test_rows_together_equal_rows_alone():
    rows = judged_rows(use=BOUND, rows=(*serving_rows()[::211], *engine_rows()[::211]))
    together = bound_rows(rows)
    alone = [bound_rows([row])[0] for row in rows]
    np.testing.assert_allclose(
        [each.bound for each in together], [each.bound for each in alone], rtol=1e-12
    )


def test_reading_a_number_of_requests_as_a_batch_breaks_the_bound():
    """The conventions matter: 16 rows break when a run's requests are taken for its batch."""
    rows = [row for row in judged_rows(use=BOUND) if row.load == "all_at_once"]
    wrong = [dataclasses.replace(row, running_batch=row.batch) for row in rows]
    assert sum(each.ratio < 1 for each in bound_rows(wrong)) > 0
    assert all(not each.ratio < 1 for each in bound_rows(rows))


def test_ignoring_pipeline_stages_breaks_the_bound():
    rows = [row for row in judged_rows(use=BOUND) if row.pp > 1 and row.n_gpu]
    wrong = [dataclasses.replace(row, n_gpu=row.n_gpu // row.pp, pp=1) for row in rows]
    assert sum(each.ratio < 1 for each in bound_rows(wrong)) > 0


def test_gguf_files_store_lm_head_small_too():
    """Llama-3-8B, q4_k_m at 72.79 tokens per second: with a 16-bit head it beats 448 GB/s cards."""
    row = next(row for row in all_rows() if row.id == "s00001")
    arch = row_architecture(row)
    assert arch.lm_head.dtype.name == "q6_k"
    assert {linear.dtype.name for linear in arch.layers[0].linears} == {"q4_k"}


def test_gguf_gpt_oss_keeps_only_experts_in_mxfp4():
    row = next(row for row in all_rows() if row.group == "llamacpp_dgx_spark")
    arch = row_architecture(row)
    group = arch.layers[0]
    kept = {linear.dtype.name for linear in group.linears if linear.quantisable}
    assert kept == {"q8_0"}
    assert {linear.dtype.name for linear in group.experts.linears} == {"mxfp4"}


def test_own_format_is_left_alone():
    assert stored_as("llama-3-8b", None, None) == stored_as("llama-3-8b", None, None)
    assert stored_as("llama-3-8b", None, None).lm_head.dtype is None


def test_an_unknown_model_is_refused_with_its_name():
    row = dataclasses.replace(serving_rows()[0], model="no-such-model", accelerator="rtx-3090")
    [each] = bound_rows([row])
    assert "no model 'no-such-model'" in each.refused
    assert math.isnan(each.ratio)


def test_models_of_rows_have_their_published_sizes():
    """Parameters as the rows' sources state them (billions), text model and head."""
    stated = {"gpt-j-6b": 6.050882784, "qwen2-72b": 72.706203648,
              "minimax-m2.5": 228.69, "nemotron-3-super-120b-a12b": 120.67,
              "qwen3.5-122b-a10b": 122.11, "glm-4.7-flash": 29.94}  # fmt: skip
    for name, billions in stated.items():
        assert row_model(name).parameters / 1e9 == pytest.approx(billions, rel=2e-4)


def test_why_a_bound_counts_the_fewest_experts():
    """gpt-oss-120b on a GB10, 32 alike sequences (llama-batched-bench, b6918): 102 ms a step.

    Even routing would read 126 of 128 experts a layer, 151 ms; a bound may count 4.
    """
    row = next(row for row in serving_rows() if row.id == "s08908")
    deployment = row_deployment(row)
    step = Step(row.running_batch, row.decode_context_tokens + 1)
    assert float(deployment.bound(step).with_expected_experts_s) > 1.3 * row.value
    assert bound_rows([row])[0].ratio > 1
