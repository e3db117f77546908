"""Which published rows are judged, and why the others are not: predicates on columns, never on ids.

A row is judged twice: its bound must not be above it (``bound``), and the estimate should be near
it (``estimate``). The second asks for more: a run in a steady state, at a batch that is known, on
settings that the estimate knows.

Limits   The first predicate that holds names the reason; their order is the order of the table.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from roofline.dtypes import Dtype
from roofline.hardware.accelerator import load_accelerator
from roofline.validation.rows import Row, all_rows

BOUND, ESTIMATE = "bound", "estimate"
USES = (BOUND, ESTIMATE)


@dataclass(frozen=True)
class Exclusion:
    """A reason not to judge rows.

    Args:
        name: short name.
        reason: why such rows say nothing about a bound or an estimate.
        holds: the predicate, of columns only.
        uses: what the rows are excluded from.
    """

    name: str
    reason: str
    holds: Callable[[Row], bool]
    uses: tuple[str, ...] = USES


def _flagged(*words: str) -> Callable[[Row], bool]:
    return lambda row: any(word in row.flag for word in words)


def _rest_of_plan(row: Row) -> bool:
    return not row.plain and row.n_gpu != 1


def _workers_unknown(row: Row) -> bool:
    prefill_workers = row.disaggregated and row.dataset == "engines" and row.quantity == "ttft"
    return row.n_gpu is None or prefill_workers


def _storage_unknown(row: Row) -> bool:
    ollama = "Ollama" in row.engine_label or "file format not stated" in row.flag
    return not row.weights_known or ollama


def _queued(row: Row) -> bool:
    if row.load == "all_at_once":
        return row.quantity == "ttft"
    cap, running = row.batch or 0.0, row.running_batch or 0.0
    return row.load == "concurrency" and cap > 1 and running < 0.5 * cap and not row.disaggregated


def _anomalous(row: Row) -> bool:
    if _flagged("anomalous", "untuned", "low outlier", "low for a CUDA-graph")(row):
        return True
    # flags that the source's other rows of the same runs bear: an untuned ROCm stack, and SGLang
    # started for 140,000 tokens of context with mixed chunks
    untuned = row.group == "llm_inference_bench" and row.accelerator == "mi300x"
    return untuned or (row.group == "qwen_speed_benchmark" and row.engine == "sglang")


def _another_board(row: Row) -> bool:
    slowed = "power limited" in row.accelerator_note and row.quantity == "ttft"
    return slowed or ("no NVLink" in row.notes and (row.tp or 1) > 1)


def _converted_cache(row: Row) -> bool:
    if row.kv != Dtype.FP8 or row.accelerator is None:
        return False
    return "fp8" not in load_accelerator(row.accelerator).compute.flop_per_s


def _speculative(row: Row) -> bool:
    return bool(row.speculative) or "speculative" in f"{row.flag} {row.notes}".lower()


EXCLUSIONS: tuple[Exclusion, ...] = (
    Exclusion(
        "no accelerator",
        "no spec of exactly this accelerator",
        lambda row: row.accelerator is None,
    ),
    Exclusion(
        "no model",
        "no description of the model's layers, or no text decoder",
        lambda row: row.model is None,
    ),
    Exclusion(
        "not a token rate",
        "queries per second, a latency of unstated lengths, or prompt and output tokens mixed",
        lambda row: row.quantity == "other",
    ),
    Exclusion(
        "unstated batch",
        "the largest throughput of a run with all requests queued: no batch stated",
        lambda row: row.load == "unstated",
        (ESTIMATE,),
    ),
    Exclusion(
        "speculative decoding",
        "several tokens a step, by an acceptance rate that the row does not state",
        _speculative,
    ),
    Exclusion(
        "cached prompt",
        "most of the prompt was in a prefix cache",
        _flagged("prefix cache warm"),
    ),
    Exclusion("copied", "numbers copied from another model or version", _flagged("copied:")),
    Exclusion("diffusion model", "several tokens a step", _flagged("diffusion LLM")),
    Exclusion(
        "slip at the source",
        "the source contradicts itself",
        _flagged("source slip", "above bandwidth bound"),
    ),
    Exclusion(
        "storage unknown",
        "the file's format is not stated or no single one (Ollama, dynamic mixes, cut experts)",
        _storage_unknown,
    ),
    Exclusion(
        "accelerators unknown",
        "the number of accelerators that did the work is not stated",
        _workers_unknown,
    ),
    Exclusion(
        "no lengths",
        "the prompt's length is not stated, and the quantity needs it",
        lambda row: row.quantity in ("ttft", "e2e") and row.prompt_tokens is None,
    ),
    Exclusion(
        "queued outside the batch",
        "most requests in flight wait: all sent at once, or less than half of the cap decodes",
        _queued,
        (ESTIMATE,),
    ),
    Exclusion(
        "unknown engine",
        "an engine without terms of its own; a bound still holds",
        lambda row: row.engine is None,
        (ESTIMATE,),
    ),
    Exclusion(
        "known anomaly",
        "the source's own twin rows contradict it by several times, or the stack was untuned",
        _anomalous,
        (ESTIMATE,),
    ),
    Exclusion(
        "converted cache",
        "an fp8 cache on a device without fp8 units: converted value by value, in no term",
        _converted_cache,
        (ESTIMATE,),
    ),
    Exclusion(
        "sequences alike",
        "llama-batched-bench's own tokens: sequences share experts, below what even routing reads",
        lambda row: "llama-batched-bench" in row.notes and (row.batch or 1) > 1,
        (ESTIMATE,),
    ),
    Exclusion(
        "cold start",
        "a mean of about ten requests, the first of which compiles and warms the server up",
        lambda row: row.quantity == "ttft" and re.search(r"n_req 10\b", row.notes) is not None,
        (ESTIMATE,),
    ),
    Exclusion(
        "work in progress",
        "the source calls its own runs work in progress",
        lambda row: "self-described as WIP" in row.notes,
        (ESTIMATE,),
    ),
    Exclusion(
        "another board",
        "cards at a lowered power limit (compute-bound phases), or joined by PCIe alone",
        _another_board,
        (ESTIMATE,),
    ),
    Exclusion(
        "no steady state",
        "all requests are sent at once: prompts crowd the start and the batch shrinks at the end",
        lambda row: row.load == "all_at_once",
        (ESTIMATE,),
    ),
    Exclusion(
        "separate prefill and decode workers",
        "the number of workers of each kind is mostly not stated",
        lambda row: row.disaggregated,
        (ESTIMATE,),
    ),
    Exclusion(
        "split not modelled",
        "layers or rows split over cards in turn, or attention replicas in a group",
        _rest_of_plan,
        (ESTIMATE,),
    ),
    Exclusion(
        "batch only bounded",
        "the running batch cannot be had from the row, or its replicas are not stated",
        lambda row: row.batch_basis == "least" or "over replicas" in row.plan,
        (ESTIMATE,),
    ),
    Exclusion(
        "waiting included",
        "more than one request in flight: the time to the first token includes waiting",
        lambda row: row.quantity == "ttft" and row.load == "concurrency" and row.batch != 1,
        (ESTIMATE,),
    ),
    Exclusion(
        "said by other rows",
        "the output rate of a run whose TPOT and TTFT are rows, or that waits outside the batch",
        lambda row: row.quantity == "output_rate",
        (ESTIMATE,),
    ),
)


def exclusion_of(row: Row, use: str = ESTIMATE) -> Exclusion | None:
    """Find the first reason not to judge a row; None: it is judged."""
    for exclusion in EXCLUSIONS:
        if use in exclusion.uses and exclusion.holds(row):
            return exclusion
    return None


def judged_rows(
    *,
    use: str = ESTIMATE,
    engine: str | None = None,
    quantity: str | None = None,
    rows: Iterable[Row] | None = None,
) -> tuple[Row, ...]:
    """Rows that are judged, of one engine and one quantity where named.

    >>> {row.quantity for row in judged_rows(engine="gpt-fast")}
    {'tpot'}
    """
    return tuple(
        row
        for row in (all_rows() if rows is None else rows)
        if (engine is None or row.engine == engine)
        and (quantity is None or row.quantity == quantity)
        and exclusion_of(row, use) is None
    )


def excluded_counts(rows: Iterable[Row], use: str = ESTIMATE) -> dict[str, int]:
    """Count the excluded rows by reason, in the order of the table."""
    counts = dict.fromkeys((e.name for e in EXCLUSIONS if use in e.uses), 0)
    for row in rows:
        exclusion = exclusion_of(row, use)
        if exclusion is not None:
            counts[exclusion.name] += 1
    return {name: count for name, count in counts.items() if count}
