"""compare: rows against predict, both rankings, scenarios, refusals."""

import math

import pytest

from roofline.api.compare import SORTS, compare
from roofline.api.predict import predict
from roofline.errors import InputError, UnknownNameError
from roofline.serving.traffic import Workload
from roofline.timing.parallel import Parallel

MODEL = "llama-3.1-8b"
DEVICES = ["h100-sxm5-80gb", "l40s", "mi300x"]
WORK = Workload(2048, 256, batch=16)


def test_a_row_is_what_predict_says():
    """One library: the row's tokens and times are those of ``predict``."""
    (row,) = compare(MODEL, WORK, ["h100-sxm5-80gb"]).rows
    p = predict(MODEL, "h100-sxm5-80gb", prompt_tokens=2048, output_tokens=256, batch=16,
                engine="vllm")  # fmt: skip
    assert row.tokens_per_s == p.output_tokens_per_s
    assert row.ttft_s == p.ttft_s
    assert row.bound_tokens_per_s == p.bound.output_tokens_per_s
    assert row.effective_flop_per_s == pytest.approx(p.prefill.flop / p.prefill.estimate_s.mid)
    assert row.bound_tokens_per_s >= row.tokens_per_s.mid


def test_costs_add_up():
    """A full hour's bill, paid token by token."""
    (row,) = compare(MODEL, WORK, ["h100-sxm5-80gb"], prices={"h100-sxm5-80gb": 2.5}).rows
    requests = row.tokens_per_s.mid / 256 * 3600
    paid = 2048 * row.usd_per_million_input_tokens + 256 * row.usd_per_million_output_tokens
    assert requests * paid / 1e6 == pytest.approx(2.5)
    assert row.usd_per_nominal_tflop_hour == pytest.approx(2.5 / 989.4)
    assert row.usd_per_effective_tflop_hour > row.usd_per_nominal_tflop_hour


def test_rankings_by_nominal_and_effective_cost():
    found = compare(MODEL, WORK, DEVICES, prices={"mi300x": 2.9})
    nominal = sorted(found.rows, key=lambda row: row.usd_per_nominal_tflop_hour)
    assert [row.nominal_rank for row in nominal] == [1, 2, 3]
    effective = sorted(found.rows, key=lambda row: row.usd_per_effective_tflop_hour)
    assert [row.effective_rank for row in effective] == [1, 2, 3]
    assert found.rows[0].ratio_to_first == 1
    assert all(row.ratio_to_first <= 1 for row in found.rows)


def test_a_row_without_a_price_is_kept_behind():
    found = compare(MODEL, WORK, DEVICES)
    assert found.rows[-1].accelerator == "mi300x"
    assert found.rows[-1].usd_per_million_tokens is None
    assert any("no price of mi300x" in line for line in found.warnings)


@pytest.mark.parametrize("sort", SORTS)
def test_every_sort_key_sorts(sort):
    rows = compare(MODEL, WORK, DEVICES[:2], sort=sort).rows
    values = [getattr(row, sort) for row in rows]
    numbers = [getattr(value, "mid", value) for value in values]
    assert numbers == sorted(numbers, reverse=sort in ("tokens_per_s", "tokens_per_joule"))


def test_several_accelerators_where_one_does_not_hold():
    """Llama-3.3-70B in bf16 is 141 GB: more than one H100."""
    (row,) = compare("llama-3.3-70b", Workload(1024, 128, batch=4), ["h100-sxm5-80gb"]).rows
    assert row.fits
    assert row.accelerators > 1


def test_concurrency_counts_waiting_prompts_out():
    """Little's law: 32 in flight are fewer than 32 decoding, and not faster than a batch of 32."""
    (row,) = compare(MODEL, Workload(2048, 256, concurrency=32), ["h100-sxm5-80gb"]).rows
    per_user = 1 / row.tpot_s.mid
    assert row.tokens_per_s.mid < 32 * per_user
    assert row.tokens_per_s.low < row.tokens_per_s.mid < row.tokens_per_s.high
    in_flight = row.tokens_per_s.mid / 256 * (row.ttft_s.mid + 255 * row.tpot_s.mid)
    assert in_flight == pytest.approx(32, rel=0.05)


def test_requests_that_find_no_room_wait():
    """Ten thousand in flight on an L4: the rate no longer rises and Little's law gives the wait."""
    rows = [
        compare(MODEL, Workload(2048, 256, concurrency=count), ["l4"], parallel=Parallel()).rows[0]
        for count in (2000, 10_000)
    ]
    assert rows[0].tokens_per_s.mid == pytest.approx(rows[1].tokens_per_s.mid, rel=0.01)
    assert all(row.fits for row in rows)
    assert rows[1].ttft_s.mid == pytest.approx(5 * rows[0].ttft_s.mid, rel=0.1)


def test_a_measured_record_changes_the_estimate_and_shows_what_was_reached():
    """The record of the H200 that ships: its bf16 matmuls reach some 80 % of 989 TFLOP/s."""
    (typical,) = compare(MODEL, WORK, ["h200-sxm-141gb"]).rows
    (measured,) = compare(
        MODEL, WORK, ["h200-sxm-141gb"], machine={"h200-sxm-141gb": "h200-sxm-141gb"}
    ).rows
    assert typical.reached_flop_per_s is None
    assert 0.7 < measured.reached_flop_per_s / measured.peak_flop_per_s < 0.9
    assert measured.tokens_per_s.mid != typical.tokens_per_s.mid


@pytest.mark.parametrize("scenario", ["pre-training", "fine-tuning"])
def test_training_scenarios(scenario):
    found = compare(MODEL, Workload(1024, 1024, batch=16), DEVICES[:2], scenario=scenario)
    assert {row.accelerator for row in found.rows} == set(DEVICES[:2])
    for row in found.rows:
        assert row.fits
        assert 0 < row.achieved_share < 1
        assert row.ttft_s is None
        assert row.tokens_per_s.mid < row.bound_tokens_per_s


def test_what_cannot_is_excluded_with_the_reason():
    found = compare(MODEL, WORK, ["ascend-910b", "v100-sxm2-32gb", "l40s"])
    assert {one.accelerator for one in found.excluded} == {"ascend-910b", "v100-sxm2-32gb"}
    assert found.fits
    none = compare("llama-3.1-405b", WORK, ["t4"], most=2)
    assert not none.fits
    assert none.recommendation[0] == "none of these does"


def test_frame_and_dict():
    found = compare(MODEL, WORK, DEVICES[:2])
    frame = found.to_frame()
    assert {"accelerator", "tokens_per_s_mid", "usd_per_effective_tflop_hour"} <= set(frame.columns)
    assert found.to_dict()["rows"][0]["accelerator"] == frame["accelerator"].iloc[0]
    assert all(math.isfinite(value) for value in frame["tokens_per_s_mid"])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"scenario": "mining"}, UnknownNameError, "mining"),
        ({"sort": "price"}, UnknownNameError, "no sort key 'price'"),
        ({"accelerators": []}, InputError, "no accelerators to compare"),
        ({"accelerators": ["nope"]}, UnknownNameError, "nope"),
        ({"most": 0}, InputError, "most"),
        ({"term": "weekly"}, UnknownNameError, "weekly"),
    ],
)
def test_questions_that_cannot_be(arguments, error, words):
    with pytest.raises(error, match=words):
        compare(MODEL, WORK, **{"accelerators": ["l40s"], **arguments})


def test_what_many_accelerators_share_is_said_once():
    found = compare(MODEL, Workload(512, 64), ["h100-sxm5-80gb", "h200-sxm-141gb", "a10"])
    shared = [line for line in found.assumptions if "the model's own type" in line]
    assert shared == ["KV cache in bf16, the model's own type"]
    hopper = [line for line in found.assumptions if "the class Hopper reaches" in line]
    assert len(hopper) == 1
    assert hopper[0].startswith("h100-sxm5-80gb, h200-sxm-141gb: ")
