"""Activation peaks against logs."""

import numpy as np
import pytest

from roofline.models.architecture import Architecture, GroupedQuery, LayerGroup
from roofline.models.config import load_model
from roofline.serving.activation import forward_bytes, ggml_buffer_bytes, sampler_bytes
from roofline.units import GIB, MIB
from roofline.work.kv_cache import cache_bytes
from roofline.work.weights import stored_bytes


@pytest.mark.parametrize(
    ("model", "prompt", "peak_gib"),
    [("qwen2.5-0.5b", 6144, 1.23), ("qwen2.5-0.5b", 30_720, 2.34), ("qwen2.5-1.5b", 30_720, 5.62),
     ("qwen2.5-7b", 30_720, 19.97), ("qwen2.5-32b", 30_720, 74.47)],
)  # fmt: skip
def test_prompts_in_transformers(model, prompt, peak_gib):
    """Qwen, Speed Benchmark (2024-11): peak memory, bf16, 2,048 tokens generated."""
    arch = load_model(model)
    cache = cache_bytes(arch, prompt + 2048, arch.dtype)
    peak = stored_bytes(arch) + cache + forward_bytes(arch, prompt, residuals=4)
    assert peak / GIB == pytest.approx(peak_gib, rel=0.01)


def test_a_whole_context_in_one_step():
    """vLLM issue 10517: 2.64 GiB for 29,000 tokens of Llama-3.1-8B, 0.1 of it the allocator's."""
    peak = forward_bytes(load_model("llama-3.1-8b"), 29_000)
    assert peak / GIB + 0.1 == pytest.approx(2.64, abs=0.01)


def test_256_sequences_of_the_sorting_sampler():
    """vLLM pull request 10511: 1.26 GiB for Llama-3-8B, 0.1 of it the allocator's."""
    assert sampler_bytes(256, 128_256, 37.7) / GIB + 0.1 == pytest.approx(1.26, abs=0.01)


@pytest.mark.parametrize(("vocab", "hidden", "mib"), [(50_688, 3072, 105.0), (32_000, 4096, 70.5)])
def test_llama_cpp_buffers_at_a_short_context(vocab, hidden, mib):
    """llama.cpp and llamafile logs: 105.00 MiB (llamafile pull request 552), 70.50 MiB for a 7B."""
    arch = Architecture(
        name="a", layers=(LayerGroup(30, GroupedQuery(8, 128, n_heads=32)),), source="test",
        hidden_size=hidden, vocab_size=vocab,
    )  # fmt: skip
    assert ggml_buffer_bytes(arch, 512, 512) / MIB == mib


def test_arrays_equal_scalars():
    arch, tokens = load_model("qwen3-30b-a3b"), np.array([1.0, 100.0, 8192.0])
    one_by_one = [forward_bytes(arch, float(t)) for t in tokens]
    np.testing.assert_allclose(forward_bytes(arch, tokens), one_by_one)
