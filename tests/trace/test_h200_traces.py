"""The three H200 traces against counts made here with the standard library, event by event."""

import gzip
import json
from collections import Counter, defaultdict

import pytest

from roofline.trace import read_trace, summarise

NAMES = ("TinyLlama-1.1B_b1", "TinyLlama-1.1B_b32", "Llama-3.1-8B_b1")
MODELS = {"TinyLlama-1.1B_b1": "tinyllama-1.1b", "Llama-3.1-8B_b1": "llama-3.1-8b"}


def events_of(path):
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


def busy_us(events):
    """Union of device activity by a plain sweep over sorted intervals."""
    spans = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    total, reach = 0.0, spans[0][0]
    for start, end in spans:
        total += max(end - max(start, reach), 0.0)
        reach = max(reach, end)
    return total


@pytest.fixture(scope="module", params=NAMES)
def both(request):
    from pathlib import Path

    folder = Path(__file__).resolve().parents[2] / "measurements" / "traces"
    path = folder / f"h200-{request.param}.json.gz"
    return request.param, events_of(path), summarise(path, machine="h200-sxm-141gb")


def test_busy_share_equals_an_independent_union(both):
    _, events, found = both
    steps = [e for e in events if e["name"].startswith("ProfilerStep")
             and e["cat"] == "user_annotation"]  # fmt: skip
    window = max(e["ts"] + e["dur"] for e in steps) - min(e["ts"] for e in steps)
    summary = found.only.summary
    # a float of 5·10¹² µs has steps of 1 ns: 1 in 2,400 of a mean kernel, either way
    assert summary.busy_s * 1e6 == pytest.approx(busy_us(events), rel=2e-4)
    assert summary.busy_share == pytest.approx(busy_us(events) / window, rel=2e-4)


def test_kernels_and_linear_calls_per_step(both):
    _, events, found = both
    kernels = sum(e.get("cat") == "kernel" for e in events)
    linear = sum(e["name"] == "aten::linear" for e in events)
    summary = found.only.summary
    assert summary.kernels_per_step == kernels / 3
    assert summary.linear_calls_per_step == linear / 3


def test_top_kernels(both):
    _, events, found = both
    calls, spent = Counter(), defaultdict(float)
    for e in events:
        if e.get("cat") == "kernel":
            calls[e["name"]] += 1
            spent[e["name"]] += e["dur"]
    by_time = sorted(spent, key=spent.get, reverse=True)[:10]
    rows = [row for row in found.only.kernels if row.name in spent][:10]
    assert [row.name for row in rows] == by_time
    assert [row.calls for row in rows] == [calls[name] for name in by_time]
    assert [row.total_s * 1e6 for row in rows] == pytest.approx([spent[n] for n in by_time])


def test_top_matmul_rate_and_percent_of_the_measured_roof(both):
    """Bytes of aten::mm counted from its shapes here; the roof is the record's best read."""
    _, events, found = both
    by_id = {e["args"]["External id"]: e for e in events if e["name"] == "aten::mm"}
    own = [e for e in events if e.get("cat") == "kernel"
           and e["args"]["External id"] in by_id and "nvjet" in e["name"]]  # fmt: skip
    top = max({e["name"] for e in own}, key=lambda n: sum(e["dur"] for e in own if e["name"] == n))
    moved = spent = 0.0
    for e in own:
        if e["name"] == top:
            (m, k), (_, n) = by_id[e["args"]["External id"]]["args"]["Input Dims"][:2]
            moved += 2 * (m * k + k * n + m * n)
            spent += e["dur"] * 1e-6
    row = next(row for row in found.only.kernels if row.name == top)
    assert row.part == "linear"
    assert row.bytes_per_s == pytest.approx(moved / spent, rel=1e-6)
    assert row.percent_of_roof == pytest.approx(100 * moved / spent / found.roofs.bytes_per_s)
    assert row.percent_of_roof < 100


def test_tinyllama_eager_is_busy_near_three_percent(traces):
    """The run's own table: 924 kernels, 155 linear calls a step; kernels 6,678 µs of 236 ms."""
    summary = summarise(traces / "h200-TinyLlama-1.1B_b1.json.gz").only.summary
    assert 0.025 < summary.busy_share < 0.033
    assert summary.kernels_per_step == 924
    assert summary.linear_calls_per_step == 155
    assert sum(summary.part_s.values()) * 1e6 == pytest.approx(6677.68, abs=0.01)
    assert summary.waiting_share("launch", "host synchronisation") > 0.96


@pytest.mark.parametrize(("name", "model"), MODELS.items())
def test_linear_calls_agree_with_the_model(traces, name, model):
    found = summarise(traces / f"h200-{name}.json.gz", model=model)
    assert found.only.model.agrees, found.only.model.verdict


def test_cache_is_appended_twice_a_layer(traces):
    """22 layers of TinyLlama, 32 of Llama-3.1-8B: one key and one value each."""
    for name, layers in (("TinyLlama-1.1B_b1", 22), ("Llama-3.1-8B_b1", 32)):
        summary = summarise(traces / f"h200-{name}.json.gz").only.summary
        assert summary.part_kernels["KV append"] == 3 * 2 * layers
        assert summary.part_kernels["attention"] == 3 * layers


def test_both_readers_give_the_same(traces):
    path = traces / "h200-TinyLlama-1.1B_b1.json.gz"
    fast, plain = (
        summarise(read_trace(path, reader=reader)).to_dict() for reader in ("msgspec", "json")
    )
    assert fast.pop("read_by") != plain.pop("read_by")
    assert fast == plain
