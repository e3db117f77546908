"""Search: which accelerators, plans and replicas carry a traffic within its targets, at what cost.

Every candidate's capacity follows in closed form. Candidates are then simulated, those that could
still be cheapest first, until no other could be: capacity is what the simulation carries, at most
``TRUST`` times the closed form's. So the answer does not depend on where the search looked first,
more load never needs fewer accelerators of a kind, and a tighter target never costs less.

Units    request per second, second, USD per hour.
Limits   Requests are dealt to replicas at random; a replica is one queue, or one a lane.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from roofline.errors import InputError, MissingDataError
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture
from roofline.planning.candidate import Candidate, Excluded, Space, candidates, merged
from roofline.planning.lane import Lane, lane_of
from roofline.planning.pareto import Point
from roofline.planning.pricing import Charge, Pricing, charge
from roofline.serving.capacity import METRICS, LoadCurve, load_curve, replicas_needed
from roofline.serving.speculation import Speculation
from roofline.serving.traffic import Slo, Traffic
from roofline.units import show

TRUST = 1.25
"""The simulation may find this much more capacity than the closed form; past it, the rest is
taken for luck of the draw."""
LOADS = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
"""Simulated loads as shares of the closed form's saturation, which no target moves."""


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
                one = _closed(candidate, question)
            except (InputError, MissingDataError) as error:
                excluded.append(Excluded(device.id, str(candidate.parallel), str(error)))
                continue
            reason = _why_not(one)
            if reason is None:
                sized.append(one)
            else:
                plan = f"{candidate.parallel}, {candidate.deployment.weights_dtype}"
                excluded.append(Excluded(device.id, plan, reason))
    kept = {one.candidate.deployment.accelerator.id for one in sized}
    return sized, [one for one in merged(excluded) if one.accelerator not in kept] + [
        one for one in merged(excluded) if one.accelerator in kept
    ]


def _closed(candidate: Candidate, question: Question) -> Sized:
    lane = lane_of(
        candidate, question.traffic, speculation=question.speculation, times=question.times
    )
    curve = lane.curve(question.slo)
    capacity, limit = _capacity(curve, question.slo, lane)
    return Sized(lane, question, capacity * candidate.lanes, limit, False, curve)


def _capacity(curve: LoadCurve, slo: Slo, lane: Lane) -> tuple[float, str]:
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


def _why_not(sized: Sized) -> str | None:
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


def simulated(sized: Sized) -> Sized:
    """Find a candidate's capacity by simulation, up to ``TRUST`` × the closed form's.

    Raises:
        InputError: a request that never fits the cache.
    """
    question, lane = sized.question, sized.lane
    curve = load_curve(
        question.traffic,
        lane.serving,
        lane.saturation_per_s * LOADS,
        slo=question.slo,
        count=question.requests,
        seed=question.seed,
        until_missed=True,
    )
    capacity, limit = _capacity(curve, question.slo, lane)
    most = sized.capacity_per_s * TRUST
    return Sized(lane, question, min(capacity * sized.candidate.lanes, most), limit, True, curve)


def best_of_each(sized: Sequence[Sized], *, finalists: int) -> tuple[list[Sized], list[Excluded]]:
    """Take the best candidate of each accelerator, simulated where it could lead.

    Accelerators are gone through by the least that they could cost; at least ``finalists`` are
    simulated, and as many more as could still be cheapest.
    """
    by_device: dict[str, list[Sized]] = {}
    for one in sized:
        by_device.setdefault(one.candidate.deployment.accelerator.id, []).append(one)
    groups = sorted(by_device.values(), key=lambda group: min(one.least.rank for one in group))
    kept: list[Sized] = []
    excluded: list[Excluded] = []
    for index, group in enumerate(groups):
        could_lead = min(one.least.rank for one in group) < min(
            (one.rank for one in kept if one.simulated), default=(2.0,)
        )
        if index < finalists or could_lead:
            best, out = _best(group)
            excluded += out
            kept += [best] if best is not None else []
        else:
            kept.append(min(group, key=lambda one: one.rank))
    # What was not simulated comes last, so that a cheaper price never ranks lower.
    return sorted(kept, key=lambda one: (not one.simulated, one.rank)), merged(excluded)


def _best(group: Sequence[Sized]) -> tuple[Sized | None, list[Excluded]]:
    """Simulate an accelerator's candidates while one could still be better; branch and bound."""
    best: Sized | None = None
    excluded: list[Excluded] = []
    for one in sorted(group, key=lambda item: item.least.rank):
        if best is not None and one.least.rank >= best.rank:
            break
        device = one.candidate.deployment.accelerator.id
        try:
            found = simulated(one)
        except InputError as error:
            excluded.append(Excluded(device, str(one.candidate.parallel), str(error)))
            continue
        reason = _why_not(found)
        if reason is not None:
            excluded.append(Excluded(device, str(one.candidate.parallel), reason))
        elif best is None or found.rank < best.rank:
            best = found
    return best, excluded


def fastest_of(sized: Sequence[Sized]) -> Sized | None:
    """The candidate that is fastest for a user when it runs at its knee, simulated.

    A replica then carries the least of its capacity and its knee's rate.
    """

    def speed(one: Sized) -> tuple[float, float]:
        knee = one.lane.knee
        return float(one.lane.steady.tpot_s[knee]), float(one.lane.steady.ttft_s(50)[knee])

    for one in sorted(sized, key=speed):
        try:
            found = simulated(one)
        except InputError:
            continue
        knee = one.lane.knee_per_s * one.candidate.lanes
        calm = replace(found, capacity_per_s=min(found.capacity_per_s, knee))
        if _why_not(calm) is None:
            return calm
    return None


def replicas_at_ends(sized: Sized) -> tuple[int | None, int | None]:
    """Replicas at the fast and the slow end of the estimate's interval; None: target missed.

    The closed form's ratio of ends to middle scales the capacity that was found.
    """
    middle = _closed(sized.candidate, replace(sized.question, times="mid")).capacity_per_s
    found: list[int | None] = []
    for end in ("low", "high"):
        capacity = _closed(sized.candidate, replace(sized.question, times=end)).capacity_per_s
        scaled = sized.capacity_per_s * capacity / middle if middle > 0 else 0.0
        peak, slo = sized.question.traffic.peak_per_s, sized.question.slo
        found.append(replicas_needed(peak, scaled, slo) if scaled > 0 else None)
    return found[0], found[1]


def points(sized: Sequence[Sized]) -> list[Point]:
    """All candidates at all loads of the closed form, for the Pareto front."""
    found = []
    for one in sized:
        state, end = one.lane.steady, one.lane.valid
        tpot = state.tpot_s[:end]
        count, lanes = one.candidate.parallel.accelerators, one.candidate.lanes
        paid = one.charge
        hourly = None if paid is None else paid.usd_per_hour / paid.paid_accelerators
        rates = state.requests_per_s[:end]
        output = one.question.traffic.mean_output_tokens
        for rate, gap, running in zip(rates, tpot, state.running[:end], strict=True):
            if gap <= 0 or running < 1:
                continue
            each = float(rate * lanes * output / count)
            found.append(
                Point(
                    one.candidate.deployment.accelerator.id,
                    str(one.candidate.parallel),
                    float(1 / gap),
                    each,
                    float(rate * lanes),
                    None if hourly is None else hourly / (each * 3600) * 1e6,
                    bool(rate * lanes <= one.capacity_per_s),
                )
            )
    return found
