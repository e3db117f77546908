"""Summary: what one trace says about each of its devices.

    busy share        union of device events in the window ÷ window
    exposed           communication that no kernel hides; copies that neither hides
    kernels per step  kernels launched inside the ``ProfilerStep`` windows ÷ steps

The window runs from the first ``ProfilerStep`` to the end of the last one, or to the end of the
last event that it launched; without step marks, from the first device event to the last.

Limits   A graph replay whose kernels the profiler did not record makes idle time unknown: then
         ``idle_s`` is None, and the busy share is a lower bound.
Sources  [1] torch.profiler, ``ProfilerStep#`` annotations.
         [2] TraceLens, TreePerf: exposed communication and copies by interval algebra.
"""

from dataclasses import dataclass

import numpy as np

from roofline.trace.events import COPY, FILL, KERNEL, DeviceEvents, Trace
from roofline.trace.gaps import Gaps, find_gaps, launches_of
from roofline.trace.graphs import GraphReplay, find_replay
from roofline.trace.intervals import Ints, clip, exposed_s, union
from roofline.trace.kernels import PARTS
from roofline.trace.launches import LaunchCost, launch_cost
from roofline.trace.parts import parts_of

MATH_ATTENTION = "aten::_scaled_dot_product_attention_math"
LINEAR_OPERATORS = (("aten::linear",), ("aten::mm", "aten::addmm", "aten::_scaled_mm"))
"""Compiled code has no ``aten::linear``: then the products themselves are counted."""


@dataclass(frozen=True)
class StreamUse:
    """One stream of a device."""

    stream: int
    events: int
    busy_s: float


@dataclass(frozen=True)
class DeviceSummary:
    """One device of one trace; times in seconds."""

    device: int
    name: str
    rank: int | None
    n_steps: int
    window_s: float
    busy_s: float
    idle_s: float | None
    kernels: int
    copies: int
    kernels_per_step: float | None
    step_s: float | None
    steps_s: tuple[float, ...]
    linear_calls_per_step: float | None
    linear_operator: str | None
    math_attention_calls: int
    exposed_communication_s: float
    communication_s: float
    exposed_copy_s: float
    copy_s: float
    part_s: dict[str, float]
    part_kernels: dict[str, int]
    streams: tuple[StreamUse, ...]
    gaps: Gaps
    launch: LaunchCost
    replay: GraphReplay
    events: DeviceEvents
    parts: Ints
    warnings: tuple[str, ...]

    @property
    def busy_share(self) -> float:
        """Busy time ÷ window; a lower bound where ``idle_s`` is None."""
        return self.busy_s / self.window_s if self.window_s > 0 else 0.0

    def waiting_share(self, *causes: str) -> float:
        """Share of the window that gaps of these causes take; 0 where idle is not claimed."""
        if self.idle_s is None or self.window_s <= 0:
            return 0.0
        found = self.gaps.by_cause()
        return sum(found[cause][1] for cause in causes if cause in found) / self.window_s


def summarise_device(trace: Trace, device: int) -> DeviceSummary:
    """Summarise one device of a trace."""
    everything = trace.device
    launches = launches_of(everything, trace.runtime)
    low, high, n_steps = _window(trace, device, launches)
    mine = (everything.device == device) & (everything.end_s > low) & (everything.start_s < high)
    events, launches = everything.where(mine), launches[mine]
    busy = union(*clip(events.start_s, events.end_s, low, high))
    parts = parts_of(trace, events)
    kernel = events.kind == KERNEL
    collective = kernel & (parts == PARTS.index("collective"))
    compute = kernel & ~collective
    copy = events.kind == COPY
    spans = {
        which: clip(events.start_s[mask], events.end_s[mask], low, high)
        for which, mask in (("comm", collective), ("compute", compute), ("copy", copy))
    }
    replay = find_replay(trace, events, launches, (low, high))
    gaps = find_gaps(trace, events, busy, launches, (low, high))
    window_s = high - low
    step_s = float(np.mean(trace.steps.end_s - trace.steps.start_s)) if n_steps else None
    linear, operator = _linear_calls(trace, low, high, n_steps)
    length = events.end_s - events.start_s
    names = {i: name for i, name in enumerate(PARTS) if np.any(parts == i)}
    return DeviceSummary(
        device=device,
        name=trace.device_names.get(device, ""),
        rank=trace.rank,
        n_steps=n_steps,
        window_s=window_s,
        busy_s=busy.total_s,
        idle_s=None if replay.hides_kernels else max(window_s - busy.total_s, 0.0),
        kernels=int(np.sum(kernel)),
        copies=int(np.sum(copy | (events.kind == FILL))),
        kernels_per_step=float(np.sum(kernel)) / n_steps if n_steps else None,
        step_s=step_s,
        steps_s=tuple((trace.steps.end_s - trace.steps.start_s).tolist()),
        linear_calls_per_step=linear,
        linear_operator=operator,
        math_attention_calls=int(np.sum(trace.operators.named(MATH_ATTENTION.__eq__))),
        exposed_communication_s=exposed_s(*spans["comm"], [spans["compute"]]),
        communication_s=union(*spans["comm"]).total_s,
        exposed_copy_s=exposed_s(*spans["copy"], [spans["compute"], spans["comm"]]),
        copy_s=union(*spans["copy"]).total_s,
        part_s={name: float(np.sum(length[parts == i])) for i, name in names.items()},
        part_kernels={name: int(np.sum(parts == i)) for i, name in names.items()},
        streams=_streams(events),
        gaps=gaps,
        launch=launch_cost(trace, events, launches, (low, high)),
        replay=replay,
        events=events,
        parts=parts,
        warnings=replay.warnings,
    )


def _streams(events: DeviceEvents) -> tuple[StreamUse, ...]:
    found = []
    for stream in np.unique(events.stream):
        own = events.stream == stream
        busy = union(events.start_s[own], events.end_s[own]).total_s
        found.append(StreamUse(int(stream), int(np.sum(own)), busy))
    return tuple(sorted(found, key=lambda use: -use.busy_s))


def _window(trace: Trace, device: int, launches: Ints) -> tuple[float, float, int]:
    events = trace.device
    own = events.device == device
    n_steps = len(np.unique(trace.steps.key))
    if not n_steps:
        return float(np.min(events.start_s[own])), float(np.max(events.end_s[own])), 0
    low, high = float(np.min(trace.steps.start_s)), float(np.max(trace.steps.end_s))
    # work that a step launched belongs to it, even where it ends after the step's mark
    known = own & (launches >= 0)
    launched = trace.runtime.start_s[launches[known]]
    inside = (launched >= low) & (launched <= high)
    last = float(np.max(events.end_s[known][inside], initial=high))
    return low, max(high, last), n_steps


def _linear_calls(
    trace: Trace, low: float, high: float, n_steps: int
) -> tuple[float | None, str | None]:
    operators = trace.operators
    if not n_steps or not len(operators):
        return None, None
    inside = (operators.start_s >= low) & (operators.start_s <= high)
    for wanted in LINEAR_OPERATORS:
        counts = {name: int(np.sum(inside & operators.named(name.__eq__))) for name in wanted}
        found = [name for name, count in counts.items() if count]
        if found:
            return sum(counts.values()) / n_steps, " + ".join(found)
    return 0.0, None
