"""Gaps and their causes, in traces small enough to work out by hand."""

import pytest

from roofline.trace import summarise


def causes(path):
    summary = summarise(path).only.summary
    return {name: (n, round(t * 1e6, 3)) for name, (n, t) in summary.gaps.by_cause().items()}


def test_streams_overlap_and_never_add(tmp_path, builder):
    builder.kernel("gemm", 0, 10, stream=7)
    builder.kernel("copy_kernel", 5, 10, stream=8)
    builder.kernel("gemm", 15, 5, stream=7)
    summary = summarise(builder.save(tmp_path / "t.json")).only.summary
    assert summary.busy_s == pytest.approx(20e-6)  # 0..20 without a gap, 25 µs of kernels
    assert summary.busy_share == 1.0
    assert {use.stream: round(use.busy_s * 1e6) for use in summary.streams} == {7: 15, 8: 10}


def test_late_launch(tmp_path, builder):
    builder.kernel("gemm", 0, 10, launched=-5)
    builder.kernel("gemm", 40, 10, launched=30)
    assert causes(builder.save(tmp_path / "t.json")) == {"launch": (1, 30.0)}


def test_queued_kernel_of_one_stream(tmp_path, builder):
    builder.kernel("gemm", 0, 10, launched=-9)
    builder.kernel("gemm", 12, 10, launched=-5)
    builder.kernel("gemm", 100, 10, launched=-2)
    found = causes(builder.save(tmp_path / "t.json"))
    assert found == {"kernel start": (1, 2.0), "other": (1, 78.0)}


def test_queued_behind_another_stream(tmp_path, builder):
    builder.kernel("gemm", 0, 10, launched=-9, stream=7)
    builder.kernel("gemm", 30, 10, launched=-5, stream=8)
    assert causes(builder.save(tmp_path / "t.json")) == {"other stream": (1, 20.0)}


def test_item_is_named_as_the_caller(tmp_path, builder):
    """A kernel, .item() that waits for it, then the next launch: the device idles meanwhile."""
    builder.kernel("gemm", 0, 10, launched=-9)
    builder.event("python_function", "generate.py(12): sample", -20, 100)
    builder.event("cpu_op", "aten::item", 1, 12, **{"External id": 5})
    builder.event("cpu_op", "aten::_local_scalar_dense", 2, 10, **{"External id": 6})
    builder.event("cuda_runtime", "cudaStreamSynchronize", 3, 9, correlation=99)
    builder.kernel("gemm", 60, 10, launched=50)
    path = builder.save(tmp_path / "t.json")
    assert causes(path) == {"host synchronisation": (1, 50.0)}
    (caller,) = summarise(path).only.summary.gaps.by_caller()
    assert caller == "cudaStreamSynchronize in aten::item in generate.py(12): sample"


def test_a_synchronisation_on_another_thread_is_no_cause(tmp_path, builder):
    builder.kernel("gemm", 0, 10, launched=-9)
    builder.event("cuda_runtime", "cudaStreamSynchronize", 3, 9, tid=2, correlation=99)
    builder.kernel("gemm", 60, 10, launched=50)
    assert causes(builder.save(tmp_path / "t.json")) == {"launch": (1, 50.0)}


def test_step_windows(tmp_path, builder):
    """Two steps of 100 µs; a kernel before the first step does not count."""
    builder.kernel("warm_up", -50, 10, launched=-60)
    for number in range(2):
        start = 100 * number
        builder.step(number, start, 100)
        builder.kernel("gemm", start + 20, 30, launched=start + 10)
        builder.event("cpu_op", "aten::linear", start + 5, 10, **{"External id": number})
    summary = summarise(builder.save(tmp_path / "t.json")).only.summary
    assert summary.n_steps == 2
    assert summary.step_s == pytest.approx(100e-6)
    assert summary.window_s == pytest.approx(200e-6)
    assert summary.busy_share == pytest.approx(0.3)
    assert summary.kernels_per_step == 1
    assert summary.linear_calls_per_step == 1


def test_work_that_ends_after_its_step_counts(tmp_path, builder):
    builder.step(0, 0, 10)
    builder.kernel("gemm", 20, 80, launched=5)
    summary = summarise(builder.save(tmp_path / "t.json")).only.summary
    assert summary.window_s == pytest.approx(100e-6)
    assert summary.busy_share == pytest.approx(0.8)


def test_exposed_communication_and_copies(tmp_path, builder):
    builder.kernel("gemm", 0, 10)
    builder.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 5, 15, stream=8)
    builder.event(
        "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 15, 10, pid=0, tid=9, device=0, stream=9,
        bytes=1000,
    )  # fmt: skip
    summary = summarise(builder.save(tmp_path / "t.json")).only.summary
    assert summary.communication_s == pytest.approx(15e-6)
    assert summary.exposed_communication_s == pytest.approx(10e-6)  # 10..20
    assert summary.exposed_copy_s == pytest.approx(5e-6)  # 20..25
    assert summary.busy_s == pytest.approx(25e-6)


def test_two_devices_are_apart(tmp_path, builder):
    builder.kernel("gemm", 0, 10, device=0)
    builder.kernel("gemm", 50, 10, device=1)
    found = summarise(builder.save(tmp_path / "t.json"))
    assert [report.summary.busy_s for report in found.devices] == pytest.approx([10e-6, 10e-6])


def test_annotations_on_the_device_are_no_work(tmp_path, builder):
    builder.step(0, 0, 100)
    builder.kernel("gemm", 0, 10, launched=0)
    assert summarise(builder.save(tmp_path / "t.json")).only.summary.busy_s == pytest.approx(10e-6)


def graph(builder, start, kernels, correlation):
    builder.event("cuda_runtime", "cudaGraphLaunch", start, 5, correlation=correlation)
    for i in range(kernels):
        builder.kernel("gemm", start + 10 + 10 * i, 8, correlation=correlation)


def test_graph_replay_with_all_kernels(tmp_path, builder):
    for replay in range(3):
        graph(builder, 200 * replay, 4, 1000 + replay)
    found = summarise(builder.save(tmp_path / "t.json"))
    summary = found.only.summary
    assert summary.replay.coverage == 1.0
    assert summary.idle_s is not None
    assert "kernels of all of them" in found.warnings[0]
    assert summary.gaps.by_cause()["graph"] == (9, pytest.approx(9 * 2e-6))


@pytest.mark.parametrize("recorded", [0, 1])
def test_graph_replay_that_hides_kernels_claims_no_idle(tmp_path, builder, recorded):
    """ROCm shows one row a graph, others none: 97 % false idle in other tools."""
    builder.kernel("gemm", 0, 10, launched=-5)
    for replay in range(3):
        graph(builder, 1000 * (replay + 1), recorded, 1000 + replay)
    builder.kernel("gemm", 5000, 10, launched=4990)
    found = summarise(builder.save(tmp_path / "t.json"))
    summary = found.only.summary
    assert summary.idle_s is None
    assert summary.waiting_share("launch") == 0.0
    assert summary.replay.coverage == 0.0
    assert "idle time is not claimed" in found.warnings[0]
    assert found.to_dict()["devices"][0]["gaps"] is None
    assert found.to_dict()["devices"][0]["busy_share_is_lower_bound"] is True


def test_compiled_code_counts_its_products(tmp_path, builder):
    """No aten::linear: two aten::mm and one aten::addmm in each of two steps."""
    for number in range(2):
        start = 100 * number
        builder.step(number, start, 100)
        builder.kernel("gemm", start + 20, 30, launched=start + 10)
        for i, name in enumerate(("aten::mm", "aten::mm", "aten::addmm")):
            builder.event("cpu_op", name, start + 5 + i, 1, **{"External id": 10 * number + i})
    summary = summarise(builder.save(tmp_path / "t.json")).only.summary
    assert summary.linear_calls_per_step == 3
    assert summary.linear_operator == "aten::mm + aten::addmm"


def test_freeing_memory_stops_the_device(tmp_path, builder):
    builder.kernel("gemm", 0, 10, launched=-9)
    builder.event("cuda_runtime", "cudaFree", 3, 20, correlation=99)
    builder.kernel("gemm", 60, 10, launched=50)
    assert causes(builder.save(tmp_path / "t.json")) == {"host synchronisation": (1, 50.0)}
