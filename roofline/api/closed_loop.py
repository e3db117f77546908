"""A closed loop of requests in flight, simulated: each answer sends the next request.

Units    second, request per second.
Limits   First tokens of engines come later than simulated, by what a first token alone waits for
         (sending, tokenising, scheduling) and by what published runs do not state, such as their
         token budget: ``TIMES_SIMULATED``. The time between tokens, which contains the same
         prefill, has no such bias.
Sources  ``measurements/published/engines.csv``, judged with terms fitted without each row's
         accelerator and model; tests/validation/test_first_tokens.py works the factors out.
"""

from dataclasses import replace

import numpy as np

from roofline.planning.lane import Lane
from roofline.serving.simulation import simulate
from roofline.serving.traffic import Requests
from roofline.timing.interval import Interval

WAVES, LEAST_SIMULATED, MOST_SIMULATED = 8, 64, 20_000
"""Requests of a simulated closed loop: waves of the concurrency, within limits."""
SPREAD = 0.1
"""Share by which lengths in a simulated closed loop lie around their mean."""


TIMES_SIMULATED = {
    "vllm": (0.9, 1.5, 2.0, 410),
    "sglang": (2.2, 3.9, 8.9, 409),
    "tensorrt-llm": (1.1, 1.8, 3.7, 688),
}
"""Measured over simulated time to first token: 10th percentile, median, 90th, published runs."""


def widened(first_token_s: Interval, engine: str) -> Interval:
    """Widen a simulated time to first token by how far runs of the engine lay from theirs.

    >>> widened(Interval(0.09, 0.1, 0.12), "vllm")
    Interval(low=0.09, mid=0.1, high=0.2)
    """
    if engine not in TIMES_SIMULATED:
        return first_token_s
    low, _, high, _ = TIMES_SIMULATED[engine]
    middle = float(first_token_s.mid)
    return Interval(
        min(float(first_token_s.low), low * middle),
        middle,
        max(float(first_token_s.high), high * middle),
    )


def later_than_simulated(engine: str) -> str | None:
    """Say how first tokens of an engine compare with simulated ones; None: nobody knows."""
    if engine not in TIMES_SIMULATED:
        return None
    low, usual, high, runs = TIMES_SIMULATED[engine]
    return (
        f"first tokens of {engine} came {low:g} to {high:g} times as late as simulated, {usual:g} "
        f"at the median of {runs} published runs: leave that in a TTFT target"
    )


def in_flight(lane: Lane, concurrency: int) -> tuple[float, float, float, float]:
    """Simulate a closed loop: rate, mean TTFT and TPOT, and sequences that decode on average.

    The first wave, when all prompts come at once, is left out of the means. Benchmarks count it: a
    mean TTFT of theirs over w waves is higher by (concurrency + 1) / 2w prompts' prefill.
    """
    serving = lane.serving
    count = max(min(WAVES * concurrency, MOST_SIMULATED), 2 * concurrency, LEAST_SIMULATED)
    run = simulate(
        _spread(lane.traffic.sample(count), serving.kv_pool_tokens),
        serving.table,
        chunk_tokens=serving.chunk_tokens,
        max_batch=serving.max_batch,
        kv_pool_tokens=serving.kv_pool_tokens,
        tokens_per_step=serving.tokens_per_step,
        request_s=serving.request_s,
        in_flight=concurrency,
    )
    later = slice(concurrency, None)
    ttft, tpot = float(run.ttft_s[later].mean()), float(run.tpot_s[later].mean())
    gaps = lane.traffic.mean_output_tokens - 1
    rate = concurrency / (ttft + gaps * tpot)  # Little's law
    return rate, ttft, tpot, rate * gaps * tpot


def _spread(requests: Requests, pool_tokens: float) -> Requests:
    """Let lengths vary evenly around their mean; alike, all would run and prefill in lockstep."""
    count = len(requests)
    shares = np.random.default_rng(0).permutation(np.linspace(1 - SPREAD, 1 + SPREAD, count))
    other = np.random.default_rng(1).permutation(shares)
    prompt = np.maximum(np.rint(requests.prompt_tokens * shares), 1).astype(np.int64)
    output = np.maximum(np.rint(requests.output_tokens * other), 1).astype(np.int64)
    if (prompt + output).max() > pool_tokens:
        return requests
    return replace(requests, prompt_tokens=prompt, output_tokens=output)
