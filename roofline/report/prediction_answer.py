"""A prediction in words and tables, the same in a terminal, in the browser and in a file.

Limits   No number is made here.
"""

from collections.abc import Mapping
from typing import Any

from roofline.api.explain import explain
from roofline.api.prediction import Prediction
from roofline.report.answer import Answer, Table
from roofline.timing.interval import Interval
from roofline.units import show


def prediction_answer(
    prediction: Prediction, inputs: Mapping[str, Any], *, explained: bool = False
) -> Answer:
    """Say a prediction: headline, tables and, when asked for, the formulas with their numbers."""
    results = prediction.to_dict()
    lines = headline(prediction)
    if explained:
        formulas = explain(prediction)
        results["explanation"] = formulas
        lines += ["", *formulas]
    return Answer(
        command="predict",
        inputs=inputs,
        results=results,
        tables=prediction_tables(prediction),
        lines=lines,
        assumptions=prediction.assumptions,
    )


def headline(prediction: Prediction) -> list[str]:
    """What was asked, and whether it fits, a line each; the last says that it fits or not."""
    d = prediction.deployment
    where = d.accelerator.name
    if d.parallel.accelerators > 1:
        where = f"{d.parallel.accelerators} × {where} ({d.parallel})"
    lines = [
        f"{d.arch.name}, {d.arch.parameters:,} parameters, on {where}",
        f"prompt {prediction.prompt_tokens:,} + output {prediction.output_tokens:,} tokens, "
        f"batch {prediction.batch:,}, weights {d.weights_dtype}, KV {d.formats.kv}, "
        f"engine {d.engine.name}",
    ]
    memory = prediction.memory
    if prediction.fits:
        most = prediction.max_batch
        limit = "any batch" if most is None else f"batch {most:,} at most"
        longest = prediction.max_context_tokens
        context = "any context" if longest is None else f"{longest:,} tokens of context at most"
        lines.append(f"fits: {show(memory.free_bytes, 'GiB')} free; {limit}, or {context}")
    else:
        lines.append(
            f"DOES NOT FIT: {show(memory.missing_bytes, 'GiB')} missing on each accelerator "
            f"({show(memory.usable_bytes, 'GiB')} usable)"
        )
    return lines


def bound_word(prediction: Prediction) -> str:
    """The class of what datasheet roofs give: "bound", and "measured roof" without a datasheet.

    >>> from roofline.api.predict import predict
    >>> bound_word(predict("llama-3.1-8b", "t4", weights="fp16"))
    'bound'
    """
    return "measured roof" if prediction.accelerator.is_measured else "bound"


def prediction_tables(prediction: Prediction) -> list[Table]:
    """Times, memory, roofline and operators, a table each."""

    def words(interval: Interval | None, unit: str) -> str:
        if interval is None:
            return "–"
        low, mid, high = (show(float(end), unit) for end in _ends(interval))
        return mid if low == mid == high else f"{mid}  ({low} – {high})"

    bound = prediction.bound
    times = Table(
        "Times",
        ["", bound_word(prediction), "estimate (low – high)", "limited by"],
        [
            ["TTFT", show(bound.ttft_s, "s"), words(prediction.ttft_s, "s"),
             prediction.prefill.limited_by],
            ["TPOT", show(bound.tpot_s, "s"), words(prediction.tpot_s, "s"),
             prediction.decode.limited_by if bound.tpot_s is not None else "–"],
            ["total", show(bound.total_s, "s"), words(prediction.total_s, "s"), ""],
            ["output tokens/s", show(bound.output_tokens_per_s, ""),
             words(prediction.output_tokens_per_s, ""), ""],
            ["decode step, mid-output", show(prediction.decode.bound_s, "s"),
             words(prediction.decode.estimate_s, "s"), prediction.decode.limited_by],
        ],
    )  # fmt: skip
    memory = prediction.memory
    parts = [
        ("weights", memory.weights_bytes),
        (f"KV cache of {prediction.batch:,} sequences", memory.kv_cache_bytes),
        ("activation", memory.activation_bytes),
        *((part.name, part.bytes) for part in memory.parts),
        ("free", memory.free_bytes),
    ]
    held = Table(
        f"Memory of one accelerator, {show(memory.usable_bytes, 'GiB')} usable",
        ["part", "size", "share"],
        [
            [name, show(size, "GiB"), f"{size / memory.usable_bytes:.1%}"]
            for name, size in parts
            if size or name == "free"
        ],
    )
    points = prediction.turning_points
    facts = Table(
        "Roofline",
        ["", ""],
        [
            ["ridge", prediction.ridge],
            ["prefill", f"{show(prediction.prefill.intensity_flop_per_byte, 'FLOP/B')}, "
                        f"compute-bound from {_or_never(points.prefill_tokens)} prompt tokens"],
            ["decode", f"{show(prediction.decode.intensity_flop_per_byte, 'FLOP/B')}, "
                       f"compute-bound from batch {_or_never(points.decode_batch)}"],
            ["cache = weights", f"at {_or_never(points.context_cache_equals_weights)} tokens of "
                                "context of one sequence"],
            ["KV per token", show(prediction.kv_bytes_per_token, "B", 5)],
        ],
    )  # fmt: skip
    return [times, held, facts, _operators(prediction)]


def _operators(prediction: Prediction) -> Table:
    return Table(
        "Decode step by operator",
        ["operator", "calls", bound_word(prediction), "estimate", "share", "halved gains",
         "limited by"],
        [
            [row.name, f"{row.calls:g}", show(row.bound_s, "s"), show(row.estimate_s, "s"),
             f"{row.share:.1%}", f"{row.gain_if_halved:.1%}", row.limited_by]
            for row in prediction.decode.operators
        ],
    )  # fmt: skip


def _or_never(value: int | None) -> str:
    return "no" if value is None else f"{value:,}"


def _ends(interval: Interval) -> tuple[float, float, float]:
    return float(interval.low), float(interval.mid), float(interval.high)
