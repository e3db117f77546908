"""vLLM's ``bench serve``, ``latency``, ``throughput``, ``sweep``, and SGLang's ``bench_serving``.

SGLang's serving benchmark grew out of vLLM's, and both write the same names: summaries in ms,
details of single requests in seconds.

Limits   ``latency`` and ``throughput`` files do not state lengths; TTFT and TPOT are not in them.
Sources  [1] vLLM, vllm/benchmarks/serve.py: TPOT = (latency − TTFT) / (output − 1).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from roofline.validation.benchmarks.record import (
    BenchmarkRun,
    Summary,
    count,
    mean_of,
    number,
    text,
)

_MS = 1e-3
_DEFINITION = "(end to end − TTFT) / (output tokens − 1), mean over requests"


def is_vllm_serve(document: Mapping[str, Any]) -> bool:
    """Whether this is a result of ``vllm bench serve``."""
    named = "model_id" in document or "total_token_throughput" in document
    return "output_throughput" in document and "completed" in document and named


def is_sglang(document: Mapping[str, Any]) -> bool:
    """Whether this is a result of SGLang's ``bench_serving``, which states no model."""
    own = ("total_output_tokens_retokenized", "sharegpt_output_len", "random_range_ratio")
    spelled = "mean_e2e_latency_ms" in document and "model_id" not in document
    return "output_throughput" in document and (any(name in document for name in own) or spelled)


def is_vllm_latency(document: Mapping[str, Any]) -> bool:
    """Whether this is a result of ``vllm bench latency``."""
    return "avg_latency" in document and "percentiles" in document


def is_vllm_throughput(document: Mapping[str, Any]) -> bool:
    """Whether this is a result of ``vllm bench throughput``."""
    return "elapsed_time" in document and "tokens_per_second" in document


def read_serve(document: Mapping[str, Any], path: str, tool: str = "vllm") -> BenchmarkRun:
    """Read one result of ``vllm bench serve`` or of SGLang's ``bench_serving``."""
    done = number(document.get("completed"))
    prompt, output = (number(document.get(f"total_{way}_tokens")) for way in ("input", "output"))
    total = number(document.get("total_token_throughput"))
    if total is None and document.get("input_throughput") is not None:
        ways = [number(document.get(f"{way}_throughput")) for way in ("input", "output")]
        total = None if None in ways else sum(way for way in ways if way is not None)
    return BenchmarkRun(
        tool=tool, raw_path=path, model_id=text(document.get("model_id")),
        concurrency=number(document.get("max_concurrency")),
        rate_per_s=number(document.get("request_rate")),
        prompt_tokens=mean_of(prompt, done), output_tokens=mean_of(output, done),
        n_ok=count(document.get("completed")), n_err=count(document.get("failed")),
        duration_s=number(document.get("duration")),
        requests_per_s=number(document.get("request_throughput")),
        output_tokens_per_s=number(document.get("output_throughput")),
        total_tokens_per_s=total,
        ttft_s=_summary(document, "ttft", "ttfts"), tpot_s=_summary(document, "tpot", ""),
        itl_s=_summary(document, "itl", "itls"), e2e_s=_end_to_end(document),
        goodput_requests_per_s=number(document.get("request_goodput")),
        tpot_definition=_DEFINITION, speculative=_speculative(document),
        assumptions=() if document.get("model_id") else ("the file does not state the model",),
    )  # fmt: skip


def _summary(document: Mapping[str, Any], name: str, details: str) -> Summary:
    stated = Summary(
        mean=number(document.get(f"mean_{name}_ms"), scale=_MS),
        p50=number(document.get(f"median_{name}_ms"), scale=_MS),
        p90=number(document.get(f"p90_{name}_ms"), scale=_MS),
        p95=number(document.get(f"p95_{name}_ms"), scale=_MS),
        p99=number(document.get(f"p99_{name}_ms"), scale=_MS),
    )
    if stated.known or not details:
        return stated
    return of_samples(_flat(document.get(details)))


def _flat(values: Any) -> list[float]:
    found: list[float] = []
    for value in values if isinstance(values, list) else []:
        nested = value if isinstance(value, list) else [value]
        found += [item for item in map(number, nested) if item is not None]
    return found


def of_samples(seconds: list[float]) -> Summary:
    """Summarise single measurements.

    >>> of_samples([1.0, 2.0, 3.0]).p50
    2.0
    """
    if not seconds:
        return Summary()
    p50, p90, p95, p99 = (float(p) for p in np.percentile(seconds, [50, 90, 95, 99]))
    return Summary(float(np.mean(seconds)), p50, p90, p95, p99)


def _end_to_end(document: Mapping[str, Any]) -> Summary:
    stated = _summary(document, "e2el", "")
    return stated if stated.known else _summary(document, "e2e_latency", "")


def _speculative(document: Mapping[str, Any]) -> str:
    length = number(document.get("spec_decode_acceptance_length"))
    if length is None:
        length = number(document.get("accept_length"))
    if length is None or length <= 1:
        return ""
    return f"speculative decoding, {length:.3g} tokens accepted a step"


def read_latency(document: Mapping[str, Any], path: str) -> BenchmarkRun:
    """Read one result of ``vllm bench latency``: the latency of a whole batch, in seconds."""
    shown = document.get("percentiles")
    percentiles = shown if isinstance(shown, dict) else {}
    e2e = Summary(
        mean=number(document.get("avg_latency")),
        p50=number(percentiles.get("50")),
        p90=number(percentiles.get("90")),
        p99=number(percentiles.get("99")),
    )
    return BenchmarkRun(
        tool="vllm latency",
        raw_path=path,
        e2e_s=e2e,
        assumptions=("the file states no model, batch or lengths; give them",),
    )


def read_throughput(document: Mapping[str, Any], path: str) -> BenchmarkRun:
    """Read one result of ``vllm bench throughput``; its tokens per second count the prompt too."""
    requests = number(document.get("num_requests"))
    prompt, output = (number(document.get(f"total_{way}_tokens")) for way in ("input", "output"))
    rate = number(document.get("output_tokens_per_second"))
    duration = number(document.get("elapsed_time"))
    if rate is None and output is not None and duration:
        rate = output / duration
    return BenchmarkRun(
        tool="vllm throughput", raw_path=path, prompt_tokens=mean_of(prompt, requests),
        output_tokens=mean_of(output, requests), n_ok=count(document.get("num_requests")),
        duration_s=duration, requests_per_s=number(document.get("requests_per_second")),
        output_tokens_per_s=rate, total_tokens_per_s=number(document.get("tokens_per_second")),
        assumptions=("all requests were sent at once: the number of requests is no batch",),
    )  # fmt: skip


def read_sweep(header: list[str], lines: list[list[str]], path: str) -> list[BenchmarkRun]:
    """Read the ``summary.csv`` of ``vllm bench sweep serve``: one serve result a line."""
    runs = []
    for position, cells in enumerate(lines, start=2):
        if any(cells):
            document = dict(zip(header, cells, strict=False))
            runs.append(read_serve(document, f"{path}:{position}"))
    return runs
