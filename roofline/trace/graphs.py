"""Graphs: replays of CUDA or HIP graphs in a trace, and what they hide from the profiler."""

from dataclasses import dataclass

import numpy as np

from roofline.trace.events import DeviceEvents, Trace
from roofline.trace.intervals import Ints

_GRAPH_CALLS = ("cudagraphlaunch", "cugraphlaunch", "hipgraphlaunch", "zecommandlistappendgraph")


@dataclass(frozen=True)
class GraphReplay:
    """Graph launches of one window; ``recorded`` of them have kernels in the trace."""

    launches: int
    recorded: int
    kernels: int
    uneven: bool

    @property
    def coverage(self) -> float | None:
        """Share of the replays whose kernels were recorded; None without replays."""
        return self.recorded / self.launches if self.launches else None

    @property
    def hides_kernels(self) -> bool:
        """Whether kernels ran that the trace does not show."""
        return self.launches > 0 and (self.recorded < self.launches or self.uneven)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader has to know, in words."""
        if not self.launches:
            return ()
        if not self.hides_kernels:
            return (
                f"graph replay: {self.launches:,} graph launches, the kernels of all of them "
                "recorded; busy and idle time are measured",
            )
        why = (
            f"kernels of {self.recorded:,} of them recorded"
            if self.recorded < self.launches
            else "replays with unequal numbers of recorded kernels"
        )
        return (
            f"graph replay: {self.launches:,} graph launches, {why}: idle time is not claimed, "
            "the busy share is a lower bound; profile with the graph's nodes traced, or eagerly",
        )


def find_replay(
    trace: Trace, events: DeviceEvents, launches: Ints, window: tuple[float, float]
) -> GraphReplay:
    """Count graph launches in a window, and those with recorded kernels.

    A replay that recorded one event where another recorded many is not whole; a graph launch with
    a single event (ROCm's one row for the whole graph) is not either.
    """
    runtime = trace.runtime
    is_graph = runtime.named(lambda name: any(call in name.lower() for call in _GRAPH_CALLS))
    if len(runtime):
        is_graph &= (runtime.start_s >= window[0]) & (runtime.start_s <= window[1])
    calls = np.flatnonzero(is_graph)
    own = launches[np.isin(launches, calls)] if len(calls) else np.zeros(0, np.int64)
    seen, counts = np.unique(own, return_counts=True)
    in_graph = int(np.sum(events.in_graph > 0)) if len(events) else 0
    recorded = int(np.sum(counts > 1))
    uneven = len(counts) > 1 and int(np.min(counts)) * 2 < int(np.max(counts))
    if not len(calls) and in_graph:
        # kernels that carry a graph node id, launched before the trace's runtime calls begin
        return GraphReplay(0, 0, in_graph, False)
    return GraphReplay(len(calls), recorded, len(own), uneven and len(seen) == len(calls))
