"""roofline: bounds, estimates, plans and diagnoses of language models on accelerators.

    import roofline
    roofline.predict("llama-3.1-8b", "h200-sxm-141gb", batch=32)

Names are imported when they are first used, so that ``import roofline`` stays fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "Accelerator": "roofline.hardware.accelerator",
    "Architecture": "roofline.models.architecture",
    "Comparison": "roofline.api.comparison",
    "Diagnosis": "roofline.diagnose.verdict",
    "Dtype": "roofline.dtypes",
    "Empirical": "roofline.serving.lengths",
    "Engine": "roofline.serving.engines",
    "Interval": "roofline.timing.interval",
    "LogNormal": "roofline.serving.lengths",
    "Measurement": "roofline.hardware.measurement",
    "Ownership": "roofline.economics.ownership",
    "Parallel": "roofline.timing.parallel",
    "Plan": "roofline.api.plan_result",
    "Prediction": "roofline.api.prediction",
    "PriceTable": "roofline.economics.prices",
    "RooflineError": "roofline.errors",
    "Slo": "roofline.serving.traffic",
    "Speculation": "roofline.serving.speculation",
    "TraceSummary": "roofline.trace.result",
    "Traffic": "roofline.serving.traffic",
    "TrainingPlan": "roofline.training.plan",
    "Workload": "roofline.serving.traffic",
    "accelerator_ids": "roofline.hardware.accelerator",
    "calibrate": "roofline.validation.fitting.machine",
    "compare": "roofline.api.compare",
    "compare_baselines": "roofline.diagnose.baseline",
    "fit": "roofline.serving.fit",
    "gradient_bill": "roofline.diagnose.gradients",
    "load_accelerator": "roofline.hardware.accelerator",
    "load_lengths": "roofline.serving.lengths",
    "load_measurement": "roofline.hardware.measurement",
    "load_model": "roofline.models.config",
    "memory_budget": "roofline.serving.budget",
    "model_names": "roofline.models.catalogue",
    "plan": "roofline.api.plan",
    "predict": "roofline.api.predict",
    "price_table": "roofline.economics.prices",
    "read_fabric": "roofline.diagnose.fabric_reader",
    "read_trace": "roofline.trace.reader",
    "sweep": "roofline.api.sweep.run",
    "train": "roofline.api.train",
    "validate": "roofline.validation.validate",
}

if TYPE_CHECKING:
    from roofline.api.compare import compare as compare
    from roofline.api.comparison import Comparison as Comparison
    from roofline.api.plan import plan as plan
    from roofline.api.plan_result import Plan as Plan
    from roofline.api.predict import predict as predict
    from roofline.api.prediction import Prediction as Prediction
    from roofline.api.sweep.run import sweep as sweep
    from roofline.api.train import train as train
    from roofline.diagnose.baseline import compare_baselines as compare_baselines
    from roofline.diagnose.fabric_reader import read_fabric as read_fabric
    from roofline.diagnose.gradients import gradient_bill as gradient_bill
    from roofline.diagnose.verdict import Diagnosis as Diagnosis
    from roofline.dtypes import Dtype as Dtype
    from roofline.economics.ownership import Ownership as Ownership
    from roofline.economics.prices import PriceTable as PriceTable
    from roofline.economics.prices import price_table as price_table
    from roofline.errors import RooflineError as RooflineError
    from roofline.hardware.accelerator import Accelerator as Accelerator
    from roofline.hardware.accelerator import accelerator_ids as accelerator_ids
    from roofline.hardware.accelerator import load_accelerator as load_accelerator
    from roofline.hardware.measurement import Measurement as Measurement
    from roofline.hardware.measurement import load_measurement as load_measurement
    from roofline.models.architecture import Architecture as Architecture
    from roofline.models.catalogue import model_names as model_names
    from roofline.models.config import load_model as load_model
    from roofline.serving.budget import memory_budget as memory_budget
    from roofline.serving.engines import Engine as Engine
    from roofline.serving.fit import fit as fit
    from roofline.serving.lengths import Empirical as Empirical
    from roofline.serving.lengths import LogNormal as LogNormal
    from roofline.serving.lengths import load_lengths as load_lengths
    from roofline.serving.speculation import Speculation as Speculation
    from roofline.serving.traffic import Slo as Slo
    from roofline.serving.traffic import Traffic as Traffic
    from roofline.serving.traffic import Workload as Workload
    from roofline.timing.interval import Interval as Interval
    from roofline.timing.parallel import Parallel as Parallel
    from roofline.trace.reader import read_trace as read_trace
    from roofline.trace.result import TraceSummary as TraceSummary
    from roofline.training.plan import TrainingPlan as TrainingPlan
    from roofline.validation.fitting.machine import calibrate as calibrate
    from roofline.validation.validate import validate as validate

_ROOMS = ("diagnose", "measure", "trace")  # rooms that are named after a verb

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("roofline")
    if name in _EXPORTS:
        value = getattr(importlib.import_module(_EXPORTS[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"roofline.{name}")
    raise AttributeError(f"module 'roofline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
