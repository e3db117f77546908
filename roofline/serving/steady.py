"""Steady state of continuous batching in closed form, for one replica or arrays of them.

With n sequences decoding and g output tokens, n/(g − 1) requests finish and as many prompts of p
tokens enter per step [1]; they fill a share φ of the steps with chunks of C tokens, and

    TPOT = t_decode(n) + φ (t_mixed(n, C) − t_decode(n)),   φ = n p / ((g − 1) C)
    rate = n / ((g − 1) TPOT)                                (Little's law)

C is a prompt, or as many as arrive in a step, up to the budget. The running number fluctuates as a
birth-and-death process whose death rate is n / ((g − 1) TPOT); linearised, its variance is n / (1
− ε), ε being the elasticity of TPOT in n at a fixed rate [3]: Poisson when TPOT doesn't depend on
n, wide when it does. Prompts queue for the chunks as in M/G/1: mean wait by Pollaczek and
Khinchine, its tail taken as exponential, which is exact for M/M/1.

Shapes   every argument is a number or an array; they broadcast, and the result has that shape.
Units    second, token, request per second.
Limits   Means over the length distribution; a KV cache that runs full shows as ``running_high``
         above what the cache holds.
Sources  [1] Little 1961, A proof for the queuing formula L = λW.
         [2] Kleinrock 1975, Queueing Systems I, sections 3.4 (M/G/∞), 5.6 (M/G/1).
         [3] van Kampen 2007, Stochastic Processes in Physics and Chemistry, chapter X.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CHUNK_ROUNDS = 5
"""Rounds in which a chunk and the prompts that arrive during its step settle."""
_Z = {50.0: 0.0, 90.0: 1.2816, 95.0: 1.6449, 99.0: 2.3263}


@dataclass(frozen=True)
class SteadyState:
    """Rates and latencies at given numbers of running sequences; arrays of one shape."""

    running: Array
    requests_per_s: Array
    tpot_s: Array
    step_s: Array
    prefill_busy: Array
    prefill_time_share: Array
    mean_wait_s: Array
    prefill_s: Array
    stable: NDArray[np.bool_]
    output_tokens: Array
    elasticity: Array
    interruption_s: Array
    step_at: Callable[[Array], Array]
    tokens_per_step: float

    def ttft_s(self, percentile: float) -> Array:
        """Time to first token at a percentile: wait for earlier prompts, then the own prompt.

        An arriving request first waits for the step under way, half a step on average.
        """
        tail = 1 - percentile / 100
        busy = np.clip(self.prefill_busy, 1e-12, 1)
        wait = self.mean_wait_s / busy * np.maximum(np.log(busy / tail), 0)
        begun = np.minimum(percentile / 100, 1.0) * self.step_s
        return np.where(self.stable, wait + begun + self.prefill_s, np.inf)

    def running_high(self, percentile: float) -> Array:
        """Running sequences at a percentile of time, see the module's head."""
        spread = np.sqrt(self.running / (1 - self.elasticity))
        return self.running + normal_quantile(percentile) * spread

    def tpot_high_s(self, percentile: float) -> Array:
        """TPOT at a percentile of requests: the step at the running number that a request sees.

        A request averages over its life, (1 − ε) correlation times long.
        """
        life = 1 - self.elasticity
        averaged = 2 * (life - 1 + np.exp(-life)) / life**2
        z = max(normal_quantile(percentile), 0.0)
        seen = self.running + z * np.sqrt(self.running / life * averaged)
        crowded = self.step_at(np.maximum(seen, 1.0)) - self.step_s
        # As many prompts as run, give or take the root of that, come in during a request's life.
        interrupted = z * np.sqrt(self.running) * self.interruption_s
        high = self.tpot_s + np.hypot(np.maximum(crowded, 0), interrupted) / self.tokens_per_step
        return np.where(self.stable, high, np.inf)

    def e2e_s(self, percentile: float) -> Array:
        """Sent to last token, at most: TTFT at the percentile and decoding at the percentile."""
        gaps = np.maximum(self.output_tokens - 1, 0)
        return self.ttft_s(percentile) + gaps * self.tpot_high_s(percentile)


def normal_quantile(percentile: float) -> float:
    """Quantile of the standard normal, by the logistic approximation outside the usual four.

    >>> normal_quantile(95.0)
    1.6449
    """
    known = _Z.get(float(percentile))
    if known is not None:
        return known
    share = percentile / 100
    return float(np.log(share / (1 - share)) / 1.702)  # within 0.01 in probability


def steady_state(
    running: Array,
    *,
    decode_s: Callable[[Array], Array],
    mixed_s: Callable[[Array, Array], Array],
    prompt_tokens: float,
    output_tokens: float,
    chunk_tokens: float,
    prompt_variation: float = 0.0,
    tokens_per_step: float = 1.0,
) -> SteadyState:
    """Solve for rate and latencies at ``running`` decoding sequences on average.

    Args:
        running: mean number of decoding sequences, above 0.
        decode_s: time of a step in which n sequences decode.
        mixed_s: time of a step in which n decode beside a chunk of C prompt tokens.
        prompt_tokens: mean tokens to prefill a request, without cached ones; above 0.
        output_tokens: mean output tokens, above 1.
        chunk_tokens: token budget of a step.
        prompt_variation: coefficient of variation of the prompt length.
        tokens_per_step: output tokens a sequence gains per step.

    >>> state = steady_state(np.array([10.0]), decode_s=lambda n: 0.02 + 0 * n,
    ...     mixed_s=lambda n, chunk: 0.05 + 0 * n, prompt_tokens=1000, output_tokens=101,
    ...     chunk_tokens=1010)
    >>> float(state.step_s[0]), float(state.requests_per_s[0])  # every tenth step has a chunk
    (0.023, 4.3478)
    """
    n = np.asarray(running, dtype=np.float64)
    steps = np.maximum((output_tokens - 1) / tokens_per_step, 1e-9)  # decode steps of a request

    def budget_at(running: Array) -> Array:
        return np.maximum(chunk_tokens - running * tokens_per_step, 1.0)

    def chunk_at(running: Array, arriving: Array) -> Array:
        """Tokens of a chunk: a prompt, or the several that arrive in a step, up to the budget."""
        budget = budget_at(running)
        return np.clip(arriving, np.minimum(budget, prompt_tokens), budget)

    budget, arriving = budget_at(n), n * prompt_tokens / steps  # prompt tokens a step on average
    chunk = chunk_at(n, arriving)
    alone, mixed = decode_s(n), mixed_s(n, chunk)
    added = np.maximum(mixed - alone, 0.0)
    share = np.minimum(arriving / chunk, 1.0)
    step = alone + share * added
    rate = n / (steps * step)
    # Prompts that wait are served together: the queue drains at the rate of full chunks.
    service = prompt_tokens / budget * mixed_s(n, budget)
    busy = np.clip(rate * service, 0.0, 1.0)
    stable = (arriving < budget) & (rate * service < 1)
    free = np.maximum(1 - busy, 1e-12)
    # A request begins to decode when its prompt is done, so it meets the prompts queued behind it.
    interruption = prompt_tokens / chunk * added / steps
    behind = busy + busy**2 / (2 * free)
    wait = busy * service * (1 + prompt_variation**2) / (2 * free)

    def step_at(running: Array) -> Array:
        """Mean step when the running number is another and the rate is the same."""
        alone = decode_s(running)
        load = rate * prompt_tokens
        chunk = budget_at(running)
        found = alone
        for _ in range(CHUNK_ROUNDS):  # from the largest chunk, the cheapest a token, down
            added = np.maximum(mixed_s(running, chunk) - alone, 0.0)
            left = 1 - load / chunk * added
            found = np.where(left > 1e-3, alone / np.maximum(left, 1e-3), np.inf)
            chunk = chunk_at(running, np.where(np.isfinite(found), load * found, np.inf))
        return found

    nudge = 1.02
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = step_at(n * nudge) / step_at(n)
    elasticity = np.where(np.isfinite(ratio), np.log(np.maximum(ratio, 1.0)) / np.log(nudge), 0.95)
    return SteadyState(
        running=n,
        requests_per_s=rate,
        tpot_s=(step + behind * busy * interruption) / tokens_per_step,
        step_s=step,
        prefill_busy=busy,
        prefill_time_share=share * added / step,
        mean_wait_s=wait,
        prefill_s=np.maximum(prompt_tokens / chunk, 1.0) * mixed,
        stable=np.asarray(stable),
        output_tokens=np.broadcast_to(np.asarray(output_tokens, dtype=np.float64), n.shape),
        elasticity=np.clip(elasticity, 0.0, 0.95),
        interruption_s=interruption,
        step_at=step_at,
        tokens_per_step=tokens_per_step,
    )


def prefill_only(
    busy_share: Array,
    *,
    mixed_s: Callable[[Array, Array], Array],
    prompt_tokens: float,
    chunk_tokens: float,
    prompt_variation: float = 0.0,
) -> SteadyState:
    """Solve for requests of one output token: prompts queue for the chunks and nothing decodes.

    >>> state = prefill_only(np.array([0.5]), mixed_s=lambda n, chunk: 0.1 + 0 * n,
    ...                      prompt_tokens=100, chunk_tokens=100)
    >>> float(state.requests_per_s[0]), float(state.mean_wait_s[0])
    (5.0, 0.05)
    """
    busy = np.asarray(busy_share, dtype=np.float64)
    none = np.zeros_like(busy)
    full = none + chunk_tokens
    service = prompt_tokens / full * mixed_s(none, full)
    rate = busy / service
    least = np.minimum(full, prompt_tokens)
    chunk = least
    for _ in range(CHUNK_ROUNDS):
        chunk = np.clip(rate * prompt_tokens * mixed_s(none, chunk), least, full)
    mixed = mixed_s(none, chunk)
    free = np.maximum(1 - busy, 1e-12)
    return SteadyState(
        running=none,
        requests_per_s=rate,
        tpot_s=none,
        step_s=np.minimum(rate * prompt_tokens / chunk * mixed, 1.0) * mixed,
        prefill_busy=busy,
        prefill_time_share=none + 1.0,
        mean_wait_s=busy * service * (1 + prompt_variation**2) / (2 * free),
        prefill_s=np.maximum(prompt_tokens / chunk, 1.0) * mixed,
        stable=np.asarray(busy < 1),
        output_tokens=np.ones_like(busy),
        elasticity=none,
        interruption_s=none,
        step_at=lambda running: none,
        tokens_per_step=1.0,
    )
