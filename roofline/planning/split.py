"""Split deployments: prefill and decode on instances of their own, sized apart and simulated.

    prefill instances = ⌈load / rate at which prompts alone keep the TTFT target⌉
    decode instances  = ⌈load / rate at which decoding alone keeps the TPOT target⌉

Both pools are of one accelerator, each with the plan that takes the fewest of them; a pool that
misses its target in the simulation gets one more instance.

Units    request per second, second, accelerators.
Limits   A prompt's cache moves over the named network, or over PCIe when none is named, without
         waiting for others; spare replicas go to both pools.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roofline.errors import InputError, MissingDataError, RooflineError
from roofline.hardware.links import load_link
from roofline.planning.candidate import Candidate
from roofline.planning.lane import LEAST_RUNNING, LOAD_POINTS, Lane
from roofline.planning.pricing import charge
from roofline.planning.search import Question, Sized
from roofline.serving.capacity import LoadCurve, replicas_needed
from roofline.serving.disaggregation import Disaggregation, simulate_disaggregated
from roofline.serving.simulation_result import Simulation
from roofline.serving.steady import prefill_only, steady_state
from roofline.serving.traffic import Slo

MOST_ADDED = 12
"""Instances that the simulation may add before a split is given up."""
NEVER_PREFILLS = 1e-6
"""Tokens that a decode instance prefills: none, as a number that divides."""


@dataclass(frozen=True)
class Split:
    """A deployment with a prefill and a decode pool.

    Args:
        prefill, decode: the instance of each pool.
        prefill_instances, decode_instances: how many, the spare ones included.
        transfer_s: time that a mean prompt's cache takes to move.
        usd_per_hour: of both pools; None without a price.
        latencies_s: simulated, at the planned load.
        assumptions: in words.
    """

    prefill: Candidate
    decode: Candidate
    prefill_instances: int
    decode_instances: int
    transfer_s: float
    usd_per_hour: float | None
    latencies_s: dict[str, float]
    assumptions: tuple[str, ...]

    @property
    def accelerator(self) -> str:
        """Spec id."""
        return self.prefill.deployment.accelerator.id

    @property
    def accelerators(self) -> int:
        """Accelerators of both pools."""
        return (
            self.prefill_instances * self.prefill.parallel.accelerators
            + self.decode_instances * self.decode.parallel.accelerators
        )

    @property
    def plan(self) -> str:
        """The numbers as a person says them."""
        return (
            f"{self.prefill_instances} prefill × {self.prefill.parallel} + "
            f"{self.decode_instances} decode × {self.decode.parallel}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Every number in base units."""
        return {
            "accelerator": self.accelerator,
            "plan": self.plan,
            "prefill_instances": self.prefill_instances,
            "decode_instances": self.decode_instances,
            "accelerators": self.accelerators,
            "transfer_s": self.transfer_s,
            "usd_per_hour": self.usd_per_hour,
            **self.latencies_s,
        }


def best_splits(sized: Sequence[Sized], network: str | None, kept: Sequence[str]) -> list[Split]:
    """Find the split with the fewest accelerators of each kind in ``kept``.

    Args:
        sized: candidates with their lanes.
        network: link between the pools; None: PCIe.
        kept: spec ids to split.
    """
    found = []
    for device in kept:
        group = [
            one for one in sized
            if one.candidate.deployment.accelerator.id == device and one.candidate.lanes == 1
        ]  # fmt: skip
        if not group or group[0].question.traffic.mean_output_tokens <= 1:
            continue
        split = _split(group, network)
        if split is not None:
            found.append(split)
    return found


def _split(group: Sequence[Sized], network: str | None) -> Split | None:
    question = group[0].question
    prefill = _fewest([(one, _prefill_per_s(one.lane, question.slo)) for one in group], question)
    decode = _fewest([(one, _decode_per_s(one.lane, question.slo)) for one in group], question)
    if prefill is None or decode is None:
        return None
    (first, first_count), (second, second_count) = prefill, decode
    try:
        pools = _pools(first.lane, first_count, second_count, network)
    except RooflineError:
        return None
    for _ in range(MOST_ADDED):
        run = _run(question, pools, first.lane, second.lane)
        missed = _missed(run, question.slo)
        if not missed:
            return _worked_out(question, first, second, pools, run, network)
        pools = replace(
            pools,
            prefill_instances=pools.prefill_instances + int("ttft_s" in missed),
            decode_instances=pools.decode_instances + int(bool(missed - {"ttft_s"})),
        )
    return None


def _fewest(
    capacities: Sequence[tuple[Sized, float]], question: Question
) -> tuple[Sized, int] | None:
    """The instance whose pool takes the fewest accelerators, and how many of it."""
    slo = replace(question.slo, spare_replicas=0)
    counted = [
        (one, replicas_needed(question.traffic.peak_per_s, rate, slo))
        for one, rate in capacities
        if rate > 0
    ]
    return min(
        counted,
        key=lambda pair: pair[1] * pair[0].candidate.parallel.accelerators,
        default=None,
    )


def _prefill_per_s(lane: Lane, slo: Slo) -> float:
    traffic, table = lane.traffic, lane.serving.table
    cached = traffic.mean_prompt_tokens * traffic.prefix_share
    fresh = max(traffic.mean_prompt_tokens - cached, 1.0)
    state = prefill_only(
        np.linspace(0.005, 0.98, LOAD_POINTS),
        mixed_s=lambda n, chunk: table.step_s(n, n, chunk, chunk * (cached + fresh / 2)),
        prompt_tokens=fresh,
        chunk_tokens=float(lane.serving.chunk_tokens),
        prompt_variation=traffic.prompt_variation,
    )
    none = np.zeros_like(state.requests_per_s)
    ttft = state.ttft_s(slo.percentile) + lane.serving.request_s
    curve = LoadCurve(state.requests_per_s, slo.percentile, ttft, none, none, none, none)
    return curve.capacity_per_s(Slo(ttft_s=slo.ttft_s, percentile=slo.percentile))


def _decode_per_s(lane: Lane, slo: Slo) -> float:
    traffic, table = lane.traffic, lane.serving.table
    context = lane.mean_held_tokens

    def decode_s(n: np.ndarray) -> np.ndarray:
        one = np.maximum(n, 1.0)
        return table.step_s(one, one * context, np.zeros_like(n), np.zeros_like(n))

    state = steady_state(
        np.geomspace(LEAST_RUNNING, float(lane.max_batch), LOAD_POINTS),
        decode_s=decode_s,
        mixed_s=lambda n, chunk: decode_s(n) + 0 * chunk,
        prompt_tokens=NEVER_PREFILLS,
        output_tokens=traffic.mean_output_tokens,
        chunk_tokens=float(lane.serving.chunk_tokens),
        tokens_per_step=lane.serving.tokens_per_step,
    )
    fits = state.running_high(slo.percentile) * context <= lane.serving.kv_pool_tokens
    rising = np.concatenate([[True], np.diff(state.requests_per_s) > 0])
    end = int(np.argmin(fits & rising)) if not np.all(fits & rising) else fits.size
    if end == 0:
        return 0.0
    none = np.zeros(end)
    tpot = state.tpot_high_s(slo.percentile)[:end]
    curve = LoadCurve(state.requests_per_s[:end], slo.percentile, none, tpot, none, none, none)
    return curve.capacity_per_s(Slo(tpot_s=slo.tpot_s, percentile=slo.percentile))


def _pools(lane: Lane, prefill: int, decode: int, network: str | None) -> Disaggregation:
    device = lane.candidate.deployment.accelerator
    mean = lane.traffic.mean_prompt_tokens
    if network is not None:
        rate: float | None = load_link(network).bytes_per_s
    else:
        rate = device.pcie.bytes_per_s
    if rate is None:
        raise MissingDataError(f"{device.id} has no sourced PCIe; name the network")
    per_token = lane.candidate.placement.sequence_bytes(mean) / mean  # each rank sends its share
    return Disaggregation(prefill, decode, per_token, rate)


def _run(question: Question, pools: Disaggregation, first: Lane, second: Lane) -> Simulation:
    count = question.requests * min(pools.prefill_instances + pools.decode_instances, 8)
    requests = question.traffic.sample(count, seed=question.seed)
    return simulate_disaggregated(requests, pools, first.serving, second.serving)


def _missed(run: Simulation, slo: Slo) -> set[str]:
    return {
        metric
        for metric in ("ttft_s", "tpot_s", "e2e_s")
        if getattr(slo, metric) is not None
        and not run.percentile(metric, slo.percentile) <= getattr(slo, metric)
    }


def _worked_out(
    question: Question,
    first: Sized,
    second: Sized,
    pools: Disaggregation,
    run: Simulation,
    network: str | None,
) -> Split:
    spare = question.slo.spare_replicas
    mean = question.traffic.mean_prompt_tokens
    found = Split(
        first.candidate,
        second.candidate,
        pools.prefill_instances + spare,
        pools.decode_instances + spare,
        mean * pools.kv_bytes_per_token / pools.link_bytes_per_s,
        None,
        {
            f"p{percent}_{metric}": value
            for metric in ("ttft_s", "tpot_s", "e2e_s")
            for percent in (50, 95, 99)
            if not math.isnan(value := run.percentile(metric, percent))
        },
        (
            f"{first.candidate.deployment.accelerator.id}: prefill and decode apart, caches moved "
            f"over {network or 'PCIe, no network was named'}",
        ),
    )
    try:
        paid = charge(question.pricing, first.candidate.deployment.accelerator, found.accelerators)
    except (MissingDataError, InputError):
        return found
    return replace(found, usd_per_hour=paid.usd_per_hour)
