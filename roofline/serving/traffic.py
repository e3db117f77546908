"""Traffic, targets and workloads: what is asked of a deployment, as frozen data.

Shapes   ``sample`` gives arrays of one element a request: arrival, prompt and output.
Units    second, token, request per second; shares are between 0 and 1.
Limits   Arrivals are Poisson and independent of the answers; lengths of different requests are
         independent. A user is a source of requests, not a conversation with its history.
Sources  [1] Kleinrock 1975, Queueing Systems I, chapter 2 (Poisson arrivals).
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError
from roofline.serving.lengths import (
    Empirical,
    LogNormal,
    checked,
    checked_tokens,
    draw,
    longest,
)


@dataclass(frozen=True)
class Requests:
    """Requests in order of arrival, one array element each."""

    arrival_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    cached_tokens: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.arrival_s.size)


@dataclass(frozen=True)
class Traffic:
    """Load: a rate, or users who each send requests, with lengths and growth.

    The rate to plan for is ``requests_per_s × peak_factor × (1 + growth)``.

    Args:
        requests_per_s: mean rate over the hours that count; or leave it out and give users.
        users: how many users are active at once.
        requests_per_user_per_s: how often each of them asks.
        prompt_tokens: fixed, or ``LogNormal``; left out when ``lengths`` is given.
        output_tokens: the same for answers.
        lengths: recorded pairs (``load_lengths``).
        prefix_share: share of the prompt's tokens found in the prefix cache.
        peak_factor: peak rate over mean rate.
        growth: load added within the planning horizon, 0.3 = 30 % more.

    >>> Traffic(requests_per_s=50, prompt_tokens=4096, output_tokens=512, peak_factor=2).peak_per_s
    100.0
    """

    requests_per_s: float | None = None
    users: float | None = None
    requests_per_user_per_s: float | None = None
    prompt_tokens: int | LogNormal | None = None
    output_tokens: int | LogNormal | None = None
    lengths: Empirical | None = None
    prefix_share: float = 0.0
    peak_factor: float = 1.0
    growth: float = 0.0

    def __post_init__(self) -> None:
        if (self.requests_per_s is None) == (self.users is None):
            raise InputError(
                "traffic needs requests_per_s, or users with requests_per_user_per_s; one of them"
            )
        if self.requests_per_s is not None:
            checked("requests_per_s", self.requests_per_s, most=1e9)
            if self.requests_per_user_per_s is not None:
                raise InputError("requests_per_user_per_s goes with users, not with requests_per_s")
        else:
            checked("users", self.users, most=1e12)
            if self.requests_per_user_per_s is None:
                raise InputError(
                    f"users={self.users} says nothing about load; add requests_per_user_per_s"
                )
            checked("requests_per_user_per_s", self.requests_per_user_per_s, most=1e6)
        if self.mean_per_s <= 0:
            raise InputError("traffic of 0 requests per second needs no plan; give a rate above 0")
        if self.lengths is None:
            for name in ("prompt_tokens", "output_tokens"):
                value = getattr(self, name)
                if value is None:
                    raise InputError(f"traffic needs {name}, or lengths for both")
                if not isinstance(value, LogNormal):
                    checked_tokens(name, value)
        elif self.prompt_tokens is not None or self.output_tokens is not None:
            raise InputError("give lengths, or prompt_tokens and output_tokens, not both")
        checked("prefix_share", self.prefix_share, most=1)
        checked("peak_factor", self.peak_factor, least=1, most=1e6)
        checked("growth", self.growth, least=-0.999, most=1e6)

    @property
    def mean_per_s(self) -> float:
        """Mean request rate today."""
        if self.requests_per_s is not None:
            return float(self.requests_per_s)
        return float(self.users or 0.0) * float(self.requests_per_user_per_s or 0.0)

    @property
    def peak_per_s(self) -> float:
        """Rate to plan for: mean × peak factor × (1 + growth)."""
        return self.mean_per_s * self.peak_factor * (1 + self.growth)

    @property
    def mean_prompt_tokens(self) -> float:
        """Mean prompt length, cached tokens included."""
        return self._mean(self.prompt_tokens, "mean_prompt_tokens")

    @property
    def mean_output_tokens(self) -> float:
        """Mean output length."""
        return self._mean(self.output_tokens, "mean_output_tokens")

    def _mean(self, value: int | LogNormal | None, name: str) -> float:
        if self.lengths is not None:
            return float(getattr(self.lengths, name))
        return float(value.mean) if isinstance(value, LogNormal) else float(value or 0)

    @property
    def prompt_variation(self) -> float:
        """Coefficient of variation of the prompt lengths."""
        if self.lengths is not None:
            prompts = np.array([prompt for prompt, _ in self.lengths.pairs], dtype=np.float64)
            return float(prompts.std() / prompts.mean())
        return self.prompt_tokens.variation if isinstance(self.prompt_tokens, LogNormal) else 0.0

    def longest_tokens(self) -> int:
        """Longest prompt and output together that a replica has to hold; log-normal: 99.9 %."""
        if self.lengths is not None:
            return max(prompt + output for prompt, output in self.lengths.pairs)
        return sum(longest(value) for value in (self.prompt_tokens, self.output_tokens))

    def sample(self, count: int, *, requests_per_s: float | None = None, seed: int = 0) -> Requests:
        """Draw requests; the same seed gives the same requests, stretched in time with the rate.

        Raises:
            InputError: count below 1, a negative seed, or a rate that is not above 0.

        >>> traffic = Traffic(requests_per_s=2, prompt_tokens=10, output_tokens=5)
        >>> drawn = traffic.sample(1000, seed=1)
        >>> len(drawn), int(drawn.output_tokens.sum())
        (1000, 5000)
        """
        number = checked_tokens("count of requests", count)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"seed needs to be a whole number of at least 0, got {seed!r}")
        rate = self.peak_per_s if requests_per_s is None else float(requests_per_s)
        if not (math.isfinite(rate) and rate > 0):
            raise InputError(f"requests_per_s needs to be above 0, got {requests_per_s}")
        arrivals, lengths = (np.random.default_rng([seed, stream]) for stream in (1, 2))
        arrival_s = np.cumsum(arrivals.exponential(1.0, number)) / rate
        if self.lengths is not None:
            pairs = np.asarray(self.lengths.pairs, dtype=np.int64)
            drawn = pairs[lengths.integers(0, len(pairs), number)]
            prompt, output = drawn[:, 0].copy(), drawn[:, 1].copy()
        else:
            prompt = draw(self.prompt_tokens, number, lengths)
            output = draw(self.output_tokens, number, lengths)
        # The last token of a prompt is always computed: its logits give the first answer token.
        cached = np.minimum(np.floor(prompt * self.prefix_share).astype(np.int64), prompt - 1)
        return Requests(arrival_s, prompt, output, cached)


@dataclass(frozen=True)
class Slo:
    """Latency targets at a percentile, and replicas to spare for availability.

    Args:
        ttft_s: request sent to first output token.
        tpot_s: (end to end − TTFT) / (output tokens − 1), of each request.
        e2e_s: request sent to last output token.
        percentile: the share of requests that has to meet every target, in percent.
        spare_replicas: k of "n + k": replicas that may fail with the target still met.
        headroom: share of a replica's capacity left unused.

    >>> Slo(ttft_s=1.0, tpot_s=0.04).percentile
    95.0
    """

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    percentile: float = 95.0
    spare_replicas: int = 0
    headroom: float = field(default=0.0)

    def __post_init__(self) -> None:
        for name in ("ttft_s", "tpot_s", "e2e_s"):
            value = getattr(self, name)
            if value is not None and checked(name, value) <= 0:
                raise InputError(f"{name} needs to be above 0, got {value!r}")
        if checked("percentile", self.percentile, most=99.99) < 1:
            raise InputError(f"percentile is in percent, 1 to 99.99, got {self.percentile!r}")
        if checked("spare_replicas", self.spare_replicas, most=10_000) % 1:
            raise InputError(f"spare_replicas needs a whole number, got {self.spare_replicas!r}")
        checked("headroom", self.headroom, most=0.95)


@dataclass(frozen=True)
class Workload:
    """One shape of work: lengths, with a static batch or a number of requests in flight.

    >>> Workload(prompt_tokens=2048, output_tokens=256, batch=32).tokens
    2304
    """

    prompt_tokens: int
    output_tokens: int
    batch: int | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        checked_tokens("prompt_tokens", self.prompt_tokens)
        checked_tokens("output_tokens", self.output_tokens)
        if self.batch is not None and self.concurrency is not None:
            raise InputError(
                "a workload has a batch (all prompts start together) or a concurrency "
                "(requests in flight), not both"
            )
        for name in ("batch", "concurrency"):
            if getattr(self, name) is not None:
                checked_tokens(name, getattr(self, name))

    @property
    def tokens(self) -> int:
        """Tokens of one sequence, prompt and output."""
        return self.prompt_tokens + self.output_tokens
