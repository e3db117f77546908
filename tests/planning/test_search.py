"""Search: its invariants, its agreement with simulation, its reasons, its words."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.api.plan import plan
from roofline.economics.prices import price_table
from roofline.errors import InputError, MissingDataError, RooflineError, UnknownNameError
from roofline.hardware.accelerator import load_accelerator
from roofline.models.config import load_model
from roofline.planning.candidate import Space, candidates
from roofline.planning.finalists import LOADS, best_of_each, simulated
from roofline.planning.lane import lane_of
from roofline.planning.pareto import front
from roofline.planning.pricing import Pricing, charge
from roofline.planning.search import Question, size_all
from roofline.serving.capacity import load_curve
from roofline.serving.speculation import Speculation
from roofline.serving.traffic import Slo, Traffic

MODEL = "llama-3.1-8b"
SHORT = {"prompt_tokens": 1000, "output_tokens": 150}
DEVICES = ("h200-sxm-141gb", "l40s")


def needed(rate=20.0, slo=None, prices=None, devices=DEVICES, tp=(1, 2), **more):
    arch = load_model(MODEL)
    question = Question(
        Traffic(requests_per_s=rate, **SHORT), slo or Slo(ttft_s=0.5, tpot_s=0.03),
        Pricing(price_table(prices)), requests=400, **more,
    )  # fmt: skip
    space = Space(tp=tp)
    sized, out = size_all(arch, [load_accelerator(name) for name in devices], space, question)
    best, more_out = best_of_each(sized, finalists=2)
    return {one.candidate.deployment.accelerator.id: one for one in best}, out + more_out


def test_more_load_never_needs_fewer_accelerators():
    counts = [needed(rate)[0] for rate in (1, 5, 20, 21, 60, 200)]
    for device in DEVICES:
        numbers = [found[device].accelerators for found in counts]
        assert numbers == sorted(numbers)


def test_a_tighter_target_never_costs_less():
    loose = [Slo(ttft_s=ttft, tpot_s=tpot) for ttft, tpot in
             ((2.0, 0.1), (1.0, 0.05), (0.5, 0.03), (0.4, 0.02), (0.2, 0.015))]  # fmt: skip
    costs = []
    for slo in loose:
        found, _ = needed(60.0, slo)
        paid = [one.charge.usd_per_hour for one in found.values()]
        costs.append(min(paid, default=float("inf")))
    assert costs == sorted(costs)
    percentiles = [needed(60.0, Slo(tpot_s=0.02, percentile=p))[0] for p in (50.0, 90.0, 99.0)]
    numbers = [found["h200-sxm-141gb"].accelerators for found in percentiles]
    assert numbers == sorted(numbers)


def test_a_cheaper_price_never_ranks_lower():
    places = []
    for usd in (9.0, 4.0, 2.0, 0.5, 0.1):
        found, _ = needed(60.0, prices={"l40s": usd, "h200-sxm-141gb": 3.5})
        places.append(list(found).index("l40s"))
    assert places == sorted(places, reverse=True)
    assert places[-1] == 0


def test_spare_replicas_and_headroom_add():
    """Of one kind of replica: with several, spares may make smaller ones the cheaper choice."""
    plain, _ = needed(60.0, tp=(2,))
    spare, _ = needed(60.0, Slo(ttft_s=0.5, tpot_s=0.03, spare_replicas=2), tp=(2,))
    roomy, _ = needed(60.0, Slo(ttft_s=0.5, tpot_s=0.03, headroom=0.5), tp=(2,))
    for device in DEVICES:
        assert spare[device].replicas == plain[device].replicas + 2
        assert roomy[device].replicas >= 2 * plain[device].replicas - 1


def test_closed_form_follows_the_simulation():
    """Another route: capacity from 1,500 simulated requests a load, within 25 %."""
    traffic = Traffic(requests_per_s=1, **SHORT)
    slo = Slo(ttft_s=0.5, tpot_s=0.02)
    for device in ("h200-sxm-141gb", "l40s", "mi300x"):
        found, _ = candidates(load_model(MODEL), load_accelerator(device), Space(tp=(1,)), 1150)
        lane = lane_of(found[0], traffic)
        closed = lane.curve(slo).capacity_per_s(slo)
        curve = load_curve(
            traffic, lane.serving, lane.saturation_per_s * LOADS, slo=slo, count=1500,
            until_missed=True,
        )  # fmt: skip
        assert closed == pytest.approx(curve.capacity_per_s(slo), rel=0.25)


@pytest.mark.parametrize(("prompt", "output"), [(100, 1), (4000, 1), (100, 300), (30, 2)])
def test_closed_form_of_short_requests_packs_prompts(prompt, output):
    """Many short prompts share a step: capacity within 25 % of the simulation's."""
    traffic = Traffic(requests_per_s=1, prompt_tokens=prompt, output_tokens=output)
    slo = Slo(ttft_s=1.0, tpot_s=0.05)
    found, _ = candidates(load_model(MODEL), load_accelerator("l40s"), Space(tp=(1,)), 4400)
    lane = lane_of(found[0], traffic)
    curve = load_curve(traffic, lane.serving, lane.saturation_per_s * np.append(LOADS, [1.1, 1.3]),
                       slo=slo, count=2000, until_missed=True)  # fmt: skip
    closed = lane.curve(slo).capacity_per_s(slo)
    assert closed == pytest.approx(curve.capacity_per_s(slo), rel=0.25)


def test_a_found_deployment_holds_when_simulated_with_other_requests():
    """The planned load, 4,000 requests of another seed: P95 within 15 % of the target."""
    found, _ = needed(60.0)
    for one in found.values():
        per_lane = 60.0 / one.replicas
        run = one.lane.serving.run(
            one.question.traffic, requests_per_s=per_lane, count=4000, seed=99
        )
        assert run.percentile("ttft_s", 95) <= 0.5 * 1.15
        assert run.percentile("tpot_s", 95) <= 0.03 * 1.15


def test_simulating_twice_gives_the_same():
    arch = load_model(MODEL)
    question = Question(Traffic(requests_per_s=20, **SHORT), Slo(tpot_s=0.03),
                        Pricing(price_table()), requests=300)  # fmt: skip
    sized, _ = size_all(arch, [load_accelerator("l40s")], Space(tp=(1,)), question)
    assert simulated(sized[0]).capacity_per_s == simulated(sized[0]).capacity_per_s


def test_what_is_owned_limits():
    found, out = needed(2000.0, own={"l40s": 3})
    assert "l40s" not in found
    assert any("3 are there" in one.reason for one in out)


@pytest.mark.parametrize(
    ("device", "model", "space", "words"),
    [
        ("l4", "llama-3.3-70b", Space(), r"needs .* it has 2.*too little"),
        ("ascend-910b", MODEL, Space(), "no sourced memory bandwidth"),
        ("v100-sxm2-32gb", MODEL, Space(), "does not compute in bf16"),
        ("h200-sxm-141gb", MODEL, Space(tp=(3,)), "tp=3 does not divide"),
        ("h200-sxm-141gb", MODEL, Space(tp=(16,)), "tp=16"),
        ("h200-sxm-141gb", MODEL, Space(ep=(2,), tp=(2,)), "none; use ep=1"),
    ],
)
def test_reasons_of_what_is_out(device, model, space, words):
    found, out = candidates(load_model(model), load_accelerator(device), space, 4096)
    assert not found or device == "l4"
    assert any(re.search(words, one.reason) for one in out)


def test_a_target_out_of_reach_says_how_far():
    found, out = needed(1.0, Slo(ttft_s=1e-4))
    assert not found
    assert all("for a request alone, the target is 100 µs" in one.reason for one in out)


def test_pipeline_stages_only_where_one_stage_does_not_hold():
    """Llama-3.1-405B in bf16 is 812 GB: eight H100 hold 680 GB, so two stages of eight."""
    found, _ = candidates(
        load_model("llama-3.1-405b"), load_accelerator("h100-sxm5-80gb"), Space(), 4096
    )
    assert [str(one.parallel) for one in found] == ["TP8 PP2"]
    assert found[0].lanes == 2


def test_speculation_raises_capacity_when_drafts_are_free_and_accepted():
    plain, _ = needed(60.0, Slo(tpot_s=0.0065))
    drafted, _ = needed(60.0, Slo(tpot_s=0.0065), speculation=Speculation(3, 0.8))
    device = "h200-sxm-141gb"
    assert drafted[device].capacity_per_s > plain[device].capacity_per_s


def test_slow_end_needs_more_than_fast_end():
    counts = [needed(100.0, times=end)[0] for end in ("low", "mid", "high")]
    numbers = [found["h200-sxm-141gb"].replicas for found in counts]
    assert numbers == sorted(numbers)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=40))
def test_nothing_dominates_the_front_and_the_front_dominates_the_rest(pairs):
    first, second = np.array(pairs).T
    kept = set(front(first, second).tolist())
    for i in range(len(pairs)):
        beaten = any(
            first[j] >= first[i] and second[j] >= second[i]
            and (first[j] > first[i] or second[j] > second[i])
            for j in range(len(pairs))
        )  # fmt: skip
        same = any(first[j] == first[i] and second[j] == second[i] for j in kept)
        assert (not beaten) == (i in kept or same)


def test_owned_machines_are_priced_by_purchase_and_power():
    """MI300X at 15,000 USD over four years of 8,760 h: 0.428 USD; 750 W × 1.82 × 1.54 × 0.081."""
    paid = charge(Pricing(price_table(), "owned"), load_accelerator("mi300x"), 8)
    assert paid.usd_per_hour == pytest.approx(8 * (15_000 / 35_040 + 0.75 * 1.82 * 1.54 * 0.081))
    with pytest.raises(MissingDataError, match="no purchase price of trainium2"):
        charge(Pricing(price_table(), "owned"), load_accelerator("trainium2"), 8)


def test_a_plan_end_to_end():
    found = plan(
        MODEL, Traffic(requests_per_s=20, **SHORT), Slo(ttft_s=0.5, tpot_s=0.03),
        ["l40s", "mi300x", "t4"], requests=300, disaggregate=True, rack_limit_w=40e3,
    )  # fmt: skip
    assert found.met
    assert found.cheapest.accelerator == "l40s"  # the only one with a price
    assert [option.accelerator for option in found.options] == ["l40s", "mi300x"]
    assert found.options[1].money is None
    assert any("no price is known" in line for line in found.recommendation)
    assert any("mi300x has no on_demand price" in line for line in found.warnings)
    assert {one.accelerator for one in found.excluded} >= {"t4"}
    assert {split.accelerator for split in found.splits} == {"l40s", "mi300x"}
    option = found.cheapest
    assert option.plan == f"{option.replicas} replicas × {option.candidate.parallel}"
    assert option.power.racks >= 1
    assert option.latencies_s["ttft_s"] <= 0.5
    assert option.latencies_s["tpot_s"] <= 0.03
    assert option.launch.startswith("vllm serve meta-llama/Llama-3.1-8B")
    assert option.money.at_utilisation.output_usd >= option.money.full_load.output_usd
    frame = found.to_frame()
    assert list(frame["accelerator"]) == ["l40s", "mi300x"]
    assert found.to_dict()["met"] is True
    users = [point.tokens_per_s_per_user for point in found.front]
    assert users == sorted(users, reverse=True)


def test_an_api_and_a_purchase_beside_the_rent():
    """Twice the API's price halves the load at which one's own machines are cheaper."""
    shares = []
    for usd in (1.0, 2.0):
        found = plan(MODEL, Traffic(requests_per_s=20, **SHORT), Slo(tpot_s=0.03), ["l40s"],
                     requests=300, api_usd_per_million=(usd / 4, usd))  # fmt: skip
        shares.append(found.cheapest.money.api_break_even_share)
        assert found.cheapest.money.buy_after_months > 8500 / 0.79 / 730
        assert any("the API is cheaper" in line for line in found.recommendation)
        assert any("buying instead of renting" in line for line in found.recommendation)
    assert shares[0] == pytest.approx(2 * shares[1])


def test_goodput_is_near_the_load_that_was_planned_for():
    """At P95 of each of two targets, at most a tenth of the requests miss one."""
    found = plan(MODEL, Traffic(requests_per_s=20, **SHORT), Slo(ttft_s=0.5, tpot_s=0.03),
                 ["l40s"], requests=600)  # fmt: skip
    assert 0.9 * 20 * 0.97 <= found.cheapest.goodput_per_s <= 20


def test_one_output_token_needs_no_decoding():
    found = plan(MODEL, Traffic(requests_per_s=50, prompt_tokens=500, output_tokens=1),
                 Slo(ttft_s=0.5), ["l40s"], requests=300)  # fmt: skip
    assert found.met
    assert "tpot_s" not in found.cheapest.latencies_s


def test_without_targets_throughput_alone_counts():
    found = plan(MODEL, Traffic(requests_per_s=50, **SHORT), None, ["l40s"], requests=300)
    assert found.met
    assert found.cheapest.limited_by in ("throughput", "KV cache")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"accelerators": []}, InputError, "no accelerator is left"),
        ({"accelerators": ["h900"]}, UnknownNameError, "h900"),
        ({"exclude": ["l40s"]}, InputError, "no accelerator is left"),
        ({"times": "worst"}, InputError, "low, mid or high"),
        ({"engine": "vlm"}, UnknownNameError, "did you mean vllm"),
        ({"weights": []}, InputError, "leaves nothing to try"),
        ({"weights": "fp7"}, RooflineError, "fp7"),
        ({"tp": 0}, InputError, "tp must be a whole number"),
        ({"own": {"l40s": 0}}, InputError, "how many l40s"),
        ({"term": "weekly"}, UnknownNameError, "weekly"),
        ({"finalists": 0}, InputError, "finalists"),
        ({"engine": "transformers"}, RooflineError, "does not batch continuously"),
        ({"requests": 3}, InputError, "requests needs to be at least 20"),
        ({"seed": -1}, InputError, "seed"),
        ({"api_usd_per_million": (0.0, 0.0)}, InputError, "API price"),
    ],
)
def test_questions_that_cannot_be(arguments, error, words):
    with pytest.raises(error, match=words):
        plan(MODEL, Traffic(requests_per_s=1, **SHORT), None,
             **{"accelerators": ["l40s"], **arguments})  # fmt: skip
