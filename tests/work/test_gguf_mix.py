"""GGUF mixes against the sizes of published files."""

import pytest

from roofline.dtypes import find_dtype
from roofline.errors import UnknownNameError, UnsupportedError
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.units import GIB
from roofline.work.gguf_mix import mix_bytes, mix_format, mix_names


@pytest.mark.parametrize(
    ("mix", "gib"),
    [("q8_0", 69.83), ("q6_k", 53.91), ("q5_k_m", 46.52), ("q5_k_s", 45.30), ("q4_k_m", 39.59),
     ("q4_k_s", 37.58), ("iq4_xs", 35.30), ("q3_k_l", 34.59), ("q3_k_m", 31.91), ("q3_k_s", 28.79)],
)  # fmt: skip
def test_files_of_llama_3_70b(mix, gib):
    """XiongjieDai/GPU-Benchmarks-on-LLM-Inference, README, 2024-05; llama.cpp prints the same."""
    assert mix_bytes(load_model("llama-3-70b"), mix) / GIB == pytest.approx(gib, rel=5e-4)


@pytest.mark.parametrize(
    ("model", "mix", "gib"),
    [("llama-2-7b", "q4_0", 3.56), ("llama-2-7b", "q4_k_m", 3.80), ("llama-2-13b", "q4_0", 6.86),
     ("llama-2-70b", "q4_0", 36.20), ("llama-3-8b", "q4_k_m", 4.58), ("llama-3-8b", "q8_0", 7.95),
     ("gpt-oss-20b", "mxfp4", 11.27)],
)  # fmt: skip
def test_files_of_other_models(model, mix, gib):
    """llama.cpp's own "model size" lines (2023-12 to 2025-08)."""
    assert mix_bytes(load_model(model), mix) / GIB == pytest.approx(gib, rel=1.5e-3)


@pytest.mark.parametrize("mix", mix_names())
def test_named_formats_are_the_mixes_averages(mix):
    """``weights="q4_k_m"`` takes one number of bits for all models; shapes move it by 1 %."""
    for model in ("llama-3.1-8b", "llama-2-7b", "qwen2.5-32b"):
        bits = mix_format(load_model(model), mix).bits
        if mix == "mxfp4":
            continue  # without experts all of it is q8_0
        assert find_dtype(mix).bits == pytest.approx(bits, rel=0.02)


def test_unknown_mix():
    with pytest.raises(UnknownNameError, match="no GGUF mix 'q4_k_n'; did you mean q4_k_s, q4_k_m"):
        mix_bytes(load_model("llama-2-7b"), "q4_k_n")


def test_no_matrices():
    with pytest.raises(UnsupportedError):
        mix_format(Architecture(name="empty", layers=(), source="test"), "q4_k_m")
