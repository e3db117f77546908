"""Bounds: the numbers of the literature and of hand arithmetic, and their invariants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline import Parallel, predict
from roofline.hardware.accelerator import load_accelerator
from roofline.models.architecture import LLAMA_3_8B
from roofline.serving.deployment import deploy
from roofline.work.operators import Step

LENGTHS = {"prompt_tokens": 2048, "output_tokens": 256}
FP16 = {"weights": "fp16"}


@pytest.mark.parametrize(
    ("accelerator", "compute", "ridge"),
    [("t4", "fp16", 203), ("a100-sxm4-80gb", "bf16", 153), ("a100-pcie-80gb", "bf16", 161),
     ("a100-pcie-40gb", "bf16", 201), ("h20-96gb", "bf16", 37), ("h100-sxm5-80gb", "bf16", 295)],
)  # fmt: skip
def test_ridge_points(accelerator, compute, ridge):
    """Datasheet peak over datasheet bandwidth, by hand: 65/0.32, 312/2.039, 312/1.935, …"""
    p = predict("llama-2-7b", accelerator, weights=compute, kv=compute, **LENGTHS)
    assert p.ridge_flop_per_byte == pytest.approx(ridge, abs=0.6)  # printed as whole numbers


@pytest.mark.parametrize(("batch", "milliseconds"), [(1, 3.19), (32, 5.03), (128, 10.7)])
def test_llama_on_h200(batch, milliseconds):
    p = predict("llama-3.1-8b", "h200-sxm-141gb", batch=batch, weights="bf16", **LENGTHS)
    assert p.decode.bound_s * 1e3 == pytest.approx(milliseconds, rel=0.01)
    assert p.decode.limited_by == "memory"


def test_llama_prefill_on_h200():
    p = predict("llama-3.1-8b", "h200-sxm-141gb", weights="bf16", **LENGTHS)
    assert 30.0e-3 <= p.prefill.bound_s <= 30.3e-3
    assert p.prefill.limited_by == "compute (bf16)"


def test_tinyllama_on_t4():
    """65 TFLOP/s and 320 GB/s: 2.07 GB are read, 2.2 GB held; 200 tokens stay below the ridge."""
    p = predict("tinyllama-1.1b", "t4", prompt_tokens=200, output_tokens=200, weights="fp16")
    assert p.weights_bytes == pytest.approx(2.2e9, rel=0.001)
    assert p.kv_bytes_per_token == 22_528
    assert 6.47e-3 <= p.decode.bound_s <= 6.49e-3
    assert 6.4e-3 <= p.prefill.bound_s <= 6.5e-3
    assert p.prefill.limited_by == "memory"
    assert p.weights_bytes / 320e9 == pytest.approx(6.88e-3, rel=0.001)  # all 2.2 GB counted


def test_llama_2_on_a100():
    """13.2 GB without the embedding table over 2,039 GB/s, and 6.61 ms with it."""
    p = predict("llama-2-7b", "a100-sxm4-80gb", prompt_tokens=1, output_tokens=1)
    assert p.decode.bound_s == pytest.approx(6.48e-3, rel=0.001)
    assert p.weights_bytes / 2039e9 == pytest.approx(6.61e-3, rel=0.001)


def test_context_at_which_cache_equals_weights():
    p = predict("llama-2-7b", "a100-sxm4-80gb", weights="fp16", **LENGTHS)
    assert 25_000 <= p.turning_points.context_cache_equals_weights <= 26_000


@pytest.mark.parametrize(
    ("model", "accelerator", "batch", "plan", "lengths", "formats", "bound", "expected"),
    [
        ("mixtral-8x7b", "a100-sxm4-80gb", 1, {"tp": 2}, (2048, 256), FP16, 6.32, 6.32),
        ("mixtral-8x7b", "a100-sxm4-80gb", 32, {"tp": 2}, (2048, 256), FP16, 8.49, 25.1),
        ("qwen3-30b-a3b", "h100-sxm5-80gb", 1, {}, (2048, 256), {"weights": "bf16"}, 1.88, 1.88),
        ("qwen3-30b-a3b", "h100-sxm5-80gb", 64, {}, (2048, 256), {"weights": "bf16"}, 5.90, 21.9),
        ("gpt-oss-120b", "h100-sxm5-80gb", 1, {}, (2048, 256), {"weights": "mxfp4"}, 1.52, 1.52),
        ("gpt-oss-120b", "h100-sxm5-80gb", 32, {}, (2048, 256), {"weights": "mxfp4"}, 2.31, 13.4),
        ("gemma-2-9b", "l40s", 8, {}, (8192, 256), {"weights": "bf16"}, 41.2, 41.2),
        ("deepseek-v3", "h200-sxm-141gb", 64, {"tp": 8}, (4096, 512), {"kv": "bf16"}, 5.27, 19.5),
    ],
)  # fmt: skip
def test_decode_steps_worked_out_elsewhere(
    model, accelerator, batch, plan, lengths, formats, bound, expected
):
    """Bound and expected experts in ms, worked out by hand; ±1 %."""
    p = predict(
        model, accelerator, batch=batch, parallel=Parallel(**plan), prompt_tokens=lengths[0],
        output_tokens=lengths[1], **formats,
    )  # fmt: skip
    assert p.decode.bound_s * 1e3 == pytest.approx(bound, rel=0.01)
    assert p.decode.expected_experts_s * 1e3 == pytest.approx(expected, rel=0.01)


def deployment(**options):
    return deploy(LLAMA_3_8B, load_accelerator("h200-sxm-141gb"), **options)


def test_a_million_points_equal_the_scalar_path():
    """Every point through the array path; 300 of them one by one."""
    plain = deployment()
    batch = np.arange(1.0, 1001.0)[:, None]
    context = np.linspace(1, 100_000, 1000).round()[None, :]
    bound = plain.bound(Step(batch, context)).seconds
    estimate = plain.middle(Step(batch, context), long_phase=False).seconds
    assert bound.shape == estimate.shape == (1000, 1000)
    generator = np.random.default_rng(1)
    for i, j in generator.integers(0, 1000, (300, 2)):
        step = Step(float(batch[i, 0]), float(context[0, j]))
        assert float(plain.bound(step).seconds) == pytest.approx(bound[i, j], rel=1e-12)
        one = plain.middle(step, long_phase=False).seconds
        assert float(one) == pytest.approx(estimate[i, j], rel=1e-12)


@given(st.integers(1, 500), st.integers(1, 100_000), st.integers(1, 100))
def test_more_work_never_takes_less(batch, context, more):
    plain = deployment()
    here = float(plain.bound(Step(float(batch), float(context))).seconds)
    assert float(plain.bound(Step(float(batch + more), float(context))).seconds) >= here
    assert float(plain.bound(Step(float(batch), float(context + more))).seconds) >= here


@given(st.integers(1, 300), st.integers(1, 60_000))
def test_an_estimate_is_never_below_its_bound(batch, context):
    step = Step(float(batch), float(context))
    for engine in ("ideal", "vllm", "cuda-graph"):
        timed = deployment(engine=engine).timed(step, long_phase=False)
        low, mid, high = (float(end) for end in vars(timed.estimate_s).values())
        assert float(timed.bound.seconds) <= low <= mid <= high


def test_a_machine_changes_the_estimate_and_never_the_bound():
    plain = predict("llama-3.1-8b", "h200-sxm-141gb", **LENGTHS)
    measured = predict("llama-3.1-8b", "h200-sxm-141gb", machine="h200-sxm-141gb", **LENGTHS)
    assert measured.bound == plain.bound
    assert measured.decode.estimate_s != plain.decode.estimate_s


def test_link_bounds_a_slow_pair():
    """Llama-2-70B prefill over PCIe 4: 2 all-reduces × 80 layers × 8192 values × 2 B a token."""
    p = predict("llama-2-70b", "l40s", parallel=Parallel(tp=8), weights="fp16", **LENGTHS)
    moved = 2 * 80 * 8192 * 2 * 2048
    link = load_accelerator("l40s").pcie.bytes_per_s
    assert p.prefill.by_resource["link"] == pytest.approx(moved / link)


def test_a_tenth_of_a_percent_part_gains_half_of_it():
    p = predict("llama-3.1-8b", "h200-sxm-141gb", **LENGTHS)
    assert sum(row.share for row in p.decode.operators) == pytest.approx(1.0)
    assert all(row.gain_if_halved == pytest.approx(row.share / 2) for row in p.decode.operators)
