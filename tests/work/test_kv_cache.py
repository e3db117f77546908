"""KV cache against published sizes and limits worked by hand."""

import numpy as np
import pytest

from roofline.dtypes import Dtype
from roofline.models.architecture import (
    Architecture,
    GroupedQuery,
    Indexer,
    Latent,
    LayerGroup,
    Recurrent,
)
from roofline.work.kv_cache import (
    bytes_per_token,
    cache_bytes,
    causal_pairs,
    entries_read,
    marginal_bytes_per_token,
    state_bytes,
)


def arch(n_layers, attention, **group):
    layers = LayerGroup(n_layers=n_layers, attention=attention, **group)
    return Architecture(name="test", layers=(layers,), source="test")


@pytest.mark.parametrize(
    ("n_layers", "attention", "published"),
    [
        pytest.param(61, Latent(kv_rank=512, rope_dim=64), 70_272, id="DeepSeek-V3"),
        pytest.param(80, GroupedQuery(n_kv_heads=8, head_dim=128), 327_680, id="Qwen2.5-72B"),
        pytest.param(126, GroupedQuery(n_kv_heads=8, head_dim=128), 516_096, id="Llama-3.1-405B"),
    ],
)
def test_bytes_per_token_as_published(n_layers, attention, published):
    """Zhao et al. 2025, arXiv:2505.09343, table 1 (bf16; 70.272 KB there, KB = 1000 bytes)."""
    assert bytes_per_token(arch(n_layers, attention), Dtype.BF16) == published


def test_array_equals_scalars():
    model, tokens = arch(2, GroupedQuery(n_kv_heads=1, head_dim=4)), np.array([[0, 1], [7, 300]])
    one_by_one = np.vectorize(lambda t: cache_bytes(model, t, Dtype.FP8, page_tokens=16))(tokens)
    np.testing.assert_array_equal(cache_bytes(model, tokens, Dtype.FP8, page_tokens=16), one_by_one)


def test_window_caps_the_cache():
    model = arch(1, GroupedQuery(n_kv_heads=1, head_dim=1), window=128)
    assert cache_bytes(model, 10_000, Dtype.FP8) == cache_bytes(model, 128, Dtype.FP8) == 256


def test_negative_tokens_are_refused():
    with pytest.raises(ValueError, match=r"tokens >= 0 .* got -1"):
        cache_bytes(arch(1, Latent(kv_rank=1, rope_dim=1)), -1, Dtype.BF16)


def test_gpt_oss_first_and_later_tokens():
    """gpt-oss-120b, 18 sliding and 18 full layers: 73,728 B for a first token, then 36,864.

    vLLM's log shows 78,384 tokens for 5.38 GiB by the first figure; by hand 2·8·64·2 B a layer.
    """
    attention = GroupedQuery(n_kv_heads=8, head_dim=64)
    model = Architecture(
        name="t",
        source="t",
        layers=(LayerGroup(18, attention, window=128), LayerGroup(18, attention)),
    )
    assert bytes_per_token(model, Dtype.BF16) == 73_728
    assert marginal_bytes_per_token(model, Dtype.BF16) == 36_864
    far = cache_bytes(model, 5001, Dtype.BF16) - cache_bytes(model, 5000, Dtype.BF16)
    assert far == 36_864


def test_indexer_keys_are_cached():
    """SGLang pull request 11309: 656 B packed latent + 132 B indexer key, × 61 = 48,068 B."""
    packed = Dtype("packed", 656 * 8 / 576)
    model = arch(61, Latent(kv_rank=512, rope_dim=64), indexer=Indexer(64, 128, 2048))
    assert bytes_per_token(model, packed) == pytest.approx(48_068)
    assert cache_bytes(model, 1000, packed) == pytest.approx(48_068_000)


def test_layers_that_share_a_cache_hold_none():
    model = arch(4, GroupedQuery(n_kv_heads=1, head_dim=8), shares_kv=True)
    assert bytes_per_token(model, Dtype.BF16) == cache_bytes(model, 99, Dtype.BF16) == 0


def test_state_does_not_grow():
    model = arch(3, None, recurrent=Recurrent("mamba2", 100, 10, 0.0))
    assert state_bytes(model) == 3 * (100 * 4 + 10 * 2)  # fp32 state, 16-bit history
    assert cache_bytes(model, 10_000, Dtype.BF16) == 0


def brute_pairs(new, cached, sees):
    return sum(sees(position) for position in range(cached + 1, cached + new + 1))


@pytest.mark.parametrize(("new", "cached"), [(1, 0), (7, 0), (5, 9), (40, 3)])
@pytest.mark.parametrize(
    ("group", "sees"),
    [
        ({}, lambda i: i),
        ({"window": 6}, lambda i: min(i, 6)),
        ({"window": 4, "chunked": True}, lambda i: (i - 1) % 4 + 1),
        ({"indexer": Indexer(1, 1, 5)}, lambda i: min(i, 5)),
        ({"window": 3, "compression": 4}, lambda i: min(i, 3) + i // 4),
        (
            {"window": 3, "compression": 4, "indexer": Indexer(1, 1, 2)},
            lambda i: min(i, 3) + min(i // 4, 2),
        ),
    ],
)
def test_pairs_equal_a_count_token_by_token(new, cached, group, sees):
    layer = LayerGroup(1, GroupedQuery(n_kv_heads=1, head_dim=1), **group)
    assert float(causal_pairs(layer, new, cached)) == brute_pairs(new, cached, sees)
    assert float(entries_read(layer, cached + new)) == sees(cached + new)


def test_chunks_add_up_to_the_whole():
    layer = LayerGroup(1, GroupedQuery(n_kv_heads=1, head_dim=1), window=100)
    parts = causal_pairs(layer, 300.0) + causal_pairs(layer, 212.0, 300.0)
    assert parts == causal_pairs(layer, 512.0)
