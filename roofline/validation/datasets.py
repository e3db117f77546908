"""Data sets: published rows and recorded runs as points, with what was left out and why.

serving    end-to-end measurements, about 20 engines on 40 accelerator families
engines    vLLM, SGLang and TensorRT-LLM by concurrency, H100 to GB300
decoder    the minimal decoder of the recorded machines (measurements/<spec id>)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from roofline.calibration.lookup import find_terms
from roofline.errors import MissingDataError, unknown_name
from roofline.hardware.accelerator import accelerator_ids, load_accelerator
from roofline.hardware.folders import data_folders
from roofline.hardware.measurement import load_measurement
from roofline.units import number, show
from roofline.validation.bounds import Bounded, bound_rows
from roofline.validation.estimates import Estimated, estimate_rows, held_out_deployment
from roofline.validation.exclusions import BOUND, ESTIMATE, EXCLUSIONS, exclusion_of, judged_rows
from roofline.validation.fitting.decoder import DecoderCase, decoder_cases
from roofline.validation.peaks import peak_points
from roofline.validation.rows import Row, engine_rows, serving_rows
from roofline.validation.scores import Point


@dataclass(frozen=True)
class Left:
    """Rows that were left out for one reason.

    Args:
        dataset: their data set.
        use: ``bound`` or ``estimate``: what they do not judge.
        name, reason: why.
        rows: how many.
    """

    dataset: str
    use: str
    name: str
    reason: str
    rows: int


@dataclass(frozen=True)
class DataSet:
    """Points of one data set, and what was left out."""

    name: str
    total: int
    points: tuple[Point, ...]
    left: tuple[Left, ...]


def data_set(name: str) -> DataSet:
    """Evaluate one data set.

    Raises:
        UnknownNameError: no such data set.
    """
    if name not in _READERS:
        raise unknown_name("data set", name, DATASETS)
    return _READERS[name]()


def _serving() -> DataSet:
    return _published("serving", serving_rows())


def _engines() -> DataSet:
    return _published("engines", engine_rows())


def _published(name: str, rows: tuple[Row, ...]) -> DataSet:
    judged = judged_rows(use=BOUND, rows=rows)
    bounded = {each.row: each for each in bound_rows(judged)}
    asked = judged_rows(use=ESTIMATE, rows=rows)
    found = estimate_rows(asked, deployment_of=held_out_deployment)
    estimated = {each.row: each for each in found}
    points = tuple(
        _point(row, bounded.get(row), estimated.get(row))
        for row in judged
        if not _nothing(bounded.get(row), estimated.get(row))
    )
    left = [
        *_excluded(name, rows, BOUND),
        *_excluded(name, rows, ESTIMATE),
        *_refused(name, BOUND, [each.refused for each in bounded.values()]),
        *_refused(name, ESTIMATE, [each.refused for each in estimated.values()]),
    ]
    return DataSet(name, len(rows), points, tuple(left))


def _nothing(bounded: Bounded | None, estimated: Estimated | None) -> bool:
    """Whether a row has neither bound nor estimate."""
    without = bounded is None or bool(bounded.refused)
    return without and (estimated is None or bool(estimated.refused))


def _excluded(name: str, rows: tuple[Row, ...], use: str) -> list[Left]:
    counts: dict[str, int] = {}
    for row in rows:
        exclusion = exclusion_of(row, use)
        if exclusion is not None:
            counts[exclusion.name] = counts.get(exclusion.name, 0) + 1
    return [
        Left(name, use, exclusion.name, exclusion.reason, counts[exclusion.name])
        for exclusion in EXCLUSIONS
        if exclusion.name in counts
    ]


def _refused(name: str, use: str, reasons: list[str]) -> list[Left]:
    """Rows that the library itself refuses, by its message."""
    counts: dict[str, int] = {}
    for reason in reasons:
        if reason:
            key = reason.split("; ")[0]
            counts[key] = counts.get(key, 0) + 1
    return [Left(name, use, "refused", reason, count) for reason, count in sorted(counts.items())]


def _point(row: Row, bounded: Bounded | None, estimated: Estimated | None) -> Point:
    given = estimated is not None and not estimated.refused
    low, mid, high = (
        (estimated.low, estimated.mid, estimated.high)
        if estimated is not None and given
        else (math.nan,) * 3
    )
    return Point(
        id=row.id, dataset=row.dataset, group=row.group, source=row.source,
        engine=row.engine or row.engine_label, accelerator=row.accelerator or "",
        model=row.model or "", quantity=row.quantity, setting=setting_words(row),
        measured=row.value, bound=bounded.bound if bounded else math.nan,
        over_bound=bounded.ratio if bounded else math.nan, low=low, mid=mid, high=high,
    )  # fmt: skip


def setting_words(row: Row) -> str:
    """Plan, format, batch and lengths of a row, in words."""
    parts = [f"{row.n_gpu} × " if row.n_gpu and row.n_gpu > 1 else ""]
    parts.append(f"tp {row.tp}, " if row.tp and row.tp > 1 else "")
    parts.append(f"{row.weights_label or 'own format'}, batch {number(row.running_batch or 0)}")
    if row.prompt_tokens is not None:
        parts.append(f", {row.prompt_tokens:.0f} + {row.output_tokens or 0:.0f} tokens")
    return "".join(parts)


def recorded_machines() -> tuple[str, ...]:
    """Spec ids of the devices that have records."""
    folders = [folder for folder in data_folders("measurements") if folder.is_dir()]
    names = {entry.name for folder in folders for entry in folder.iterdir() if entry.is_dir()}
    return tuple(sorted(names & set(accelerator_ids())))


def _decoder() -> DataSet:
    points: list[Point] = []
    left: list[Left] = []
    total = 0
    for spec_id in recorded_machines():
        record = load_measurement(spec_id)
        accelerator = load_accelerator(spec_id)
        cases = decoder_cases(record, accelerator)
        total += len(record.decoder_rows)
        others = len(record.decoder_rows) - len(cases)
        if others:
            why = "not one graph a step (the host's share is judged apart), or an unknown model"
            left.append(Left("decoder", ESTIMATE, "eager or unknown", why, others))
        points += [_decoder_point(case, spec_id) for case in cases]
    if not total:
        raise MissingDataError("no recorded machine has decoder rows; see roofline measure model")
    fitted = sum(point.fitted for point in points)
    why = "in the fit of this machine's terms; rows used to fit never judge"
    left.append(Left("decoder", ESTIMATE, "fitted", why, fitted))
    return DataSet("decoder", total, tuple(points), tuple(left))


def _decoder_point(case: DecoderCase, spec_id: str) -> Point:
    deployment = replace(case.deployment, terms=find_terms(
        case.deployment.accelerator, "cuda-graph", spec_id,
        weights_bits=case.deployment.weights_dtype.bits,
        experts=case.deployment.arch.has_experts,
    ))  # fmt: skip
    row, step = case.row, case.step
    if row.phase == "decode":
        interval = deployment.decode_s(step.decode_sequences, step.context_tokens)
    else:
        interval = deployment.prefill_s(step.prefill_sequences, step.prefill_tokens)
    bound = case.bound_s()
    low, mid, high = (float(end) for end in (interval.low, interval.mid, interval.high))
    where = f"tp {row.tp}, {row.weights}, batch {row.batch}, context {row.context_tokens}"
    name = f"{row.model} {row.phase} {where}"
    return Point(
        id=name, dataset="decoder", group=case.group, source=f"measurements/{spec_id}",
        engine="cuda-graph", accelerator=spec_id, model=deployment.arch.name,
        quantity="tpot" if row.phase == "decode" else "ttft", setting=where,
        measured=row.median_s, bound=bound, over_bound=row.median_s / bound, low=low, mid=mid,
        high=high, fitted=case.fitted,
    )  # fmt: skip


def _peaks() -> DataSet:
    points, counts, total = peak_points()
    left = [Left("peaks", BOUND, name, why, rows) for (name, why), rows in counts.items()]
    return DataSet("peaks", total, points, tuple(left))


_READERS: dict[str, Callable[[], DataSet]] = {
    "serving": _serving,
    "engines": _engines,
    "decoder": _decoder,
    "peaks": _peaks,
}
DATASETS = tuple(_READERS)


def shown(point: Point, value: float) -> str:
    """A value of a point for a reader, with its unit."""
    unit = {"flop_rate": "FLOP/s", "byte_rate": "B/s"}.get(point.quantity)
    if unit is not None:
        return show(value, unit)
    if point.quantity == "output_rate":
        return f"{number(value)} tok/s" if math.isfinite(value) else "–"
    return show(value, "s")
