"""AIPerf and GenAI-Perf: JSON summaries, per-request JSONL, CSV and sweep CSV.

Every metric states its unit; it is read, never assumed. Both tools' inter-token latency is
(latency − TTFT) / (output − first chunk), a mean per request: what is called TPOT here.

Sources  [1] ai-dynamo/aiperf, docs, metrics reference.
"""

import re
from collections.abc import Iterator, Mapping
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
from roofline.validation.benchmarks.vllm import of_samples

_SECONDS = {
    "s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6,
    "µs": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip
_DEFINITION = "inter-token latency of a request: (end to end − TTFT) / (output − first chunk)"
_TIMES = ("time_to_first_token", "inter_token_latency", "inter_chunk_latency", "request_latency")


def is_aiperf(document: Mapping[str, Any]) -> bool:
    """Whether this is a JSON summary of AIPerf or GenAI-Perf."""
    metric = mapping(document.get("request_latency")) or mapping(document.get("request_throughput"))
    return "unit" in metric and "avg" in metric


def is_aiperf_request(document: Mapping[str, Any]) -> bool:
    """Whether this is one line of AIPerf's ``profile_export.jsonl``."""
    return "request_start_ns" in mapping(document.get("metadata")) and "metrics" in document


def read_aiperf(document: Mapping[str, Any], path: str) -> BenchmarkRun:
    """Read a JSON summary."""
    config = mapping(document.get("input_config"))
    tool = "aiperf" if "aiperf_version" in document else "genai-perf"
    warnings = []
    if document.get("was_cancelled") is True or document.get("is_complete") is False:
        warnings.append("the run was cut short")
    return _run(
        {name: metric for name, metric in document.items() if isinstance(metric, dict)},
        path,
        tool=tool,
        version=text(document.get("aiperf_version")),
        model=_model(config),
        concurrency=number(_found(config, ("concurrency",))),
        rate=number(_found(config, ("request_rate", "request-rate"))),
        assumptions=tuple(warnings),
    )


def _run(
    metrics: Mapping[str, Any],
    path: str,
    *,
    tool: str,
    version: str = "",
    model: str = "",
    concurrency: float | None = None,
    rate: float | None = None,
    assumptions: tuple[str, ...] = (),
) -> BenchmarkRun:
    def mean(name: str) -> float | None:
        return number(mapping(metrics.get(name)).get("avg"))

    times = {name: _times(mapping(metrics.get(name)), name, path) for name in _TIMES}
    chosen = _seconds(mapping(metrics.get("benchmark_duration")), "avg", "benchmark_duration", path)
    return BenchmarkRun(
        tool=tool, raw_path=path, tool_version=version, model_id=model, concurrency=concurrency,
        rate_per_s=rate, prompt_tokens=mean("input_sequence_length"),
        output_tokens=mean("output_sequence_length"), n_ok=count(mean("request_count")),
        n_err=count(mean("error_request_count")), duration_s=chosen,
        requests_per_s=mean("request_throughput"),
        output_tokens_per_s=mean("output_token_throughput"),
        total_tokens_per_s=mean("total_token_throughput"),
        ttft_s=times["time_to_first_token"], tpot_s=times["inter_token_latency"],
        itl_s=times["inter_chunk_latency"], e2e_s=times["request_latency"],
        goodput_requests_per_s=mean("goodput") or mean("request_goodput"),
        tpot_definition=_DEFINITION, assumptions=assumptions,
    )  # fmt: skip


def _times(metric: Mapping[str, Any], name: str, path: str) -> Summary:
    keys = {"mean": "avg", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
    return Summary(**{ours: _seconds(metric, own, name, path) for ours, own in keys.items()})


def _seconds(metric: Mapping[str, Any], key: str, name: str, path: str) -> float | None:
    if metric.get(key) is None:
        return None
    unit = text(metric.get("unit")).strip().lower()
    if unit not in _SECONDS:
        raise InputError(f"{path}: {name} is in {unit or 'no unit'!r}; known are s, ms, us, ns")
    return number(metric[key], scale=_SECONDS[unit])


def _found(config: Mapping[str, Any], names: tuple[str, ...], depth: int = 0) -> Any:
    """The first value of one of these keys, from the outside in."""
    for name in names:
        if config.get(name) is not None:
            return config[name]
    for value in config.values() if depth < 6 else ():
        if isinstance(value, dict) and (found := _found(value, names, depth + 1)) is not None:
            return found
    return None


def _model(config: Mapping[str, Any]) -> str:
    named = _found(config, ("model_names", "model", "models", "model_name"))
    if isinstance(named, dict):
        named = named.get("items")
    if isinstance(named, list) and named:
        named = named[0]
    if isinstance(named, dict):
        named = named.get("name")
    return text(named)


def read_aiperf_requests(documents: list[Mapping[str, Any]], path: str) -> BenchmarkRun:
    """Read ``profile_export.jsonl``: the requests of the measured phase that succeeded."""
    phases = ("profiling", "")
    measured = [d for d in documents if text(_about(d).get("benchmark_phase")).lower() in phases]
    good = [
        d for d in measured if not d.get("error") and _about(d).get("was_cancelled") is not True
    ]
    if not good:
        raise InputError(f"{path}: none of its {len(documents)} requests succeeded")

    def values(name: str, *, time: bool) -> list[float]:
        found = []
        for document in good:
            metric = mapping(mapping(document["metrics"]).get(name))
            read = _seconds(metric, "value", name, path) if time else number(metric.get("value"))
            if read is not None:
                found.append(read)
        return found

    def mean(name: str) -> float | None:
        found = values(name, time=False)
        return sum(found) / len(found) if found else None

    starts = [s for d in good if (s := number(_about(d).get("request_start_ns"))) is not None]
    ends = [e for d in good if (e := number(_about(d).get("request_end_ns"))) is not None]
    duration = (max(ends) - min(starts)) * 1e-9 if starts and ends else 0.0
    output = mean("output_sequence_length")
    prompt = mean("input_sequence_length")
    rate = len(good) / duration if duration > 0 else None
    return BenchmarkRun(
        tool="aiperf", raw_path=path, prompt_tokens=prompt, output_tokens=output, n_ok=len(good),
        n_err=len(measured) - len(good), duration_s=duration or None, requests_per_s=rate,
        output_tokens_per_s=None if rate is None or output is None else rate * output,
        total_tokens_per_s=(
            None if rate is None or output is None or prompt is None else rate * (output + prompt)
        ),
        ttft_s=of_samples(values("time_to_first_token", time=True)),
        tpot_s=of_samples(values("inter_token_latency", time=True)),
        e2e_s=of_samples(values("request_latency", time=True)), tpot_definition=_DEFINITION,
        assumptions=("the file does not state the model or the concurrency",),
    )  # fmt: skip


def _about(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(document.get("metadata"))


_HEADING = re.compile(r"^(.*?)\s*(?:\(([^()]*)\))?$")


def read_aiperf_csv(lines: list[list[str]], path: str) -> BenchmarkRun:
    """Read a CSV summary: blocks of ``Metric, …`` with the unit in brackets behind the name."""
    tool = "aiperf" if "sum" in [cell.lower() for cell in lines[0]] else "genai-perf"
    metrics: dict[str, dict[str, Any]] = {}
    for header, cells in _blocks(lines):
        if header[0].strip() != "Metric" or not cells:
            continue
        name, unit = _heading(cells[0])
        named = dict(zip([cell.strip().lower() for cell in header[1:]], cells[1:], strict=False))
        named = {key: value.replace(",", "") for key, value in named.items()}
        metrics[name] = {"unit": unit, "avg": named.pop("value", named.get("avg")), **named}
    return _run(
        metrics, path, tool=tool, assumptions=("the file does not state the model or the load",)
    )


def _heading(cell: str) -> tuple[str, str]:
    match = _HEADING.match(cell.strip())
    name, unit = (match[1], match[2] or "") if match else (cell, "")
    return name.strip().lower().replace(" ", "_").replace("-", "_"), unit


def _blocks(lines: list[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Each line with the header of its block; an empty line ends a block."""
    header: list[str] | None = None
    for cells in lines:
        if not any(cell.strip() for cell in cells):
            header = None
        elif header is None or cells[0].strip() == "Metric":
            header = cells
        else:
            yield header, cells


def is_aiperf_sweep(header: list[str]) -> bool:
    """Whether this is the header of ``profile_export_aiperf_sweep.csv``."""
    return any(cell.startswith("time_to_first_token") and cell.endswith("_mean") for cell in header)


def read_aiperf_sweep(lines: list[list[str]], path: str) -> list[BenchmarkRun]:
    """Read a sweep: one run a line of the first block, metrics as ``<metric>_<statistic>``."""
    header = [cell.strip() for cell in lines[0]]
    runs = []
    for position, cells in enumerate(lines[1:], start=2):
        if not any(cells):
            break
        row = dict(zip(header, cells, strict=False))
        metrics = {name: _sweep_metric(row, name) for name in _SWEPT}
        concurrency = next((number(v) for k, v in row.items() if k.endswith("concurrency")), None)
        rate = next((number(v) for k, v in row.items() if k.endswith("request_rate")), None)
        runs.append(
            _run(
                metrics,
                f"{path}:{position}",
                tool="aiperf",
                concurrency=concurrency,
                rate=rate,
                assumptions=("a sweep file states no units; times are taken as ms",),
            )
        )
    return runs


_SWEPT = (*_TIMES, "input_sequence_length", "output_sequence_length", "request_count",
          "request_throughput", "output_token_throughput", "total_token_throughput")  # fmt: skip


def _sweep_metric(row: Mapping[str, str], name: str) -> dict[str, Any]:
    """A metric of a sweep line; statistics may be means over trials (``…_avg_mean``)."""
    found: dict[str, Any] = {"unit": "ms"}
    for ours, spellings in {
        "avg": (f"{name}_mean", f"{name}_avg_mean", f"{name}_avg"),
        **{p: (f"{name}_{p}", f"{name}_{p}_mean") for p in ("p50", "p90", "p95", "p99")},
    }.items():
        found[ours] = next((row[spelling] for spelling in spellings if row.get(spelling)), None)
    return found
