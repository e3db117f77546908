"""Rates: what each kernel reached, and what share of the measured roof that is.

    time on the roof = max(FLOP / P, bytes / B)        per call, P of the type it computes in
    percent of roof  = Σ time on the roof / Σ time      of the calls whose shapes are known

Units    seconds, FLOP/s, bytes/s.
Limits   A product that cuBLAS splits into two kernels is counted on the longer one. What stays in
         L2 can exceed a memory roof.
Sources  [1] Williams, Waterman & Patterson 2009, Roofline, CACM 52(4).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from roofline.errors import MissingDataError
from roofline.hardware.accelerator import load_accelerator
from roofline.hardware.measurement import Measurement, load_measurement
from roofline.trace.events import KERNEL, Trace
from roofline.trace.kernels import PARTS, recognise
from roofline.trace.operators import demand
from roofline.trace.summary import DeviceSummary

_SIXTEEN_BIT = ("bf16", "fp16")
_SMALLEST_IN_L2 = 4
"""A buffer below this many L2 sizes may be served from L2: no memory roof."""


@dataclass(frozen=True)
class Roofs:
    """Roofs that kernels are compared with."""

    bytes_per_s: float | None
    flop_per_s: Mapping[str, float] = field(default_factory=dict)
    origin: str = ""

    def compute(self, kind: str) -> float | None:
        """Rate of a compute type; the two 16-bit types stand for each other."""
        found = self.flop_per_s.get(kind)
        if found is None and kind in _SIXTEEN_BIT:
            found = next((self.flop_per_s[k] for k in _SIXTEEN_BIT if k in self.flop_per_s), None)
        return found


def roofs_of(machine: "str | Measurement") -> Roofs:
    """Roofs of a measured record: its best matmul by type and its best large read, add or copy.

    Raises:
        MissingDataError: the record has neither.

    >>> roofs = roofs_of("h200-sxm-141gb")
    >>> 4.3e12 < roofs.bytes_per_s < 4.8e12, 700e12 < roofs.flop_per_s["bf16"] < 989e12
    (True, True)
    """
    record = load_measurement(machine)
    l2_bytes = record.device.l2_bytes or 0
    rates = [
        row.bytes_per_s
        for row in record.rows("copy")
        if row.op in ("read", "add", "copy", "triad")
        and row.buffer_bytes >= max(_SMALLEST_IN_L2 * l2_bytes, 2**28)
    ]
    flop: dict[str, float] = {}
    for row in record.rows("matmul"):
        if row.data == "random":
            flop[row.compute] = max(flop.get(row.compute, 0.0), row.flop_per_s)
    if not rates and not flop:
        raise MissingDataError(
            f"the record of {record.device.name} has no copy and no matmul rows; "
            "run roofline measure"
        )
    date = record.date.date().isoformat()
    return Roofs(max(rates, default=None), flop, f"measured on {record.device.name}, {date}")


def datasheet_roofs(accelerator: str) -> Roofs:
    """Roofs of a datasheet, for a machine without a record; they are nominal and say so."""
    spec = load_accelerator(accelerator)
    return Roofs(
        spec.memory.bytes_per_s,
        dict(spec.compute.flop_per_s),
        f"datasheet of {spec.name} (nominal)",
    )


@dataclass(frozen=True)
class KernelRow:
    """All calls of one kernel in one window."""

    name: str
    part: str
    library: str | None
    architecture: str | None
    compute: str | None
    calls: int
    total_s: float
    share: float
    registers: int | None
    occupancy_percent: float | None
    counted_calls: int
    flop: float
    bytes: float
    counted_s: float
    roof_s: float | None
    limited_by: str | None

    @property
    def mean_s(self) -> float:
        """Mean time of one call."""
        return self.total_s / self.calls

    @property
    def flop_per_s(self) -> float | None:
        """Rate of the calls whose shapes are known."""
        return self.flop / self.counted_s if self.flop and self.counted_s else None

    @property
    def bytes_per_s(self) -> float | None:
        """Rate of the calls whose shapes are known."""
        return self.bytes / self.counted_s if self.bytes and self.counted_s else None

    @property
    def percent_of_roof(self) -> float | None:
        """Time on the roof ÷ time, in percent."""
        if self.roof_s is None or self.counted_s <= 0:
            return None
        return 100 * self.roof_s / self.counted_s


def kernel_rows(
    trace: Trace, summary: DeviceSummary, roofs: Roofs | None = None
) -> tuple[KernelRow, ...]:
    """All kernels of a device by total time, with rates where the shapes are known."""
    events = summary.events
    length = events.end_s - events.start_s
    counted = _demands(trace, summary)
    total_s = float(np.sum(length)) or 1.0
    rows = []
    for number in np.unique(events.name):
        own = np.flatnonzero(events.name == number)
        name = events.names[number]
        kernel = recognise(name)
        flop = moved = counted_s = roof_s = compute_s = memory_s = 0.0
        types: list[str] = []
        complete = roofs is not None
        calls = [(i, counted[i]) for i in own.tolist() if i in counted]
        for i, (call_flop, call_bytes, kind) in calls:
            flop, moved = flop + call_flop, moved + call_bytes
            counted_s += float(length[i])
            types.append(kind)
            if roofs is not None:
                peak = roofs.compute(kind) if call_flop else float("inf")
                if peak is None or roofs.bytes_per_s is None:
                    complete = False
                    continue
                on_compute, on_memory = call_flop / peak, call_bytes / roofs.bytes_per_s
                roof_s += max(on_compute, on_memory)
                compute_s, memory_s = compute_s + on_compute, memory_s + on_memory
        registers = events.registers[own]
        occupancy = events.occupancy[own]
        occupancy = occupancy[np.isfinite(occupancy)]
        spent = float(np.sum(length[own]))
        rows.append(
            KernelRow(
                name=name,
                part=_parts_of_rows(summary, own),
                library=kernel.library,
                architecture=kernel.architecture,
                compute=types[0] if types and flop else kernel.compute,
                calls=len(own),
                total_s=spent,
                share=spent / total_s,
                registers=int(np.max(registers)) if np.max(registers) >= 0 else None,
                occupancy_percent=float(np.mean(occupancy)) if len(occupancy) else None,
                counted_calls=len(calls),
                flop=flop,
                bytes=moved,
                counted_s=counted_s,
                roof_s=roof_s if complete and calls else None,
                limited_by=(("compute" if compute_s > memory_s else "memory") if complete else None)
                if calls
                else None,
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.total_s))


def _parts_of_rows(
    summary: DeviceSummary, own: "np.ndarray[tuple[int], np.dtype[np.int64]]"
) -> str:
    found, counts = np.unique(summary.parts[own], return_counts=True)
    return PARTS[int(found[np.argmax(counts)])]


def _demands(trace: Trace, summary: DeviceSummary) -> dict[int, tuple[float, float, str]]:
    """Demand of each operator call, on the longest kernel that it launched."""
    events = summary.events
    length = (events.end_s - events.start_s).tolist()
    longest: dict[int, int] = {}
    for i, (key, kind) in enumerate(
        zip(events.operator.tolist(), events.kind.tolist(), strict=True)
    ):
        if kind != KERNEL or key < 0 or key not in trace.shapes:
            continue
        if key not in longest or length[i] > length[longest[key]]:
            longest[key] = i
    found = {}
    for key, i in longest.items():
        needs = demand(trace.shapes[key])
        if needs is not None:
            found[i] = (needs.flop, needs.bytes, needs.compute)
    for i in np.flatnonzero((events.kind != KERNEL) & np.isfinite(events.moved_bytes)).tolist():
        found[i] = (0.0, float(events.moved_bytes[i]), "")
    return found
