"""Verdicts: a cause with its evidence, what would refute it, the next step and its gain."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCES = ("high", "medium", "low")


@dataclass(frozen=True)
class Verdict:
    """One cause.

    Args:
        branch: question of the decision tree that led here.
        cause: short name.
        statement: the cause in one sentence.
        evidence: numbers that speak for it, each with where it comes from.
        confidence: "high", "medium" or "low".
        refuted_by: what would show that it is wrong.
        next_step: what to do or to measure.
        gain: what that would gain, in words.
        gain_factor: the most that it speeds a step up; None where it is not known.
    """

    branch: str
    cause: str
    statement: str
    evidence: tuple[str, ...]
    confidence: str
    refuted_by: str
    next_step: str
    gain: str
    gain_factor: float | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All verdicts, the likeliest first, and what could not be looked at."""

    verdicts: tuple[Verdict, ...]
    checked: tuple[str, ...]
    not_checked: tuple[str, ...]
    inputs: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The first verdict in one sentence."""
        if self.verdicts:
            return self.verdicts[0].statement
        if self.checked:
            return "nothing that was checked explains a slow run"
        return "nothing to diagnose: give a trace, a record, a baseline, a topology or symptoms"

    def to_dict(self) -> dict[str, Any]:
        """In base units."""
        return {
            "headline": self.headline,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "checked": list(self.checked),
            "not_checked": list(self.not_checked),
            "inputs": list(self.inputs),
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
        }

    def to_frame(self) -> "pd.DataFrame":
        """One row per verdict."""
        import pandas as pd

        return pd.DataFrame([asdict(verdict) for verdict in self.verdicts])


def ordered(verdicts: list[Verdict]) -> tuple[Verdict, ...]:
    """The likeliest first: by confidence, then by what each would gain."""
    return tuple(
        sorted(
            verdicts,
            key=lambda v: (CONFIDENCES.index(v.confidence), -(v.gain_factor or 1.0)),
        )
    )
