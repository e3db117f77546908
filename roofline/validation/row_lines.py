"""Lines of the published tables read into rows, by the conventions of each table.

Units    Rows are in base units; the tables in those of their sources.
Limits   What a label stands for is in ``names`` and ``formats``; what is not judged in
         ``exclusions``.
Sources  measurements/published/README.md has the conventions in words.
"""

import math
import re
from dataclasses import replace

from roofline.validation.formats import KV_FORMATS, format_named
from roofline.validation.names import accelerator_named, engine_named, model_named
from roofline.validation.row import LOADS, Row


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


def serving_row(line: dict[str, str], run: int) -> Row:
    """Read one line of the table of end-to-end measurements."""
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


def engine_line_rows(line: dict[str, str], run: int) -> list[Row]:
    """Read one line of the table of engines: a TTFT and a TPOT, where they are there."""
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
    several = spread == 1 and cap is not None and per_replica is not None and cap > per_replica
    split = line["mode"] == "disagg"
    if split:
        gpus = _whole(
            line["decode_gpus"]
        )  # of one decode worker; their number is mostly not stated
    drawn = _drawn(line["source"])
    isl, osl = number_or_none(line["isl"]), number_or_none(line["osl"])
    mean = _DRAWN_MEAN if drawn else 1.0
    plan = f"{line['mode']} tp {line['tp']} attention-dp {line['attention_dp']}"
    plan += f" concurrency {cap:.0f} over replicas" if several else ""
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
