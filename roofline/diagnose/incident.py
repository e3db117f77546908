"""Incidents: a diagnosis as a Markdown record: machine, symptom, evidence, action, recovery."""

from collections.abc import Sequence
from datetime import UTC, datetime

from roofline.diagnose.baseline import BaselineComparison
from roofline.diagnose.fabric import Fabric
from roofline.diagnose.verdict import Diagnosis
from roofline.hardware.node_record import NodeRecord
from roofline.units import show


def incident_record(
    diagnosis: Diagnosis,
    *,
    title: str,
    symptom: str = "",
    node: NodeRecord | None = None,
    fabric: Fabric | None = None,
    action: str = "",
    recovery: "Diagnosis | BaselineComparison | str | None" = None,
    when: datetime | None = None,
) -> str:
    """Write an incident: what was seen, why, what was done, and what proves that it is over.

    Args:
        diagnosis: what was found.
        title: one line.
        symptom: what a user saw.
        node: record of the machine.
        fabric: its topology.
        action: what was done; empty leaves a line to fill in.
        recovery: a comparison or diagnosis made afterwards, or words.
        when: date; now when left out.

    >>> from roofline.diagnose.tree import diagnose
    >>> text = incident_record(diagnose(), title="Slow decode")
    >>> text.splitlines()[0]
    '# Incident: Slow decode'
    """
    date = (when or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    lines = [f"# Incident: {_line(title)}", "", f"Date: {date}", "", "## Machine and topology", ""]
    lines += _machine(node, fabric)
    lines += ["", "## Symptom", "", _line(symptom) or "(to be filled in)", "", "## Cause", ""]
    lines.append(_line(diagnosis.headline))
    lines += ["", "## Evidence", ""]
    for verdict in diagnosis.verdicts:
        lines += [
            f"### {_line(verdict.cause)} ({verdict.branch}; confidence {verdict.confidence})",
            "",
            _line(verdict.statement),
            "",
            *_items(verdict.evidence),
            "",
            f"Would be refuted by: {_line(verdict.refuted_by)}.",
            "",
            f"Gain: {_line(verdict.gain)}.",
            "",
        ]
    if not diagnosis.verdicts:
        lines += ["No cause was found.", ""]
    if diagnosis.not_checked:
        lines += ["Not looked at:", "", *_items(diagnosis.not_checked), ""]
    lines += ["## Action", ""]
    if action:
        lines.append(_line(action))
    else:
        steps = dict.fromkeys(verdict.next_step for verdict in diagnosis.verdicts)
        lines += [f"- [ ] {_line(step)}" for step in steps] or ["(to be filled in)"]
    lines += ["", "## Proof of recovery", "", *_recovery(recovery), ""]
    return "\n".join(lines)


def _machine(node: NodeRecord | None, fabric: Fabric | None) -> list[str]:
    rows = []
    if node is not None:
        rows.append(f"node {node.node}, recorded {node.date.isoformat()}")
        rows += [
            f"GPU {device.index}: {device.name}, {show(device.memory_bytes, 'GiB')}, power limit "
            f"{show(device.power_limit_w, 'W')}"
            for device in node.devices
        ]
        rows += [f"{name} {version}" for name, version in node.software.items()]
    if fabric is not None:
        kinds: dict[str, int] = {}
        for pair in fabric.pairs():
            kinds[pair["connection"]] = kinds.get(pair["connection"], 0) + 1
        listed = ", ".join(f"{count} pairs {kind}" for kind, count in kinds.items())
        rows.append(f"{fabric.n_gpus} GPUs; {listed or 'no pair'}")
        rows += list(fabric.faults)
    return _items(rows) if rows else ["(no record of the machine was given)"]


def _recovery(recovery: "Diagnosis | BaselineComparison | str | None") -> list[str]:
    match recovery:
        case None:
            return ["(to be filled in: the same trace, baseline or benchmark, repeated)"]
        case str():
            return [_line(recovery)]
        case BaselineComparison():
            return [_line(recovery.verdict)]
        case _:
            over = "; the cause is gone" if not recovery.verdicts else ""
            return [f"{_line(recovery.headline)}{over}"]


def _items(rows: Sequence[str]) -> list[str]:
    return [f"- {_line(row)}" for row in rows]


def _line(text: str) -> str:
    """One line without markup that text from a file could smuggle in."""
    return " ".join(text.split()).replace("<", "&lt;").replace("|", "\\|")
