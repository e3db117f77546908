"""Model runs as a session: several models and formats into one record, saved as it grows."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from roofline.errors import InputError
from roofline.hardware.measurement import Measurement
from roofline.measure.case import Case
from roofline.measure.device import Target
from roofline.measure.model_run import ModelPlan, model_rows
from roofline.measure.ranks import Ranks
from roofline.measure.session import Report, Session, new_record, silent
from roofline.measure.transformers_run import transformers_rows
from roofline.models.architecture import Architecture
from roofline.models.config import load_model


def measure_models(
    target: Target,
    models: Iterable[str | Path | Architecture],
    plan: ModelPlan,
    *,
    formats: Sequence[str] = (),
    with_transformers: bool = False,
    folder: Path | None = None,
    report: Report = silent,
    command: str = "",
    limit_s: float = float("inf"),
    ranks: Ranks | None = None,
) -> tuple[Measurement, Path | None]:
    """Measure models with random weights; gives the record and where it was written.

    Args:
        target: from ``find_target``.
        models: catalogue names, paths of configs, or architectures.
        plan: batches, contexts, prompts and modes.
        formats: storage formats to run each model in; empty: the plan's.
        with_transformers: also run the shapes in transformers, where it is installed.
        folder, report, command, limit_s: as in ``session.measure``.
        ranks: of tensor parallelism; rank 0 writes.

    Raises:
        InputError: no model, or a plan that cannot be run.
    """
    architectures = [load_model(model) for model in models]
    if not architectures:
        raise InputError("no model to measure; give one or more, such as llama-3.1-8b")
    plan = plan.checked()
    cases = []
    for architecture in architectures:
        for weights in formats or (plan.weights,):
            run = partial(model_rows, target, architecture, replace(plan, weights=weights), ranks)
            label = f"{architecture.name} {weights} {'/'.join(plan.modes)}"
            size = architecture.parameters / 1e9
            cases.append(Case("decoder", label, 5.0 + size, run))
        if with_transformers:
            plain = next((name for name in formats if name != "fp8"), "bf16")
            run = partial(transformers_rows, target, architecture, replace(plan, weights=plain))
            cases.append(Case("decoder", f"{architecture.name} transformers", 20.0, run))
    count = 1 if ranks is None else ranks.count
    if count > 1:
        target = replace(target, device=target.device.model_copy(update={"count": count}))
    if ranks is not None and not ranks.is_first:
        folder, report = None, silent
    session = Session(new_record(target, "model", command), folder, report, limit_s, target=target)
    record = session.run(cases)
    return record, session.path
