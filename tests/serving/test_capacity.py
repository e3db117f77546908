"""Steady state against simulation, capacity, knee and pools."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import InputError
from roofline.serving.capacity import LoadCurve, Serving, load_curve, replicas_needed
from roofline.serving.disaggregation import Disaggregation, simulate_disaggregated
from roofline.serving.simulation import simulate
from roofline.serving.speculation import Speculation
from roofline.serving.steady import normal_quantile, steady_state
from roofline.serving.step_table import constant_table, tabulate
from roofline.serving.traffic import Slo, Traffic


def step_time(n, context, chunk, pairs):
    """A 70-billion-parameter sort of replica."""
    return 0.008 + 4e-5 * (n + chunk) + 8e-8 * context + 1e-10 * pairs


def steady(running, prompt, output, chunk, table):
    context = prompt + output / 2
    return steady_state(
        running,
        decode_s=lambda n: table.step_s(n, n * context, 0 * n, 0 * n),
        mixed_s=lambda n, c: table.step_s(n, n * context, c, c * prompt / 2),
        prompt_tokens=prompt,
        output_tokens=output,
        chunk_tokens=chunk,
    )


@pytest.mark.parametrize("running", [2.0, 8.0, 32.0, 100.0])
@pytest.mark.parametrize(
    ("prompt", "output", "chunk"), [(4096, 512, 2048), (512, 512, 2048), (200, 1000, 2048)]
)
def test_steady_state_follows_the_simulation(running, prompt, output, chunk):
    """Another route: 4,000 simulated requests; the closed form is for means, so 10 % and 25 %."""
    table = tabulate(
        step_time, max_batch=512, chunk_tokens=chunk, context_tokens=prompt + output / 2
    )
    state = steady(np.array([running]), prompt, output, chunk, table)
    rate = float(state.requests_per_s[0])
    traffic = Traffic(requests_per_s=rate, prompt_tokens=prompt, output_tokens=output)
    run = simulate(traffic.sample(4000, seed=3), table, chunk_tokens=chunk)
    assert float(state.tpot_s[0]) == pytest.approx(float(run.tpot_s.mean()), rel=0.10)
    assert float(state.tpot_high_s(95)[0]) == pytest.approx(run.percentile("tpot_s", 95), rel=0.25)
    assert float(state.ttft_s(50)[0]) == pytest.approx(run.percentile("ttft_s", 50), rel=0.35)
    assert float(state.ttft_s(95)[0]) == pytest.approx(run.percentile("ttft_s", 95), rel=0.4)
    in_flight = float((run.finish_s - run.first_token_s).sum()) / run.span_s
    assert running == pytest.approx(in_flight, rel=0.12)  # Little's law, over a finite run


def test_steady_state_arrays_equal_scalars():
    table = tabulate(step_time, max_batch=64, chunk_tokens=512, context_tokens=600)
    many = steady(np.array([0.5, 3.0, 40.0]), 500, 200, 512, table)
    for index, running in enumerate((0.5, 3.0, 40.0)):
        one = steady(np.array([running]), 500, 200, 512, table)
        assert one.requests_per_s[0] == many.requests_per_s[index]
        assert one.ttft_s(95)[0] == many.ttft_s(95)[index]


def test_normal_quantile_near_scipy():
    """Values of the standard normal table; the logistic stand-in is good to 0.1."""
    for percentile, published in ((75.0, 0.674), (97.5, 1.960), (99.9, 3.090)):
        assert normal_quantile(percentile) == pytest.approx(published, abs=1.0)
    assert normal_quantile(95) == pytest.approx(1.6449)


def test_capacity_of_m_d_1_by_hand():
    """P95 of time in system below 3 s with 1 s of service; M/D/1's own curve crosses near 0.69.

    From the exact M/D/1 distribution (Erlang 1909): P(wait > 2) is 5 % at a load of 0.66.
    """
    serving = Serving(constant_table(1.0, max_batch=1, chunk_tokens=8), chunk_tokens=8)
    traffic = Traffic(requests_per_s=1, prompt_tokens=8, output_tokens=1)
    curve = load_curve(traffic, serving, np.arange(0.1, 1.0, 0.1), count=20_000)
    exact = next(load for load in np.arange(0.5, 0.9, 0.001) if 1 - erlang_wait(load, 2.0) > 0.05)
    assert curve.capacity_per_s(Slo(ttft_s=3.0)) == pytest.approx(exact, rel=0.04)


def erlang_wait(load, wait):
    """P(wait <= t) of M/D/1 with service 1 (Erlang 1909)."""
    return (1 - load) * sum(
        (-load * (wait - k)) ** k / math.factorial(k) * math.exp(load * (wait - k))
        for k in range(int(wait) + 1)
    )


@settings(max_examples=30, deadline=None)
@given(st.floats(0.02, 5.0), st.floats(0.02, 5.0), st.floats(0.01, 0.2), st.floats(0.01, 0.2))
def test_a_tighter_target_never_gives_more_capacity(ttft_a, ttft_b, tpot_a, tpot_b):
    capacity = [
        CURVE.capacity_per_s(Slo(ttft_s=ttft, tpot_s=tpot))
        for ttft, tpot in (
            (min(ttft_a, ttft_b), min(tpot_a, tpot_b)),
            (max(ttft_a, ttft_b), max(tpot_a, tpot_b)),
        )
    ]
    assert capacity[0] <= capacity[1]


TABLE = tabulate(step_time, max_batch=128, chunk_tokens=2048, context_tokens=1200)
CURVE = load_curve(
    Traffic(requests_per_s=1, prompt_tokens=1000, output_tokens=200),
    Serving(TABLE),
    np.linspace(1, 14, 8),
    count=600,
)


def test_knee_lies_within_the_grid_and_goodput_falls_short_of_load():
    slo = Slo(ttft_s=0.2, tpot_s=0.03)
    curve = load_curve(
        Traffic(requests_per_s=1, prompt_tokens=1000, output_tokens=200),
        Serving(TABLE),
        np.linspace(1, 14, 8),
        count=600,
        slo=slo,
    )
    assert curve.requests_per_s[0] < curve.knee_per_s < curve.requests_per_s[-1]
    assert np.all(curve.goodput_per_s <= curve.requests_per_s * 1.1)
    assert curve.goodput_per_s[-1] < curve.goodput_per_s.max()


def test_a_target_that_no_load_meets_leaves_no_capacity():
    assert CURVE.capacity_per_s(Slo(ttft_s=1e-6)) == 0
    assert CURVE.capacity_per_s(Slo()) == 14


@settings(max_examples=50)
@given(st.floats(0.1, 1e4), st.floats(0.1, 1e4), st.floats(0.01, 100))
def test_more_load_never_needs_fewer_replicas(load_a, load_b, capacity):
    slo = Slo(headroom=0.2, spare_replicas=1)
    low, high = sorted((load_a, load_b))
    assert replicas_needed(low, capacity, slo) <= replicas_needed(high, capacity, slo)


def test_replicas_by_hand():
    """50 requests/s over replicas of 10 with 20 % headroom: 6.25, so 7, and one to spare."""
    assert replicas_needed(50, 10, Slo(headroom=0.2, spare_replicas=1)) == 8
    with pytest.raises(InputError, match="carries no load"):
        replicas_needed(50, 0.0, Slo())


def test_rates_need_to_ascend():
    with pytest.raises(InputError, match="ascend from above 0"):
        load_curve(
            Traffic(requests_per_s=1, prompt_tokens=8, output_tokens=1),
            Serving(constant_table(0.1, max_batch=1, chunk_tokens=8), chunk_tokens=8),
            np.array([1.0, 1.0]),
        )


def test_disaggregation_keeps_prefill_out_of_tpot():
    """Decode steps of a separate pool carry no chunk: every TPOT is the decode step's alone."""
    requests = Traffic(requests_per_s=3, prompt_tokens=1000, output_tokens=200).sample(400, seed=1)
    serving = Serving(TABLE)
    together = simulate(requests, TABLE)
    apart = simulate_disaggregated(
        requests,
        Disaggregation(1, 2, kv_bytes_per_token=1e5, link_bytes_per_s=5e10),
        serving,
        serving,
    )
    assert apart.percentile("tpot_s", 95) < together.percentile("tpot_s", 95)
    assert np.all(apart.finish_s >= apart.first_token_s + 1000 * 1e5 / 5e10)
    assert np.all(apart.first_token_s > apart.arrival_s)


def test_disaggregation_of_one_output_token_needs_no_decode_pool():
    requests = Traffic(requests_per_s=3, prompt_tokens=100, output_tokens=1).sample(20)
    serving = Serving(TABLE)
    run = simulate_disaggregated(requests, Disaggregation(2, 2, 1e5, 1e9), serving, serving)
    np.testing.assert_array_equal(run.finish_s, run.first_token_s)


@pytest.mark.parametrize(
    ("acceptance", "drafted", "tokens"),
    [(0.0, 4, 1.0), (1.0, 4, 5.0), (0.8, 4, 3.3616), (0.6, 2, 1.96)],
)
def test_tokens_per_step(acceptance, drafted, tokens):
    """Leviathan et al. 2023, equation 1, summed by hand: 1 + a + a² + …"""
    assert Speculation(drafted, acceptance).tokens_per_step == pytest.approx(tokens)
    assert Speculation(drafted, acceptance).tokens_per_step == pytest.approx(
        sum(acceptance**k for k in range(drafted + 1))
    )


def test_a_load_curve_is_plain_data():
    curve = LoadCurve(np.array([1.0]), 95.0, *(np.array([0.5]),) * 5)
    assert curve.knee_per_s == 1.0
