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
    "Dtype": "roofline.dtypes",
    "Engine": "roofline.serving.engines",
    "Interval": "roofline.timing.interval",
    "Measurement": "roofline.hardware.measurement",
    "Parallel": "roofline.timing.parallel",
    "TrainingPlan": "roofline.training.plan",
    "Prediction": "roofline.api.predict",
    "RooflineError": "roofline.errors",
    "accelerator_ids": "roofline.hardware.accelerator",
    "load_accelerator": "roofline.hardware.accelerator",
    "load_measurement": "roofline.hardware.measurement",
    "load_model": "roofline.models.config",
    "model_names": "roofline.models.catalogue",
    "predict": "roofline.api.predict",
    "train": "roofline.api.train",
    "validate": "roofline.validation.validate",
}

if TYPE_CHECKING:
    from roofline.api.predict import Prediction as Prediction
    from roofline.api.predict import predict as predict
    from roofline.api.train import train as train
    from roofline.dtypes import Dtype as Dtype
    from roofline.errors import RooflineError as RooflineError
    from roofline.hardware.accelerator import Accelerator as Accelerator
    from roofline.hardware.accelerator import accelerator_ids as accelerator_ids
    from roofline.hardware.accelerator import load_accelerator as load_accelerator
    from roofline.hardware.measurement import Measurement as Measurement
    from roofline.hardware.measurement import load_measurement as load_measurement
    from roofline.models.architecture import Architecture as Architecture
    from roofline.models.catalogue import model_names as model_names
    from roofline.models.config import load_model as load_model
    from roofline.serving.engines import Engine as Engine
    from roofline.timing.interval import Interval as Interval
    from roofline.timing.parallel import Parallel as Parallel
    from roofline.training.plan import TrainingPlan as TrainingPlan
    from roofline.validation.validate import validate as validate

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("roofline")
    if name in _EXPORTS:
        value = getattr(importlib.import_module(_EXPORTS[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'roofline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
