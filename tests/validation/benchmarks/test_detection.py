"""Hand-made files in the shape that each tool writes; values worked out beside them.

Shapes: vllm/benchmarks/serve.py, sglang/bench_serving.py, aiperf's JSON export 1.4 and CSV,
GenAI-Perf 0.0.16, GuideLLM 0.8 (version 2) and outputs/csv.py, inference-perf docs/metrics.md.
"""

import contextlib
import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import InputError, RooflineError
from roofline.validation.benchmarks import reading
from roofline.validation.benchmarks.detection import read_benchmarks

SERVE = {
    "date": "20260801-120000", "endpoint_type": "openai", "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-8B", "num_prompts": 100, "request_rate": "inf",
    "max_concurrency": 32, "duration": 50.0, "completed": 100, "failed": 0,
    "total_input_tokens": 200_000, "total_output_tokens": 25_600, "request_throughput": 2.0,
    "request_goodput": None, "output_throughput": 512.0, "total_token_throughput": 4512.0,
    "mean_ttft_ms": 250.0, "median_ttft_ms": 200.0, "p99_ttft_ms": 900.0, "mean_tpot_ms": 20.0,
    "median_tpot_ms": 19.0, "p99_tpot_ms": 30.0, "mean_itl_ms": 21.0, "p99_itl_ms": 90.0,
}  # fmt: skip
SGLANG = {
    "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"),
    "max_concurrency": 16, "sharegpt_output_len": None, "random_range_ratio": 1.0, "duration": 10.0,
    "completed": 40, "total_input_tokens": 40_960, "total_output_tokens": 10_240,
    "total_output_tokens_retokenized": 10_200, "request_throughput": 4.0,
    "input_throughput": 4096.0, "output_throughput": 1024.0, "mean_e2e_latency_ms": 3000.0,
    "median_e2e_latency_ms": 2900.0, "mean_ttft_ms": 450.0, "median_ttft_ms": 400.0,
    "p99_ttft_ms": 800.0, "mean_tpot_ms": 10.0, "median_tpot_ms": 10.0, "p99_tpot_ms": 12.0,
    "mean_itl_ms": 10.0, "p95_itl_ms": 14.0, "accept_length": 2.5,
}  # fmt: skip


def metric(unit, avg, **more):
    return {"unit": unit, "avg": avg, **more}


AIPERF = {
    "schema_version": "1.4", "aiperf_version": "0.13.0", "was_cancelled": False,
    "is_complete": True,
    "input_config": {
        "models": {"items": [{"name": "Qwen/Qwen3-8B"}]},
        "phases": {"profiling": {"concurrency": 8, "request_rate": None}},
    },
    "request_throughput": metric("requests/sec", 4.0),
    "request_latency": metric("s", 2.0, p50=1.9, p99=2.4),
    "request_count": metric("requests", 80.0), "error_request_count": metric("requests", 2.0),
    "time_to_first_token": metric("us", 90_000.0, p50=80_000.0, p90=120_000.0),
    "inter_token_latency": metric("ms", 7.5, p50=7.4, p95=9.0),
    "output_token_throughput": metric("tokens/sec", 1024.0),
    "input_sequence_length": metric("tokens", 1000.0),
    "output_sequence_length": metric("tokens", 256.0),
}  # fmt: skip


def spread(mean, **more):
    percentiles = {"p001": mean / 9, "p50": mean, "p90": mean * 1.5, "p99": mean * 2}
    return {"successful": {"mean": mean, "median": mean, "percentiles": percentiles, **more}}


GUIDELLM = {
    "metadata": {"version": 2, "guidellm_version": "0.8.0", "python_version": "3.12"},
    "config": {"backend": {"model": "RedHatAI/Llama-3.3-70B"}},
    "benchmarks": [
        {
            "type_": "generative_benchmark",
            "config": {"strategy": {"type_": "concurrent", "streams": 16}},
            "scheduler_metrics": {"measure_start_time": 100.0, "measure_end_time": 160.0},
            "metrics": {
                "request_totals": {"successful": 120, "incomplete": 3, "errored": 1, "total": 124},
                "requests_per_second": spread(2.0), "request_latency": spread(6.0),
                "prompt_token_count": spread(2048.0), "output_token_count": spread(201.0),
                "time_to_first_token_ms": spread(1000.0),
                "time_per_output_token_ms": spread(29.85),
                "inter_token_latency_ms": spread(25.0),
                "output_tokens_per_second": spread(402.0), "tokens_per_second": spread(4498.0),
            },
        }
    ],
}  # fmt: skip
INFERENCE_PERF = {
    "load_summary": {"count": 50, "requested_rate": 5.0, "schedule_delay": {"mean": 0.001}},
    "successes": {
        "count": 50,
        "latency": {
            "request_latency": {"mean": 5.0, "median": 4.9},
            "normalized_time_per_output_token": {"mean": 0.05, "median": 0.049},
            "time_per_output_token": {"mean": 0.04, "median": 0.039, "p99": 0.06},
            "time_to_first_token": {"mean": 1.0, "median": 0.8, "p90": 2.0},
        },
        "throughput": {"output_tokens_per_sec": 505.0, "total_tokens_per_sec": 900.0,
                       "requests_per_sec": 5.0},
        "prompt_len": {"mean": 79.0}, "output_len": {"mean": 101.0},
    },
    "failures": {"count": 3},
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="result.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return to_file


def test_vllm_serve(write):
    [run] = read_benchmarks(write(SERVE))
    assert (run.tool, run.model_id, run.concurrency) == ("vllm", "meta-llama/Llama-3.1-8B", 32)
    assert (run.prompt_tokens, run.output_tokens) == (2000, 256)  # totals over 100 requests
    assert (run.ttft_s.mean, run.ttft_s.p50, run.ttft_s.p99) == pytest.approx((0.25, 0.2, 0.9))
    assert run.tpot_s.mean == pytest.approx(0.020)
    assert run.rate_per_s is None  # "inf"
    assert run.goodput_requests_per_s is None
    # Little: 2 requests a second, each decoding 255 × 20 ms = 5.1 s
    assert run.running_batch == pytest.approx(10.2)


def test_running_batch_is_never_more_than_the_cap(write):
    [run] = read_benchmarks(write({**SERVE, "request_throughput": 40.0}))
    assert run.running_batch == 32


def test_vllm_appended_results_and_details_in_seconds(write):
    bare = {k: v for k, v in SERVE.items() if "ttft" not in k}
    text = json.dumps(SERVE) + "\n" + json.dumps({**bare, "ttfts": [0.1, 0.2, 0.3]}, indent=1)
    first, second = read_benchmarks(write(text))
    assert first.ttft_s.p50 == pytest.approx(0.2)
    assert second.ttft_s.p50 == pytest.approx(0.2)  # seconds in details, ms in summaries
    assert second.raw_path.endswith("#1")


def test_vllm_latency_and_throughput(write):
    shown = {"10": 1.0, "50": 1.1, "90": 1.2, "99": 1.3}
    [run] = read_benchmarks(write({"avg_latency": 1.12, "latencies": [1.1], "percentiles": shown}))
    assert (run.e2e_s.mean, run.e2e_s.p90) == (1.12, 1.2)
    [run] = read_benchmarks(
        write(
            {
                "elapsed_time": 10.0,
                "num_requests": 50,
                "total_num_tokens": 60_000,
                "requests_per_second": 5.0,
                "tokens_per_second": 6000.0,
                "total_input_tokens": 50_000,
                "total_output_tokens": 10_000,
            }
        )
    )
    assert run.output_tokens_per_s == 1000.0  # 10,000 tokens in 10 s; 6,000 count the prompt too
    assert run.total_tokens_per_s == 6000.0


def test_vllm_sweep_csv(write):
    columns = [name for name in SERVE if name != "request_goodput"]
    lines = [",".join([*columns, "max_num_seqs"])]
    lines += [",".join(str(SERVE[c]) for c in columns) + f",{n}" for n in (64, 128)]
    runs = read_benchmarks(write("\n".join(lines), "summary.csv"))
    assert [run.tpot_s.mean for run in runs] == pytest.approx([0.02, 0.02])


def test_sglang_jsonl_with_bare_infinity(write):
    text = json.dumps(SGLANG) + "\n" + json.dumps(SGLANG) + "\n"
    assert "Infinity" in text
    first, _ = read_benchmarks(write(text, "out.jsonl"))
    assert (first.tool, first.rate_per_s, first.total_tokens_per_s) == ("sglang", None, 5120.0)
    assert (first.prompt_tokens, first.output_tokens) == (1024, 256)
    assert first.e2e_s.mean == pytest.approx(3.0)
    assert "2.5 tokens accepted" in first.speculative
    assert any("model" in line for line in first.assumptions)


def test_aiperf_reads_every_unit(write):
    [run] = read_benchmarks(write(AIPERF))
    assert (run.tool, run.tool_version, run.model_id) == ("aiperf", "0.13.0", "Qwen/Qwen3-8B")
    assert run.concurrency == 8
    assert run.ttft_s.mean == pytest.approx(0.09)  # 90,000 µs
    assert run.tpot_s.mean == pytest.approx(0.0075)
    assert run.e2e_s.p50 == pytest.approx(1.9)  # seconds as they are
    assert (run.n_ok, run.n_err) == (80, 2)


def test_genai_perf_is_told_by_the_missing_version(write):
    bare = {k: v for k, v in AIPERF.items() if k not in ("aiperf_version", "schema_version")}
    [run] = read_benchmarks(write(bare))
    assert run.tool == "genai-perf"


def test_aiperf_refuses_an_unknown_unit(write):
    with pytest.raises(InputError, match="first_token is in 'fortnights'; known are s, ms"):
        read_benchmarks(write({**AIPERF, "time_to_first_token": metric("fortnights", 1.0)}))


def test_aiperf_csv_has_two_blocks_and_ignores_telemetry(write):
    text = (
        "Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,p90,p95,p99,std\n"
        "Input Sequence Length (tokens),1000.00,1,2,3,,,,,1000.00,,,,,0\n"
        "Inter Token Latency (ms),7.50,7,8,600,,,,,7.40,,8.00,,9.00,0.1\n"
        "Output Sequence Length (tokens),256.00,1,2,3,,,,,256.00,,,,,0\n"
        '"Time to First Token (ms)","1,090.00",80,120,7200,,,,,80.00,,110.00,,118.00,5\n'
        "\n"
        "Metric,Value\n"
        "Request Count,80\n"
        "Request Throughput (requests/sec),4.00\n"
        "\n\n"
        "Endpoint,GPU_Index,GPU_Name,GPU_UUID,Metric,avg\n"
        "localhost,0,H100,GPU-1,GPU Power Usage (W),600\n"
    )
    [run] = read_benchmarks(write(text, "profile_export_aiperf.csv"))
    assert (run.tool, run.n_ok, run.requests_per_s) == ("aiperf", 80, 4.0)
    assert run.ttft_s.mean == pytest.approx(1.09)
    assert run.tpot_s.p99 == pytest.approx(0.009)


def test_genai_perf_csv(write):
    text = (
        "Metric,avg,min,max,p99,p95,p90,p75,p50,p25,p10,p5,p1\n"
        "Time To First Token (ms),90,80,120,118,115,110,95,88,82,81,80,80\n"
        "Inter Token Latency (ms),7.5,7,9,9,8.8,8.5,8,7.4,7.2,7.1,7,7\n"
        "\nMetric,Value\nOutput Token Throughput (tokens/sec),1024\n"
    )
    [run] = read_benchmarks(write(text, "x_genai_perf.csv"))
    assert (run.tool, run.output_tokens_per_s) == ("genai-perf", 1024.0)
    assert run.ttft_s.p90 == pytest.approx(0.110)


def test_aiperf_requests(write):
    def request(start_s, latency_ms, **more):
        values = {"time_to_first_token": (100.0, "ms"), "inter_token_latency": (10.0, "ms"),
                  "request_latency": (latency_ms, "ms"), "input_sequence_length": (500, "tokens"),
                  "output_sequence_length": (91, "tokens")}  # fmt: skip
        start = 10**18 + int(start_s * 1e9)
        about = {"request_start_ns": start, "request_end_ns": start + int(latency_ms * 1e6)}
        return {
            "metadata": {**about, "benchmark_phase": "profiling", "was_cancelled": False},
            "metrics": {name: {"value": v, "unit": u} for name, (v, u) in values.items()},
            "error": None,
            **more,
        }

    warm = request(-50, 1000)
    warm["metadata"]["benchmark_phase"] = "warmup"
    lines = [warm, request(0, 1000), request(1, 1000), request(1.5, 1000, error={"code": 500})]
    text = "\n".join(json.dumps(line) for line in lines)
    [run] = read_benchmarks(write(text, "profile_export.jsonl"))
    assert (run.n_ok, run.n_err, run.duration_s) == (2, 1, pytest.approx(2.0))
    assert run.output_tokens_per_s == pytest.approx(91.0)  # 182 tokens in 2 s
    assert run.tpot_s.mean == pytest.approx(0.010)


def test_guidellm_takes_inter_token_latency_for_tpot(write):
    """1 s + 200 × 25 ms = 6 s; 6 s / 201 tokens = 29.85 ms is its time per output token."""
    [run] = read_benchmarks(write(GUIDELLM))
    assert run.tpot_s.mean == pytest.approx(0.025)
    assert (run.concurrency, run.n_ok, run.n_err, run.duration_s) == (16, 120, 1, 60.0)
    assert run.model_id == "RedHatAI/Llama-3.3-70B"
    assert run.tpot_s.p90 == pytest.approx(0.0375)
    assert "includes TTFT" in run.tpot_definition


def test_guidellm_version_1(write):
    [modern] = GUIDELLM["benchmarks"]
    old = {
        "args": {"strategy": {"type_": "constant", "rate": 2.5}, "backend": {"model": "m"}},
        "run_stats": {"requests_made": {"successful": 7, "errored": 2},
                      "start_time": 5.0, "end_time": 8.0},
        "metrics": {k: v for k, v in modern["metrics"].items() if k != "request_totals"},
    }  # fmt: skip
    [run] = read_benchmarks(write({"metadata": {"version": 1}, "benchmarks": [old]}))
    assert (run.rate_per_s, run.n_ok, run.n_err, run.duration_s) == (2.5, 7, 2, 3.0)
    assert run.model_id == "m"


def test_guidellm_of_an_unknown_version(write):
    with pytest.raises(InputError, match="version 7; versions 1 and 2 are known"):
        read_benchmarks(write({**GUIDELLM, "metadata": {"version": 7}}))


def test_guidellm_csv(write):
    listed = "[1, 2, 3, 4, 5, 6, 8, 40, 9, 50, 99]"
    columns = [
        ("Run Info", "Run ID", "", "abc"),
        ("Run Info", "Backend", "", '{"model": "m"}'),
        ("Benchmark", "Strategy", "", "synchronous"),
        ("Timings", "Duration", "Sec", "60"),
        ("Request Counts", "Successful", "", "120"),
        ("Request Latency", "Successful Sec", "Mean", "6"),
        ("Time to First Token", "Successful ms", "Mean", "1000"),
        ("Time per Output Token", "Successful ms", "Mean", "29.85"),
        ("Inter Token Latency", "Successful ms", "Mean", "25"),
        ("Inter Token Latency", "Successful ms", "Median", "24"),
        ("Inter Token Latency", "Successful ms", "Percentiles", listed),
        ("Token Metrics", "Successful Output Tokens", "Mean", "201"),
    ]
    text = "\n".join(",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row)
                     for row in zip(*columns, strict=True))  # fmt: skip
    [run] = read_benchmarks(write(text, "benchmarks.csv"))
    assert (run.concurrency, run.model_id, run.n_ok) == (1.0, "m", 120)
    assert run.tpot_s.mean == pytest.approx(0.025)
    assert (run.tpot_s.p50, run.tpot_s.p90, run.tpot_s.p99) == pytest.approx((0.024, 0.04, 0.05))


def test_inference_perf_is_in_seconds_and_not_normalised(write):
    [run] = read_benchmarks(write(INFERENCE_PERF))
    assert (run.tpot_s.mean, run.tpot_s.p99, run.n_err) == (0.04, 0.06, 3)
    assert run.running_batch == pytest.approx(20.0)  # 5 a second × 100 × 0.04 s
    assert run.rate_per_s == 5.0


def test_gzipped(tmp_path):
    path = tmp_path / "result.json.gz"
    path.write_bytes(gzip.compress(json.dumps(SERVE).encode()))
    assert read_benchmarks(path)[0].tool == "vllm"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param('{"benchmarks": [', "is cut off", id="cut"),
        pytest.param("[1, 2]", "of no supported tool: it has a JSON int", id="numbers"),
        pytest.param('{"a": 1, "b": 2}', "it has keys a, b; supported: vLLM", id="other JSON"),
        pytest.param("a,b\n1,2\n", "it has a first line a, b; supported: vLLM", id="other CSV"),
        pytest.param("[" * 100_000, "nested too deep", id="deep"),
        pytest.param('{"a": ' + "9" * 6000 + "}", "no JSON", id="huge number"),
        pytest.param("[]", "no run in it", id="no run"),
        pytest.param('{"metadata": {}, "benchmarks": []}', "no benchmark in it", id="no benchmark"),
    ],
)
def test_what_is_no_benchmark_gets_one_clear_line(write, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read_benchmarks(write(content))
    assert "\n" not in str(caught.value)


def test_bytes_folders_and_missing_files(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"\x80\x00\xff")
    with pytest.raises(InputError, match="no text"):
        read_benchmarks(path)
    with pytest.raises(InputError, match="is a folder"):
        read_benchmarks(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        read_benchmarks(tmp_path / "none.json")
    path.write_bytes(b"\x1f\x8b broken")
    with pytest.raises(InputError, match="damaged gzip"):
        read_benchmarks(path)


def test_too_large_a_file_is_not_read(write, monkeypatch):
    monkeypatch.setattr(reading, "LARGEST_BYTES", 10)
    with pytest.raises(InputError, match="give the summary file"):
        read_benchmarks(write(SERVE))


def test_a_negative_time_is_refused(write):
    with pytest.raises(InputError, match=r"ttft_s mean is negative \(-0.25\)"):
        read_benchmarks(write({**SERVE, "mean_ttft_ms": -250}))


WHOLE = [SERVE, SGLANG, AIPERF, GUIDELLM, INFERENCE_PERF]
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(which=st.sampled_from(WHOLE), data=st.data())
def test_damaged_files_never_give_a_traceback(tmp_path_factory, which, data):
    document = json.loads(json.dumps(which))
    place = document
    for _ in range(data.draw(st.integers(0, 4))):
        keys = list(place) if isinstance(place, dict) else range(len(place))
        inner = [key for key in keys if isinstance(place[key], dict | list) and place[key]]
        if not inner:
            break
        place = place[data.draw(st.sampled_from(inner))]
    keys = list(place) if isinstance(place, dict) else range(len(place))
    place[data.draw(st.sampled_from(list(keys)))] = data.draw(JSON)
    text = json.dumps(document)
    text = text[: data.draw(st.integers(1, len(text)) | st.just(len(text)))]
    path = tmp_path_factory.mktemp("damaged") / "x.json"
    path.write_text(text)
    with contextlib.suppress(RooflineError):  # one clear line; anything else fails the test
        assert all(run.tool for run in read_benchmarks(path))
