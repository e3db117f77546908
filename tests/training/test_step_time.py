"""Step time against hand-worked limits and invariants; published rows are in validation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.calibration.typical import typical_terms
from roofline.hardware.accelerator import load_accelerator
from roofline.models.architecture import LLAMA_3_8B, dense_decoder
from roofline.timing.collectives import LinkTerms
from roofline.training.communication import Network, data_s, pipeline_s, tensor_s
from roofline.training.estimate import training_step
from roofline.training.flop import (
    flop_by_operator,
    hardware_flop_per_token,
    model_flop_per_token,
    rule_of_thumb_flop,
)
from roofline.training.network import cluster_network
from roofline.training.plan import TrainingPlan
from roofline.training.scaling import hiding_micro_batches, scaling_curve, scaling_efficiency
from roofline.training.shapes import megatron_gpt
from roofline.training.step_time import Host, step_parts

A100 = load_accelerator("a100-sxm4-80gb")
TERMS = typical_terms(A100)
NETWORK = Network(LinkTerms(300e9, 0.0), LinkTerms(25e9, 0.0), 8)
SMALL = dense_decoder(
    "small", n_layers=4, hidden=512, n_heads=8, n_kv_heads=2, head_dim=64, intermediate=1536,
    vocab=4096, source="test",
)  # fmt: skip


def seconds(arch, **settings_):
    return step_parts(arch, TrainingPlan(**settings_), TERMS, NETWORK).total


def test_flop_of_megatrons_formula():
    """Narayanan et al. 2021, appendix: 96·B·s·l·h²·(1 + s/(6h) + V/(16·l·h)), recomputed."""
    n_layers, hidden, tokens, vocabulary = 96, 12288, 2048, 51200
    gpt = megatron_gpt("175B", n_layers=n_layers, hidden=hidden, n_heads=96)
    plan = TrainingPlan(sequence_tokens=tokens, recompute="full", flash_attention=False)
    per_token = 96 * n_layers * hidden**2
    per_token *= 1 + tokens / (6 * hidden) + vocabulary / (16 * n_layers * hidden)
    assert hardware_flop_per_token(gpt, plan) == pytest.approx(per_token, rel=1e-12)


def test_six_n_is_the_models_flop_without_attention_and_the_embedding():
    """Kaplan et al. 2020: 6 FLOP a parameter that multiplies; the table looked up does not."""
    by_name = {row.name: row for row in flop_by_operator(LLAMA_3_8B, TrainingPlan())}
    multiplying = LLAMA_3_8B.parameters - LLAMA_3_8B.embedding_parameters - 65 * 4096  # norms
    rest = model_flop_per_token(LLAMA_3_8B, TrainingPlan()) - by_name["attention"].model
    assert rest == pytest.approx(6 * multiplying)


def test_a_step_of_a_70b_model_is_12_pflop_at_30k_tokens_and_420_at_a_million():
    """6 × 70e9 × 30e3 and × 1e6, by hand."""
    assert rule_of_thumb_flop(70e9, 30e3) == 12.6e15
    assert rule_of_thumb_flop(70e9, 1e6) == 420e15


def test_the_gradients_of_a_70b_model_take_245_gb_on_each_link():
    """2 · 7/8 · 140 GB = 245 GB; at 300 GB/s a direction 0.82 s."""
    assert data_s(140e9, 140e9, TrainingPlan(dp=8), NETWORK) == pytest.approx(245e9 / 300e9)


def test_three_to_four_times_eight_gpus_is_three_quarters_to_all():
    """32 accelerators are 4 × 8, so that 3–4 × is an efficiency of 0.75–1.0."""
    assert (scaling_efficiency(3, 32, 8), scaling_efficiency(4, 32, 8)) == (0.75, 1.0)


def test_zero_moves_the_volume_that_the_paper_says():
    """Rajbhandari et al. 2020, section 7: stages 1 and 2 the baseline's volume, 3 1.5 × of it."""
    plan = TrainingPlan(dp=8)
    times = [data_s(8e9, 8e9, plan.with_(zero_stage=stage), NETWORK) for stage in range(4)]
    assert times[1] == times[2] == pytest.approx(times[0])
    assert times[3] == pytest.approx(1.5 * times[0])


def test_one_accelerator_does_not_communicate():
    plan = TrainingPlan()
    assert tensor_s(1e9, plan, NETWORK) == data_s(1e9, 1e9, plan, NETWORK) == 0
    assert pipeline_s(1e9, plan, NETWORK) == 0
    parts = step_parts(LLAMA_3_8B, plan, TERMS, NETWORK)
    assert parts.bubble == parts.pipeline == parts.data == 0
    assert dict(parts.by_kind)["tensor"] == 0


def test_the_bubble_is_p_minus_1_over_m_and_interleaving_divides_it():
    """Narayanan et al. 2021, section 2.2: (p − 1)/m of the ideal time, over v chunks."""
    plan = TrainingPlan(framework="megatron", precision="mixed", pp=4, micro_batches=12)
    parts = step_parts(LLAMA_3_8B, plan, TERMS, NETWORK)
    ideal = parts.forward + parts.backward + parts.pipeline
    assert parts.bubble == pytest.approx(ideal * 3 / 12)
    free = Network(LinkTerms(1e18, 0.0), LinkTerms(1e18, 0.0), 8)
    once = step_parts(LLAMA_3_8B, plan, TERMS, free)
    twice = step_parts(LLAMA_3_8B, plan.with_(interleave=2), TERMS, free)
    assert twice.bubble == pytest.approx(once.bubble / 2)


def test_recomputation_trades_memory_for_time():
    kept, again = (seconds(LLAMA_3_8B, recompute=how) for how in ("none", "full"))
    assert again > kept


def test_a_slow_host_is_the_floor_of_an_eager_step():
    """8 kernels a second of Python: a small model cannot be faster than its kernels start."""
    slow = step_parts(SMALL, TrainingPlan(), TERMS, NETWORK, Host(0.125, 0.0))
    assert slow.total > 0.125 * 26 * 4  # 26 elementwise kernels in each of 4 layers


def test_frozen_weights_need_no_weight_gradients():
    """Forward 2, inputs' gradients 2: two thirds of full training's 6, adapters apart."""
    rows = {}
    for method in ("full", "lora"):
        plan = TrainingPlan(method=method, precision="bf16")
        rows[method] = {row.name: row.model for row in flop_by_operator(LLAMA_3_8B, plan)}
    name = "mlp.down_proj"
    assert rows["lora"][name] == pytest.approx(rows["full"][name] * 2 / 3)


@given(
    micro_batch=st.integers(1, 8),
    precision=st.sampled_from(["amp", "bf16", "mixed"]),
    recompute=st.sampled_from(["none", "full"]),
    dp=st.sampled_from([1, 4, 16]),
    stage=st.sampled_from([0, 1, 3]),
)
@settings(max_examples=40, deadline=None)
def test_the_bound_is_below_the_interval_and_more_work_takes_longer(
    micro_batch, precision, recompute, dp, stage
):
    plan = TrainingPlan(
        micro_batch=micro_batch, precision=precision, recompute=recompute, dp=dp, zero_stage=stage
    )
    links, _ = cluster_network(A100, TERMS, plan)
    step = training_step(SMALL, plan, A100, TERMS, links)
    assert 0 < step.bound.seconds <= step.step_s.low <= step.step_s.mid <= step.step_s.high
    assert 0 < step.mfu.low <= step.mfu.high <= 1
    larger = plan.with_(micro_batch=micro_batch + 1)
    assert training_step(SMALL, larger, A100, TERMS, links).bound.seconds >= step.bound.seconds
    slower = training_step(SMALL, larger, A100, TERMS, links).step_s.mid
    assert slower >= step.step_s.mid * (1 - 1e-12)  # sums in another order


def test_scaling_loses_to_the_network_and_a_larger_micro_batch_wins_it_back():
    plan = TrainingPlan(framework="megatron", precision="mixed", recompute="full")
    points = scaling_curve(LLAMA_3_8B, plan, A100, TERMS, (8, 32), network="ethernet-100gbe")
    assert points[1].efficiency < 0.9
    assert points[1].lost_to == "gradient exchange, exposed"
    at = plan.with_(dp=32)
    hides = hiding_micro_batches(LLAMA_3_8B, at, A100, TERMS, network="ethernet-100gbe")
    assert hides is not None
    assert hides > 1
    more = scaling_curve(
        LLAMA_3_8B, plan.with_(micro_batch=hides), A100, TERMS, (8, 32), network="ethernet-100gbe"
    )
    assert more[1].efficiency > points[1].efficiency


def test_exchange_that_hides_behind_a_layer_takes_no_time_of_its_own():
    """What is exposed and what is hidden is all of it, overlapped or not."""
    plan = TrainingPlan(framework="megatron", precision="mixed", tp=8, micro_batch=4)
    apart = step_parts(LLAMA_3_8B, plan, TERMS, NETWORK)
    behind = step_parts(LLAMA_3_8B, plan.with_(overlap_layers=True), TERMS, NETWORK)
    assert behind.total < apart.total
    whole = dict(apart.by_kind)["tensor"] + dict(apart.by_kind)["hidden"]
    assert dict(behind.by_kind)["tensor"] + dict(behind.by_kind)["hidden"] == pytest.approx(whole)


def test_partial_training_keeps_and_computes_less_than_full():
    """Only the last layers get gradients; below them nothing is kept and nothing goes back."""
    part = TrainingPlan(method="partial", trainable_layers=1)
    ratio = model_flop_per_token(SMALL, part) / model_flop_per_token(SMALL, TrainingPlan())
    assert 1 / 3 < ratio < 1


def test_zero_3_fetches_frozen_parameters_too():
    """16-bit weights of 8 billion values, gathered twice, over 4 accelerators of one node."""
    plan = TrainingPlan(method="lora", precision="bf16", dp=4, zero_stage=3)
    parts = step_parts(LLAMA_3_8B, plan, TERMS, NETWORK)
    once = 2 * LLAMA_3_8B.parameters * 3 / 4 / 300e9
    assert parts.data_whole == pytest.approx(2 * once, rel=0.01)  # adapters are the rest
    far = step_parts(LLAMA_3_8B, plan.with_(dp=16), TERMS, NETWORK)
    slow = 2 * LLAMA_3_8B.parameters * (7 / 8 / 300e9 + 1 / 8 / 2 / 25e9)
    assert far.data_whole == pytest.approx(2 * slow, rel=0.01)
