"""Sharding: shares, refusals with what works, and one accelerator as no split."""

import pytest

from roofline.dtypes import Dtype
from roofline.errors import InputError
from roofline.models.architecture import LLAMA_3_8B
from roofline.models.config import load_model
from roofline.timing.parallel import Parallel, fullest_stage, padded_vocabulary, shard
from roofline.work.kv_cache import bytes_per_token
from roofline.work.weights import stored_bytes


def test_one_rank_is_no_split():
    assert shard(LLAMA_3_8B, Parallel()) is LLAMA_3_8B
    assert fullest_stage(LLAMA_3_8B, 1) is LLAMA_3_8B


def test_kv_heads_are_divided_then_copied():
    """Eight KV heads: 131,072 B per token on one rank, 16,384 from eight ranks on."""
    at = {
        tp: bytes_per_token(shard(LLAMA_3_8B, Parallel(tp=tp)), Dtype.BF16) for tp in (1, 4, 8, 16)
    }
    assert at == {1: 131_072, 4: 32_768, 8: 16_384, 16: 16_384}


def test_the_latent_is_whole_on_every_rank():
    """vLLM recipes issue 762: 70,272 B per token and rank at TP8, not 8,784."""
    model = load_model("deepseek-v3")
    assert bytes_per_token(shard(model, Parallel(tp=8)), Dtype.BF16) == 70_272


def test_transformers_pool_case():
    """transformers pull request 48566: 64 layers, 8 heads of 128, TP4: 65,536 B a rank."""
    model = load_model("qwen3-32b")
    assert bytes_per_token(shard(model, Parallel(tp=4)), Dtype.BF16) == 65_536


def test_ranks_hold_the_model_together():
    whole = stored_bytes(LLAMA_3_8B)
    norms = LLAMA_3_8B.layers[0].small_parameters * 32 * 2 + 4096 * 2
    for tp in (2, 4, 8):
        rank = stored_bytes(shard(LLAMA_3_8B, Parallel(tp=tp)))
        assert rank * tp == pytest.approx(whole + (tp - 1) * norms)


@pytest.mark.parametrize(
    ("vocabulary", "tp", "padded"), [(151_552, 6, 151_680), (129_280, 24, 129_408)]
)
def test_vocabulary_padding(vocabulary, tp, padded):
    """Next multiple of lcm(64, tp), worked by hand."""
    assert padded_vocabulary(vocabulary, tp) == padded


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"tp": 3}, "tp=3 does not divide the 32 query heads"),
        ({"ep": 2, "dp": 2}, "needs experts"),
        ({"pp": 33}, "more than the 32 layers"),
    ],
)
def test_plans_that_cannot_be(plan, words):
    with pytest.raises(InputError, match=words):
        shard(LLAMA_3_8B, Parallel(**plan)) if "pp" not in plan else check(plan)


def check(plan):
    from roofline.timing.parallel import check_divisible

    check_divisible(LLAMA_3_8B, Parallel(**plan))


@pytest.mark.parametrize("degree", [0, -1, True, 1.5, 10**9])
def test_degrees_that_cannot_be(degree):
    with pytest.raises(InputError):
        Parallel(tp=degree)


def test_expert_ranks_partition_and_never_multiply():
    assert Parallel(tp=1, dp=8, ep=8).accelerators == 8
    with pytest.raises(InputError, match="does not partition"):
        Parallel(tp=2, dp=1, ep=4)


def test_pipeline_stages_hold_all_layers():
    """80 layers over 3 stages: 27, 27, 26."""
    assert fullest_stage(load_model("llama-3.1-70b"), 3).n_layers in (26, 27)
