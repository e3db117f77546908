"""A case: one small piece of a sweep, with what it will take, so that a run can stop and resume."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from roofline.hardware.measured_rows import LinkRow, Row


class Level(StrEnum):
    """How thorough a run is."""

    QUICK = "quick"  # under 30 s on a GPU
    STANDARD = "standard"  # under 2 min
    FULL = "full"


@dataclass(frozen=True)
class Case:
    """One piece of a sweep.

    Args:
        section: section of the record that its rows belong to.
        label: what is being measured, for the progress line and for resuming; unique.
        cost_s: rough time on a GPU, for the progress line.
        measure: runs it and gives its rows.
    """

    section: str
    label: str
    cost_s: float
    measure: Callable[[], Iterable[Row | LinkRow]]
