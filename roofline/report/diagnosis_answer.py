"""A diagnosis in words, for a command, a page and a file: verdicts, and what was not looked at."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from roofline.report.answer import Answer, Table

if TYPE_CHECKING:
    from roofline.diagnose.verdict import Diagnosis


def diagnosis_answer(found: "Diagnosis", inputs: Mapping[str, Any]) -> Answer:
    """Say the verdicts, each with evidence, what would refute it, next step and gain."""
    lines = [found.headline]
    for number, verdict in enumerate(found.verdicts, 1):
        lines += [
            "",
            f"{number}. {verdict.cause} ({verdict.branch}; confidence {verdict.confidence})",
            f"   {verdict.statement}",
            *(f"   · {line}" for line in verdict.evidence),
            f"   refuted by: {verdict.refuted_by}",
            f"   next: {verdict.next_step}",
            f"   gain: {verdict.gain}",
        ]
    lines += [""] + [f"not looked at: {line}" for line in found.not_checked]
    return Answer(
        command="diagnose",
        inputs=inputs,
        results=found.to_dict(),
        tables=[
            Table(
                "Verdicts",
                ("cause", "branch", "confidence", "gain"),
                [(v.cause, v.branch, v.confidence, v.gain) for v in found.verdicts],
            )
        ]
        if found.verdicts
        else [],
        lines=lines,
        assumptions=found.assumptions,
        warnings=found.warnings,
    )
