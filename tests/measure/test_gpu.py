"""On a CUDA device only: the harness against itself and against the spec.

Run there with ``pytest -m gpu tests/measure``; the records of such runs are committed.
"""
# ruff: noqa: E402

import time

import pytest

torch = pytest.importorskip("torch")

from roofline.errors import UnsupportedError
from roofline.measure.bench import time_kernel, time_wall
from roofline.measure.case import Level
from roofline.measure.decoder import Decoder, random_weights
from roofline.measure.decoder_shape import DecoderShape
from roofline.measure.device import conditions, find_target
from roofline.measure.model_run import ModelPlan, capture, model_rows
from roofline.measure.session import measure
from roofline.models.config import load_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
SHAPE = DecoderShape("small", 3, 512, 1024, 8, 2, 64, 1536)
EXPERTS = DecoderShape("experts", 2, 512, 1024, 8, 2, 64, 512, n_experts=8, n_active=2)


@pytest.fixture(scope="module")
def gpu():
    return find_target("cuda")


def test_detection_reads_clocks_and_names_the_spec(gpu):
    state = conditions(gpu)
    assert gpu.device.sm_count > 0
    assert state.sm_clock_hz is None or state.sm_clock_hz > 1e8
    if gpu.device.name == "NVIDIA H200":
        assert gpu.device.spec_id == "h200-sxm-141gb"


def test_a_large_fill_is_below_the_datasheet_and_above_half_of_it(gpu):
    buffer = torch.empty(2**28, dtype=torch.float32, device=gpu.torch_device)
    timing = time_kernel(gpu.torch_device, [lambda: buffer.fill_(1.5)])
    assert timing.timer == "kernel"
    if (peak := gpu.peak_bytes_per_s()) is not None:
        assert 0.5 * peak < buffer.numel() * 4 / timing.median_s < 1.02 * peak


def test_graph_and_eager_agree_on_a_long_kernel(gpu):
    left = torch.randn(4096, 4096, device=gpu.torch_device, dtype=torch.bfloat16)
    call = [lambda: left @ left]
    graph = time_kernel(gpu.torch_device, call)
    eager = time_kernel(gpu.torch_device, call, use_graph=False)
    assert graph.median_s == pytest.approx(eager.median_s, rel=0.2)
    wall = time_wall(gpu.torch_device, call[0])
    assert wall.median_s > 0.9 * graph.median_s


@pytest.mark.parametrize("shape", [SHAPE, EXPERTS], ids=lambda shape: shape.name)
def test_a_graph_computes_what_eager_does(gpu, shape):
    decoder = Decoder(shape, random_weights(shape, gpu.torch_device, "bf16"))
    ids = torch.randint(0, shape.vocab, (4,), device=gpu.torch_device)
    caches = decoder.caches(4, 64)
    found = []
    with torch.inference_mode():
        expected = decoder.decode_step(ids, caches)
    replay = capture(gpu.torch_device, lambda: found.append(decoder.decode_step(ids, caches)))
    replay()
    torch.cuda.synchronize()
    assert torch.equal(found[-1], expected)


def test_tinyllama_takes_what_the_reference_took(gpu):
    """2.05 ms at batch 1 and 256 tokens of context on an H200 (reference run); 3 % asked for,
    5 % allowed to another board."""
    if gpu.device.spec_id != "h200-sxm-141gb":
        pytest.skip("the reference is an H200's")
    plan = ModelPlan(batches=(1,), contexts=(256,), prompts=())
    (row,) = model_rows(gpu, load_model("tinyllama-1.1b"), plan)
    assert row.median_s == pytest.approx(2.0516e-3, rel=0.05)
    assert set(row.tpot_by_s) == {"two_runs", "stamps", "events"}
    assert not any("part by" in flag for flag in row.flags)


def test_what_does_not_fit_is_refused(gpu):
    with pytest.raises(UnsupportedError, match="are free"):
        list(model_rows(gpu, load_model("llama-3.1-405b"), ModelPlan()))


def test_quick_takes_less_than_30_seconds(gpu):
    begin = time.perf_counter()
    record, _ = measure(gpu, Level.QUICK)
    assert time.perf_counter() - begin < 30
    assert record.finished
    assert not record.errors
