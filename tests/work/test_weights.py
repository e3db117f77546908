"""Weights: published sizes, experts by count and by hand."""

import itertools

import numpy as np
import pytest

from roofline.dtypes import Dtype
from roofline.models.architecture import LLAMA_3_8B, Experts
from roofline.models.config import load_model
from roofline.work.weights import distinct_experts, least_experts, stored_bytes


def test_a_formats_name_leaves_embeddings_alone():
    """Llama-3-8B: 2 × 525,336,576 values of embedding and head, 266,240 of norms stay 16 bit."""
    blocks = 8_030_261_248 - 2 * 525_336_576 - 266_240
    expected = blocks + 2 * (2 * 525_336_576 + 266_240)
    assert stored_bytes(LLAMA_3_8B, Dtype.FP8) == expected


def test_own_format_asked_for_by_name_changes_nothing():
    model = load_model("gpt-oss-120b")
    assert stored_bytes(model, Dtype.MXFP4) == stored_bytes(model) == 65_248_815_744
    # the checkpoint's size to the byte: kaito issue 2308, hf-mem issue 60


@pytest.mark.parametrize(
    ("held", "active", "tokens", "expected"),
    [(128, 8, 16, 82.42), (8, 2, 3, 4.625), (8, 2, 1, 2.0)],
)
def test_distinct_experts_as_worked_by_hand(held, active, tokens, expected):
    """vLLM pull request 54228: 128(1 − (15/16)^16) = 82.4; 8(1 − (3/4)^3) = 4.625."""
    found = distinct_experts(Experts(held, active, ()), tokens)
    assert found == pytest.approx(expected, rel=1e-3)


def test_distinct_experts_equal_an_enumeration():
    """Three tokens that each pick 2 of 4 experts: every one of the 6³ outcomes, counted."""
    picks = list(itertools.combinations(range(4), 2))
    outcomes = [len(set().union(*chosen)) for chosen in itertools.product(picks, repeat=3)]
    assert distinct_experts(Experts(4, 2, ()), 3) == pytest.approx(np.mean(outcomes))


def test_expert_ranks_see_their_share():
    """On one of eight ranks the chance stays k/128: 10.3 of 16, not 16."""
    rank = Experts(16, 8, (), n_routed=128)
    assert distinct_experts(rank, 16) == pytest.approx(10.3, abs=0.01)
    assert least_experts(rank, 16) == 1.0  # 8 picks over 8 ranks


def test_the_bound_never_counts_more_than_the_estimate():
    tokens = np.arange(1, 500)
    for experts in (Experts(128, 8, ()), Experts(8, 2, ()), Experts(512, 12, (), n_identity=256)):
        assert np.all(least_experts(experts, tokens) <= distinct_experts(experts, tokens) + 1e-9)
