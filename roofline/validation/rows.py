"""Published measurements as frozen rows in base units, read by the conventions of their tables.

One row is one measured quantity of one run. ``quantity`` says which:

    ttft          seconds from sending a request (or a whole batch) to its first token
    tpot          seconds between two output tokens of one sequence, the first one left out
    e2e           seconds for a whole batch or request, prompt and output
    output_rate   output tokens per second of all sequences together, waiting included

Units    seconds, tokens, tokens per second; ``value`` is in the unit of the quantity.
Limits   ``batch`` means what ``load`` says: the running batch (``single_stream``,
         ``fixed_batch``), a cap on the requests in flight (``concurrency``), or all requests of the
         run (``all_at_once``), which is no batch. ``running_batch`` is what was decoded together:
             stated      single_stream and fixed_batch
             little      cap × decode / (decode + TTFT), decode = TPOT × (output − 1)   [1]
             rate        output rate × TPOT: tokens per second times seconds per token  [1];
                         the smaller of the two, for a cap need not be reached
             least       1 where none of these can be had: the smallest it can have been
Sources  [1] Little 1961, Operations Research 9(3), 383-387: mean number in a system = rate × time.
"""

import functools
import math
import re
from dataclasses import dataclass, replace

from roofline.dtypes import Dtype
from roofline.validation.names import (
    KV_FORMATS,
    accelerator_named,
    engine_named,
    format_named,
    model_named,
)
from roofline.validation.published import table_lines

LOADS = {
    "single_stream": "single_stream",
    "fixed_batch": "fixed_batch",
    "concurrency": "concurrency",
    "all requests at once (rate inf)": "all_at_once",
    "max_throughput": "unstated",
}


@dataclass(frozen=True)
class Row:
    """One published measurement.

    Args:
        id, dataset, group, source, date: where it is from.
        model, accelerator: our names; None when there is none, then ``*_note`` says why.
        engine: our engine; None when it has no terms here.
        n_gpu: accelerators that the run used; None: not stated.
        tp, pp, dp, ep: how it was spread; None: not stated.
        plain: the plan is one that ``Parallel`` says exactly (no attention replicas inside a
            tensor-parallel group, no separate prefill and decode workers, no split by rows).
        weights, head: storage of the blocks and of lm_head; None: the checkpoint's own, 16 bit.
        kv: storage of the cache as stated; None: not stated.
        prompt_tokens, output_tokens: mean lengths; None: not stated.
        shortest: the shortest drawn length as a share of the mean.
        cached_tokens: tokens in the cache before the prompt.
        load, batch: see the module.
        quantity, value: see the module.
        statistic: ``mean``, ``median``, or ``single``.
        run: rows of one run share it.
        running_batch, batch_basis: sequences decoded together on all replicas, and how it is known.
    """

    id: str
    dataset: str
    group: str
    source: str
    date: str
    model_label: str
    model: str | None
    model_note: str
    accelerator_label: str
    accelerator: str | None
    accelerator_note: str
    engine_label: str
    engine: str | None
    engine_version: str
    n_gpu: int | None
    tp: int | None
    pp: int
    dp: int
    ep: int
    plain: bool
    plan: str
    weights_label: str
    weights: Dtype | None
    head: Dtype | None
    weights_known: bool
    kv: Dtype | None
    prompt_tokens: float | None
    output_tokens: float | None
    cached_tokens: float
    load: str
    batch: float | None
    metric: str
    quantity: str
    value: float
    statistic: str
    speculative: str
    disaggregated: bool
    notes: str
    flag: str
    run: int
    shortest: float = 1.0
    running_batch: float | None = None
    batch_basis: str = ""
    run_ttft_s: float | None = None
    run_tpot_s: float | None = None
    run_output_rate: float | None = None

    @property
    def decode_context_tokens(self) -> float:
        """Tokens of context at the middle of the output."""
        context = self.cached_tokens + (self.prompt_tokens or 0) + (self.output_tokens or 0) / 2
        shifted = re.search(r"n_ctx (\d+) with context shift", self.notes)
        # a full context drops its older half, so that it holds half of n_ctx at least
        return min(context, float(shifted[1]) / 2) if shifted else context


def number_or_none(text: str) -> float | None:
    """Read a cell: a finite number, or None when it is empty.

    >>> number_or_none(" 232.6 "), number_or_none("")
    (232.6, None)
    """
    text = text.strip()
    if not text:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _whole(text: str) -> int | None:
    value = number_or_none(text)
    return None if value is None else int(value)


def _instances(plan: str, source: str) -> int:
    stated = re.match(r"(\d+) instances", plan)
    if stated:
        return int(stated[1])
    spread = re.search(r"-dp(\d+)-", source)
    return int(spread[1]) if spread else 1


def _statistic(metric: str) -> str:
    return (
        "mean"
        if "mean" in metric
        else "median"
        if "median" in metric or "p50" in metric
        else "single"
    )


def _quantity(
    line: dict[str, str], batch: float | None, gpus: int | None
) -> tuple[str, float] | None:
    """Quantity and value in base units, or None for what is no rate of tokens or time."""
    metric, value = line["metric"], number_or_none(line["value"])
    isl, osl = number_or_none(line["isl"]), number_or_none(line["osl"])
    together = batch if line["load"] in ("fixed_batch", "single_stream") else None
    if value is None or value <= 0:
        return None
    milli = 1e-3 if line["unit"] == "ms" else 1.0
    if metric.startswith("tpot_"):
        return "tpot", value * milli
    if metric.startswith("ttft_"):
        return "ttft", value * milli
    if metric == "batch_e2e_latency_s":
        return "e2e", value
    if metric == "prefill_tok_s" and isl:
        return "ttft", isl * (together or 1.0) / value
    if metric == "decode_tok_s" and together:
        return "tpot", together / value
    if metric == "total_tok_s" and isl is not None and osl:
        value = value * osl / (isl + osl)
    elif metric == "output_tok_s_per_gpu" and gpus:
        value = value * gpus
    elif metric not in ("output_tok_s", "output_tok_s_wall"):
        return None
    if "clock starts at the first token" in line["flag"]:
        return ("tpot", together / value) if together else ("output_rate", value)
    if together and osl:
        return "e2e", together * osl / value
    return "output_rate", value


def _serving_row(line: dict[str, str], run: int) -> Row:
    model, device = model_named(line["model"]), accelerator_named(line["gpu"])
    label = line["weight_dtype"]
    if line["engine"] == "llama.cpp" and label == "mxfp4":
        label = "gguf-mxfp4"  # llama.cpp reads no other file
    storage = format_named(label)
    load = LOADS.get(line["load"], "unstated")
    batch = number_or_none(line["batch"])
    tp, pp = _whole(line["tp"]), _whole(line["pp"]) or 1
    box, plan = _whole(line["n_gpu"]), line["parallel"]
    dp = _instances(plan, line["source"])
    gpus = box
    if line["source_group"] == "rig_4x3090" and tp is not None:
        # n_gpu counts the box; one request runs on one instance
        gpus = tp * pp * (1 if load == "single_stream" else dp)
    if gpus is None and tp is not None:
        gpus = tp * pp
    found = _quantity(line, batch, gpus)
    quantity, value = (
        found if found is not None else ("other", number_or_none(line["value"]) or 0.0)
    )
    split = ("dp-attention" in plan) or ("PD disagg" in plan) or ("row split" in plan)
    whole = tp is not None and tp * pp * dp == gpus
    return Row(
        id=line["id"], dataset="serving", group=line["source_group"], source=line["source"],
        date=line["date"], model_label=line["model"], model=model.id, model_note=model.note,
        accelerator_label=line["gpu"], accelerator=device.id, accelerator_note=device.note,
        engine_label=line["engine"], engine=engine_named(line["engine"]),
        engine_version=line["engine_version"], n_gpu=gpus, tp=tp, pp=pp, dp=dp,
        ep=(gpus or 1) if re.search(r"\bep|EP", plan) else 1, plain=whole and not split and pp == 1,
        plan=plan, weights_label=label, weights=storage.blocks, head=storage.head,
        weights_known=storage.known, kv=KV_FORMATS.get(line["kv_dtype"]),
        prompt_tokens=number_or_none(line["isl"]), output_tokens=number_or_none(line["osl"]),
        cached_tokens=number_or_none(line["context_depth"]) or 0.0, load=load, batch=batch,
        metric=line["metric"], quantity=quantity, value=value, statistic=_statistic(line["metric"]),
        speculative=line["spec_decode"], disaggregated="PD disagg" in plan, notes=line["notes"],
        flag=line["flag"], run=run,
    )  # fmt: skip


def _engine_plan(line: dict[str, str]) -> tuple[int | None, int | None, int, int, bool]:
    """Accelerators, tp, dp and ep of an engine line, and whether ``Parallel`` says it exactly.

    A tp that exceeds the accelerators counts expert and attention ranks twice.
    """
    gpus, tp = _whole(line["n_gpu"]), _whole(line["tp"])
    replicas = _whole(line["attention_dp"]) or 1
    ep = _whole(line["moe_ep"]) or 1
    if gpus is None or tp is None:
        return gpus, tp, 1, ep, False
    if replicas > 1:
        dp = min(replicas, gpus)
        return gpus, gpus // dp, dp, min(ep, gpus), False
    tp = min(tp, gpus)
    return gpus, tp, gpus // tp, min(ep, gpus), tp == gpus


_DRAWN_MEAN, _DRAWN_LEAST = 0.9, 0.8
"""InferenceX draws lengths evenly between 0.8 of the nominal length and all of it."""


def _drawn(source: str) -> bool:
    return "source_file=20" in source or "db-dump" in source


def _engine_rows(line: dict[str, str], run: int) -> list[Row]:
    model, device = model_named(line["model"]), accelerator_named(line["gpu"])
    label = line["moe_format"] or line["gemm_format"] or ""
    own = "gpt-oss" in line["model"] or line["precision"] in ("", "bf16")
    storage = format_named("" if own else label)
    gpus, tp, dp, ep, plain = _engine_plan(line)
    per_replica, cap = (
        number_or_none(line["batch_per_replica"]),
        number_or_none(line["concurrency"]),
    )
    spread = _whole(line["attention_dp"]) or 1
    batch = cap if spread > 1 or per_replica is None else per_replica
    split = line["mode"] == "disagg"
    if split:
        gpus = _whole(
            line["decode_gpus"]
        )  # of one decode worker; their number is mostly not stated
    drawn = _drawn(line["source"])
    isl, osl = number_or_none(line["isl"]), number_or_none(line["osl"])
    mean = _DRAWN_MEAN if drawn else 1.0
    plan = f"{line['mode']} tp {line['tp']} attention-dp {line['attention_dp']}"
    base = Row(
        id=line["id"], dataset="engines", group=f"{line['engine']} {line['mode']}",
        source=line["source"], date=line["date"], model_label=line["model"], model=model.id,
        model_note=model.note, accelerator_label=line["gpu"], accelerator=device.id,
        accelerator_note=device.note, engine_label=line["engine"],
        engine=engine_named(line["engine"]), engine_version=line["engine_version"], n_gpu=gpus,
        tp=tp, pp=1, dp=dp, ep=ep, plain=plain and not split,
        plan=f"{plan} ep {line['moe_ep']}",
        weights_label=label, weights=storage.blocks, head=storage.head,
        weights_known=storage.known, kv=None, prompt_tokens=isl and isl * mean,
        output_tokens=osl and osl * mean, cached_tokens=0.0, load="concurrency",
        shortest=_DRAWN_LEAST / _DRAWN_MEAN if drawn else 1.0,
        batch=batch, metric="", quantity="", value=0.0, statistic="mean", speculative="",
        disaggregated=split, notes="", flag="", run=run,
    )  # fmt: skip
    rows = []
    for quantity in ("ttft", "tpot"):
        value = number_or_none(line[f"{quantity}_ms"])
        if value is not None and value > 0:
            metric = f"{quantity}_ms"
            named = replace(base, id=f"{line['id']}:{quantity}", metric=metric)
            rows.append(replace(named, quantity=quantity, value=value / 1e3))
    return rows


_OWN = ("id", "metric", "value", "unit", "scope", "flag")


def _runs(lines: tuple[dict[str, str], ...]) -> list[int]:
    """Number the runs: lines alike in all but the metric; a repeated metric starts another."""
    seen: dict[tuple[str, ...], int] = {}
    numbers: dict[tuple[tuple[str, ...], int], int] = {}
    runs = []
    for line in lines:
        key = tuple(cell for name, cell in line.items() if name not in _OWN)
        with_metric = (*key, line["metric"])
        seen[with_metric] = seen.get(with_metric, 0) + 1
        runs.append(numbers.setdefault((key, seen[with_metric]), len(numbers)))
    return runs


def _with_batch(rows: list[Row]) -> list[Row]:
    """Give every row of one run what the run measured beside it, and its running batch."""
    values = {row.quantity: row.value for row in rows}
    ttft_s, tpot_s, rate = (values.get(name) for name in ("ttft", "tpot", "output_rate"))
    return [
        replace(
            row,
            running_batch=batch,
            batch_basis=basis,
            run_ttft_s=ttft_s,
            run_tpot_s=tpot_s,
            run_output_rate=rate,
        )
        for row in rows
        for batch, basis in (running_batch(row, ttft_s, tpot_s, rate),)
    ]


def running_batch(
    row: Row, ttft_s: float | None, tpot_s: float | None, output_rate: float | None
) -> tuple[float, str]:
    """Sequences that were decoded together, and how that is known.

        cap × decode / (decode + TTFT), decode = TPOT × (output − 1)     or     output rate × TPOT

    whichever is smaller: a cap need not be reached, and not all requests last to the end.

    >>> from dataclasses import replace
    >>> row = replace(serving_rows()[0], load="concurrency", batch=64.0, output_tokens=101.0)
    >>> running_batch(row, 1.0, 0.03, None)  # 3 s of decode beside 1 s of waiting and prefill
    (48.0, 'little')
    """
    if row.disaggregated and row.dataset == "engines":
        return 1.0, "least"  # over how many decode workers the requests spread is not stated
    if row.load in ("single_stream", "fixed_batch") and row.batch:
        return row.batch, "stated"
    if row.load == "concurrency" and row.batch == 1:
        return 1.0, "stated"
    found: list[tuple[float, str]] = []
    if row.load == "concurrency" and row.batch and ttft_s and tpot_s and row.output_tokens:
        decode_s = tpot_s * max(row.output_tokens - 1, 1)
        found.append((row.batch * decode_s / (decode_s + ttft_s), "little"))
    if row.batch and tpot_s and output_rate:
        found.append((min(output_rate * tpot_s, row.batch), "rate"))
    if found and row.load in ("concurrency", "all_at_once"):
        batch, basis = min(found)
        return max(batch, 1.0), basis
    return 1.0, "least"


def _joined(rows: list[Row]) -> tuple[Row, ...]:
    runs: dict[int, list[Row]] = {}
    for row in rows:
        runs.setdefault(row.run, []).append(row)
    return tuple(row for run in runs.values() for row in _with_batch(run))


@functools.lru_cache(maxsize=1)
def serving_rows() -> tuple[Row, ...]:
    """Rows of the table of end-to-end measurements, about 20 engines on 40 families.

    >>> len(serving_rows())
    5263
    """
    lines = table_lines("serving")
    numbered = zip(lines, _runs(lines), strict=True)
    return _joined([_serving_row(line, run) for line, run in numbered])


@functools.lru_cache(maxsize=1)
def engine_rows() -> tuple[Row, ...]:
    """TTFT and TPOT rows of vLLM, SGLang and TensorRT-LLM by concurrency.

    >>> len(engine_rows()) // 2  # a TTFT and a TPOT of each run, where both are there
    2137
    """
    lines = table_lines("engines")
    return _joined([row for run, line in enumerate(lines) for row in _engine_rows(line, run)])


def all_rows() -> tuple[Row, ...]:
    """Rows of both tables."""
    return serving_rows() + engine_rows()
