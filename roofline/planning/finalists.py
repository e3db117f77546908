"""Finalists: the candidates that could be best are simulated, until no other could be.

Candidates are simulated in the order of the least that they could cost: capacity is what the
simulation carries, at most ``TRUST`` times the closed form's. So the answer does not depend on
where the search looked first, more load never needs fewer accelerators of a kind, and a tighter
target never costs less.

Units    request per second, second, USD per hour.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from roofline.errors import InputError
from roofline.planning.candidate import Excluded, merged
from roofline.planning.pareto import Point
from roofline.planning.search import TRUST, Sized, capacity_of, closed, why_not
from roofline.serving.capacity import load_curve, replicas_needed

LOADS = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
"""Simulated loads as shares of the closed form's saturation, which no target moves."""


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
    capacity, limit = capacity_of(curve, question.slo, lane)
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
        reason = why_not(found)
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
        if why_not(calm) is None:
            return calm
    return None


def replicas_at_ends(sized: Sized) -> tuple[int | None, int | None]:
    """Replicas at the fast and the slow end of the estimate's interval; None: target missed.

    The closed form's ratio of ends to middle scales the capacity that was found.
    """
    middle = closed(sized.candidate, replace(sized.question, times="mid")).capacity_per_s
    found: list[int | None] = []
    for end in ("low", "high"):
        capacity = closed(sized.candidate, replace(sized.question, times=end)).capacity_per_s
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
