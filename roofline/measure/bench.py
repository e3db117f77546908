"""The timing harness: what is between two readings of a clock, and nothing else.

Two timers, never mixed in one number. ``time_kernel`` reads device events around replays of one
captured graph, so that launches do not count; ``time_wall`` reads the host's clock around
synchronised work, as a user would see it. A device without events (a CPU) runs its calls one after
the other, and its kernel time is the wall time of the call.

Shapes   ``launches`` is one callable per operand set; a cycle runs each once. Operand sets that
         together exceed the cache several times keep the cache cold.
Units    Seconds.
Limits   Random data is the caller's: zeros run faster (an H200's bf16 matmul: 776 against 650
         TFLOP/s sustained). ``spread`` = (p90 − p10) / median.
Sources  [1] NVIDIA, CUDA C++ Best Practices Guide, section "Using CUDA GPU Timers".
         [2] NVIDIA, NVML API reference, "Clocks event reasons".
"""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roofline.errors import InputError
from roofline.measure.framework import torch

SPREAD_LIMIT = 0.10
KEPT_TIMES = 20
_LONGEST_GRAPH = 4096

Launch = Callable[[], Any]


@dataclass(frozen=True)
class Timing:
    """What came out: seconds for one launch.

    Args:
        median_s, spread, times_s: of one launch; each time is one run of ``launches_per_run``.
        timer: ``kernel`` or ``wall``.
        flags: what is doubtful.
    """

    median_s: float
    spread: float
    times_s: tuple[float, ...]
    timer: str
    launches_per_run: int = 1
    flags: tuple[str, ...] = ()

    def flagged(self, *flags: str) -> "Timing":
        """The same timing with more flags."""
        return replace(self, flags=self.flags + tuple(flag for flag in flags if flag))

    def row(self) -> dict[str, Any]:
        """The fields of a record's row."""
        return {
            "median_s": self.median_s,
            "spread": self.spread,
            "times_s": self.times_s,
            "timer": self.timer,
            "flags": self.flags,
        }


def summarise(times_s: Sequence[float], timer: str, launches_per_run: int = 1) -> Timing:
    """Median and spread of raw times, flagged when they scatter.

        spread = (p90 − p10) / median

    Raises:
        InputError: no times, or one that is not positive and finite.

    >>> timing = summarise([1.0, 1.0, 1.0, 1.5], "wall")
    >>> timing.median_s, timing.spread, timing.flags
    (1.0, 0.35, ('spread above 10 % of the median',))
    """
    times = np.asarray(times_s, dtype=np.float64)
    if times.size == 0 or not np.all(np.isfinite(times)) or np.any(times <= 0):
        raise InputError(f"times must be positive and finite, got {list(times_s)[:5]}")
    median = float(np.median(times))
    low, high = np.percentile(times, [10, 90])
    spread = float(high - low) / median
    flags = (f"spread above {SPREAD_LIMIT:.0%} of the median".replace("%", " %"),)
    kept = times[:: max(1, math.ceil(times.size / KEPT_TIMES))]
    return Timing(
        median_s=_digits(median),
        spread=_digits(spread),
        times_s=tuple(_digits(float(value)) for value in kept),
        timer=timer,
        launches_per_run=launches_per_run,
        flags=flags if spread > SPREAD_LIMIT else (),
    )


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


def operand_sets(set_bytes: float, cache_bytes: float | None, times: float = 4.0) -> int:
    """Operand sets that together exceed the cache ``times`` times.

    >>> operand_sets(10e6, 60e6), operand_sets(1e9, 60e6), operand_sets(1.0, None)
    (24, 1, 1)
    """
    if not cache_bytes or set_bytes <= 0:
        return 1
    return max(1, min(512, math.ceil(times * cache_bytes / set_bytes)))


def time_kernel(
    device: Any,
    launches: Sequence[Launch],
    *,
    warmup_s: float = 0.02,
    budget_s: float = 0.12,
    run_s: float = 2e-3,
    min_runs: int = 10,
    settle_s: float = 0.0,
    use_graph: bool = True,
) -> Timing:
    """Time one launch on the device itself: replays of a graph between two events.

    Args:
        device: a torch device.
        launches: one callable per operand set; each enqueues one launch of what is timed.
        warmup_s: replays before the first reading.
        budget_s: time for all readings; at least ``min_runs`` are taken.
        run_s: least length of one reading, so that reading the clock does not count.
        settle_s: idle time before, so that a burst starts at full clocks.
        use_graph: False to launch eagerly between the events.

    Raises:
        InputError: nothing to launch.
    """
    if not launches:
        raise InputError("nothing to time: no launches")
    if device.type != "cuda":
        return _time_calls(launches, warmup_s, budget_s, run_s, min_runs)
    stream = torch.cuda.Stream(device)
    flags: tuple[str, ...] = ()
    with torch.cuda.stream(stream), torch.inference_mode():
        one_s = _rough_launch_s(launches)
        count = _launches_per_run(len(launches), one_s, run_s)
        run, graphed = _enqueue_run(launches, count, stream, use_graph)
        if use_graph and not graphed:
            flags = ("could not be captured as a graph: launches count",)
        torch.cuda.synchronize(device)
        run_length_s = _warm_up(run, 0.0, device)
        if settle_s:
            time.sleep(settle_s)
        run_length_s = min(run_length_s, _warm_up(run, warmup_s, device))
        runs = int(min(200, max(min_runs, budget_s / max(run_length_s, 1e-6))))
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
        marks[0].record(stream)
        for mark in marks[1:]:
            run()
            mark.record(stream)
        torch.cuda.synchronize(device)
    gaps = [first.elapsed_time(second) for first, second in itertools.pairwise(marks)]
    milliseconds_per_s = 1e3
    times = [gap / milliseconds_per_s / count for gap in gaps]
    return summarise(times, "kernel", count).flagged(*flags)


_LAUNCH_S = 20e-6
"""Up to this, what an eager launch shows is the host; the kernel may take a microsecond."""


def _rough_launch_s(launches: Sequence[Launch]) -> float:
    """Time of one launch, roughly: sets the length of a run; the first pass warms up."""
    for launch in launches[:3]:
        launch()
    torch.cuda.synchronize()
    some = launches[: min(len(launches), 8)]
    begin = time.perf_counter()
    for launch in some:
        launch()
    torch.cuda.synchronize()
    one_s = (time.perf_counter() - begin) / len(some)
    return one_s if one_s > _LAUNCH_S else 2e-6


def _launches_per_run(sets: int, one_s: float, run_s: float) -> int:
    """Whole cycles over the operand sets that last ``run_s``, one launch when that lasts."""
    if one_s >= run_s:
        return 1 if sets == 1 else min(sets, max(1, math.ceil(run_s / one_s)))
    cycles = max(1, math.ceil(run_s / (one_s * sets)))
    return min(cycles * sets, max(sets, _LONGEST_GRAPH))


def _enqueue_run(
    launches: Sequence[Launch], count: int, stream: Any, use_graph: bool
) -> tuple[Callable[[], None], bool]:
    def eagerly() -> None:
        for index in range(count):
            launches[index % len(launches)]()

    if not use_graph:
        return eagerly, False
    graph = torch.cuda.CUDAGraph()
    try:
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            eagerly()
    except RuntimeError:
        torch.cuda.synchronize()
        return eagerly, False
    return graph.replay, True


def _warm_up(run: Callable[[], None], seconds: float, device: Any) -> float:
    """Run for a while and give the length of the shortest run."""
    end = time.perf_counter() + seconds
    shortest = math.inf
    while True:
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize(device)
        now = time.perf_counter()
        shortest = min(shortest, now - begin)
        if now >= end:
            return shortest


def _time_calls(
    launches: Sequence[Launch], warmup_s: float, budget_s: float, run_s: float, min_runs: int
) -> Timing:
    """Time calls that return when they are done, on the host's clock."""
    cycle = 0

    def call(times: int) -> None:
        nonlocal cycle
        for _ in range(times):
            launches[cycle % len(launches)]()
            cycle += 1

    with torch.inference_mode():
        begin = time.perf_counter()
        call(1)
        one_s = max(time.perf_counter() - begin, 1e-7)
        end = time.perf_counter() + warmup_s
        while time.perf_counter() < end:
            begin = time.perf_counter()
            call(1)
            one_s = max(min(one_s, time.perf_counter() - begin), 1e-7)
        count = max(1, min(10_000, math.ceil(run_s / one_s)))
        runs = int(min(100, max(min_runs, budget_s / (one_s * count))))
        times = []
        for _ in range(runs):
            begin = time.perf_counter()
            call(count)
            times.append((time.perf_counter() - begin) / count)
    return summarise(times, "wall", count)


def time_wall(
    device: Any,
    call: Launch,
    *,
    warmup_s: float = 0.05,
    budget_s: float = 0.3,
    min_runs: int = 7,
    max_runs: int = 50,
    calls_per_run: int = 1,
    fixed: bool = False,
) -> Timing:
    """Time a call end to end: the host's clock, the device idle before and after.

    ``fixed`` makes the number of calls not depend on time: three, then ``min_runs`` runs; ranks
    that wait for each other in the call need it.

    >>> from roofline.measure.framework import torch
    >>> time_wall(torch.device("cpu"), lambda: None, warmup_s=0, budget_s=0).timer
    'wall'
    """
    synchronise(device)
    with torch.inference_mode():
        end = time.perf_counter() + warmup_s
        for _ in range(3 if fixed else 1):
            call()
            synchronise(device)
        while not fixed and time.perf_counter() < end:
            call()
            synchronise(device)
        times: list[float] = []
        end = time.perf_counter() + budget_s
        most = min_runs if fixed else max_runs
        while len(times) < min_runs or (len(times) < most and time.perf_counter() < end):
            begin = time.perf_counter()
            for _ in range(calls_per_run):
                call()
            synchronise(device)
            times.append((time.perf_counter() - begin) / calls_per_run)
    return summarise([max(value, 1e-9) for value in times], "wall", calls_per_run)


def synchronise(device: Any) -> None:
    """Wait until the device has nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def above_hardware(rate: float, peak: float | None, what: str, tolerance: float = 0.02) -> str:
    """Say so when a rate is above what the hardware can do: then the measurement is wrong.

    >>> above_hardware(5.0, 4.8, "memory")
    'above what the hardware can do: 1.04 of the memory peak'
    >>> above_hardware(4.7, 4.8, "memory"), above_hardware(1.0, None, "memory")
    ('', '')
    """
    if peak is None or rate <= peak * (1 + tolerance):
        return ""
    return f"above what the hardware can do: {rate / peak:.2f} of the {what} peak"
