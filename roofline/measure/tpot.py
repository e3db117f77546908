"""Time per output token three ways, so that a mistake in one of them shows.

``two_runs``  the difference of a long and a short run over the difference of their tokens: what
              starting and stopping costs cancels;
``stamps``    the host's clock after each token, the device waited for every time;
``events``    device events around each step, nothing waited for.

Units    Seconds per step.
Limits   A CPU has no events: there ``events`` is the call itself.
"""

import itertools
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from roofline.measure.bench import synchronise
from roofline.measure.framework import torch
from roofline.units import show

PART_LIMIT = 1.2
METHODS = ("two_runs", "stamps", "events")


def tpot_three_ways(
    device: Any, step: Callable[[], Any], *, short: int = 2, long: int = 12
) -> dict[str, float]:
    """Time one step by each method.

    >>> from roofline.measure.framework import torch
    >>> sorted(tpot_three_ways(torch.device("cpu"), lambda: time.sleep(1e-3)))
    ['events', 'stamps', 'two_runs']
    """
    with torch.inference_mode():
        step()
        differences = [(_run(device, step, long) - _run(device, step, short)) for _ in range(3)]
        two_runs = median(differences) / (long - short)
        stamps = []
        for _ in range(long):
            begin = time.perf_counter()
            step()
            synchronise(device)
            stamps.append(time.perf_counter() - begin)
        events = _events(device, step, long)
    return {
        "two_runs": float(f"{max(two_runs, 1e-9):.6g}"),
        "stamps": float(f"{median(stamps):.6g}"),
        "events": float(f"{events:.6g}"),
    }


def _run(device: Any, step: Callable[[], Any], count: int) -> float:
    synchronise(device)
    begin = time.perf_counter()
    for _ in range(count):
        step()
    synchronise(device)
    return time.perf_counter() - begin


def _events(device: Any, step: Callable[[], Any], count: int) -> float:
    if device.type != "cuda":
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        return median(times)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    synchronise(device)
    milliseconds_per_s = 1e3
    gaps = [first.elapsed_time(second) for first, second in itertools.pairwise(marks)]
    return median(gaps) / milliseconds_per_s


def parting(times_s: dict[str, float]) -> str:
    """Say so when the methods part by more than 20 %: one of them measures something else.

    >>> parting({"two_runs": 1.0, "stamps": 1.3, "events": 1.1})
    'three ways to time a step part by 30 %: two_runs 1.00 s, stamps 1.30 s, events 1.10 s'
    >>> parting({"two_runs": 1.0, "stamps": 1.1, "events": 1.1}), parting({})
    ('', '')
    """
    if len(times_s) < 2 or max(times_s.values()) <= PART_LIMIT * min(times_s.values()):
        return ""

    apart = max(times_s.values()) / min(times_s.values()) - 1
    listed = ", ".join(f"{name} {show(value, 's')}" for name, value in times_s.items())
    return f"three ways to time a step part by {apart * 100:.0f} %: {listed}"
