"""``train``: the public verb, its defaults, refusals and consistency."""

import json

import pytest

import roofline
from roofline.api.train import train
from roofline.api.train_choice import best_training, cheapest_training, training_advice
from roofline.errors import InputError, MissingDataError, UnknownNameError, UnsupportedError
from roofline.models.architecture import LLAMA_3_8B
from roofline.training.plan import TrainingPlan

H200 = "h200-sxm-141gb"
LLAMA_1B = {
    "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "recompute", "micro_batch", "peak_bytes"),
    [
        ("amp", False, 4, 47_076_822_528),
        ("bf16", True, 8, 34_043_239_936),
        ("lora", False, 1, 11_014_265_344),
    ],
)
def test_a_config_trains_as_measured(mode, recompute, micro_batch, peak_bytes):
    """Peaks of one H200 (measurements/training/h200-sxm-141gb/2026-11-reference.json)."""
    result = roofline.train(LLAMA_1B, H200, mode=mode, recompute=recompute, micro_batch=micro_batch)
    assert result.peak_bytes == pytest.approx(peak_bytes, rel=0.005)
    assert result.fits


def test_defaults_are_said():
    result = train(LLAMA_3_8B, H200)
    assert "mode amp: the default" in result.assumptions
    assert result.plan.framework == "transformers"
    several = train(LLAMA_3_8B, H200, tp=8)
    assert several.plan.framework == "megatron"
    assert "mode mixed: the default" in several.assumptions
    far = train(LLAMA_3_8B, H200, dp=64, zero_stage=3)
    assert any("between nodes" in line for line in far.assumptions)


def test_a_run_costs_what_its_hours_cost():
    """cost = accelerators × hours × price, worked from the result's own time."""
    result = train(LLAMA_3_8B, H200, dp=8, zero_stage=3, tokens=1e9, usd_per_hour=3.0)
    hours = result.run.seconds.mid / 3600
    assert result.run.usd.mid == pytest.approx(8 * 3.0 * hours)
    assert result.run.energy_j.mid == pytest.approx(8 * 700 * hours * 3600)  # 700 W each
    assert result.run.seconds.mid == pytest.approx(1e9 / result.tokens_per_s.mid)


def test_results_are_plain_data():
    result = train(LLAMA_3_8B, H200, mode="qlora", tokens=1e6)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert sum(data["memory"]["parts_bytes"].values()) == data["memory"]["peak_bytes"]
    frame = result.to_frame()
    memory = frame[frame["of"] == "memory"]["bytes"].sum()
    assert memory == pytest.approx(result.peak_bytes)


def test_a_global_batch_sets_the_micro_batches():
    assert train(LLAMA_3_8B, H200, dp=8, global_batch=64).plan.micro_batches == 8
    with pytest.raises(InputError, match="no multiple of micro_batch × dp = 8"):
        train(LLAMA_3_8B, H200, dp=8, global_batch=12)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"mode": "fp7"}, UnknownNameError, "no training mode 'fp7'"),
        ({"batch": 4}, UnknownNameError, "no training setting 'batch'"),
        ({"recompute": "some"}, UnknownNameError, "no recompute 'some'"),
        ({"tokens": float("nan")}, InputError, "tokens must be a number above 0"),
        ({"tokens": True}, InputError, "tokens must be"),
        ({"usd_per_hour": 3.0}, MissingDataError, "give tokens="),
        ({"global_batch": 0}, InputError, "global_batch is a whole number"),
        ({"micro_batch": 2**40}, InputError, "micro_batch is a whole number"),
        ({"dp": 9, "network": "carrier pigeon"}, UnknownNameError, "no link"),
        ({"optimiser": "adam", "offload": ("disk",)}, UnknownNameError, "no offload 'disk'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, error, words):
    with pytest.raises(error, match=words) as caught:
        train(LLAMA_3_8B, H200, **settings)
    assert "\n" not in str(caught.value)


def test_a_device_without_bf16_is_refused_or_takes_fp16_and_says_so():
    with pytest.raises(UnsupportedError, match="t4 has no bf16"):
        train(LLAMA_3_8B, "t4", mode="bf16")
    amp = train(LLAMA_3_8B, "t4", mode="amp")
    assert amp.step.compute == "fp16"
    assert any("computes in fp16" in line for line in amp.assumptions)


def test_the_best_plan_is_no_slower_than_one_made_by_hand():
    by_hand = train(
        LLAMA_3_8B, "h100-sxm5-80gb", dp=8, zero_stage=3, framework="megatron", mode="mixed",
        global_batch=64,
    )  # fmt: skip
    found = best_training(LLAMA_3_8B, "h100-sxm5-80gb", accelerators=8, global_batch=64)
    assert found.best.step.tokens_per_s.mid >= by_hand.tokens_per_s.mid * (1 - 1e-9)
    assert all(candidate.fits for candidate in found.ranked)


def test_the_cheapest_is_the_cheapest_and_misses_have_reasons():
    found = cheapest_training(
        LLAMA_3_8B, ["h100-sxm5-80gb", "a100-sxm4-80gb"], tokens=1e9, global_batch=64,
        prices={"h100-sxm5-80gb": 2.0, "a100-sxm4-80gb": 2.0}, counts=(1, 8),
    )  # fmt: skip
    costs = [plan.usd.mid for plan in found.ranked]
    assert costs == sorted(costs)
    assert found.best.accelerator == "h100-sxm5-80gb"  # faster at the same price
    assert ("1 × h100-sxm5-80gb", "no plan fits") in found.excluded
    late = cheapest_training(
        LLAMA_3_8B, ["h100-sxm5-80gb"], tokens=1e9, global_batch=64, deadline_s=1.0,
        prices={"h100-sxm5-80gb": 2.0}, counts=(8,),
    )  # fmt: skip
    assert late.best is None
    assert "deadline" in late.excluded[0][1]


def test_advice_by_scenario():
    """8B at 12 bytes a value and more is above 80 GB; its LoRA is below 24 GiB."""
    lora = training_advice(LLAMA_3_8B, "rtx-4090", "lora")
    assert lora.candidate.plan.adapters
    full = training_advice(LLAMA_3_8B, "rtx-4090", "fine-tuning")
    assert full.candidate is None
    assert "use more accelerators, or lora" in full.lines[0]
    large = training_advice(LLAMA_3_8B, H200, "pre-training", accelerators=8, global_batch=64)
    assert large.candidate.plan.precision == "mixed"
    with pytest.raises(UnknownNameError, match="no scenario 'guess'"):
        training_advice(LLAMA_3_8B, H200, "guess")


def test_a_plan_is_taken_whole():
    plan = TrainingPlan(method="lora", precision="bf16", micro_batch=2)
    assert train(LLAMA_3_8B, H200, plan=plan).plan == plan
