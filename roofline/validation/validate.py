"""validate: predictions against measurements that took no part in making them.

Every published row and every recorded run is compared with its bound and, where the row says
enough, with its estimate; errors are reported by data set, engine, device and model, with the rows
that were left out and why, and the worst rows by name.

Limits   Memory is validated by ``validate_memory``; it has no intervals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roofline.errors import InputError, unknown_name
from roofline.validation.datasets import DATASETS, DataSet, Left, data_set, recorded_machines
from roofline.validation.scores import KEYS, Point, Score, closest, score, scores, worst

if TYPE_CHECKING:
    import pandas

DEFAULT_BY = ("dataset", "engine", "quantity")
_FIELDS = {"device": "accelerator", "gpu": "accelerator", "data": "dataset", "data_set": "dataset"}


@dataclass(frozen=True)
class Validation:
    """What was compared, and how it came out.

    Args:
        data_sets: the data sets.
        by: fields that the scores are grouped by.
        engine, accelerator, model: only these rows; empty: all.
    """

    data_sets: tuple[DataSet, ...]
    by: tuple[str, ...] = DEFAULT_BY
    engine: str = ""
    accelerator: str = ""
    model: str = ""

    @property
    def points(self) -> tuple[Point, ...]:
        """The compared rows."""
        return tuple(
            point
            for each in self.data_sets
            for point in each.points
            if self.engine in ("", point.engine)
            and self.accelerator in ("", point.accelerator)
            and self.model in ("", point.model)
        )

    @property
    def left(self) -> tuple[Left, ...]:
        """Rows that were left out, by reason."""
        return tuple(left for each in self.data_sets for left in each.left)

    @property
    def total(self) -> int:
        """Rows of the data sets, judged or not."""
        return sum(each.total for each in self.data_sets)

    def scores(self, by: Sequence[str] | None = None) -> tuple[Score, ...]:
        """Errors by group."""
        return scores(self.points, tuple(by) if by is not None else self.by)

    def overall(self) -> Score:
        """Errors of all rows together."""
        return score(self.points, {})

    def worst(self, count: int = 10) -> tuple[Point, ...]:
        """Rows with the largest errors."""
        return worst(self.points, count)

    def closest(self, count: int = 10) -> tuple[Point, ...]:
        """Rows nearest to their bounds."""
        return closest(self.points, count)

    def violations(self) -> tuple[Point, ...]:
        """Rows below their bound: unexplained, whatever else they say."""
        return tuple(point for point in self.points if point.violates)

    def to_dict(self) -> dict[str, Any]:
        """Scores, exclusions and worst rows in base units."""
        return {
            "rows": self.total,
            "overall": self.overall().to_dict(),
            "scores": [each.to_dict() for each in self.scores()],
            "left_out": [vars(left) for left in self.left],
            "worst": [point.to_dict() for point in self.worst()],
            "closest_to_bound": [point.to_dict() for point in self.closest()],
            "violations": [point.to_dict() for point in self.violations()],
        }

    def to_frame(self) -> "pandas.DataFrame":
        """Every compared row, in base units."""
        import pandas

        return pandas.DataFrame([point.to_dict() for point in self.points])


def validate(
    what: str | Sequence[str] | None = None,
    *,
    by: Sequence[str] = DEFAULT_BY,
    engine: str = "",
    accelerator: str = "",
    model: str = "",
) -> Validation:
    """Compare predictions with measurements.

    Args:
        what: one or several of the data sets ``serving``, ``engines``, ``decoder``, ``peaks``, or a
            recorded machine (``h200`` or its spec id: its decoder rows); None: all.
        by: what the scores are grouped by, of dataset, engine, quantity, accelerator (or device),
            model, group.
        engine, accelerator, model: only these rows.

    Raises:
        UnknownNameError: no such data set, field, or name among the rows.
        MissingDataError: this installation has no published tables.

    >>> found = validate("decoder")
    >>> len(found.violations()), found.overall().tightest > 1.2
    (0, True)
    """
    names = (what,) if isinstance(what, str) else tuple(what or DATASETS)
    machine = next((spec for name in names if (spec := recorded_machine(name))), "")
    if machine:
        names = tuple("decoder" if recorded_machine(name) else name for name in names)
        accelerator = accelerator or machine
    unknown = [name for name in names if name not in DATASETS]
    if unknown and unknown[0] in ("memory", "training"):
        raise InputError(f"{unknown[0]} is judged by itself: roofline validate {unknown[0]}")
    if unknown:
        raise unknown_name("data set", unknown[0], DATASETS)
    by = tuple(_FIELDS.get(field, field) for field in by)
    for field in by:
        if field not in KEYS:
            raise unknown_name("field to group by", field, KEYS)
    found = Validation(
        tuple(data_set(name) for name in dict.fromkeys(names)),
        tuple(by), engine, accelerator, model,
    )  # fmt: skip
    if not found.points:
        raise _no_rows(found)
    return found


def recorded_machine(name: str) -> str:
    """The recorded machine that a name or its beginning stands for; empty: none.

    >>> recorded_machine("h200"), recorded_machine("serving")
    ('h200-sxm-141gb', '')
    """
    specs = [spec for spec in recorded_machines() if spec == name or spec.startswith(f"{name}-")]
    return specs[0] if len(specs) == 1 else ""


def _no_rows(found: Validation) -> Exception:
    everything = Validation(found.data_sets).points
    for field in ("engine", "accelerator", "model"):
        asked, known = getattr(found, field), {getattr(point, field) for point in everything}
        if asked and asked not in known:
            return unknown_name(f"{field} among the rows", asked, known)
    return InputError("no row is of this engine, accelerator and model together")
