"""Simulated first tokens against published runs of requests in flight.

Source  measurements/published/engines.csv. Each run is simulated with terms fitted without its
        accelerator and model. Benchmarks count their first wave, in which all prompts come at once
        and wait for half of the others: over ten waves that adds (concurrency + 1) / 20 prefills.
"""

from collections import defaultdict

import numpy as np
import pytest

from roofline.api.closed_loop import TIMES_SIMULATED, in_flight
from roofline.errors import RooflineError
from roofline.planning.candidate import Candidate
from roofline.planning.lane import lane_of
from roofline.serving.budget import budget
from roofline.serving.placement import Placement
from roofline.serving.traffic import Traffic
from roofline.validation.estimates import held_out_deployment
from roofline.validation.exclusions import exclusion_of
from roofline.validation.rows import engine_rows

EVERY = 6
WAVES = 10


def ratios(engine):
    """Measured over simulated TTFT and TPOT of every sixth run."""
    runs = defaultdict(dict)
    for row in engine_rows():
        if row.engine == engine:
            runs[row.run][row.quantity] = row
    judged = [
        pair
        for pair in runs.values()
        if {"ttft", "tpot"} <= pair.keys()
        and pair["ttft"].load == "concurrency"
        and exclusion_of(pair["tpot"]) is None
    ]
    found = []
    for pair in judged[::EVERY]:
        row = pair["ttft"]
        try:
            deployment = held_out_deployment(row)
            placement = Placement(
                deployment.arch, deployment.accelerator, deployment.parallel,
                deployment.formats.weights, deployment.formats.kv, deployment.engine,
            )  # fmt: skip
            memory = budget(placement, 1, row.prompt_tokens + row.output_tokens)
            traffic = Traffic(
                requests_per_s=1.0,
                prompt_tokens=int(row.prompt_tokens),
                output_tokens=int(row.output_tokens),
            )
            candidate = Candidate(deployment, placement, memory.kv_pool_bytes)
            lane = lane_of(candidate, traffic)
            _, ttft, tpot, _ = in_flight(lane, max(round(row.batch / candidate.lanes), 1))
        except RooflineError:
            continue
        alone = float(deployment.prefill_s(1.0, float(row.prompt_tokens)).mid)
        first_wave = (row.batch + 1) / 2 / WAVES * (alone - lane.serving.request_s)
        found.append((row.value / (ttft + first_wave), pair["tpot"].value / tpot))
    return np.array(found)


@pytest.mark.parametrize("engine", sorted(TIMES_SIMULATED))
def test_published_runs_lie_where_the_factors_say(engine):
    """The factors are of all runs; a sixth of them may differ by a tenth or two."""
    low, usual, high, runs = TIMES_SIMULATED[engine]
    found = ratios(engine)
    assert runs / EVERY * 0.8 < len(found)
    first = found[:, 0]
    assert np.median(first) == pytest.approx(usual, rel=0.2)
    assert 0.7 < np.mean((first > low) & (first < high)) < 0.9
    assert np.median(found[:, 1]) == pytest.approx(1.0, abs=0.15)  # no bias between tokens
