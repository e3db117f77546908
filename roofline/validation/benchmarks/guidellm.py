"""GuideLLM's benchmarks.json (versions 1 and 2) and benchmarks.csv (three header rows).

Its ``time_per_output_token_ms`` divides by all output tokens and includes TTFT; its
``inter_token_latency_ms`` is what is called TPOT here and by the other tools.

Limits   Figures of successful requests; ``p001`` is the 0.1th percentile and not used.
Sources  [1] vllm-project/guidellm, benchmark/outputs/csv.py and schemas.
"""

import json
from collections.abc import Mapping
from typing import Any

from roofline.errors import InputError
from roofline.validation.benchmarks.record import (
    BenchmarkRun,
    Summary,
    count,
    mapping,
    number,
    text,
)

_MS = 1e-3
_DEFINITION = "GuideLLM's inter_token_latency; its time_per_output_token includes TTFT"


def is_guidellm(document: Mapping[str, Any]) -> bool:
    """Whether this is GuideLLM's JSON."""
    runs = document.get("benchmarks")
    return isinstance(runs, list) and all("metrics" in mapping(run) for run in runs)


def read_guidellm(document: Mapping[str, Any], path: str) -> list[BenchmarkRun]:
    """Read every benchmark of a file.

    Raises:
        InputError: a version that is not known.
    """
    about = mapping(document.get("metadata"))
    version = about.get("version")
    if version not in (None, 1, 2):
        raise InputError(f"{path} is GuideLLM's version {version!r}; versions 1 and 2 are known")
    if not document["benchmarks"]:
        raise InputError(f"{path} has no benchmark in it")
    model = _model(document)
    return [
        _read(mapping(run), f"{path}#{position}", model, text(about.get("guidellm_version")))
        for position, run in enumerate(document["benchmarks"])
    ]


def _read(run: Mapping[str, Any], path: str, model: str, version: str) -> BenchmarkRun:
    metrics = mapping(run["metrics"])
    strategy = _strategy(run)
    totals = _totals(run, metrics)
    return BenchmarkRun(
        tool="guidellm", raw_path=path, tool_version=version, model_id=_model(run) or model,
        concurrency=_concurrency(strategy), rate_per_s=number(strategy.get("rate")),
        prompt_tokens=_stats(metrics, "prompt_token_count").mean,
        output_tokens=_stats(metrics, "output_token_count").mean,
        n_ok=count(totals.get("successful")), n_err=count(totals.get("errored")),
        duration_s=_duration(run), requests_per_s=_stats(metrics, "requests_per_second").mean,
        output_tokens_per_s=_stats(metrics, "output_tokens_per_second").mean,
        total_tokens_per_s=_stats(metrics, "tokens_per_second").mean,
        ttft_s=_stats(metrics, "time_to_first_token_ms", _MS),
        tpot_s=_stats(metrics, "inter_token_latency_ms", _MS),
        e2e_s=_stats(metrics, "request_latency"), tpot_definition=_DEFINITION,
    )  # fmt: skip


def _stats(metrics: Mapping[str, Any], name: str, scale: float = 1.0) -> Summary:
    stats = mapping(mapping(metrics.get(name)).get("successful"))
    percentiles = mapping(stats.get("percentiles"))
    median = stats.get("median") if stats.get("median") is not None else percentiles.get("p50")
    return Summary(
        mean=number(stats.get("mean"), scale=scale),
        p50=number(median, scale=scale),
        **{p: number(percentiles.get(p), scale=scale) for p in ("p90", "p95", "p99")},
    )


def _strategy(run: Mapping[str, Any]) -> Mapping[str, Any]:
    for place in ("config", "args", "scheduler"):
        strategy = mapping(mapping(run.get(place)).get("strategy"))
        if strategy:
            return strategy
    return {}


def _concurrency(strategy: Mapping[str, Any]) -> float | None:
    if strategy.get("type_") == "synchronous":
        return 1.0
    for name in ("streams", "max_concurrency", "concurrency"):
        if strategy.get(name) is not None:
            return number(strategy[name])
    return None


def _totals(run: Mapping[str, Any], metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    places = (metrics.get("request_totals"), run.get("request_totals"),
              mapping(run.get("scheduler_metrics")).get("requests_made"),
              mapping(run.get("run_stats")).get("requests_made"))  # fmt: skip
    return next((mapping(place) for place in places if mapping(place)), {})


def _duration(run: Mapping[str, Any]) -> float | None:
    stated = number(run.get("duration"))
    if stated is not None:
        return stated
    spans = mapping(run.get("scheduler_metrics")) or mapping(run.get("run_stats")) or run
    for first, last in (("measure_start_time", "measure_end_time"), ("start_time", "end_time")):
        start, end = number(spans.get(first)), number(spans.get(last))
        if start is not None and end is not None and end > start:
            return end - start
    return None


def _model(place: Mapping[str, Any]) -> str:
    places = (place, *(mapping(place.get(name)) for name in ("config", "args", "worker")))
    for outer in places:
        for inner in (outer, mapping(outer.get("backend")), mapping(outer.get("backend_kwargs"))):
            for name in ("model", "backend_model", "model_id"):
                if text(inner.get(name)):
                    return text(inner[name])
    return ""


def is_guidellm_csv(lines: list[list[str]]) -> bool:
    """Whether this is GuideLLM's CSV, by its three header rows."""
    return len(lines) > 3 and "Run Info" in lines[0] and "Run ID" in lines[1]


_AT = {"p90": 7, "p95": 8, "p99": 9}
"""Places in a percentile cell: least, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, largest; no median [1]."""


def read_guidellm_csv(lines: list[list[str]], path: str) -> list[BenchmarkRun]:
    """Read the CSV: three header rows (group, field, statistic), then a line a benchmark."""
    width = min(len(row) for row in lines[:3])
    keys = [tuple(lines[level][i].strip() for level in range(3)) for i in range(width)]
    runs = []
    for position, cells in enumerate(lines[3:], start=4):
        if any(cells):
            runs.append(_csv_run(dict(zip(keys, cells, strict=False)), f"{path}:{position}"))
    if not runs:
        raise InputError(f"{path} has headers and no benchmark")
    return runs


def _csv_run(row: Mapping[tuple[str, ...], str], path: str) -> BenchmarkRun:
    def stats(group: str, field: str, scale: float = 1.0) -> Summary:
        name = f"Successful {field}"
        listed = _listed(row.get((group, name, "Percentiles"), ""))
        return Summary(
            mean=number(row.get((group, name, "Mean")), scale=scale),
            p50=number(row.get((group, name, "Median")), scale=scale),
            **{p: number(listed[at], scale=scale) for p, at in _AT.items() if len(listed) == 11},
        )

    backend = mapping(_loaded(row.get(("Run Info", "Backend", ""), "")))
    profile = mapping(_loaded(row.get(("Run Info", "Profile", ""), "")))
    flight = stats("Server Throughput", "Concurrency").mean
    return BenchmarkRun(
        tool="guidellm", raw_path=path, model_id=text(backend.get("model")),
        concurrency=_csv_concurrency(row, profile),
        prompt_tokens=stats("Token Metrics", "Input Tokens").mean,
        output_tokens=stats("Token Metrics", "Output Tokens").mean,
        n_ok=count(row.get(("Request Counts", "Successful", ""))),
        n_err=count(row.get(("Request Counts", "Errored", ""))),
        duration_s=number(row.get(("Timings", "Duration", "Sec"))),
        requests_per_s=stats("Server Throughput", "Requests/Sec").mean,
        output_tokens_per_s=stats("Token Throughput", "Output Tokens/Sec").mean,
        total_tokens_per_s=stats("Token Throughput", "Total Tokens/Sec").mean,
        ttft_s=stats("Time to First Token", "ms", _MS),
        tpot_s=stats("Inter Token Latency", "ms", _MS),
        e2e_s=stats("Request Latency", "Sec"), tpot_definition=_DEFINITION,
        assumptions=() if flight is None else (f"{flight:.4g} requests in flight on average",),
    )  # fmt: skip


def _csv_concurrency(
    row: Mapping[tuple[str, ...], str], profile: Mapping[str, Any]
) -> float | None:
    if row.get(("Benchmark", "Strategy", "")) == "synchronous":
        return 1.0
    streams = profile.get("streams")
    if isinstance(streams, list):
        return number(streams[0]) if len(streams) == 1 else None
    return number(streams)


def _loaded(cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return None


def _listed(cell: str) -> list[Any]:
    found = _loaded(cell.replace("None", "null"))
    return found if isinstance(found, list) else []
