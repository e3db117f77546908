"""Events: one profiler trace as columns, ready for arithmetic.

Shapes   every column of one table has one length; ``name`` columns index a table of names.
Units    seconds after the first event of the file; bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from roofline.trace.intervals import Floats, Ints

KERNEL, COPY, FILL = 0, 1, 2


@dataclass(frozen=True)
class DeviceEvents:
    """What ran on devices: kernels, copies and fills, with valid times only."""

    names: tuple[str, ...]
    name: Ints
    kind: Ints
    start_s: Floats
    end_s: Floats
    device: Ints
    stream: Ints
    correlation: Ints
    operator: Ints
    registers: Ints
    occupancy: Floats
    moved_bytes: Floats
    in_graph: Ints

    def __len__(self) -> int:
        return len(self.name)

    def where(self, chosen: Any) -> "DeviceEvents":
        """The rows that a mask or an index chooses."""
        return DeviceEvents(
            self.names,
            *(
                getattr(self, column)[chosen]
                for column in (
                    "name", "kind", "start_s", "end_s", "device", "stream", "correlation",
                    "operator", "registers", "occupancy", "moved_bytes", "in_graph",
                )
            ),
        )  # fmt: skip


@dataclass(frozen=True)
class HostEvents:
    """What ran on the host: runtime calls, operators, Python functions or step marks."""

    names: tuple[str, ...]
    name: Ints
    start_s: Floats
    end_s: Floats
    thread: Ints
    key: Ints
    """Correlation of a runtime call, external id of an operator."""

    def __len__(self) -> int:
        return len(self.name)

    def named(self, wanted: Any) -> Any:
        """Mask of the rows whose name fulfils a test."""
        keep = np.array([bool(wanted(name)) for name in self.names], bool)
        return keep[self.name] if len(self.name) else np.zeros(0, bool)


@dataclass(frozen=True)
class Shapes:
    """Input shapes and types of one operator call, as the profiler wrote them."""

    operator: str
    dims: tuple[Any, ...]
    types: tuple[str, ...]
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """One trace file."""

    source: str
    rank: int | None
    n_ranks: int | None
    device_names: Mapping[int, str]
    device: DeviceEvents
    runtime: HostEvents
    operators: HostEvents
    python: HostEvents
    steps: HostEvents
    shapes: Mapping[int, Shapes]
    n_events: int
    invalid_kernels: int
    read_by: str
    warnings: tuple[str, ...] = ()
