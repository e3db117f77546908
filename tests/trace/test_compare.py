"""Two traces, several ranks, and low precision, in traces that can be worked out by hand."""

import pytest

from roofline.errors import InputError
from roofline.trace import compare_ranks, compare_traces, summarise
from roofline.trace.rates import Roofs

GEMM = "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def test_two_traces_side_by_side(tmp_path, new_builder):
    before, after = new_builder(), new_builder()
    for builder, length in ((before, 40), (after, 20)):
        for number in range(2):
            builder.step(number, 100 * number, 50)
            builder.kernel(GEMM, 100 * number + 2, length, launched=100 * number)
    one, two = before.save(tmp_path / "a.json"), after.save(tmp_path / "b.json")
    found = compare_traces(one, two)
    assert found.parts[0].part == "linear"
    assert found.parts[0].change_s == pytest.approx(-20e-6)
    assert found.to_frame().loc[0, "part"] == "linear"


def rank(builder, number, gemm, reduce):
    builder.head["distributedInfo"] = {"rank": number, "world_size": 4, "backend": "nccl"}
    start = 0
    for _ in range(3):
        builder.kernel(GEMM, start, gemm)
        builder.kernel(REDUCE, start + gemm, reduce)
        start += 100
    return builder


@pytest.fixture
def ranks(tmp_path, new_builder):
    times = [(50, 50), (50, 50), (90, 10), (50, 50)]
    return [
        rank(new_builder(), n, *pair).save(tmp_path / f"rank{n}.json")
        for n, pair in enumerate(times)
    ]


def test_the_rank_that_trails_is_named(ranks):
    """Rank 2 computes 90 of 100 µs; the others compute 50 and wait 40 in each all-reduce."""
    found = compare_ranks(ranks)
    assert found.stragglers == (2,)
    assert found.matched
    assert [round(row.wait_s * 1e6) for row in found.ranks] == [120, 120, 0, 120]
    assert "rank 2 trails" in found.verdict
    assert "1.80 × the median" in found.verdict
    assert found.to_dict()["stragglers"] == [2]


def test_equal_ranks_do_not_trail(tmp_path, new_builder):
    files = [rank(new_builder(), n, 50, 50).save(tmp_path / f"{n}.json") for n in range(2)]
    assert compare_ranks(files).stragglers == ()


def test_one_rank_is_refused(ranks):
    with pytest.raises(InputError, match="two traces or more, got 1"):
        compare_ranks(ranks[:1])


def test_cpu_trace_is_refused(tmp_path, builder, ranks):
    builder.event("cpu_op", "aten::mm", 0, 10)
    path = builder.save(tmp_path / "cpu.json")
    with pytest.raises(InputError, match="a trace of the CPU alone"):
        compare_ranks([ranks[0], path])


def test_low_precision_share_casts_and_gain(tmp_path, builder):
    """Two thirds of 300 µs of products in bf16; a device that never waits; fp8 twice as fast."""
    builder.kernel("nvjet_qqtst_128x128_128x6_2x1_v_bz_TNT", 0, 100)
    builder.kernel("void at::native::float8_copy_kernel_cuda<>", 100, 20)
    builder.kernel(GEMM, 120, 200)
    roofs = Roofs(4e12, {"bf16": 800e12, "fp8": 1600e12}, "test")
    found = summarise(builder.save(tmp_path / "t.json"), roofs=roofs).only.precision
    assert found.low_share == pytest.approx(1 / 3)
    assert (found.casts, found.cast_s) == (1, pytest.approx(20e-6))
    assert found.gain_s == pytest.approx(100e-6)
    assert found.gain_share == pytest.approx(100 / 320)


def test_gain_is_nothing_when_the_device_waits(traces):
    found = summarise(traces / "h200-TinyLlama-1.1B_b1.json.gz", machine="h200-sxm-141gb").only
    assert found.precision.gain_share < 0.001


def test_rates_and_percent_of_roof(tmp_path, builder):
    """A 1 × 4096 by 4096 × 4096 product moves 33.6 MB: 8.4 µs at 4 TB/s, here in 16.8."""
    builder.event(
        "cpu_op", "aten::mm", -20, 10,
        **{"External id": 3, "Input Dims": [[1, 4096], [4096, 4096]],
           "Input type": ["c10::BFloat16", "c10::BFloat16"]},
    )  # fmt: skip
    builder.kernel(GEMM, 0, 16.8, **{"External id": 3})
    roofs = Roofs(4e12, {"bf16": 800e12}, "test")
    (row,) = summarise(builder.save(tmp_path / "t.json"), roofs=roofs).only.kernels
    assert row.bytes_per_s == pytest.approx(2.0e12, rel=0.002)
    assert row.percent_of_roof == pytest.approx(50.0, rel=0.002)
    assert row.limited_by == "memory"
