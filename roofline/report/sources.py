"""Sources: where the facts behind a prediction come from, a line each."""

from collections.abc import Iterable

from roofline.api.prediction import Prediction
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture
from roofline.report.answer import Table

GROUPS = ("memory", "compute", "link", "pcie", "power")


def accelerator_sources(accelerator: Accelerator) -> list[tuple[str, str]]:
    """Each source of an accelerator with the groups of facts that it stands for.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> accelerator_sources(load_accelerator("t4"))[0][0]
    't4: memory, compute, link, pcie, power'
    """
    found: dict[str, list[str]] = {}
    for group in GROUPS:
        for text in getattr(accelerator, group).source:
            found.setdefault(text, []).append(group)
    return [(f"{accelerator.id}: {', '.join(groups)}", text) for text, groups in found.items()]


def prediction_sources(prediction: Prediction) -> Table:
    """Model, accelerator, terms and engine with their sources."""
    deployment = prediction.deployment
    rows = [(deployment.arch.name, deployment.arch.source)]
    rows += accelerator_sources(deployment.accelerator)
    rows.append(("terms of the estimate", deployment.terms.device.origin))
    rows += [
        ("memory of the engine: " + part.name, part.source) for part in prediction.memory.parts
    ]
    return Table("Sources", ("what", "source"), [row for row in rows if row[1]])


def offer_sources(model: Architecture, offers: Iterable[tuple[Accelerator, str]]) -> Table:
    """Model and accelerators with their sources, and the basis of each price."""
    rows = [(model.name, model.source)]
    for accelerator, basis in offers:
        rows += accelerator_sources(accelerator)
        rows.append((f"price of {accelerator.id}", basis))
    return Table("Sources", ("what", "source"), [row for row in rows if row[1]])
