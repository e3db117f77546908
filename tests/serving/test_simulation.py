"""Simulation against queueing theory, conservation and its own slow twin."""

import math

import numpy as np
import pytest

from roofline.errors import InputError
from roofline.serving.lengths import Empirical, LogNormal
from roofline.serving.simulation import simulate
from roofline.serving.step_table import StepTable, constant_table, tabulate
from roofline.serving.traffic import Requests, Traffic

SEEDS = range(12)


def three_errors(values: list[float], exact: float) -> bool:
    """The mean over seeds is within three of its standard errors."""
    array = np.asarray(values)
    return abs(array.mean() - exact) < 3 * array.std(ddof=1) / math.sqrt(array.size)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_m_d_1_wait(load):
    """One server, fixed service of 1 s: mean wait ρ/(2(1 − ρ)) (Pollaczek and Khinchine)."""
    traffic = Traffic(requests_per_s=load, prompt_tokens=8, output_tokens=1)
    table = constant_table(1.0, max_batch=1, chunk_tokens=8)
    waits = []
    for seed in SEEDS:
        run = simulate(traffic.sample(8000, seed=seed), table, chunk_tokens=8)
        waits.append(float(run.ttft_s[800:].mean()) - 1.0)
    assert three_errors(waits, load / (2 * (1 - load)))


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_m_m_1_wait_and_tail(load):
    """Exponential service of mean 1 s: time in system 1/(1 − ρ), P95 of it ln 20/(1 − ρ)."""
    rng_tokens = 1000
    table = StepTable(np.zeros(2), np.zeros(2), np.arange(60_002) / rng_tokens, 0.0)
    means, tails = [], []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        count = 8000
        service = np.maximum(np.rint(rng.exponential(rng_tokens, count)), 1).astype(np.int64)
        arrival = np.cumsum(rng.exponential(1 / load, count))
        ones = np.ones(count, dtype=np.int64)
        run = simulate(Requests(arrival, service, ones, 0 * ones), table, chunk_tokens=60_000)
        means.append(float(run.e2e_s[800:].mean()))
        tails.append(run.percentile("e2e_s", 95))
    assert three_errors(means, 1 / (1 - load))
    assert three_errors(tails, math.log(20) / (1 - load))


def slow(requests, table, chunk, slots):
    """The same rules, one step at a time, without any skipping or bookkeeping."""
    count = len(requests)
    first, finish, made, left = [0.0] * count, [0.0] * count, [0] * count, {}
    now, queue, running, prefilling = 0.0, list(range(count)), [], []
    while queue or running or prefilling:
        if not running and not prefilling:
            now = max(now, requests.arrival_s[queue[0]])
        budget, tokens, pairs, fresh = chunk - len(running), 0, 0.0, []
        while budget > 0:
            if not prefilling:
                ready = queue and requests.arrival_s[queue[0]] <= now
                if not ready or len(running) + len(fresh) >= slots:
                    break
                prefilling.append(queue.pop(0))
                left[prefilling[0]] = int(requests.prompt_tokens[prefilling[0]])
            request = prefilling[0]
            at = int(requests.prompt_tokens[request]) - left[request]
            take = min(budget, left[request])
            pairs += sum(at + i + 1 for i in range(take))
            left[request] -= take
            budget -= take
            tokens += take
            if left[request] == 0:
                fresh.append(prefilling.pop())
        context = sum(int(requests.prompt_tokens[r]) + made[r] for r in running)
        n = np.array(float(len(running)))
        now += float(table.step_s(n, np.array(context), np.array(tokens), np.array(pairs)))
        for request in list(running) + fresh:
            made[request] += 1
            if made[request] == 1:
                first[request] = now
            if made[request] == requests.output_tokens[request]:
                finish[request] = now
        running = [r for r in running + fresh if made[r] < requests.output_tokens[r]]
    return np.array(first), np.array(finish)


@pytest.mark.parametrize("rate", [0.5, 4.0, 40.0])
def test_skipping_equals_step_by_step(rate):
    """Another route to the same numbers: every step made, every sum taken anew."""
    traffic = Traffic(
        requests_per_s=rate, prompt_tokens=LogNormal(60, 0.8), output_tokens=LogNormal(25, 0.9)
    )
    requests = traffic.sample(150, seed=7)
    table = tabulate(
        lambda n, context, chunk, pairs: 0.004 + 1e-4 * (n + chunk) + 3e-6 * context + 1e-7 * pairs,
        max_batch=12,
        chunk_tokens=64,
        context_tokens=80,
    )
    run = simulate(requests, table, chunk_tokens=64)
    first, finish = slow(requests, table, 64, 12)
    np.testing.assert_allclose(run.first_token_s, first, rtol=1e-9)
    np.testing.assert_allclose(run.finish_s, finish, rtol=1e-9)


@pytest.mark.parametrize("preempt", [True, False])
def test_a_full_cache_conserves_requests_and_tokens(preempt):
    """Every request is answered whole, whatever was put out on the way."""
    traffic = Traffic(
        requests_per_s=50, prompt_tokens=LogNormal(100, 1.0), output_tokens=LogNormal(80, 1.0)
    )
    requests = traffic.sample(400, seed=3)
    pool = float((requests.prompt_tokens + requests.output_tokens).max()) * 1.2
    table = constant_table(0.01, max_batch=64, chunk_tokens=256)
    run = simulate(requests, table, chunk_tokens=256, kv_pool_tokens=pool, preempt=preempt)
    free = simulate(requests, table, chunk_tokens=256)
    assert np.all(run.finish_s >= run.first_token_s)
    assert np.all(run.first_token_s > run.arrival_s)
    # No request can be quicker than its own steps: the first token's and one per further token.
    assert np.all(run.e2e_s >= 0.01 * requests.output_tokens - 1e-9)
    assert (run.preemptions > 0) is preempt
    assert free.preemptions == 0
    assert run.finish_s.max() > free.finish_s.max()


def test_a_seed_repeats_and_a_rate_only_stretches_time():
    traffic = Traffic(requests_per_s=5, prompt_tokens=LogNormal(50), output_tokens=20)
    once, again = traffic.sample(500, seed=4), traffic.sample(500, seed=4)
    faster = traffic.sample(500, seed=4, requests_per_s=10)
    np.testing.assert_array_equal(once.arrival_s, again.arrival_s)
    np.testing.assert_allclose(once.arrival_s, 2 * faster.arrival_s)
    np.testing.assert_array_equal(once.prompt_tokens, faster.prompt_tokens)


def test_speculation_divides_the_steps():
    """A request of 41 tokens alone: 40 steps, or 20 at two tokens a step."""
    requests = Traffic(requests_per_s=0.001, prompt_tokens=4, output_tokens=41).sample(5)
    table = constant_table(0.1, max_batch=4, chunk_tokens=8)
    assert simulate(requests, table, chunk_tokens=8).tpot_s == pytest.approx(np.full(5, 0.1))
    double = simulate(requests, table, chunk_tokens=8, tokens_per_step=2.0)
    assert double.tpot_s == pytest.approx(np.full(5, 0.05))


def test_prefix_hits_save_prefill_but_not_context():
    """1,000 tokens with 60 % cached: 400 in the chunk; the TTFT of a lone request says so."""
    table = StepTable(np.zeros(2), np.zeros(2), np.arange(2001) * 1e-3, 0.0)
    alone = {"requests_per_s": 1e-6, "prompt_tokens": 1000, "output_tokens": 1}
    plain = simulate(Traffic(**alone).sample(2), table, chunk_tokens=1999)
    cached = simulate(Traffic(**alone, prefix_share=0.6).sample(2), table, chunk_tokens=1999)
    assert plain.ttft_s == pytest.approx([1.0, 1.0])
    assert cached.ttft_s == pytest.approx([0.4, 0.4])


def test_a_request_that_never_fits_is_refused():
    traffic = Traffic(requests_per_s=1, lengths=Empirical(((100, 10), (4000, 100))))
    table = constant_table(0.1, max_batch=4, chunk_tokens=64)
    with pytest.raises(InputError, match=r"4,100 tokens never fits a KV cache of 1,000"):
        simulate(traffic.sample(50), table, chunk_tokens=64, kv_pool_tokens=1000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chunk_tokens": 0}, "chunk_tokens needs to be 1 to"),
        ({"max_batch": 9}, "max_batch needs to be 1 to 4"),
        ({"tokens_per_step": 0.5}, "at least 1"),
        ({"kv_pool_tokens": math.nan}, "KV pool"),
    ],
)
def test_arguments_out_of_range(change, words):
    requests = Traffic(requests_per_s=1, prompt_tokens=4, output_tokens=4).sample(3)
    table = constant_table(0.1, max_batch=4, chunk_tokens=64)
    with pytest.raises(InputError, match=words):
        simulate(requests, table, **{"chunk_tokens": 64, **change})


def test_percentile_of_an_unknown_metric():
    requests = Traffic(requests_per_s=1, prompt_tokens=4, output_tokens=1).sample(3)
    run = simulate(requests, constant_table(0.1, max_batch=1, chunk_tokens=8), chunk_tokens=8)
    with pytest.raises(InputError, match="no metric 'itl'; there are: ttft_s"):
        run.percentile("itl", 95)
    assert math.isnan(run.percentile("tpot_s", 95))
    assert not any(key.endswith("tpot_s") for key in run.to_dict())


def test_a_closed_loop_keeps_its_requests_in_flight():
    """Little's law: what is in flight is rate × mean time in system; one in flight never waits."""
    traffic = Traffic(requests_per_s=1, prompt_tokens=LogNormal(200), output_tokens=LogNormal(60))
    table = tabulate(
        lambda n, context, chunk, pairs: 0.01 + 1e-4 * (n + chunk) + 1e-7 * context,
        max_batch=64, chunk_tokens=512, context_tokens=230,
    )  # fmt: skip
    requests = traffic.sample(2000, seed=4)
    run = simulate(requests, table, chunk_tokens=512, in_flight=16)
    steady = slice(200, 1800)
    span = run.finish_s[1800] - run.finish_s[200]
    assert 1600 / span * run.e2e_s[steady].mean() == pytest.approx(16, rel=0.03)
    alone = simulate(requests, table, chunk_tokens=512, in_flight=1)
    assert alone.peak_batch == 1
    assert alone.arrival_s[1:] == pytest.approx(alone.finish_s[:-1])
    with pytest.raises(InputError, match="in_flight"):
        simulate(requests, table, chunk_tokens=512, in_flight=0)
