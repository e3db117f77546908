"""inference-perf: ``summary_lifecycle_metrics.json`` and ``stage_N_lifecycle_metrics.json``.

Times are seconds; ``normalized_*`` divides the whole latency by the output and includes TTFT, so
``time_per_output_token`` is what is read.

Sources  [1] kubernetes-sigs/inference-perf, docs/metrics.md.
"""

from collections.abc import Mapping
from typing import Any

from roofline.validation.benchmarks.record import (
    BenchmarkRun,
    Summary,
    count,
    mapping,
    mean_of,
    number,
)


def is_inference_perf(document: Mapping[str, Any]) -> bool:
    """Whether this is a report of inference-perf."""
    return "load_summary" in document and "successes" in document


def read_inference_perf(document: Mapping[str, Any], path: str) -> BenchmarkRun:
    """Read one report."""
    done, load = mapping(document["successes"]), mapping(document["load_summary"])
    latency, rates = mapping(done.get("latency")), mapping(done.get("throughput"))
    requests = number(done.get("count"))
    per_s = number(rates.get("requests_per_sec"))
    return BenchmarkRun(
        tool="inference-perf", raw_path=path, concurrency=number(load.get("concurrency")),
        rate_per_s=number(load.get("requested_rate")),
        prompt_tokens=number(mapping(done.get("prompt_len")).get("mean")),
        output_tokens=number(mapping(done.get("output_len")).get("mean")),
        n_ok=count(done.get("count")), n_err=count(mapping(document.get("failures")).get("count")),
        duration_s=mean_of(requests, per_s), requests_per_s=per_s,
        output_tokens_per_s=number(rates.get("output_tokens_per_sec")),
        total_tokens_per_s=number(rates.get("total_tokens_per_sec")),
        ttft_s=_stats(latency, "time_to_first_token"),
        tpot_s=_stats(latency, "time_per_output_token"),
        itl_s=_stats(latency, "inter_token_latency"), e2e_s=_stats(latency, "request_latency"),
        tpot_definition="time_per_output_token; the normalized one includes TTFT",
        assumptions=("the file does not state the model",),
    )  # fmt: skip


def _stats(latency: Mapping[str, Any], name: str) -> Summary:
    stats = mapping(latency.get(name))
    return Summary(
        mean=number(stats.get("mean")),
        p50=number(stats.get("median")),
        **{p: number(stats.get(p)) for p in ("p90", "p95", "p99")},
    )
