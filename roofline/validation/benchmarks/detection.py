"""Which tool wrote a benchmark file: told by its keys, never by its name.

Supported are vLLM (bench serve, latency, throughput, sweep), SGLang (bench_serving), AIPerf,
GenAI-Perf, GuideLLM and inference-perf.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roofline.errors import InputError
from roofline.validation.benchmarks.aiperf import (
    is_aiperf,
    is_aiperf_request,
    is_aiperf_sweep,
    read_aiperf,
    read_aiperf_csv,
    read_aiperf_requests,
    read_aiperf_sweep,
)
from roofline.validation.benchmarks.guidellm import (
    is_guidellm,
    is_guidellm_csv,
    read_guidellm,
    read_guidellm_csv,
)
from roofline.validation.benchmarks.inference_perf import is_inference_perf, read_inference_perf
from roofline.validation.benchmarks.reading import csv_lines, json_documents, read_text
from roofline.validation.benchmarks.record import BenchmarkRun
from roofline.validation.benchmarks.vllm import (
    is_sglang,
    is_vllm_latency,
    is_vllm_serve,
    is_vllm_throughput,
    read_latency,
    read_serve,
    read_sweep,
    read_throughput,
)

SUPPORTED = (
    "vLLM bench serve, latency, throughput (JSON) and sweep (CSV), SGLang bench_serving (JSONL), "
    "AIPerf (JSON, CSV, JSONL), GenAI-Perf (JSON, CSV), GuideLLM (JSON, CSV), inference-perf (JSON)"
)


def read_benchmarks(path: str | os.PathLike[str]) -> tuple[BenchmarkRun, ...]:
    """Read every run in a benchmark file of any supported tool.

    Raises:
        InputError: the file is not readable, cut, or of no supported tool; the message has what was
            found in it and what is supported.
    """
    place = Path(path)
    content = read_text(place)
    first = content.lstrip()[:1]
    if first in ("{", "["):
        return tuple(_from_json(json_documents(content, place), place))
    return tuple(_from_csv(csv_lines(content, place), place))


def _from_json(documents: list[Any], path: Path) -> list[BenchmarkRun]:
    if len(documents) == 1 and isinstance(documents[0], list):
        documents = documents[0]
    if not documents:
        raise InputError(f"{path} has no run in it")
    wrong = next((d for d in documents if not isinstance(d, dict)), None)
    if wrong is not None:
        raise _unknown(path, f"a JSON {type(wrong).__name__}")
    if is_aiperf_request(documents[0]):
        return [read_aiperf_requests([d for d in documents if is_aiperf_request(d)], str(path))]
    runs: list[BenchmarkRun] = []
    for position, document in enumerate(documents):
        where = str(path) if len(documents) == 1 else f"{path}#{position}"
        runs += _read_one(document, where, path)
    return runs


def _read_one(document: Mapping[str, Any], where: str, path: Path) -> list[BenchmarkRun]:
    if is_guidellm(document):
        return read_guidellm(document, where)
    if is_inference_perf(document):
        return [read_inference_perf(document, where)]
    if is_aiperf(document):
        return [read_aiperf(document, where)]
    if is_sglang(document):
        return [read_serve(document, where, tool="sglang")]
    if is_vllm_serve(document):
        return [read_serve(document, where)]
    if is_vllm_latency(document):
        return [read_latency(document, where)]
    if is_vllm_throughput(document):
        return [read_throughput(document, where)]
    raise _unknown(path, f"keys {_some(document)}")


def _from_csv(lines: list[list[str]], path: Path) -> list[BenchmarkRun]:
    while lines and not any(cell.strip() for cell in lines[0]):
        lines = lines[1:]
    header = [cell.strip() for cell in lines[0]]
    if header[0] == "Metric":
        return [read_aiperf_csv(lines, str(path))]
    if is_guidellm_csv(lines):
        return read_guidellm_csv(lines, str(path))
    if is_aiperf_sweep(header):
        return read_aiperf_sweep(lines, str(path))
    if "output_throughput" in header and "completed" in header:
        runs = read_sweep(header, lines[1:], str(path))
        if runs:
            return runs
        raise InputError(f"{path} has a header and no run")
    raise _unknown(path, f"a first line {_some(header)}")


def _some(names: Mapping[str, Any] | list[str]) -> str:
    listed = [str(name)[:30] for name in names][:6]
    return ", ".join(listed) + (", …" if len(names) > 6 else "") if listed else "nothing"


def _unknown(path: Path, found: str) -> InputError:
    return InputError(f"{path} is of no supported tool: it has {found}; supported: {SUPPORTED}")
