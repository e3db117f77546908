"""The decision tree: worked examples, and each question with an answer worked out by hand."""

import json
from pathlib import Path

import pytest

from roofline.diagnose import diagnose, incident_record
from roofline.diagnose.symptoms import parse_dcgm, parse_out_of_memory, read_symptoms
from roofline.diagnose.under_load import load_points
from roofline.errors import InputError, RooflineError, SpecError

ROOT = Path(__file__).resolve().parents[2]
# one record by its path: a newer one of the same id must not move the numbers below
RECORD = str(ROOT / "measurements/h200-sxm-141gb/2026-11-reference-sweeps.json")
EXAMPLES = ROOT / "examples" / "diagnosis"
TRACES = ROOT / "measurements" / "traces"


def only(found, cause):
    return next(verdict for verdict in found.verdicts if verdict.cause == cause)


def test_tinyllama_waits_for_the_host():
    """2.8 % busy: 97 % of 236 ms is waiting; kernels alone 6.68 ms, so at most 35 ×."""
    found = diagnose(trace=TRACES / "h200-TinyLlama-1.1B_b1.json.gz", machine=RECORD)
    first = found.verdicts[0]
    assert found.headline == "a faster GPU will not help: it waits for the host 97 % of the time"
    assert first.confidence == "high"
    assert first.gain_factor == pytest.approx(236.47 / 6.676, rel=1e-3)
    assert any("_cudnn_attention_forward" in line for line in first.evidence)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"speed": 3}', "speed: Extra inputs are not permitted; known: batches"),
        ('{"step_s": -1}', "step_s: Input should be greater than 0"),
        ("[1, 2]", "symptoms: Input should be"),
        ("{", "neither JSON, YAML"),
    ],
)
def test_a_wrong_symptom_is_named(tmp_path, text, says):
    """Valid JSON with a wrong field is not called 'neither JSON nor YAML'."""
    path = tmp_path / "seen.json"
    path.write_text(text)
    with pytest.raises(SpecError, match=says):
        read_symptoms(path)


def test_out_of_memory_with_memory_free():
    """vLLM PR 37428: 732 MiB unused, 384 MiB cannot be allocated."""
    (verdict,) = diagnose(symptoms=EXAMPLES / "out_of_memory.txt").verdicts
    assert verdict.cause == "fragmentation"
    assert "732.1 MiB are unused but no piece of 384.0 MiB is whole" in verdict.statement
    assert "expandable_segments" in verdict.next_step


def test_small_model_no_faster_on_a_big_gpu():
    found = diagnose(
        symptoms=EXAMPLES / "small_model_big_gpu.yaml",
        trace=TRACES / "h200-TinyLlama-1.1B_b1.json.gz",
    )
    verdict = only(found, "a floor that the device does not set")
    assert verdict.confidence == "high"
    assert "the step 1.02 ×" in verdict.evidence[1]  # 80.1 / 78.8
    alone = diagnose(symptoms=EXAMPLES / "small_model_big_gpu.yaml")
    assert only(alone, "a floor that the device does not set").confidence == "medium"


def test_scaling_that_flattens():
    """6.06 and 5.00 ms: a + b = 6.06, a/2 + b = 5.00, so b = 3.94 ms and at most 1.54 ×."""
    verdict = only(diagnose(symptoms=EXAMPLES / "scaling_flattens.yaml"), "scaling flattens")
    assert "efficiency 61 %" in verdict.statement
    assert "at most 1.54 ×" in verdict.gain


def test_utilisation_full_and_half_idle():
    found = diagnose(symptoms=EXAMPLES / "half_idle.prom")
    verdict = only(found, "utilisation is no measure of work")
    assert "53 % of the device is idle" in verdict.statement
    assert verdict.gain_factor == pytest.approx(1 / 0.47)


def test_fp8_that_saved_memory_and_no_time():
    """H200, batch 256, 2,048 tokens: 15.0 GB of weights beside 68.7 GB of KV; at most 1.09 ×."""
    found = diagnose(symptoms=EXAMPLES / "fp8_no_time.yaml", machine=RECORD)
    verdict = only(found, "the step reads KV, not weights")
    assert "weights are 18 % of what a step reads" in verdict.statement
    assert any("1.09 × is all" in line for line in verdict.evidence)
    assert verdict.gain_factor == pytest.approx((8.03 + 68.72) / (8.03 + 34.36), rel=1e-3)


def test_fp8_that_waits_for_the_host():
    change = {
        "what": "FP8", "before_step_s": 0.0788, "after_step_s": 0.0781,
        "before_weights_bytes": 2.2e9, "after_weights_bytes": 1.2e9,
    }  # fmt: skip
    found = diagnose(symptoms={"change": change}, trace=TRACES / "h200-TinyLlama-1.1B_b1.json.gz")
    assert sum(verdict.cause == "waits for the host" for verdict in found.verdicts) == 2


def test_fp8_that_pays_is_no_verdict():
    change = {
        "what": "FP8", "before_step_s": 0.02, "after_step_s": 0.011,
        "before_weights_bytes": 15e9, "after_weights_bytes": 8e9,
    }  # fmt: skip
    assert diagnose(symptoms={"change": change}).verdicts == ()


def test_power_limit_slows_compute_and_not_memory():
    """An H200 under load: 700 of 700 W, 1,440 of 1,980 MHz."""
    counters = {"power_w": 699.0, "power_limit_w": 700.0, "sm_clock_hz": 1440e6,
                "max_sm_clock_hz": 1980e6}  # fmt: skip
    verdict = only(diagnose(symptoms={"counters": counters}), "power limit")
    assert "73 %" in verdict.statement
    assert "nothing in decode" in verdict.gain


@pytest.mark.parametrize(
    ("counters", "cause"),
    [
        ({"dram_active": 0.82, "tensor_active": 0.05}, "memory bandwidth"),
        ({"dram_active": 0.2, "tensor_active": 0.75}, "compute"),
    ],
)
def test_counters_say_which_roof(counters, cause):
    (verdict,) = diagnose(symptoms={"counters": counters}).verdicts
    assert verdict.cause == cause
    assert verdict.confidence == "high"
    assert "DCGM counters" in verdict.evidence[0]


def busy_trace(path, *, kernels, each_us, dims, registers=168, occupancy=12):
    events = []
    for i in range(kernels):
        start = 1e9 + i * each_us
        events.append({
            "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": start - 500,
            "dur": 5,
            "args": {"External id": i, "Input Dims": dims, "Input type": ["c10::BFloat16"] * 2},
        })  # fmt: skip
        events.append({
            "ph": "X", "cat": "kernel", "name": "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT",
            "pid": 0, "tid": 7, "ts": start, "dur": each_us,
            "args": {"External id": i, "stream": 7, "device": 0, "correlation": i,
                     "registers per thread": registers, "est. achieved occupancy %": occupancy},
        })  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_roofs_of_a_machine_judge_a_trace(tmp_path):
    path = busy_trace(tmp_path / "t.json", kernels=50, each_us=32, dims=[[1, 4096], [4096, 14336]])
    found = diagnose(trace=path, machine=RECORD)
    verdict = only(found, "memory bandwidth")
    # 117.5 MB in 32 µs are 3.67 TB/s of the record's 4.397
    assert "DRAM runs at 83 %" in verdict.statement
    assert "inferred from bytes and FLOP" in verdict.evidence[0]
    assert verdict.confidence == "medium"


def test_neither_roof_with_many_registers(tmp_path):
    path = busy_trace(tmp_path / "t.json", kernels=50, each_us=300, dims=[[1, 4096], [4096, 14336]])
    verdict = only(diagnose(trace=path, machine=RECORD), "registers and occupancy")
    assert any("168 registers a thread" in line for line in verdict.evidence)
    assert "local memory for spills" in verdict.next_step


def test_a_rank_that_trails(tmp_path):
    files = []
    for rank, (own, wait) in enumerate([(50, 50), (95, 5)]):
        events = []
        for i in range(4):
            start = 1e9 + 100 * i
            events += [
                {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start,
                 "dur": own, "args": {"stream": 7}},
                {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                 "pid": 0, "tid": 7, "ts": start + own, "dur": wait, "args": {"stream": 7}},
            ]  # fmt: skip
        path = tmp_path / f"{rank}.json"
        path.write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events}))
        files.append(path)
    found = diagnose(trace=files)
    assert "rank 1 trails" in only(found, "a rank trails").statement
    assert only(found, "communication is not hidden").gain_factor == pytest.approx(2.0)


def test_a_missing_link_and_a_bad_mapping():
    found = diagnose(topology=EXAMPLES / "topology_v100_two_links_down.txt")
    assert "4 of the 6 links" in only(found, "a slow or missing link").statement
    bridged = diagnose(
        topology=EXAMPLES / "topology_bridged_pairs.txt",
        symptoms={"tp": 2, "rank_devices": [0, 1, 2, 3]},
    )
    verdict = only(bridged, "mapping")
    assert "CUDA_VISIBLE_DEVICES=0,2,1,3" in verdict.next_step
    assert "1.8 ×" in verdict.gain  # 56.25 over 31.5 GB/s
    good = diagnose(
        topology=EXAMPLES / "topology_bridged_pairs.txt",
        symptoms={"tp": 2, "rank_devices": [0, 2, 1, 3]},
    )
    assert good.verdicts == ()


def test_numa_slows_host_copies():
    """mpicbg-scicomp/gearshifft PR 82: 3,783 of 12,151 MB/s from the far socket, 3.2 ×."""
    found = diagnose(
        symptoms={"host_to_device_bytes_per_s": 3783.4e6, "pcie_bytes_per_s": 12150.7e6}
    )
    assert "3.2 ×" in only(found, "NUMA or PCIe").gain


def series(*rows):
    return {"load": [dict(zip(("concurrency", "ttft_s", "tpot_s", "output_tokens_per_s"), row,
                              strict=True)) for row in rows]}  # fmt: skip


def test_queueing_and_saturation():
    found = diagnose(symptoms=series((8, 0.2, 0.02, 400.0), (64, 4.0, 0.025, 420.0)))
    assert "TTFT grows 20 ×" in only(found, "queueing").statement
    assert "from concurrency 8 on" in only(found, "saturation").statement


def test_load_that_scales_is_no_verdict():
    found = diagnose(symptoms=series((8, 0.2, 0.02, 400.0), (16, 0.25, 0.022, 720.0)))
    assert found.verdicts == ()


def test_mixed_steps_and_preemptions():
    point = {"concurrency": 32, "itl_median_s": 0.02, "itl_p99_s": 0.2, "preemptions": 12}
    found = diagnose(symptoms={"load": [point]})
    assert {v.cause for v in found.verdicts} == {"prefill mixed into decode", "KV memory runs out"}


@pytest.mark.parametrize(
    ("captured", "cause"),
    [([1, 2, 4, 8], "falls back to eager"), ([1, 8, 16], "shape buckets"), ([], "shape buckets")],
)
def test_shape_buckets(captured, cause):
    found = diagnose(
        symptoms={
            "captured_batches": captured,
            "batches": [{"batch": 8, "step_s": 0.010}, {"batch": 9, "step_s": 0.018}],
        }
    )
    assert found.verdicts[0].cause == cause


def test_vllm_result_files(tmp_path):
    """Keys of ``vllm bench serve --save-result``; milliseconds there."""
    entry = {"backend": "vllm", "model_id": "m", "num_prompts": 64, "request_rate": "inf",
             "duration": 10.0, "completed": 64, "total_input_tokens": 6400,
             "total_output_tokens": 7000, "request_throughput": 6.4, "max_concurrency": 16,
             "median_ttft_ms": 210.0, "median_tpot_ms": 21.5,
             "median_itl_ms": 20.0, "p99_itl_ms": 45.0, "output_throughput": 700.0}  # fmt: skip
    one = tmp_path / "a.json"
    one.write_text(json.dumps(entry))
    many = tmp_path / "b.jsonl"
    many.write_text("\n".join(json.dumps({**entry, "max_concurrency": c}) for c in (1, 64)))
    points = load_points([one, many])
    assert [point.concurrency for point in points] == [1, 16, 64]
    assert points[0].tpot_s == pytest.approx(0.0215)
    assert "behaviour under load" in diagnose(benchmark=[one, many]).checked


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', "[1]"])
def test_benchmark_files_that_are_none(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load_points([path])
    assert "\n" not in str(error.value)


def test_nothing_given_says_what_to_give():
    found = diagnose()
    assert found.verdicts == ()
    assert "give a trace" in found.headline
    assert len(found.not_checked) == 11


def test_distance_from_the_bound():
    found = diagnose(symptoms={"step_s": 0.0212, "bound_s": 0.0069, "estimate_s": 0.009})
    assert "3.07 × the bound of 6.90 ms" in found.assumptions[0]
    assert "slower than the estimate" in found.assumptions[1]


def test_a_prediction_is_compared():
    from roofline.api.predict import predict

    prediction = predict("tinyllama-1.1b", "h200-sxm-141gb", prompt_tokens=200, output_tokens=64)
    found = diagnose(prediction=prediction, trace=TRACES / "h200-TinyLlama-1.1B_b1.json.gz")
    assert any("× the bound" in line for line in found.assumptions)


@pytest.mark.parametrize(
    "given",
    [
        {"unknown": 1},
        {"step_s": -1.0},
        {"step_s": True},
        {"step_s": float("nan")},
        {"scaling": [{"devices": 0}]},
        {"out_of_memory": {}},
        {"counters": {"utilisation": 100.0}},
    ],
)
def test_symptoms_that_cannot_be(given):
    with pytest.raises(SpecError) as error:
        read_symptoms(given)
    assert "\n" not in str(error.value)


def test_symptom_files_that_are_none(tmp_path):
    for name, text in (("a.json", "{"), ("b.yaml", "a: [1"), ("c.txt", "hello"), ("d.json", "")):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(RooflineError):
            read_symptoms(path)
    with pytest.raises(SpecError, match="cannot be read as symptoms: No such file"):
        read_symptoms(tmp_path / "none.json")


def test_older_out_of_memory_message():
    """torch 1.x wording: reserved in total, and already allocated."""
    failed = parse_out_of_memory(
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 20.00 GiB"
        " already allocated; 1.00 GiB free; 22.50 GiB reserved in total by PyTorch)"
    )
    assert failed.reserved_unallocated_bytes == 2.5 * 2**30
    found = diagnose(symptoms={"out_of_memory": failed.model_dump()})
    assert found.verdicts[0].cause == "fragmentation"


@pytest.mark.parametrize(
    ("requested", "free", "cause"),
    [(4, 1, "too little memory"), (1, 3, "limit of the process"), (2, 1, "fragmentation")],
)
def test_out_of_memory_causes(requested, free, cause):
    symptoms = {"out_of_memory": {"requested_bytes": requested * 2.0**30,
                                  "free_bytes": free * 2.0**30,
                                  "reserved_unallocated_bytes": 1.5 * 2**30}}  # fmt: skip
    assert diagnose(symptoms=symptoms).verdicts[0].cause == cause


def test_dcgm_text_averages_devices():
    counters = parse_dcgm(
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 0.4\nDCGM_FI_PROF_SM_ACTIVE{gpu="1"} 0.6\n'
    )
    assert counters.sm_active == pytest.approx(0.5)
    with pytest.raises(SpecError, match="none of DCGM"):
        parse_dcgm("DCGM_FI_OTHER 3")
    with pytest.raises(SpecError):
        parse_dcgm("DCGM_FI_PROF_SM_ACTIVE 40")


def test_every_verdict_is_complete():
    """Evidence, what refutes it, a next step and a gain on all worked examples."""
    for name in ("out_of_memory.txt", "scaling_flattens.yaml", "half_idle.prom", "fp8_no_time.yaml",
                 "small_model_big_gpu.yaml"):  # fmt: skip
        found = diagnose(symptoms=EXAMPLES / name, machine=RECORD)
        assert found.verdicts, name
        for verdict in found.verdicts:
            assert all((verdict.evidence, verdict.refuted_by, verdict.next_step, verdict.gain))
        assert len(found.to_frame()) == len(found.verdicts)
        assert found.to_dict()["headline"] == found.headline


def test_incident_record():
    found = diagnose(symptoms=EXAMPLES / "out_of_memory.txt")
    text = incident_record(found, title="OOM | <b>", symptom="worker died", action="set it",
                           recovery=diagnose())  # fmt: skip
    parts = (
        "# Incident: OOM \\| &lt;b>", "## Machine and topology", "## Symptom", "worker died",
        "## Evidence", "## Action", "set it", "## Proof of recovery",
    )  # fmt: skip
    assert all(part in text for part in parts)
    assert "- [ ] " in incident_record(found, title="t")


def test_a_slow_device_is_seen_in_its_record():
    """The H200's own record against the datasheet of a B200, which has 1.67 × the bandwidth."""
    assert diagnose(machine=RECORD).verdicts == ()
    found = diagnose(machine=RECORD, accelerator="b200-hgx")
    causes = {verdict.cause for verdict in found.verdicts}
    assert causes == {"the device itself is slow: memory", "the device itself is slow: bf16 matmul"}


def step_trace(path, lengths, operator="aten::mm"):
    events, start = [], 1e9
    for number, length in enumerate(lengths):
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1,
             "tid": 1, "ts": start, "dur": length},
            {"ph": "X", "cat": "cpu_op", "name": operator, "pid": 1, "tid": 1, "ts": start,
             "dur": 5, "args": {"External id": number}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start + 1,
             "dur": length - 1, "args": {"stream": 7, "External id": number}},
        ]  # fmt: skip
        start += length
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_steps_that_differ(tmp_path):
    uneven = diagnose(trace=step_trace(tmp_path / "a.json", [100, 100, 300]))
    assert "3.0 × the median" in only(uneven, "steps differ").statement
    assert diagnose(trace=step_trace(tmp_path / "b.json", [100, 101, 99])).verdicts == ()


def test_attention_that_falls_back(tmp_path):
    operator = "aten::_scaled_dot_product_attention_math"
    found = diagnose(trace=step_trace(tmp_path / "a.json", [100], operator))
    assert "1 calls of" in only(found, "attention falls back").evidence[0]
