"""Search: which accelerators, plans and replicas carry a traffic within its targets, at what cost.

Every candidate's capacity follows in closed form here; ``finalists`` simulates those that could be
best.

Units    request per second, second, USD per hour.
Limits   Requests are dealt to replicas at random; a replica is one queue, or one a lane.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from roofline.errors import InputError, MissingDataError
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture
from roofline.planning.candidate import Candidate, Excluded, Space, candidates, merged
from roofline.planning.lane import Lane, lane_of
from roofline.planning.pricing import Charge, Pricing, charge
from roofline.serving.capacity import METRICS, LoadCurve, replicas_needed
from roofline.serving.speculation import Speculation
from roofline.serving.traffic import Slo, Traffic
from roofline.units import show

TRUST = 1.25
"""The simulation may find this much more capacity than the closed form; past it, the rest is
taken for luck of the draw."""


@dataclass(frozen=True)
class Question:
    """What is asked of a search.

    Args:
        traffic, slo: load and targets.
        pricing: offers and basis.
        own: accelerators that there are of a kind; others are without limit.
        speculation: draft and acceptance; None: none.
        api_usd_per_million: USD per million input and output tokens of an API to compare with.
        times: ``low``, ``mid`` or ``high`` end of every estimate.
        requests: requests of each simulated load.
        seed: of the requests.
    """

    traffic: Traffic
    slo: Slo
    pricing: Pricing
    own: Mapping[str, int] | None = None
    speculation: Speculation | None = None
    api_usd_per_million: tuple[float, float] | None = None
    times: str = "mid"
    requests: int = 1500
    seed: int = 0


@dataclass(frozen=True)
class Sized:
    """A candidate with its capacity and the replicas that the load takes."""

    lane: Lane
    question: Question
    capacity_per_s: float
    limited_by: str
    simulated: bool
    curve: LoadCurve

    @property
    def candidate(self) -> Candidate:
        """The replica."""
        return self.lane.candidate

    @cached_property
    def replicas(self) -> int:
        """Replicas with headroom and spare ones."""
        peak = self.question.traffic.peak_per_s
        return replicas_needed(peak, self.capacity_per_s, self.question.slo)

    @property
    def accelerators(self) -> int:
        """Accelerators of all replicas."""
        return self.replicas * self.candidate.parallel.accelerators

    @cached_property
    def charge(self) -> Charge | None:
        """What they cost; None when nobody has a price."""
        try:
            return charge(
                self.question.pricing, self.candidate.deployment.accelerator, self.accelerators
            )
        except MissingDataError:
            return None

    @cached_property
    def rank(self) -> tuple[float, float, int, float]:
        """Order: those with a price first, by cost; then by accelerators and TPOT."""
        paid = self.charge
        return (
            0.0 if paid is not None else 1.0,
            paid.usd_per_hour if paid is not None else 0.0,
            self.accelerators,
            float(self.curve.tpot_s[0]) if self.curve.tpot_s.size else 0.0,
        )

    @cached_property
    def least(self) -> "Sized":
        """The same with the capacity that a simulation can find at best."""
        if self.simulated:
            return self
        return Sized(
            self.lane,
            self.question,
            self.capacity_per_s * TRUST,
            self.limited_by,
            False,
            self.curve,
        )


def size_all(
    arch: Architecture, devices: Sequence[Accelerator], space: Space, question: Question
) -> tuple[list[Sized], list[Excluded]]:
    """Find every candidate's capacity in closed form; what carries nothing is excluded.

    Args:
        arch: the model.
        devices: accelerators to try.
        space: plans, formats and engines to try.
        question: load, targets and prices.
    """
    sized: list[Sized] = []
    excluded: list[Excluded] = []
    longest = question.traffic.longest_tokens()
    for device in devices:
        found, out = candidates(arch, device, space, longest)
        excluded += out
        for candidate in found:
            try:
                one = closed(candidate, question)
            except (InputError, MissingDataError) as error:
                excluded.append(Excluded(device.id, str(candidate.parallel), str(error)))
                continue
            reason = why_not(one)
            if reason is None:
                sized.append(one)
            else:
                plan = f"{candidate.parallel}, {candidate.deployment.weights_dtype}"
                excluded.append(Excluded(device.id, plan, reason))
    kept = {one.candidate.deployment.accelerator.id for one in sized}
    return sized, [one for one in merged(excluded) if one.accelerator not in kept] + [
        one for one in merged(excluded) if one.accelerator in kept
    ]


def closed(candidate: Candidate, question: Question) -> Sized:
    """Find a candidate's capacity in closed form; 0 when a request alone misses a target."""
    lane = lane_of(
        candidate, question.traffic, speculation=question.speculation, times=question.times
    )
    curve = lane.curve(question.slo)
    capacity, limit = capacity_of(curve, question.slo, lane)
    return Sized(lane, question, capacity * candidate.lanes, limit, False, curve)


def capacity_of(curve: LoadCurve, slo: Slo, lane: Lane) -> tuple[float, str]:
    """Capacity of a lane and the target that ends it."""
    if curve.requests_per_s.size == 0:
        return 0.0, "throughput"
    names = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "end to end"}
    alone = {
        name: curve.capacity_per_s(Slo(**{metric: getattr(slo, metric)}, percentile=slo.percentile))
        for metric, name in names.items()
        if getattr(slo, metric) is not None
    }
    full = np.isinf(curve.ttft_s)
    room = float(curve.requests_per_s[int(np.argmax(full)) - 1]) if full.any() else np.inf
    if full.any() and full[0]:
        return 0.0, "KV cache"
    name = min(alone, key=lambda key: alone[key]) if alone else "throughput"
    capacity = min(alone.values(), default=float(curve.requests_per_s[-1]))
    if room <= capacity:
        return room, "KV cache"
    if capacity >= float(curve.requests_per_s[-1]) * (1 - 1e-9):
        name = "throughput"
    return capacity, name


def why_not(sized: Sized) -> str | None:
    """Say why a candidate carries no load, or more than is owned."""
    question, curve = sized.question, sized.curve
    if sized.capacity_per_s <= 0:
        for metric in METRICS:
            target, values = getattr(question.slo, metric), getattr(curve, metric)
            if target is not None and values.size and values[0] > target:
                word = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "end to end"}[metric]
                return (
                    f"{word} is {show(float(values[0]), 's')} for a request alone, the target is "
                    f"{show(target, 's')}"
                )
        return "holds too few requests at once" if curve.requests_per_s.size else "no stable load"
    device = sized.candidate.deployment.accelerator.id
    owned = (question.own or {}).get(device)
    if owned is not None and sized.accelerators > owned:
        return f"needs {sized.accelerators} accelerators, {owned} are there"
    return None
