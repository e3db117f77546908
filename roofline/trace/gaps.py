"""Gaps: when a device ran nothing, for how long, and what it waited for.

A gap lies between the end of the last running event and the start of the next one; the next event
was asked for by a launch call on the host:

    host synchronisation   the call that launched it began after the gap did, and the same thread
                           returned from a synchronising call inside the gap
    launch                 the launch call returned after the gap had begun: the host was late
    other stream           it was queued in time behind an event of another stream
    kernel start           it was queued in time on the same stream; gaps of up to 10 µs
    graph                  both belong to one graph replay, which nothing on the host can delay
    other                  queued in time, longer than that; or the trace has no launch for it

Units    seconds.
Sources  [1] HolisticTraceAnalysis, breakdown analysis (host wait: the launch began after the
             previous kernel ended), the rule of which this one refines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roofline.trace.events import DeviceEvents, HostEvents, Trace
from roofline.trace.intervals import Floats, Ints, Union

CAUSES = ("launch", "host synchronisation", "other stream", "kernel start", "graph", "other")
_LAUNCH, _SYNC, _STREAM, _START, _GRAPH, _OTHER = range(len(CAUSES))
KERNEL_START_S = 10e-6
"""Longest gap between two queued kernels of one stream that is the device's own."""
HISTOGRAM_EDGES_S = (0.0, 1e-6, 5e-6, 10e-6, 50e-6, 100e-6, 1e-3, 10e-3, float("inf"))
_MOST_CALLERS = 500
"""Callers are looked up for the longest gaps; each look-up reads all operators."""
_SYNCHRONISING = ("synchronize", "memcpy", "eventquery", "streamquery", "cudafree", "hipfree")


@dataclass(frozen=True)
class Gaps:
    """The gaps of one device in one window."""

    start_s: Floats
    end_s: Floats
    cause: Ints
    caller: tuple[str | None, ...]
    operator: tuple[str | None, ...]
    """Operator that launched the event after the gap, where the trace tells."""

    @property
    def length_s(self) -> Floats:
        """Length of each gap."""
        return self.end_s - self.start_s

    def by_cause(self) -> dict[str, tuple[int, float]]:
        """Number and total length of the gaps of each cause, those that occur."""
        return {
            name: (int(np.sum(self.cause == i)), float(np.sum(self.length_s[self.cause == i])))
            for i, name in enumerate(CAUSES)
            if np.any(self.cause == i)
        }

    def by_caller(self) -> dict[str, tuple[int, float]]:
        """Number and total length of the host synchronisations of each caller."""
        return self._grouped(self.caller)

    def by_operator(self) -> dict[str, tuple[int, float]]:
        """Number and total length of the gaps before what each operator launched."""
        late = [
            op if c == _LAUNCH else None for op, c in zip(self.operator, self.cause, strict=True)
        ]
        return self._grouped(late)

    def _grouped(self, keys: Sequence[str | None]) -> dict[str, tuple[int, float]]:
        found: dict[str, tuple[int, float]] = {}
        for length, key in zip(self.length_s.tolist(), keys, strict=True):
            if key is not None:
                count, total = found.get(key, (0, 0.0))
                found[key] = (count + 1, total + length)
        return dict(sorted(found.items(), key=lambda item: -item[1][1]))

    def histogram(self) -> tuple[int, ...]:
        """Number of gaps between the edges of ``HISTOGRAM_EDGES_S``."""
        counts, _ = np.histogram(self.length_s, bins=np.array(HISTOGRAM_EDGES_S))
        return tuple(int(count) for count in counts)


def launches_of(events: DeviceEvents, runtime: HostEvents) -> Ints:
    """Index of the runtime call that launched each device event; −1 where the trace has none."""
    found = np.full(len(events), -1, np.int64)
    usable = np.flatnonzero(runtime.key >= 0)
    if len(usable) == 0 or len(events) == 0:
        return found
    usable = usable[np.argsort(runtime.key[usable], kind="stable")]
    keys = runtime.key[usable]
    place = np.minimum(np.searchsorted(keys, events.correlation), len(keys) - 1)
    hit = (keys[place] == events.correlation) & (events.correlation >= 0)
    found[hit] = usable[place[hit]]
    return found


def find_gaps(
    trace: Trace,
    events: DeviceEvents,
    busy: Union,
    launches: Ints,
    window: tuple[float, float],
) -> Gaps:
    """List the gaps of one device in a window and name their causes.

    Args:
        trace: the trace, for its runtime calls.
        events: the events of this device in the window.
        busy: their union.
        launches: the launch call of each event.
        window: start and end of what is looked at.
    """
    low, high = window
    start = np.concatenate(([low], busy.end_s))
    end = np.concatenate((busy.start_s, [high]))
    following = np.concatenate((busy.first, [-1]))
    preceding = np.concatenate(([-1], busy.last))
    keep = end > start
    start, end, following, preceding = start[keep], end[keep], following[keep], preceding[keep]
    cause = np.full(len(start), _OTHER, np.int64)
    has_next = following >= 0
    launch = np.where(has_next, launches[following] if len(launches) else -1, -1)
    known = has_next & (launch >= 0)
    runtime = trace.runtime
    launch_end = np.where(known, runtime.end_s[launch] if len(runtime) else 0.0, np.inf)
    late = known & (launch_end > start)
    cause[late] = _LAUNCH
    queued = known & ~late
    both = queued & (preceding >= 0)
    same_stream = (
        both & (events.stream[following] == events.stream[preceding]) if len(events) else both
    )
    cause[queued & (end - start <= KERNEL_START_S)] = _START
    cause[both & ~same_stream] = _STREAM
    if len(events):
        one_graph = (preceding >= 0) & has_next
        one_graph &= (launches[following] == launches[preceding]) & (launches[following] >= 0)
        cause[one_graph] = _GRAPH
    callers: list[str | None] = [None] * len(start)
    _mark_synchronisations(trace, start, end, launch, late, cause, callers)
    return Gaps(start, end, cause, tuple(callers), _operators(trace, events, following))


def _operators(trace: Trace, events: DeviceEvents, following: Ints) -> tuple[str | None, ...]:
    table = trace.operators
    if not len(table) or not len(events):
        return (None,) * len(following)
    order = np.argsort(table.key, kind="stable")
    keys = table.key[order]
    wanted = np.where(following >= 0, events.operator[following], -1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    hit = (keys[place] == wanted) & (wanted >= 0)
    names = table.name[order[place]]
    return tuple(
        table.names[name] if found else None
        for name, found in zip(names.tolist(), hit.tolist(), strict=True)
    )


def _mark_synchronisations(
    trace: Trace,
    start: Floats,
    end: Floats,
    launch: Ints,
    late: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
    cause: Ints,
    callers: list[str | None],
) -> None:
    runtime = trace.runtime
    waits = np.flatnonzero(runtime.named(_is_synchronising))
    if len(waits) == 0:
        return
    for thread in np.unique(runtime.thread[waits]):
        mine = waits[runtime.thread[waits] == thread]
        mine = mine[np.argsort(runtime.end_s[mine], kind="stable")]
        ends = runtime.end_s[mine]
        rows = np.flatnonzero(late & (runtime.thread[np.maximum(launch, 0)] == thread))
        # the last synchronising call that returned before the launch began
        place = np.searchsorted(ends, runtime.start_s[launch[rows]], side="right") - 1
        waited = (place >= 0) & (ends[np.maximum(place, 0)] >= start[rows])
        rows, place = rows[waited], place[waited]
        cause[rows] = _SYNC
        longest = np.argsort(start[rows] - end[rows], kind="stable")
        for n, i in enumerate(longest):
            row = int(rows[i])
            callers[row] = (
                caller_of(trace, int(mine[place[i]])) if n < _MOST_CALLERS else "not looked up"
            )


def _is_synchronising(name: str) -> bool:
    lowered = name.lower()
    if "async" in lowered:
        return False
    return any(word in lowered for word in _SYNCHRONISING)


def caller_of(trace: Trace, call: int) -> str:
    """Who made a runtime call: the innermost operator and Python function around it."""
    runtime = trace.runtime
    at, thread = runtime.start_s[call], runtime.thread[call]
    parts = [runtime.names[runtime.name[call]]]
    for table in (trace.operators, trace.python):
        around = np.flatnonzero(
            (table.start_s <= at) & (table.end_s >= at) & (table.thread == thread)
        )
        if len(around):
            inner = around[np.argsort(table.start_s[around])]
            names = [table.names[table.name[i]] for i in inner]
            parts.append(_most_telling(names))
    if len(parts) == 1:
        parts.append("code outside any operator")
    return " in ".join(parts)


_TELLING = ("item", "nonzero", "to_list", "tolist", "is_nonzero", "cpu", "_local_scalar_dense")


def _most_telling(names: list[str]) -> str:
    """The outermost operator that users know as a synchronisation, else the innermost name."""
    for name in names:
        if name.rsplit("::", 1)[-1] in _TELLING:
            return name
    return names[-1]
