"""Launches: what it costs the host to start work, and how far ahead of the device it runs."""

from dataclasses import dataclass

import numpy as np

from roofline.trace.events import KERNEL, DeviceEvents, Trace
from roofline.trace.intervals import Ints


@dataclass(frozen=True)
class LaunchCost:
    """Launch calls in one window; times in seconds, None without launches."""

    calls: int
    median_s: float | None
    total_s: float
    lead_s: float | None
    """Median time from a launch call's start to its kernel's: large when the host runs ahead."""
    host_s_per_kernel: float | None
    """Window ÷ kernels: what the host spends on a kernel when the device waits for it."""


def launch_cost(
    trace: Trace, events: DeviceEvents, launches: Ints, window: tuple[float, float]
) -> LaunchCost:
    """Measure the launch calls of one window."""
    runtime = trace.runtime
    is_launch = runtime.named(lambda name: "launch" in name.lower())
    if len(runtime):
        is_launch &= (runtime.start_s >= window[0]) & (runtime.start_s <= window[1])
    calls = np.flatnonzero(is_launch)
    took = runtime.end_s[calls] - runtime.start_s[calls]
    known = (launches >= 0) & (events.kind == KERNEL)
    lead = events.start_s[known] - runtime.start_s[launches[known]]
    kernels = int(np.sum(events.kind == KERNEL))
    return LaunchCost(
        calls=len(calls),
        median_s=float(np.median(took)) if len(calls) else None,
        total_s=float(np.sum(took)),
        lead_s=float(np.median(lead)) if len(lead) else None,
        host_s_per_kernel=(window[1] - window[0]) / kernels if kernels else None,
    )
