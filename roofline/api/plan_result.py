"""What ``plan`` gives: options, the fastest, the Pareto front, what is out, and words.

Units    base units; USD.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roofline.planning.candidate import Excluded
from roofline.planning.option import Option
from roofline.planning.pareto import Point
from roofline.planning.split import Split
from roofline.serving.traffic import Slo, Traffic

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Plan:
    """What carries a load within its targets.

    Args:
        model: name of the model.
        traffic, slo: what was asked.
        options: best deployment of each accelerator, cheapest first; those without a price, and
            those that were not simulated, last.
        fastest: the deployment with the fastest tokens for a user.
        front: Pareto front of speed per user and throughput per accelerator.
        points: every candidate at every load, for a figure.
        excluded: what is out and why.
        splits: the best deployment of each option's accelerator with prefill and decode on
            instances of their own, when asked for.
        replicas_over_interval: replicas of the first option at the fast and the slow end of the
            estimate's interval; None at an end that misses the target.
        recommendation: what to take and why, in words.
        assumptions, warnings: in words.
    """

    model: str
    traffic: Traffic
    slo: Slo
    options: tuple[Option, ...]
    fastest: Option | None
    front: tuple[Point, ...]
    points: tuple[Point, ...]
    excluded: tuple[Excluded, ...]
    splits: tuple[Split, ...]
    replicas_over_interval: tuple[int | None, int | None]
    recommendation: tuple[str, ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def met(self) -> bool:
        """Whether anything meets the targets."""
        return bool(self.options)

    @property
    def cheapest(self) -> Option | None:
        """The first option; None when nothing meets the targets."""
        return self.options[0] if self.options else None

    def to_dict(self) -> dict[str, Any]:
        """Everything in base units, with units in the keys."""
        return {
            "model": self.model,
            "met": self.met,
            "options": [option.to_dict() for option in self.options],
            "fastest": None if self.fastest is None else self.fastest.to_dict(),
            "pareto_front": [vars(point) for point in self.front],
            "splits": [split.to_dict() for split in self.splits],
            "excluded": [vars(one) for one in self.excluded],
            "replicas_at_fast_end": self.replicas_over_interval[0],
            "replicas_at_slow_end": self.replicas_over_interval[1],
            "recommendation": list(self.recommendation),
        }

    def to_frame(self) -> "pandas.DataFrame":
        """Options as a table, one row each."""
        import pandas

        rows = []
        for option in self.options:
            row = option.to_dict()
            power = row.pop("power") or {}
            rows.append(row | {f"power_{key}": value for key, value in power.items()})
        return pandas.DataFrame(rows)
