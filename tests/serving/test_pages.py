"""Page groups: the grouping rule on layer mixes, and what a request takes."""

import pytest

from roofline.dtypes import Dtype
from roofline.models.architecture import (
    LLAMA_3_8B,
    Architecture,
    GroupedQuery,
    LayerGroup,
    Recurrent,
)
from roofline.models.config import load_model
from roofline.serving.pages import (
    PageGroups,
    PageKind,
    concurrency,
    logged_tokens,
    page_groups,
)
from roofline.units import GIB
from roofline.validation.published import published_folder

HEADS = GroupedQuery(4, 128)


def arch(*groups):
    return Architecture(name="mixed", layers=groups, source="test")


def test_layers_that_are_alike_have_no_groups():
    assert page_groups(LLAMA_3_8B, Dtype.BF16) is None
    assert page_groups(arch(LayerGroup(8, HEADS, window=4096)), Dtype.BF16) is None


@pytest.mark.parametrize(
    ("full", "windowed", "layers", "groups"),
    [
        pytest.param(18, 18, 18, 2, id="gpt-oss-120b"),
        pytest.param(10, 52, 10, 7, id="gemma-3-27b"),  # 6 groups of windows, the last one padded
        pytest.param(5, 6, 6, 2, id="nearly-equal"),  # 6 < 1.25 × 5: padded to the larger
        pytest.param(1, 20, 1, 21, id="one-of-them"),
    ],
)
def test_groups_have_equally_many_layers(full, windowed, layers, groups):
    """vLLM, v1/core/kv_cache_utils.py: the fewest of a kind, unless kinds are within a quarter."""
    found = page_groups(arch(LayerGroup(full, HEADS), LayerGroup(windowed, HEADS, window=1024)),
                        Dtype.BF16)  # fmt: skip
    assert (found.group_layers, found.n_groups) == (layers, groups)


def test_a_window_stops_growing():
    groups = PageGroups(16.0, 1, (PageKind(1, 16), PageKind(1, 16, window=64)))
    # 1,600 tokens: 100 pages of full attention; 64 tokens of a window lie on up to 5 pages
    assert groups.blocks_per_request(1600) == 100 + 5
    assert groups.blocks_per_request(32) == 2 + 2
    # while a chunk of 512 is prefilled, its pages count too: (64 − 1 + 512) / 16 → 36, and one
    assert groups.blocks_per_request(1600, chunk_tokens=512) == 100 + 37


def test_the_log_of_gemma_3_4b():
    """kvcached issue 215 (vLLM 0.11, A100): 317,136 "tokens", 102.78 requests of 3,072.

    29 windows of 1,024 and 5 full layers are 6 + 1 groups of 5; 2,048 tokens a step.
    """
    heads = GroupedQuery(4, 256)
    groups = page_groups(arch(LayerGroup(29, heads, window=1024), LayerGroup(5, heads)),
                         Dtype.BF16)  # fmt: skip
    assert groups.n_groups == 7
    blocks = 317_136 // 16 * 7
    assert logged_tokens(groups, blocks) == 317_136
    assert concurrency(groups, blocks, 3072, chunk_tokens=2048) == pytest.approx(102.78, abs=0.01)


class TestLogsOfMixedModels:
    """Start-up logs of vLLM on a Jetson AGX Thor (2026-04), pools of 21.43 and 51.62 GiB."""

    @staticmethod
    def groups(folder):
        return page_groups(load_model(published_folder() / "configs" / folder), Dtype.FP8)

    def test_states_and_attention(self):
        """Qwen3.5-122B-A10B: 448 blocks, 467,712 "tokens", 11.79 requests of 131,072."""
        groups = self.groups("nvidia--Qwen3.5-122B-A10B-NVFP4")
        blocks = groups.blocks(21.43 * GIB)
        assert blocks == 448
        assert logged_tokens(groups, blocks) == 467_712
        found = concurrency(groups, blocks, 131_072, state_pages=2)
        assert found == pytest.approx(11.79, abs=0.005)

    def test_windows_and_wider_heads(self):
        """Gemma-4-26B-A4B: 451,040 "tokens"; full layers have pages of twice the tokens."""
        groups = self.groups("nvidia--Gemma-4-26B-A4B-NVFP4")
        tokens = logged_tokens(groups, groups.blocks(51.62 * GIB))
        assert tokens == pytest.approx(451_040, rel=1e-4)  # the pool has four digits


def test_state_is_one_page_however_long():
    state = Recurrent("mamba2", state_values=100_000, conv_values=0, flop_per_token=0.0)
    groups = page_groups(arch(LayerGroup(4, HEADS), LayerGroup(4, recurrent=state)), Dtype.BF16)
    # 400,000 B over 2,048 B a token are 195.3 tokens, in whole sixteens 208
    assert groups.kinds[0].page_tokens == 208
    assert groups.blocks_per_request(1) == groups.blocks_per_request(208) == 2
    assert groups.blocks_per_request(209) == 3


def test_narrower_layers_get_more_tokens_on_a_page():
    narrow = GroupedQuery(1, 128)
    groups = page_groups(arch(LayerGroup(4, HEADS), LayerGroup(4, narrow, window=64)), Dtype.BF16)
    assert sorted(kind.page_tokens for kind in groups.kinds) == [16, 64]


def test_no_pool_has_no_blocks():
    assert PageGroups(16.0, 1, (PageKind(1, 16),)).blocks(-5.0) == 0
