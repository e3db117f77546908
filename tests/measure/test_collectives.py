"""Collectives and tensor parallelism on two gloo ranks, started as a user starts them."""
# ruff: noqa: E402

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from roofline.errors import InputError
from roofline.hardware.measurement import read_measurement
from roofline.measure.collectives import OPS, collective_sizes, measure_collectives
from roofline.measure.ranks import start_ranks

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
CHECK = """
import torch, sys
from roofline.measure.decoder import Decoder, LayerWeights, DecoderWeights, random_weights
from roofline.measure.decoder_shape import DecoderShape
from roofline.measure.ranks import joined

shape = DecoderShape("x", 2, 64, 101, 8, 4, 16, 96)
whole = random_weights(shape, torch.device("cpu"), "fp32", seed=7)
ids = torch.randint(0, 101, (2, 6), generator=torch.Generator().manual_seed(1))

def check():
    with joined("cpu") as ranks, torch.inference_mode():
        part = shape.sharded(ranks.count)
        q, k, f = part.n_heads * 16, part.n_kv_heads * 16, part.intermediate
        def rows(matrix, begin, count, at):
            return matrix[begin + at * count : begin + (at + 1) * count]
        layers = []
        for layer in whole.layers:
            r, Q, K, F = ranks.rank, shape.n_heads * 16, shape.n_kv_heads * 16, shape.intermediate
            qkv = torch.cat((rows(layer.qkv, 0, q, r), rows(layer.qkv, Q, k, r),
                             rows(layer.qkv, Q + K, k, r)))
            up = torch.cat((rows(layer.gate_up, 0, f, r), rows(layer.gate_up, F, f, r)))
            layers.append(LayerWeights(layer.attention_norm, qkv, layer.output[:, r*q:(r+1)*q],
                                       layer.feed_forward_norm, up, layer.down[:, r*f:(r+1)*f]))
        mine = DecoderWeights(whole.embedding, whole.lm_head, tuple(layers),
                              whole.inverse_frequency, whole.fp8_scales)
        got = Decoder(part, mine, ranks.group).prefill_step(ids)
        expected = Decoder(shape, whole).prefill_step(ids)
        return torch.equal(got, expected)

# a group that a name still holds when Python ends takes its threads with it, and aborts
sys.exit(0 if check() else 3)
"""


def run(*command, timeout=100):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )


def test_two_gloo_ranks_measure_every_collective(tmp_path):
    done = run(
        *TORCHRUN, "-m", "roofline.measure", "collectives", "--device", "cpu", "--largest", "8192",
        "--step", "8", "--output-dir", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = tmp_path.rglob("*.json")
    record = read_measurement(path)
    assert record.device.count == 2
    assert {(r.op, r.bytes) for r in record.collective_rows} == {
        (op, size) for op in OPS for size in (1024, 8192)
    }
    for row in record.collective_rows:
        assert row.alg_bytes_per_s == pytest.approx(row.bytes / row.median_s, rel=1e-4)
    ratio = {r.op: r.bus_bytes_per_s / r.alg_bytes_per_s for r in record.collective_rows}
    assert ratio == pytest.approx(
        {"all_reduce": 1, "all_gather": 0.5, "reduce_scatter": 0.5, "all_to_all": 0.5,
         "send_recv": 1}, rel=1e-4,
    )  # fmt: skip
    assert "size  count  type  redop  root  time  algbw  busbw" in done.stdout
    assert json.loads(path.read_text())["device"]["count"] == 2


def test_two_ranks_compute_what_one_does(tmp_path):
    script = tmp_path / "check.py"
    script.write_text(CHECK)
    done = run(*TORCHRUN, str(script))
    assert done.returncode == 0, done.stderr[-2000:]


def test_one_rank_is_none():
    with pytest.raises(InputError, match="2 ranks or more"):
        measure_collectives(device="cpu")
    with pytest.raises(InputError, match="2 ranks or more"):
        start_ranks(1, ["collectives"])


def test_other_collectives_and_sizes_are_refused():
    with pytest.raises(InputError, match="no collective 'allreduce'"):
        measure_collectives(ops=("allreduce",), device="cpu")
    with pytest.raises(InputError, match="at least 1024"):
        collective_sizes(10)
