"""predict: definitions, refusals, and numbers worked by hand."""

import json
import math

import numpy as np
import pytest

import roofline
from roofline import Engine, Parallel, predict
from roofline.cli.output import plain
from roofline.errors import InputError, MissingDataError, UnknownNameError, UnsupportedError

LENGTHS = {"prompt_tokens": 2048, "output_tokens": 256}


def test_definitions_of_a_static_batch():
    p = predict("llama-3.1-8b", "h200-sxm-141gb", batch=8, **LENGTHS)
    assert p.total_s.mid == pytest.approx(p.ttft_s.mid + 255 * p.tpot_s.mid)
    assert p.output_tokens_per_s.mid == pytest.approx(8 * 256 / p.total_s.mid)
    assert p.bound.total_s == pytest.approx(p.bound.ttft_s + 255 * p.bound.tpot_s)
    assert p.ttft_s.low <= p.ttft_s.mid <= p.ttft_s.high


def test_pipeline_stages_say_what_is_in_flight():
    """Llama-3.1-8B, 2 stages: 120 × 2,304 tokens × 64 KiB a stage are 18.1 GB, two of them 36.2.

    An H200 has 150.1 GB less 8.0 of weights; 800 sequences are 120.8 GB once and 241.6 twice.
    """
    few, many = (
        predict("llama-3.1-8b", "h200-sxm-141gb", batch=n, parallel=Parallel(pp=2), **LENGTHS)
        for n in (120, 800)
    )
    assert few.fits
    assert any("caches of all 2 fit" in line for line in few.assumptions)
    assert many.fits
    assert any("caches of all 2 do not fit" in line for line in many.assumptions)


def test_one_output_token_has_no_tpot():
    p = predict("llama-3.1-8b", "h200-sxm-141gb", prompt_tokens=100, output_tokens=1)
    assert p.tpot_s is None
    assert p.bound.tpot_s is None
    assert p.total_s == p.ttft_s


def test_tpot_averages_over_windows():
    """Gemma-2's half of the layers stop growing at 4,096: the mean lies below mid-output."""
    p = predict("gemma-2-9b", "l40s", prompt_tokens=3000, output_tokens=4000)
    assert p.bound.tpot_s < p.decode.bound_s
    q = predict("llama-3.1-8b", "l40s", prompt_tokens=3000, output_tokens=4000)
    assert q.bound.tpot_s == pytest.approx(q.decode.bound_s, rel=1e-6)


def test_replicas_multiply_throughput_only():
    one = predict("llama-3.1-8b", "h200-sxm-141gb", **LENGTHS)
    two = predict("llama-3.1-8b", "h200-sxm-141gb", parallel=Parallel(dp=2), **LENGTHS)
    assert two.ttft_s == one.ttft_s
    assert two.output_tokens_per_s.mid == pytest.approx(2 * one.output_tokens_per_s.mid)


def test_defaults_are_said():
    p = predict("llama-3.1-8b", "h200-sxm-141gb")
    assert any("2,048" in line for line in p.assumptions)
    assert any("256" in line for line in p.assumptions)
    assert any("no measured machine" in line for line in p.assumptions)


def test_cost_needs_a_price():
    """36 USD an hour and 100 tokens a second are 100 USD a million."""
    p = predict("llama-3.1-8b", "h200-sxm-141gb", usd_per_hour=3.6, **LENGTHS)
    rate = p.output_tokens_per_s.mid
    expected = 3.6 / 3600 / rate * 1e6
    assert p.cost.usd_per_million_output_tokens.mid == pytest.approx(expected)
    assert p.cost.usd_per_million_output_tokens.low < p.cost.usd_per_million_output_tokens.high
    assert predict("llama-3.1-8b", "t4", weights="fp16").cost.usd_per_million_output_tokens is None


def test_dict_is_json_in_base_units():
    p = predict("gpt-oss-120b", "h100-sxm5-80gb", **LENGTHS)
    text = json.dumps(plain(p.to_dict()), allow_nan=False)
    found = json.loads(text)
    assert found["weights_bytes"] == 65_248_815_744
    assert found["bound"]["ttft_s"] == p.bound.ttft_s


def test_frame_has_a_row_per_operator():
    p = predict("llama-3.1-8b", "h200-sxm-141gb", **LENGTHS)
    assert len(p.to_frame()) == len(p.prefill.operators) + len(p.decode.operators)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("llama-9", "t4"), UnknownNameError, "no model 'llama-9'; did you mean"),
        (("llama-3.1-8b", "h9000"), UnknownNameError, "no accelerator 'h9000'"),
        (("llama-3.1-8b", "ascend-910b"), MissingDataError, "bandwidth"),
        (("llama-3.1-8b", "t4"), UnsupportedError, "t4 does not compute in bf16.*fp16"),
    ],
)
def test_names_that_are_not_there(arguments, error, words):
    with pytest.raises(error, match=words):
        predict(*arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "batch must be from 1"),
        ({"batch": True}, "batch must be a whole number"),
        ({"batch": 2.5}, "batch must be a whole number"),
        ({"prompt_tokens": -1}, "prompt_tokens must be from 1"),
        ({"output_tokens": 2**40}, "output_tokens must be from 1"),
        ({"usd_per_hour": 0}, "usd_per_hour must be above 0"),
        ({"usd_per_hour": math.nan}, "usd_per_hour needs to be at least 0, got nan"),
        ({"usd_per_hour": "two"}, "usd_per_hour needs a number, got 'two'"),
        ({"usd_per_hour": True}, "usd_per_hour needs a number, got True"),
        ({"parallel": 2}, r"parallel is a plan such as Parallel\(tp=2\), got 2"),
        ({"parallel": {"tp": 2}}, r"parallel is a plan such as Parallel\(tp=2\)"),
        ({"parallel": Parallel(tp=3)}, "tp=3 does not divide"),
        ({"machine": "h200-sxm-141gb"}, "is a record of h200-sxm-141gb, not of l40s"),
    ],
)
def test_values_that_cannot_be(options, words):
    with pytest.raises(InputError, match=words):
        predict("llama-3.1-8b", "l40s", **options)


def test_numbers_of_numpy_are_numbers():
    """Another route to the same prediction: plain integers; its dict is plain JSON."""
    given = predict(
        "llama-3.1-8b", "l40s", batch=np.int64(4), prompt_tokens=np.int32(100),
        output_tokens=np.int16(10), parallel=Parallel(tp=np.int64(2)),
        engine=Engine("vllm", memory_fraction=np.float64(0.9), max_sequences=np.int64(64)),
    )  # fmt: skip
    plain = predict(
        "llama-3.1-8b", "l40s", batch=4, prompt_tokens=100, output_tokens=10,
        parallel=Parallel(tp=2), engine=Engine("vllm", memory_fraction=0.9, max_sequences=64),
    )  # fmt: skip
    assert json.dumps(given.to_dict(), allow_nan=False) == json.dumps(plain.to_dict())
    assert given.max_batch == plain.max_batch


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("llama-3.1-8b", {"kv": "fp8_ds_mla"}, "packs a latent of 512 and 64 values"),
        ("llama-3.1-8b", {"engine": Engine("vllm", max_context_tokens=2048)},
         "prompt and output are 2,304 tokens, more than the max_context_tokens=2,048"),
    ],
)  # fmt: skip
def test_options_that_contradict_the_question(model, options, words):
    with pytest.raises(InputError, match=words):
        predict(model, "h200-sxm-141gb", **options)


def test_the_packed_latent_is_656_bytes_a_layer():
    """FlashMLA's slot: 512 fp8 values, 16 bytes of scales, 64 bf16 values; 61 layers."""
    p = predict("deepseek-v3", "h200-sxm-141gb", kv="fp8_ds_mla", parallel=Parallel(tp=8))
    assert p.kv_bytes_per_token == 61 * (512 + 16 + 2 * 64) == 40_016


def test_an_engine_holds_no_longer_context_than_it_is_started_for():
    started = Engine("vllm", max_context_tokens=4096)
    p = predict("llama-3.1-8b", "h200-sxm-141gb", engine=started)
    assert p.max_context_tokens == 4096
    assert predict("llama-3.1-8b", "h200-sxm-141gb", engine="vllm").max_context_tokens > 100_000


def test_unknown_formats_and_engines_are_refused():
    with pytest.raises(UnknownNameError, match="no storage format 'fp9'"):
        predict("llama-3.1-8b", "l40s", weights="fp9")
    with pytest.raises(UnknownNameError, match="no engine 'vlm'; did you mean vllm"):
        predict("llama-3.1-8b", "l40s", engine="vlm")


def test_weight_formats_compute_as_devices_can():
    """fp8 without native units computes in 16 bit (A100); int4 does everywhere."""
    a100 = predict("llama-3.1-8b", "a100-sxm4-80gb", weights="fp8")
    assert a100.deployment.compute_used == "bf16"
    h100 = predict("llama-3.1-8b", "h100-sxm5-80gb", weights="fp8")
    assert h100.deployment.compute_used == "fp8"
    assert predict("llama-3.1-8b", "t4", weights="int4").deployment.compute_used == "fp16"


def test_public_names():
    for name in roofline.__all__:
        assert getattr(roofline, name) is not None
    with pytest.raises(AttributeError):
        roofline.nothing  # noqa: B018
