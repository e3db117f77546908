"""Capacity of one replica: simulated latencies over load, the largest load that holds, the knee.

    capacity   the largest rate at which the percentiles of all requests are within their targets
    knee       the rate with the largest rate / latency, Kleinrock's power [1]
    goodput    requests per second that meet every target, which can rise past the capacity

Shapes   one array element a rate, ascending.
Units    request per second, second.
Limits   Every rate runs the same seeded requests, closer together. Percentiles are made
         non-decreasing in load before they are compared, so that a tighter target never gives more
         capacity; straight lines between the rates. A finite run hides slow overload.
Sources  [1] Kleinrock 1979, Power and deterministic rules of thumb for probabilistic problems in
             computer communications, ICC '79.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError
from roofline.serving.simulation import simulate
from roofline.serving.simulation_result import Simulation
from roofline.serving.step_table import StepTable
from roofline.serving.traffic import Slo, Traffic

Array = NDArray[np.float64]
METRICS = ("ttft_s", "tpot_s", "e2e_s")


@dataclass(frozen=True)
class Serving:
    """How one replica is run: its step table and its limits."""

    table: StepTable
    chunk_tokens: int = 2048
    max_batch: int | None = None
    kv_pool_tokens: float = math.inf
    tokens_per_step: float = 1.0
    request_s: float = 0.0

    def run(
        self, traffic: Traffic, *, requests_per_s: float, count: int, seed: int = 0
    ) -> Simulation:
        """Simulate so many requests at a rate.

        >>> from roofline.serving.step_table import constant_table
        >>> serving = Serving(constant_table(0.1, max_batch=1, chunk_tokens=8), chunk_tokens=8)
        >>> traffic = Traffic(requests_per_s=1, prompt_tokens=8, output_tokens=1)
        >>> serving.run(traffic, requests_per_s=1, count=10).steps
        10
        """
        return simulate(
            traffic.sample(count, requests_per_s=requests_per_s, seed=seed),
            self.table,
            chunk_tokens=self.chunk_tokens,
            max_batch=self.max_batch,
            kv_pool_tokens=self.kv_pool_tokens,
            tokens_per_step=self.tokens_per_step,
            request_s=self.request_s,
        )


@dataclass(frozen=True)
class LoadCurve:
    """Latency percentiles, goodput and throughput over a grid of rates."""

    requests_per_s: Array
    percentile: float
    ttft_s: Array
    tpot_s: Array
    e2e_s: Array
    goodput_per_s: Array
    output_tokens_per_s: Array

    def capacity_per_s(self, slo: Slo) -> float:
        """Largest rate whose percentiles hold; 0 when not even the lowest rate does.

        The answer is at most the highest rate of the grid. Below the lowest rate, where no request
        meets another, the latencies no longer change.

        >>> curve = LoadCurve(np.array([1.0, 2.0, 3.0]), 95.0, np.array([0.1, 0.3, 0.9]),
        ...                   *(np.zeros(3),) * 4)
        >>> curve.capacity_per_s(Slo(ttft_s=0.6)), curve.capacity_per_s(Slo(ttft_s=0.05))
        (2.5, 0.0)
        """
        rates = self.requests_per_s
        capacity = float(rates[-1])
        for metric in METRICS:
            target = getattr(slo, metric)
            values = np.maximum.accumulate(np.nan_to_num(getattr(self, metric), nan=0.0))
            if target is None or values[-1] <= target:
                continue
            above = int(np.argmax(values > target))
            if above == 0:
                return 0.0
            low, high = values[above - 1], values[above]
            part = (target - low) / (high - low) if math.isfinite(high) else 0.0
            reached = float(rates[above - 1] + part * (rates[above] - rates[above - 1]))
            capacity = min(capacity, reached)
        return capacity

    @property
    def knee_per_s(self) -> float:
        """Rate with the largest power, rate / end-to-end latency [1]."""
        return float(self.requests_per_s[int(np.argmax(self.requests_per_s / self.e2e_s))])


def load_curve(
    traffic: Traffic,
    serving: Serving,
    rates: Array,
    *,
    slo: Slo | None = None,
    percentile: float = 95.0,
    count: int = 2000,
    seed: int = 0,
    until_missed: bool = False,
) -> LoadCurve:
    """Simulate every rate with the same seeded requests.

    With ``until_missed`` the curve ends at the first rate that misses a target, which is where its
    capacity ends too.

    Raises:
        InputError: rates that do not ascend from above 0.

    >>> from roofline.serving.step_table import constant_table
    >>> serving = Serving(constant_table(0.1, max_batch=1, chunk_tokens=8), chunk_tokens=8)
    >>> traffic = Traffic(requests_per_s=1, prompt_tokens=8, output_tokens=1)
    >>> curve = load_curve(traffic, serving, np.array([1.0, 5.0, 9.0]))
    >>> bool(np.all(np.diff(curve.ttft_s) > 0))
    True
    """
    grid = np.asarray(rates, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or grid[0] <= 0 or np.any(np.diff(grid) <= 0):
        raise InputError(f"rates need to ascend from above 0, got {rates!r}")
    wanted = slo or Slo(percentile=percentile)
    runs: list[Simulation] = []
    for rate in grid:
        runs.append(serving.run(traffic, requests_per_s=float(rate), count=count, seed=seed))
        if until_missed and _misses(runs[-1], wanted):
            break
    grid = grid[: len(runs)]

    def column(metric: str) -> Array:
        return np.array([run.percentile(metric, wanted.percentile) for run in runs])

    return LoadCurve(
        grid,
        wanted.percentile,
        column("ttft_s"),
        column("tpot_s"),
        column("e2e_s"),
        np.array([run.goodput_per_s(wanted) for run in runs]),
        np.array([run.output_tokens_per_s for run in runs]),
    )


def _misses(run: Simulation, slo: Slo) -> bool:
    targets = ((metric, getattr(slo, metric)) for metric in METRICS)
    return any(
        target is not None and run.percentile(metric, slo.percentile) > target
        for metric, target in targets
    )


def replicas_needed(requests_per_s: float, capacity_per_s: float, slo: Slo) -> int:
    """Replicas for a load: ⌈load / (capacity (1 − headroom))⌉ and the spare ones.

    Raises:
        InputError: a replica that carries nothing.

    >>> replicas_needed(50, 11, Slo(spare_replicas=1))
    6
    """
    carried = capacity_per_s * (1 - slo.headroom)
    if not carried > 0:
        raise InputError(f"a replica that carries {capacity_per_s} requests/s carries no load")
    return math.ceil(requests_per_s / carried - 1e-9) + slo.spare_replicas
