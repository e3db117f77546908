"""Inverses of the memory budget: they invert it exactly, or say None or 0."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.dtypes import find_dtype
from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator, Memory, load_accelerator
from roofline.models.architecture import (
    LLAMA_3_8B,
    Architecture,
    GroupedQuery,
    LayerGroup,
    Recurrent,
)
from roofline.models.config import load_model
from roofline.serving.alternatives import formats_that_fit, models_that_fit
from roofline.serving.budget import budget
from roofline.serving.engines import ENGINE_NAMES, Engine
from roofline.serving.fit import fit
from roofline.serving.inverse import (
    fewest_accelerators,
    max_batch,
    max_context_tokens,
    reported_concurrency,
)
from roofline.serving.placement import Placement
from roofline.timing.parallel import Parallel
from roofline.units import GIB

T4, H100, H200, L40S = (
    load_accelerator(name) for name in ("t4", "h100-sxm5-80gb", "h200-sxm-141gb", "l40s")
)
MODELS = ["llama-3.1-8b", "gpt-oss-20b", "gemma-2-9b", "qwen3-30b-a3b"]


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    engine=st.sampled_from(ENGINE_NAMES),
    card=st.sampled_from([H100, H200, L40S]),
    tokens=st.integers(1, 100_000),
)
def test_the_largest_batch_fits_and_one_more_does_not(model, engine, card, tokens):
    placement = Placement(load_model(model), card, engine=Engine(engine))
    most = max_batch(placement, tokens)
    assert most is not None
    assert most == 0 or budget(placement, most, tokens).fits
    assert not budget(placement, most + 1, tokens).fits


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    engine=st.sampled_from(ENGINE_NAMES),
    card=st.sampled_from([H100, H200, L40S]),
    batch=st.integers(1, 64),
)
def test_the_longest_context_fits_and_one_more_token_does_not(model, engine, card, batch):
    placement = Placement(load_model(model), card, engine=Engine(engine))
    longest = max_context_tokens(placement, batch)
    assert longest is not None
    assert longest == 0 or budget(placement, batch, longest).fits
    assert not budget(placement, batch, longest + 1).fits


def test_windows_are_inverted_not_divided():
    """A pool of one GiB, 18 full and 18 windowed layers of 2,048 B a token each.

    The windows hold 18 × 2,048 × 128 B, the rest grows by 36,864 B a token:
    (2³⁰ − 4,718,592) / 36,864 = 28,999.1; dividing by the first token's 73,728 B gives 14,563.
    """
    heads = GroupedQuery(8, 64)
    arch = Architecture(
        name="mixed",
        layers=(LayerGroup(18, heads, window=128), LayerGroup(18, heads)),
        source="test",
    )
    card = Accelerator(id="gib", name="gib", vendor="X", kind="gpu",
                       memory=Memory(usable_bytes=GIB, source=("test card, one GiB",)))  # fmt: skip
    assert max_context_tokens(Placement(arch, card)) == 28_999


def test_a_fixed_state_is_not_limited_by_context():
    state = Recurrent("mamba2", state_values=1_000_000, conv_values=0, flop_per_token=0.0)
    arch = Architecture(name="states", layers=(LayerGroup(10, recurrent=state),), source="test")
    card = Accelerator(id="gib", name="gib", vendor="X", kind="gpu",
                       memory=Memory(usable_bytes=GIB, source=("test card, one GiB",)))  # fmt: skip
    placement = Placement(arch, card)
    assert max_context_tokens(placement) is None
    assert max_batch(placement, 10**9) == 26  # 2³⁰ / 40 MB of fp32 state


def test_nothing_fits_is_zero():
    placement = Placement(load_model("llama-3.1-70b"), T4)
    assert max_batch(placement, 1) == 0
    assert max_context_tokens(placement) == 0


class TestFewestAccelerators:
    def test_a_70b_in_16_bit(self):
        """141 GB: two H100 (158 GiB shown), one H200 with 139.8 GiB."""
        placement = Placement(load_model("llama-3.1-70b"), H100)
        assert fewest_accelerators(placement, 1, 2048).parallel == Parallel(tp=2)
        assert (
            fewest_accelerators(replace(placement, accelerator=H200), 1, 2048).parallel
            == Parallel()
        )

    def test_every_smaller_plan_misses(self):
        """Not monotone in tp: degrees that do not divide are passed over, none is skipped."""
        placement = Placement(load_model("qwen2.5-72b"), L40S, engine=Engine("vllm"))
        found = fewest_accelerators(placement, 1, 8192)
        assert found.memory.fits
        for tp in range(1, found.parallel.accelerators):
            try:
                memory = budget(replace(placement, parallel=Parallel(tp=tp)), 1, 8192)
            except InputError:
                continue
            assert not memory.fits

    def test_copied_kv_heads_do_not_help(self):
        """4 KV heads: from TP4 on a rank's cache is one head, more ranks hold it again."""
        arch = load_model("qwen3-30b-a3b")
        held = [
            Placement(arch, H100, Parallel(tp=tp)).sequence_bytes(10_000) for tp in (1, 2, 4, 8)
        ]
        assert held[0] == 2 * held[1] == 4 * held[2] == 4 * held[3]

    def test_none_is_found(self):
        placement = Placement(load_model("deepseek-v3"), T4)
        assert fewest_accelerators(placement, 1, 1000, most=8) is None


class TestConcurrency:
    def test_a_share_of_a_request_counts(self):
        """vLLM's log for Llama-3.1-70B W8A8: 22,096 tokens, 10.79 requests of 2,048."""
        arch = Architecture(name="a", layers=(LayerGroup(80, GroupedQuery(8, 128)),), source="test")
        card = Accelerator(
            id="pool", name="pool", vendor="X", kind="gpu",
            memory=Memory(usable_bytes=22_096 * 327_680, source=("test card, a pool",)),
        )  # fmt: skip
        assert reported_concurrency(Placement(arch, card), 2048) == pytest.approx(10.79, abs=0.005)

    def test_more_than_its_floor_never_fits(self):
        placement = Placement(load_model("llama-3.1-8b"), H100, engine=Engine("vllm"))
        assert int(reported_concurrency(placement, 8192)) == max_batch(placement, 8192)

    def test_mixed_layers_count_the_pages_of_a_step(self):
        """A window's pages are freed after the step: start-up counts a whole step's."""
        placement = Placement(load_model("gemma-2-9b"), H100, engine=Engine("vllm"))
        assert reported_concurrency(placement, 8192) <= max_batch(placement, 8192)


class TestAlternatives:
    def test_formats_for_a_70b_on_one_h100(self):
        placement = Placement(load_model("llama-3.1-70b"), H100, engine=Engine("vllm"))
        names = [entry.weights.name for entry in formats_that_fit(placement, 1, 4096)]
        assert "int4" in names
        assert all(not name.startswith("q") for name in names)  # GGUF is llama.cpp's

    def test_gguf_under_llama_cpp(self):
        placement = Placement(load_model("llama-3.1-70b"), H100, engine=Engine("llama.cpp"))
        found = formats_that_fit(placement, 1, 4096)
        assert found[0].weights == find_dtype("q8_0")
        assert found[0].max_context_tokens >= 4096

    def test_models(self):
        arches = [load_model(name) for name in ("llama-3.1-70b", "llama-3.1-8b", "tinyllama-1.1b")]
        found = models_that_fit(Placement(arches[0], L40S), arches, 1, 4096)
        assert [arch.name for arch in found] == ["llama-3.1-8b", "tinyllama-1.1b"]


def test_fit_says_why_not():
    rows = fit(Placement(load_model("llama-3.1-70b"), T4), [T4, H100, H200], context_tokens=2048)
    assert [row.fits for row in rows] == [False, False, True]
    assert rows[1].reason == "weights 131 GiB > 79.2 GiB"
    assert rows[2].reason == ""
    crowded = fit(Placement(LLAMA_3_8B, H100, engine=Engine("vllm")), [H100], batch=99,
                  context_tokens=8192)  # fmt: skip
    assert crowded[0].reason == "cache 99.0 GiB > pool 54.0 GiB"
    assert crowded[0].max_batch == 54


def test_a_spec_without_memory_is_listed_with_its_reason():
    blank = Accelerator(id="blank", name="blank", vendor="X", kind="gpu")
    (row,) = fit(Placement(LLAMA_3_8B, T4), [blank])
    assert row.memory is None
    assert not row.fits
    assert "memory" in row.reason
