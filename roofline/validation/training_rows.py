"""A training row beside its prediction, and the errors of a group of them.

error = predicted / published − 1
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingRowJudged:
    """One row beside its prediction.

    Args:
        group: what is compared.
        name: which row.
        published, predicted: in ``unit``.
        unit: of both.
        inside: whether the published value lies in the predicted interval; None: no interval.
        fitted: whether a constant was fitted to this row.
        assumption: what the source leaves out.
        source: of the published value.
    """

    group: str
    name: str
    published: float
    predicted: float
    unit: str
    inside: bool | None = None
    fitted: bool = False
    assumption: str = ""
    source: str = ""

    @property
    def error(self) -> float:
        """Predicted over published, less one."""
        return self.predicted / self.published - 1


@dataclass(frozen=True)
class GroupError:
    """Errors of a group: its judged rows, without fitted ones."""

    group: str
    rows: int
    mean: float
    worst: float
    inside: float | None
