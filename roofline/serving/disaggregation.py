"""Prefill and decode on separate instances: two simulated pools with a transfer between them.

Shapes   one array element a request, in order of arrival.
Units    second, token.
Limits   Requests go to the instances of a pool at random, by a fixed seed; a transfer takes a
         fixed time and bytes / rate and no transfer waits for another. The first token leaves the
         prefill pool; the transfer is part of TPOT, not of TTFT.
Sources  [1] Zhong et al. 2024, DistServe, arXiv:2401.09670.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError
from roofline.serving.capacity import Serving
from roofline.serving.lengths import checked, checked_tokens
from roofline.serving.simulation import simulate
from roofline.serving.simulation_result import Simulation
from roofline.serving.traffic import Requests

DEALING_SEED = 7
"""Dealing at random keeps every instance's arrivals Poisson, as a whole replica's are."""


@dataclass(frozen=True)
class Disaggregation:
    """Instances of each pool and the transfer of a prompt's cache between them."""

    prefill_instances: int
    decode_instances: int
    kv_bytes_per_token: float
    link_bytes_per_s: float
    transfer_latency_s: float = 0.0

    def __post_init__(self) -> None:
        checked_tokens("prefill_instances", self.prefill_instances)
        checked_tokens("decode_instances", self.decode_instances)
        checked("kv_bytes_per_token", self.kv_bytes_per_token)
        checked("transfer_latency_s", self.transfer_latency_s)
        if checked("link_bytes_per_s", self.link_bytes_per_s) <= 0:
            raise InputError(f"link_bytes_per_s needs to be above 0, got {self.link_bytes_per_s}")


def simulate_disaggregated(
    requests: Requests, pools: Disaggregation, prefill: Serving, decode: Serving
) -> Simulation:
    """Run requests through a prefill pool, the link and a decode pool.

    >>> from roofline.serving.step_table import constant_table
    >>> from roofline.serving.traffic import Traffic
    >>> serving = Serving(constant_table(0.1, max_batch=8, chunk_tokens=8), chunk_tokens=8)
    >>> requests = Traffic(requests_per_s=1, prompt_tokens=8, output_tokens=11).sample(50)
    >>> run = simulate_disaggregated(requests, Disaggregation(1, 1, 1.0, 1e9), serving, serving)
    >>> float(run.tpot_s.min())  # ten steps of 0.1 s and a transfer of 8 ns
    0.1
    """
    ones = np.ones_like(requests.output_tokens)
    prompts = Requests(requests.arrival_s, requests.prompt_tokens, ones, requests.cached_tokens)
    first = _pool(prompts, pools.prefill_instances, lambda part: _run(part, prefill, True))
    moved = pools.transfer_latency_s + (
        requests.prompt_tokens * pools.kv_bytes_per_token / pools.link_bytes_per_s
    )
    ready = first.finish_s + moved
    order = np.argsort(ready, kind="stable")
    # The decode pool's first token is the prefill pool's, so it starts where that was computed.
    handed = Requests(
        ready[order],
        requests.prompt_tokens[order],
        requests.output_tokens[order],
        requests.cached_tokens[order],
    )
    second = _pool(handed, pools.decode_instances, lambda part: _run(part, decode, False))
    finish = np.empty_like(second.finish_s)
    finish[order] = second.finish_s
    return Simulation(
        requests.arrival_s,
        first.finish_s,
        np.where(requests.output_tokens > 1, finish, first.finish_s),
        requests.prompt_tokens,
        requests.output_tokens,
        first.preemptions + second.preemptions,
        first.busy_s + second.busy_s,
        first.steps + second.steps,
        max(first.peak_batch, second.peak_batch),
    )


def _run(requests: Requests, serving: Serving, prefill: bool) -> Simulation:
    return simulate(
        requests,
        serving.table,
        chunk_tokens=serving.chunk_tokens,
        max_batch=serving.max_batch,
        kv_pool_tokens=serving.kv_pool_tokens,
        tokens_per_step=serving.tokens_per_step,
        prefill=prefill,
    )


def _pool(requests: Requests, instances: int, run: Callable[[Requests], Simulation]) -> Simulation:
    """Deal requests to instances at random and put the parts together again."""
    count = len(requests)
    first, finish = np.empty(count), np.empty(count)
    preemptions, busy, steps, peak = 0, 0.0, 0, 0
    dealt = np.random.default_rng(DEALING_SEED).integers(0, instances, count)
    for instance in range(instances):
        mine: NDArray[np.int64] = np.flatnonzero(dealt == instance)
        if mine.size == 0:
            continue
        part = run(
            Requests(
                requests.arrival_s[mine],
                requests.prompt_tokens[mine],
                requests.output_tokens[mine],
                requests.cached_tokens[mine],
            )
        )
        first[mine], finish[mine] = part.first_token_s, part.finish_s
        preemptions, steps = preemptions + part.preemptions, steps + part.steps
        busy, peak = busy + part.busy_s, max(peak, part.peak_batch)
    return Simulation(
        requests.arrival_s,
        first,
        finish,
        requests.prompt_tokens,
        requests.output_tokens,
        preemptions,
        busy,
        steps,
        peak,
    )
