"""Theory versus measured: one page for one machine and model, with the reason for each difference.

    theory     the bound, on datasheet roofs, and what the architecture says
    expected   the estimate of the engine that the rows ran on, from this machine's own record
    measured   the record's rows, and profiler traces where they are given

Units    seconds, bytes, tokens; differences are measured over theory.
Limits   Only what the record (and the traces) hold is shown; what is missing says so.
Sources  Reading of TPOT over its bound: below 1.5 near the roof (check the clock first), 1.5–3
         memory-bound holds, 3–6 launches and device time are of one order, above 6 overhead rules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from roofline.api.predict import predict
from roofline.api.prediction import Prediction
from roofline.dtypes import find_dtype
from roofline.errors import InputError, MissingDataError, RooflineError
from roofline.hardware.measurement import DecoderRow, Measurement, load_measurement
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.timing.parallel import Parallel
from roofline.trace.result import DeviceReport, summarise
from roofline.units import number, show

ENGINE_OF_MODE = {
    "graph": "cuda-graph",
    "compiled": "gpt-fast",
    "eager": "transformers",
    "transformers": "transformers",
}
READINGS = (
    (1.5, "near the roof: check the clock first"),
    (3.0, "memory-bound holds"),
    (6.0, "launches and device time are of one order"),
    (float("inf"), "overhead rules: the device waits for the host"),
)
TOP_KERNELS = 5


@dataclass(frozen=True)
class TheoryRow:
    """One line of the page; what is not there is an empty text.

    Args:
        what: the quantity.
        theory, expected, measured: as text with unit.
        difference: measured over theory.
        why: the reason in words.
        before: the same, measured by the earlier record.
        values: the numbers of the line in base units, with the unit in the key.
    """

    what: str
    theory: str
    expected: str
    measured: str
    difference: str
    why: str
    before: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TheoryReport:
    """The page.

    Args:
        title: machine and model.
        rows: its lines.
        versions: what ran, in words.
        assumptions: where numbers come from.
    """

    title: str
    rows: tuple[TheoryRow, ...]
    versions: str
    assumptions: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Headers, with the earlier record's column where there is one."""
        names = ("what", "theory", "expected", "measured", "difference", "why")
        return (*names, "before") if any(row.before for row in self.rows) else names

    def cells(self) -> list[list[str]]:
        """Lines in the order of the columns."""
        return [[getattr(row, name) for name in self.columns] for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """A dict per line: its words, and its numbers in base units."""
        return {
            "title": self.title,
            "rows": [{**vars(row), "values": dict(row.values)} for row in self.rows],
            "versions": self.versions,
        }


def reading(ratio: float) -> str:
    """Say what TPOT over its bound means.

    >>> reading(1.3), reading(9.0)
    ('near the roof: check the clock first', 'overhead rules: the device waits for the host')
    """
    return next(words for limit, words in READINGS if ratio < limit)


def theory_report(
    record: str | Path | Measurement,
    model: str,
    *,
    traces: Sequence[str | Path] = (),
    before: str | Path | Measurement | None = None,
    mode: str | None = None,
) -> TheoryReport:
    """Set theory, estimate and measurement of one model on one machine side by side.

    Args:
        record: measured record with decoder rows of the model.
        model: its name, as in the rows.
        traces: profiler traces of it, the first at batch 1.
        before: an earlier record to show beside.
        mode: ``graph``, ``eager``, ``compiled`` or ``transformers``; None: the first of these
            that is there.

    Raises:
        MissingDataError: the record has no rows of the model, or its device no spec.
    """
    measured = load_measurement(record)
    arch = load_model(model)
    rows = _rows_of(measured, arch, mode)
    if measured.device.spec_id is None:
        raise MissingDataError(f"{measured.device.name} has no spec; its bound is not known")
    earlier = [] if before is None else _rows_of(load_measurement(before), arch, rows[0].mode)
    lines = _facts(arch, rows)
    assumptions: list[str] = []
    for row in _chosen(rows):
        prediction = _prediction(arch, measured, row)
        lines += _time_lines(row, prediction, rows, earlier)
        assumptions += [line for line in prediction.assumptions if "terms" in line]
    lines += _compiled_lines(arch, measured, rows)
    lines += _trace_lines(arch, measured, traces)
    environment = measured.environment
    versions = ", ".join(
        f"{name} {value}"
        for name in ("torch", "cuda", "driver", "transformers", "triton", "python", "platform")
        if (value := getattr(environment, name))
    )
    ran = f"{rows[0].weights}, {rows[0].mode}"
    return TheoryReport(
        f"{arch.name} on {measured.device.name} ({ran}), {measured.date:%Y-%m-%d}",
        tuple(lines),
        versions,
        tuple(dict.fromkeys(assumptions)),
    )


def _rows_of(record: Measurement, arch: Architecture, mode: str | None) -> list[DecoderRow]:
    found = [row for row in record.decoder_rows if _same_model(row.model, arch)]
    if mode is not None:
        found = [row for row in found if row.mode == mode]
    if not found:
        has = sorted({f"{row.model} ({row.mode})" for row in record.decoder_rows})
        raise MissingDataError(
            f"the record has no {mode or 'decoder'} rows of {arch.name}; "
            f"it has {', '.join(has) or 'none of any model'}"
        )
    kept = min((row.mode for row in found), key=list(ENGINE_OF_MODE).index)
    fewest = min(row.tp for row in found if row.mode == kept)
    same = [row for row in found if row.mode == kept and row.tp == fewest]
    widest = max(same, key=lambda row: find_dtype(row.weights).bits).weights
    return [row for row in same if row.weights == widest]


def _same_model(name: str, arch: Architecture) -> bool:
    try:
        return load_model(name).name == arch.name
    except RooflineError:
        return False  # a row of a model that the catalogue does not have


def _chosen(rows: Sequence[DecoderRow]) -> list[DecoderRow]:
    """Prefill and decode at batch 1 and at the batch nearest to 32, at the shortest context."""
    chosen = []
    for phase in ("prefill", "decode"):
        of_phase = [row for row in rows if row.phase == phase]
        if not of_phase:
            continue
        batches = {row.batch for row in of_phase}
        wanted = [min(batches)]
        if phase == "decode":
            wanted.append(min(batches, key=lambda batch: abs(batch - 32)))
        for batch in dict.fromkeys(wanted):
            same = [row for row in of_phase if row.batch == batch]
            chosen.append(min(same, key=lambda row: abs(row.context_tokens - 2048)))
    return chosen


def _prediction(arch: Architecture, record: Measurement, row: DecoderRow) -> Prediction:
    prompt = row.context_tokens if row.phase == "prefill" else max(row.context_tokens - 1, 1)
    return predict(
        arch,
        record.device.spec_id or "",
        prompt_tokens=prompt,
        output_tokens=2,
        batch=row.batch,
        parallel=Parallel(tp=row.tp),
        weights=row.weights,
        kv="bf16" if row.weights != "fp16" else "fp16",
        engine=ENGINE_OF_MODE[row.mode],
        machine=record.device.spec_id,
    )


def _compiled_lines(
    arch: Architecture, record: Measurement, rows: Sequence[DecoderRow]
) -> list[TheoryRow]:
    """TPOT of the compiled decoder, where it was measured beside another mode."""
    if rows[0].mode == "compiled":
        return []
    kept = (rows[0].tp, rows[0].weights)
    compiled = [
        row
        for row in record.decoder_rows
        if row.mode == "compiled"
        and row.phase == "decode"
        and (row.tp, row.weights) == kept
        and _same_model(row.model, arch)
    ]
    lines = [
        _time_lines(row, _prediction(arch, record, row), (), ())[0] for row in _chosen(compiled)
    ]
    return [replace(line, what=f"compiled {line.what}") for line in lines]


def _facts(arch: Architecture, rows: Sequence[DecoderRow]) -> list[TheoryRow]:
    from roofline.work.weights import stored_bytes

    stored = stored_bytes(arch, find_dtype(rows[0].weights))
    held = rows[0].weights_bytes
    lines = [
        TheoryRow(
            "parameters", f"{arch.parameters:,}", "",
            "" if rows[0].parameters is None else f"{rows[0].parameters:,}",
            "" if rows[0].parameters is None else _ratio(rows[0].parameters, arch.parameters),
            "the measured decoder has no last norm, unties lm_head and leaves biases out"
            if rows[0].parameters not in (None, arch.parameters) else "",
            values=_present(theory=arch.parameters, measured=rows[0].parameters),
        ),
        TheoryRow(
            "weights", show(stored, "B"), "", show(held, "B") if held else "",
            _ratio(held, stored) if held else "", "",
            values=_present(theory_bytes=stored, measured_bytes=held),
        ),
    ]  # fmt: skip
    peaks = [row.peak_memory_bytes for row in rows if row.peak_memory_bytes]
    if peaks:
        lines.append(
            TheoryRow(
                "peak memory",
                "",
                "",
                show(max(peaks), "GiB"),
                "",
                "of all rows of the record",
                values={"measured_bytes": float(max(peaks))},
            )
        )
    return lines


def _time_lines(
    row: DecoderRow,
    prediction: Prediction,
    rows: Sequence[DecoderRow],
    earlier: Sequence[DecoderRow],
) -> list[TheoryRow]:
    step = prediction.prefill if row.phase == "prefill" else prediction.decode
    name = "TTFT" if row.phase == "prefill" else "TPOT"
    where = f"batch {row.batch}, {row.context_tokens:,} tokens"
    ratio = row.median_s / step.bound_s
    estimate = step.estimate_s
    expected = (
        f"{show(float(estimate.mid), 's')} ({show(float(estimate.low), 's')} – "
        f"{show(float(estimate.high), 's')})"
    )
    past = next((old for old in earlier if old.identity() == row.identity()), None)
    inside = float(estimate.low) <= row.median_s <= float(estimate.high)
    why = reading(ratio) if name == "TPOT" else f"limited by {step.limited_by}"
    if not inside:
        why += "; outside the expected interval"
    lines = [
        TheoryRow(
            f"{name}, {where}", show(step.bound_s, "s"), expected,
            f"{show(row.median_s, 's')} (spread {row.spread:.0%})", f"× {number(ratio)}", why,
            "" if past is None else show(past.median_s, "s"),
            values=_present(
                theory_s=step.bound_s, expected_low_s=estimate.low, expected_mid_s=estimate.mid,
                expected_high_s=estimate.high, measured_s=row.median_s, spread_share=row.spread,
                ratio=ratio, before_s=None if past is None else past.median_s,
            ),
        )
    ]  # fmt: skip
    if name == "TPOT":
        rate, roof = row.batch / row.median_s, row.batch / step.bound_s
        lines.append(
            TheoryRow(f"tokens/s, {where}", number(roof), number(row.batch / float(estimate.mid)),
                      number(rate), _ratio(rate, roof), "batch over TPOT",
                      values=_present(theory_tokens_per_s=roof, measured_tokens_per_s=rate,
                                      expected_tokens_per_s=row.batch / float(estimate.mid)))
        )  # fmt: skip
        first = next(
            (other for other in rows if other.phase == "prefill" and other.batch == row.batch
             and other.context_tokens == row.context_tokens), None,
        )  # fmt: skip
        if first is not None:
            lines.append(
                TheoryRow(f"TTFT / TPOT, {where}",
                          number(prediction.prefill.bound_s / step.bound_s), "",
                          number(first.median_s / row.median_s), "",
                          "how many output tokens a prompt costs",
                          values=_present(theory=prediction.prefill.bound_s / step.bound_s,
                                          measured=first.median_s / row.median_s))
            )  # fmt: skip
    return lines


def _trace_lines(
    arch: Architecture, record: Measurement, traces: Sequence[str | Path]
) -> list[TheoryRow]:
    lines: list[TheoryRow] = []
    for path in traces:
        summary = summarise(path, model=arch, machine=record if record.copy_rows else None)
        report = summary.only
        if report is None:
            raise InputError(f"{Path(path).name}: no device events in this trace")
        lines += _device_lines(arch, report, Path(path).name)
    return lines


def _device_lines(arch: Architecture, report: DeviceReport, name: str) -> list[TheoryRow]:
    device = report.summary
    steps = max(device.n_steps, 1)
    traced = device.linear_calls_per_step
    gaps = device.gaps.length_s
    lines = [
        TheoryRow(f"linear calls a step [{name}]", f"{arch.linear_calls_per_step}", "",
                  "" if traced is None else f"{traced:.0f}", "",
                  "" if report.model is None else report.model.verdict,
                  values=_present(theory=arch.linear_calls_per_step, measured=traced)),
        TheoryRow("kernels a step", "", "",
                  "" if device.kernels_per_step is None else f"{device.kernels_per_step:.0f}", "",
                  "", values=_present(measured=device.kernels_per_step)),
        TheoryRow("device busy", "", "", f"{device.busy_share:.1%}", "",
                  "graph replay: a lower bound" if device.idle_s is None else
                  "the rest waits for launches and the host",
                  values={"measured_share": device.busy_share}),
        TheoryRow("matmul time a step", "", "",
                  show(device.part_s.get("linear", 0.0) / steps, "s"), "", "kernels named linear",
                  values={"measured_s": device.part_s.get("linear", 0.0) / steps}),
    ]  # fmt: skip
    if len(gaps):
        lines.append(
            TheoryRow("typical gap between kernels", "", "",
                      show(float(np.median(gaps)), "s"), "", "median",
                      values={"measured_s": float(np.median(gaps))})
        )  # fmt: skip
    total = sum(row.total_s for row in report.kernels) or 1.0
    for row in report.kernels[:TOP_KERNELS]:
        lines.append(
            TheoryRow(f"kernel {row.name[:48]}", "", "", show(row.total_s, "s"), "",
                      f"{row.total_s / total:.0%} of kernel time, {row.calls} calls",
                      values={"measured_s": row.total_s, "share": row.total_s / total})
        )  # fmt: skip
    return lines


def _present(**values: Any) -> dict[str, float]:
    """Keep the numbers that are there."""
    return {name: float(value) for name, value in values.items() if value is not None}


def _ratio(measured: float, theory: float) -> str:
    return f"× {number(measured / theory, 4)}"
