"""Every fact of an accelerator or a link with its source, for a command, a page and a file.

Limits   No number is made here.
"""

import re
from typing import Any

from roofline.errors import RooflineError
from roofline.hardware.accelerator import Accelerator
from roofline.hardware.links import Link
from roofline.hardware.spec import SourcedFacts
from roofline.report.answer import Answer, Table
from roofline.units import show

_GROUPS = ("memory", "compute", "link", "pcie", "power")
_UNITS = (
    ("flop_per_s", "FLOP/s"), ("bytes_per_s", "B/s"), ("l2_bytes", "GiB"), ("llc_bytes", "GiB"),
    ("usable_bytes", "GiB"), ("bytes", "B"), ("_hz", "Hz"), ("_w", "W"), ("latency_s", "s"),
)  # fmt: skip


def accelerator_answer(spec: Accelerator) -> Answer:
    """Say every fact of an accelerator, each with the number of its source.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> accelerator_answer(load_accelerator("t4")).tables[0].columns
    ['fact', 'value', 'source']
    """
    groups = {name: getattr(spec, name) for name in _GROUPS}
    sources = list(dict.fromkeys(text for group in groups.values() for text in group.source))
    rows = [
        [f"{name}.{fact}", value, _marks(group, sources)]
        for name, group in groups.items()
        for fact, value in _facts(group)
    ]
    head = [spec.name, spec.vendor, spec.architecture, spec.form_factor, spec.release_year]
    lines = [f"{spec.id}: " + ", ".join(str(part) for part in head if part is not None)]
    if spec.confidence is not None:
        lines.append(f"Confidence: {spec.confidence}; figures as of {spec.as_of or 'not stated'}")
    if spec.device_names:
        lines.append(f"Device names: {', '.join(spec.device_names)}")
    lines += [f"Note: {note}" for note in spec.notes]
    if spec.confidence_note:
        lines.append(f"Note: {spec.confidence_note}")
    usable, assumption = _usable(spec)
    numbered = [[f"[{place}]", text] for place, text in enumerate(sources, 1)]
    return Answer(
        command="specs show",
        inputs={"name": spec.id},
        results={**spec.model_dump(mode="json"), "usable_memory_bytes": usable},
        tables=[
            Table("Facts", ["fact", "value", "source"], rows),
            Table("Sources", ["", "document"], numbered),
        ],
        lines=lines,
        assumptions=[] if assumption is None else [assumption],
    )


def _usable(spec: Accelerator) -> tuple[float | None, str | None]:
    try:
        return spec.usable_memory()
    except RooflineError as error:
        return None, str(error)


def _marks(group: SourcedFacts, sources: list[str]) -> str:
    return "".join(f"[{sources.index(text) + 1}]" for text in group.source)


def _facts(group: SourcedFacts) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    for name in type(group).model_fields:
        value = getattr(group, name)
        if name == "source" or value is None or value in ({}, ()):
            continue
        if isinstance(value, dict):
            facts += [
                (f"{name}.{key}", _plain(show(rate, "FLOP/s", 5))) for key, rate in value.items()
            ]
        else:
            facts.append((name, _shown(name, value)))
    return facts


def _shown(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        unit = next((unit for end, unit in _UNITS if name.endswith(end)), None)
        text = _plain(show(value, unit, 5)) if unit is not None else str(value)
        return f"{text} ({value:,.0f} B)" if name == "usable_bytes" else text
    return str(value)


def _plain(text: str) -> str:
    """Take zeros away that no datasheet prints: ``450.00 GB/s`` is ``450 GB/s``."""
    return re.sub(r"(\.\d*?)0+(?= )", r"\1", text).replace(". ", " ")


def link_answer(link: Link) -> Answer:
    """Say every fact of a link with its sources."""
    rows = [
        [name, _shown(name, getattr(link, name))]
        for name in Link.model_fields
        if name not in ("id", "source", "notes") and getattr(link, name) is not None
    ]
    return Answer(
        command="specs show",
        inputs={"name": link.id},
        results=link.model_dump(mode="json"),
        tables=[
            Table("Facts", ["fact", "value"], rows),
            Table("Sources", ["document"], [[text] for text in link.source]),
        ],
        lines=[f"{link.id}: per direction and accelerator", *(f"Note: {n}" for n in link.notes)],
    )
