"""Files that are cut, wrong, huge or hostile give one clear line."""

import gzip
import json

import pytest

from roofline.errors import InputError, RooflineError
from roofline.trace import read_trace, summarise


def one_line(error):
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("reader", ["auto", "json"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"   \n", "is empty"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "na', "cut"),
        (b'{"traceEvents": [{"ph": "X"}', "cut|does not end"),
        (b"not json at all", "no JSON"),
        (b'{"a": 1}', "traceEvents"),
        (b'"text"', "traceEvents"),
        (b"17", "traceEvents"),
        (b'{"traceEvents": 3}', "traceEvents"),
        (b"[1, 2, 3]", "a list without one event"),
        (b"\xff\xfe\x00binary", "no JSON"),
        (b"[" * 100_000, "nested|no JSON|cut|does not end"),
    ],
)
def test_bad_content(tmp_path, content, says, reader):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says) as error:
        read_trace(path, reader=reader)
    one_line(error)


def test_missing_folder_and_unknown_reader(tmp_path):
    with pytest.raises(InputError, match="no trace file"):
        read_trace(tmp_path / "none.json")
    with pytest.raises(InputError, match="is a folder"):
        read_trace(tmp_path)
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(InputError, match="auto, msgspec or json"):
        read_trace(tmp_path / "a.json", reader="orjson")


def test_a_trace_of_nothing_is_not_called_one_of_the_cpu(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": []}')
    (warning,) = summarise(path).warnings
    assert "no operator and no kernel" in warning


def test_cut_gzip(tmp_path, builder):
    builder.kernel("gemm", 0, 1)
    path = builder.save(tmp_path / "trace.json.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="cut or damaged") as error:
        read_trace(path)
    one_line(error)


def test_damaged_gzip(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"\x1f\x8b" + b"garbage" * 10)
    with pytest.raises(InputError, match="cut or damaged"):
        read_trace(path)


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_larger_than_the_limit(tmp_path, suffix):
    path = tmp_path / f"trace.{suffix}"
    text = b'{"traceEvents": [' + b" " * 2_000_000 + b"]}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    with pytest.raises(InputError, match="profile fewer steps"):
        read_trace(path, limit_bytes=1_000_000)


def test_gzip_is_known_by_its_content(tmp_path, builder):
    builder.kernel("gemm", 0, 5)
    path = tmp_path / "trace.json"  # no .gz
    path.write_bytes(gzip.compress(json.dumps(builder.document()).encode()))
    assert len(read_trace(path).device) == 1


def test_a_bare_list_of_events(tmp_path, builder):
    builder.kernel("gemm", 0, 5)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(builder.events))
    assert len(read_trace(path).device) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"ph": "X", "cat": "kernel", "name": "k", "ts": "1000000001.5", "dur": "2.5"},
        {"ph": "X", "cat": "kernel", "name": None, "ts": None, "dur": None},
        {"ph": "X", "cat": 5, "name": "k", "ts": 1e9, "dur": 1, "args": "text"},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1e9, "dur": -5},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": True, "dur": [1]},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1e308, "dur": 1e308},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1e9, "dur": 1,
         "args": {"stream": 1e300, "device": "x", "correlation": 10**40}},
        17,
        None,
    ],
)  # fmt: skip
def test_odd_events_do_not_stop_the_reader(tmp_path, builder, odd):
    builder.kernel("gemm", 0, 5, launched=-5)
    builder.events.append(odd)
    path = builder.save(tmp_path / "trace.json")
    assert summarise(path).devices


def test_infinity_and_nan_times_are_invalid(tmp_path, builder):
    builder.kernel("gemm", 0, 5)
    text = json.dumps(builder.document())[:-2]
    text += ', {"ph": "X", "cat": "kernel", "name": "k", "ts": NaN, "dur": Infinity}]}'
    path = tmp_path / "trace.json"
    path.write_text(text)
    assert read_trace(path).invalid_kernels == 1


def test_kernels_without_times_are_counted_and_left_out(tmp_path, builder):
    """Half of the kernels have ts 0 and dur 0 (pytorch issue 188481): not 50 years of idle."""
    for i in range(10):
        builder.kernel("gemm", 10 * i, 5, launched=10 * i - 3)
    for _ in range(10):
        builder.kernel("gemm", 0, 0, zero=0)
    found = summarise(builder.save(tmp_path / "trace.json"))
    assert found.invalid_kernels == 10
    assert "10 of 20" in found.warnings[0]
    summary = found.only.summary
    assert summary.kernels == 10
    assert summary.window_s == pytest.approx(95e-6)
    assert summary.busy_s == pytest.approx(50e-6)


def test_all_kernels_without_times(tmp_path, builder):
    for _ in range(3):
        builder.kernel("gemm", 0, 0, zero=0)
    found = summarise(builder.save(tmp_path / "trace.json"))
    assert not found.devices
    assert "none of the 3 device events has a valid time" in found.warnings[-1]


def test_a_trace_of_the_cpu_alone_is_explained(tmp_path, builder):
    builder.event("cpu_op", "aten::mm", 0, 10)
    found = summarise(builder.save(tmp_path / "trace.json"))
    assert not found.devices
    assert "ProfilerActivity.CUDA" in found.warnings[-1]
    assert found.host[0][0] == "aten::mm"
    assert found.to_dict()["devices"] == []
    assert len(found.to_frame()) == 0


def test_launches_without_device_events_are_explained(tmp_path, builder):
    builder.event("cuda_runtime", "cudaLaunchKernel", 0, 10, correlation=1)
    assert "CUPTI" in summarise(builder.save(tmp_path / "trace.json")).warnings[-1]


def test_msgspec_missing(monkeypatch, tmp_path, builder):
    import sys

    builder.kernel("gemm", 0, 5)
    path = builder.save(tmp_path / "trace.json")
    monkeypatch.setitem(sys.modules, "roofline.trace.fast", None)
    assert read_trace(path).read_by == "json"
    with pytest.raises(RooflineError, match=r"roofline\[fast\]"):
        read_trace(path, reader="msgspec")
