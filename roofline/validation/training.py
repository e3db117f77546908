"""Training judged: every measured and published row beside what roofline says of it.

Groups   peak memory and step time of measured runs; activations, iteration times and TFLOP/s of
         Megatron's papers; MFU and GPU-hours of the Llama reports; ZeRO's and QLoRA's memory.
Units    Bytes, seconds, FLOP/s, shares, hours: those of the row, said in ``unit``.
Limits   No rate is fitted to these rows: device terms are the class's. The host's cost of
         starting eager kernels is fitted to the reference record's rows of 2,048 tokens, marked;
         the interval of eager frameworks comes from the reference record, that of fused ones from
         Megatron's tables. Rows that an interval comes from do not say whether it covers them.
Sources  measurements/published/training_*.csv and measurements/training/*/*.json, row by row.
"""

from collections.abc import Iterator
from pathlib import Path

from roofline.api.train import train
from roofline.hardware.training_record import read_training_record
from roofline.training.memory import training_memory
from roofline.training.shapes import plan_of_row, shape_of_row
from roofline.validation.published import published_folder
from roofline.validation.training_published import published_training
from roofline.validation.training_rows import GroupError, TrainingRowJudged

REFERENCE = "reference"
"""End of the name of the record that the eager interval and the host's cost come from."""
FITTED_TOKENS = 2048


def judged_training() -> tuple[TrainingRowJudged, ...]:
    """Judge every training row.

    Raises:
        MissingDataError: this installation has no published tables.

    >>> rows = judged_training()
    >>> max(abs(row.error) for row in rows if row.group == "peak memory") < 0.05
    True
    """
    return (*_measured(), *published_training())


def group_errors(rows: tuple[TrainingRowJudged, ...]) -> tuple[GroupError, ...]:
    """Mean and worst absolute error of each group."""
    groups: list[GroupError] = []
    for name in dict.fromkeys(row.group for row in rows):
        judged = [row for row in rows if row.group == name and not row.fitted]
        if not judged:
            continue
        errors = [abs(row.error) for row in judged]
        known = [row.inside for row in judged if row.inside is not None]
        groups.append(
            GroupError(
                name,
                len(judged),
                sum(errors) / len(errors),
                max(errors),
                sum(known) / len(known) if known else None,
            )
        )
    return tuple(groups)


def record_paths() -> tuple[Path, ...]:
    """Training records that ship, in the order of their names."""
    return tuple(sorted((published_folder().parent / "training").glob("*/*.json")))


def _measured() -> Iterator[TrainingRowJudged]:
    for path in record_paths():
        record = read_training_record(path)
        spec = record.device.spec_id
        reference = path.stem.endswith(REFERENCE)
        for row in record.training_rows:
            arch, plan = shape_of_row(row), plan_of_row(row)
            again = ", recomputed" if row.recompute else ""
            name = f"{row.model.name} {row.mode}{again}, {row.micro_batch} × {row.sequence_tokens}"
            memory = training_memory(arch, plan)
            yield TrainingRowJudged(
                "peak memory", name, row.peak_allocated_bytes, memory.peak_bytes, "B",
                source=record.source,
            )  # fmt: skip
            if spec is None:
                continue
            step = train(arch, spec, plan=plan).step_s
            yield TrainingRowJudged(
                "measured step", name, row.median_s, float(step.mid), "s",
                inside=None if reference else bool(step.low <= row.median_s <= step.high),
                fitted=reference and row.tokens <= FITTED_TOKENS,
                source=record.source,
            )  # fmt: skip
