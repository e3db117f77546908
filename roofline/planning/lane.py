"""Lanes: one running batch of a replica, with its step table, its closed-form curve and limits.

A replica with pp stages or dp ranks runs pp · dp batches beside each other; each is a lane that
takes its share of the requests. A step of a lane takes the way through all stages.

Units    second, token, request per second and lane.
Limits   Every lane has its share of the KV pool of a stage. Step times are the middle of the
         estimate, or an end of its interval when asked.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roofline.planning.candidate import Candidate
from roofline.serving.capacity import LoadCurve, Serving
from roofline.serving.speculation import Speculation
from roofline.serving.steady import SteadyState, prefill_only, steady_state
from roofline.serving.step_table import StepTable, sample_grid
from roofline.serving.traffic import Slo, Traffic
from roofline.work.operators import Step

Array = NDArray[np.float64]
LOAD_POINTS = 72
LEAST_RUNNING = 0.02


@dataclass(frozen=True)
class Lane:
    """One running batch of a candidate under a traffic."""

    candidate: Candidate
    traffic: Traffic
    serving: Serving

    @cached_property
    def steady(self) -> SteadyState:
        """Steady states from hardly any load to as many sequences as fit, cut where unstable."""
        traffic, table = self.traffic, self.serving.table
        prompt, output = traffic.mean_prompt_tokens, traffic.mean_output_tokens
        cached = prompt * traffic.prefix_share
        fresh = max(prompt - cached, 1.0)
        context = prompt + output / 2

        def decode_s(n: Array) -> Array:
            # a step has one sequence at least; a mean below one is a share of the time
            one = np.maximum(n, 1.0)
            return table.step_s(one, one * context, np.zeros_like(n), np.zeros_like(n))

        def mixed_s(n: Array, chunk: Array) -> Array:
            return table.step_s(n, n * context, chunk, chunk * (cached + fresh / 2))

        common = {
            "mixed_s": mixed_s,
            "prompt_tokens": fresh,
            "chunk_tokens": float(self.serving.chunk_tokens),
            "prompt_variation": traffic.prompt_variation,
        }
        if output <= 1:
            return prefill_only(np.linspace(0.005, 0.995, LOAD_POINTS), **common)  # type: ignore[arg-type]
        running = np.geomspace(LEAST_RUNNING, float(self.max_batch), LOAD_POINTS)
        return steady_state(
            running,
            decode_s=decode_s,
            output_tokens=output,
            tokens_per_step=self.serving.tokens_per_step,
            **common,  # type: ignore[arg-type]
        )

    @property
    def max_batch(self) -> int:
        """Most sequences at once."""
        return self.serving.max_batch or self.serving.table.max_batch

    @cached_property
    def valid(self) -> int:
        """How many points of ``steady`` hold: stable, and with a rate that still rises."""
        rising = np.concatenate([[True], np.diff(self.steady.requests_per_s) > 0])
        good = self.steady.stable & rising
        return int(np.argmin(good)) if not np.all(good) else good.size

    def curve(self, slo: Slo) -> LoadCurve:
        """Latencies over load in closed form, up to the last stable rate."""
        state, end, percentile = self.steady, self.valid, slo.percentile
        held = self.mean_held_tokens
        full = state.running_high(percentile) * held > self.serving.kv_pool_tokens
        ttft = np.where(full, np.inf, state.ttft_s(percentile) + self.serving.request_s)
        tpot = state.tpot_high_s(percentile)
        e2e = np.where(full, np.inf, state.e2e_s(percentile) + self.serving.request_s)
        rates = state.requests_per_s
        return LoadCurve(
            rates[:end],
            percentile,
            ttft[:end],
            tpot[:end],
            e2e[:end],
            rates[:end],
            rates[:end] * self.traffic.mean_output_tokens,
        )

    @property
    def mean_held_tokens(self) -> float:
        """Tokens that a decoding sequence holds on average."""
        return self.traffic.mean_prompt_tokens + self.traffic.mean_output_tokens / 2

    @property
    def saturation_per_s(self) -> float:
        """Last stable rate of the closed form, whatever the targets."""
        return float(self.steady.requests_per_s[self.valid - 1]) if self.valid else 0.0

    @cached_property
    def knee(self) -> int:
        """Point of ``steady`` with the largest rate / end-to-end latency."""
        end = max(self.valid, 1)
        power = self.steady.requests_per_s[:end] / self.steady.e2e_s(50)[:end]
        return int(np.argmax(power))

    @property
    def knee_per_s(self) -> float:
        """Rate of the knee."""
        return float(self.steady.requests_per_s[self.knee])

    def prefill_share(self, requests_per_s: float) -> float:
        """Share of the time that steps take because of prefill, at a load."""
        end = self.valid
        if not end:
            return 1.0
        rates = self.steady.requests_per_s[:end]
        return float(np.interp(requests_per_s, rates, self.steady.prefill_time_share[:end]))


def lane_of(
    candidate: Candidate,
    traffic: Traffic,
    *,
    speculation: Speculation | None = None,
    times: str = "mid",
) -> Lane:
    """Tabulate the steps of a candidate and work out its limits under a traffic.

    Args:
        candidate: the replica.
        traffic: lengths and prefix share.
        speculation: draft and acceptance; None: one token a step.
        times: ``low``, ``mid`` or ``high``: which end of the estimate's interval counts.
    """
    placement = candidate.placement
    mean = traffic.mean_prompt_tokens + traffic.mean_output_tokens
    pool = candidate.pool_bytes / candidate.parallel.pp
    bytes_per_token = placement.sequence_bytes(mean) / mean
    pool_tokens = pool / bytes_per_token if bytes_per_token > 0 else float("inf")
    chunk = int(placement.chunk_tokens(mean))
    held = traffic.mean_prompt_tokens + traffic.mean_output_tokens / 2
    slots = min(placement.sequences(), max(int(pool_tokens / held), 1) * 2, max(chunk - 1, 1))
    engine = candidate.deployment.terms.engine
    serving = Serving(
        _table(candidate, traffic, slots, chunk, speculation, times),
        chunk_tokens=chunk,
        max_batch=slots,
        kv_pool_tokens=pool_tokens,
        tokens_per_step=1.0 if speculation is None else speculation.tokens_per_step,
        request_s=engine.prefill_step_s,
    )
    return Lane(candidate, traffic, serving)


def _table(
    candidate: Candidate,
    traffic: Traffic,
    slots: int,
    chunk: int,
    speculation: Speculation | None,
    times: str,
) -> StepTable:
    deployment = candidate.deployment
    engine = deployment.terms.engine
    decode_scale = getattr(engine.spread_decode, times, 1.0)
    prefill_scale = getattr(engine.spread_prefill, times, 1.0)
    context = max(traffic.mean_prompt_tokens + traffic.mean_output_tokens / 2, 2.0)
    widened = 1 if speculation is None else speculation.draft_tokens + 1
    drafting = 0.0 if speculation is None else speculation.draft_tokens * speculation.draft_s

    batch = sample_grid(slots)
    # verified tokens share their sequence's context: it is read once for all of them
    contexts = np.array([[context / 2], [context * 3 / 2]])
    step = Step(decode_sequences=batch * widened, context_tokens=contexts / widened)
    ends = deployment.middle(step, long_phase=False).seconds
    low, high = np.asarray(ends, dtype=np.float64) * decode_scale + drafting
    slope = np.maximum(high - low, 0.0) / (batch * context)
    fixed = np.maximum(low - slope * batch * context / 2, 0.0)

    # the tokens of a mixed step: one of a decoding sequence, the rest of a prompt
    tokens = sample_grid(slots * widened + chunk)
    prompt = np.maximum(tokens - 1, 1.0)
    before = max(traffic.mean_prompt_tokens, float(chunk))
    cached = np.array([0.0, before])
    step = Step(
        decode_sequences=1.0,
        context_tokens=1.0,
        prefill_sequences=1.0,
        prefill_tokens=np.concatenate([prompt, [chunk, chunk]]),
        cached_tokens=np.concatenate([np.zeros_like(prompt), cached]),
    )
    seconds = deployment.middle(step, long_phase=True).seconds - engine.prefill_step_s
    seconds = np.asarray(seconds * prefill_scale, dtype=np.float64)
    pair_s = float(max(seconds[-1] - seconds[-2], 0.0) / (chunk * before))
    mixed = np.maximum(seconds[:-2] - pair_s * prompt * (prompt + 1) / 2, 0.0)

    axis = np.arange(1, slots + 1)
    mixed_axis = np.arange(1, int(tokens[-1]) + 1)
    return StepTable(
        np.concatenate([[0.0], np.interp(axis, batch, fixed)]),
        np.concatenate([slope[:1], np.interp(axis, batch, slope)]),
        np.concatenate([[0.0], np.interp(mixed_axis, tokens, mixed)]),
        pair_s,
    )
