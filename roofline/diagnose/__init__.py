"""Diagnosis: topology, baselines and the decision tree, each verdict with its evidence."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roofline.diagnose.baseline import compare_baselines
    from roofline.diagnose.fabric_reader import read_fabric
    from roofline.diagnose.gradients import gradient_bill
    from roofline.diagnose.incident import incident_record
    from roofline.diagnose.tree import diagnose
    from roofline.diagnose.verdict import Diagnosis, Verdict

__all__ = [
    "Diagnosis", "Verdict", "compare_baselines", "diagnose", "gradient_bill", "incident_record",
    "read_fabric",
]  # fmt: skip

_HOMES = {
    "Diagnosis": "verdict", "Verdict": "verdict", "compare_baselines": "baseline",
    "diagnose": "tree", "gradient_bill": "gradients", "incident_record": "incident",
    "read_fabric": "fabric_reader",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'roofline.diagnose' has no attribute {name!r}")
    return getattr(import_module(f"roofline.diagnose.{_HOMES[name]}"), name)
