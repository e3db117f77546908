"""nvbandwidth and nccl-tests: small files made by hand in the tools' documented forms.

Values: nvbandwidth's README (276.07 GB/s device to device); nccl-tests' README table form.
"""

import json

import pytest

from roofline.errors import SpecError
from roofline.hardware.measurement import Device, save_measurement, to_json
from roofline.measure.importers import import_file

DEVICE = Device(name="NVIDIA H100", memory_bytes=2**36, count=2)

NVBANDWIDTH = {
    "nvbandwidth": {
        "version": "v0.8", "git_version": "v0.8", "CUDA Runtime Version": 12080,
        "Driver Version": "570", "GPU Device list": ["0: NVIDIA H100 (00000000:18:00)"],
        "testcases": [
            {"name": "host_to_device_memcpy_ce", "status": "Passed",
             "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
             "bandwidth_matrix": [["55.62", "55.61"]], "sum": "111.23"},
            {"name": "device_to_device_memcpy_read_ce", "status": "Passed",
             "bandwidth_matrix": [["N/A", "276.07"], ["276.36", "N/A"]], "sum": "552.43"},
            {"name": "host_device_latency_sm", "status": "Passed",
             "bandwidth_matrix": [["772.58", "773.00"]]},
            {"name": "multinode_device_to_device", "status": "Waived"},
        ],
    }
}  # fmt: skip
NVBANDWIDTH_TEXT = """nvbandwidth Version: v0.8
Built from Git version: v0.8

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.62     55.61

SUM host_to_device_memcpy_ce 111.23

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    276.07
 1    276.36       N/A

SUM device_to_device_memcpy_read_ce 552.43
"""
NCCL_TEXT = """# nThread 1 nGpus 2 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5
# Using devices
#  Rank  0 Group  0 Pid  12345 on somehost device  0 [0x18] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  12345 on somehost device  1 [0x2a] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place               in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum      -1    10.00    0.10    0.10      0    10.20    0.10    0.10      0
  1073741824     268435456     float     sum      -1     3315  323.90  323.90      0     3320  323.42  323.42      3
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 162.0
"""  # noqa: E501


def nccl_json():
    timed = {"time": 3876.0, "alg_bw": 554.0, "bus_bw": 277.0, "nwrong": "0"}
    return {
        "version": "2.19", "args": ["./all_gather_perf", "-b", "8"],
        "env": ["AWS_SECRET_ACCESS_KEY=hunter2", "HOME=/home/me"],
        "config": {"devices": [{"rank": 0, "hostname": "node7"}, {"rank": 1, "hostname": "node7"}]},
        "results": [{"size": 2**31, "count": 2**29, "type": "float", "redop": "none", "root": "-1",
                     "out_of_place": timed, "in_place": timed}],
        "out_of_bounds": {"count": 0, "okay": "true"},
    }  # fmt: skip


def write(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("content", [NVBANDWIDTH, NVBANDWIDTH_TEXT], ids=["json", "text"])
def test_nvbandwidth(tmp_path, content):
    found = import_file(write(tmp_path, "out.txt", content), DEVICE)
    rates = {(r.test, r.source, r.target): r.bytes_per_s for r in found.link_rows if r.bytes_per_s}
    assert rates["device_to_device_memcpy_read_ce", "0", "1"] == pytest.approx(276.07e9)
    assert rates["device_to_device_memcpy_read_ce", "1", "0"] == pytest.approx(276.36e9)
    assert rates["host_to_device_memcpy_ce", "host", "1"] == pytest.approx(55.61e9)
    assert len(rates) == 4
    assert found.level == "import"


def test_nvbandwidth_latency_is_no_bandwidth(tmp_path):
    found = import_file(write(tmp_path, "out.json", NVBANDWIDTH), DEVICE)
    latency = [row for row in found.link_rows if row.latency_s]
    assert [row.latency_s for row in latency] == pytest.approx([772.58e-9, 773.00e-9])
    assert all(row.bytes_per_s is None for row in latency)


def test_nccl_text(tmp_path):
    found = import_file(write(tmp_path, "all_reduce_perf.txt", NCCL_TEXT), DEVICE)
    rows = found.collective_rows
    assert [(row.op, row.n_ranks, row.bytes, row.in_place) for row in rows] == [
        ("all_reduce", 2, 1024, False), ("all_reduce", 2, 1024, True),
        ("all_reduce", 2, 2**30, False), ("all_reduce", 2, 2**30, True),
    ]  # fmt: skip
    assert rows[2].median_s == pytest.approx(3315e-6)
    assert rows[2].bus_bytes_per_s == pytest.approx(323.9e9, rel=1e-3)  # printed with 5 digits
    assert rows[3].flags == ("3 wrong results",)


def test_nccl_json_and_nothing_secret(tmp_path):
    found = import_file(write(tmp_path, "x.json", nccl_json()), DEVICE)
    row = found.collective_rows[0]
    assert (row.op, row.n_ranks, row.dtype) == ("all_gather", 2, "fp32")
    assert row.alg_bytes_per_s == pytest.approx(554e9, rel=1e-3)
    assert row.bus_bytes_per_s == pytest.approx(277e9, rel=1e-3)  # (n - 1)/n
    text = to_json(found)
    assert not any(word in text for word in ("hunter2", "node7", "/home"))
    assert save_measurement(found, tmp_path / "records").exists()


def test_what_is_not_said_is_asked_for(tmp_path):
    anonymous = write(tmp_path, "out.txt", NCCL_TEXT)
    with pytest.raises(SpecError, match="which collective"):
        import_file(anonymous, DEVICE)
    assert import_file(anonymous, DEVICE, op="all-reduce").collective_rows[0].op == "all_reduce"
    lines = [line for line in NCCL_TEXT.splitlines() if "Rank" not in line]
    bare = write(tmp_path, "all_reduce.txt", "\n".join(lines))
    with pytest.raises(SpecError, match="how many ranks"):
        import_file(bare, DEVICE)
    assert import_file(bare, DEVICE, n_ranks=8).collective_rows[0].n_ranks == 8


@pytest.mark.parametrize(
    "content",
    ["", "hello", "{}", "[1]", '{"nvbandwidth": 3}', '{"nvbandwidth": {"testcases": [3, {}]}}',
     '{"results": 3, "args": ["all_reduce_perf"], "config": {"devices": [1]}}', "{" * 100_000,
     json.dumps(NVBANDWIDTH)[:200], "# size algbw busbw\n# nccl all_reduce\n# Rank 0\n1 2 3",
     '{"nvbandwidth": {"testcases": [{"status": "Passed", "name": "x", "bandwidth_matrix": '
     '[["NaN", "inf", true, -1]]}]}}'],
)  # fmt: skip
def test_other_files_are_refused_in_one_line(tmp_path, content):
    with pytest.raises(SpecError) as caught:
        import_file(write(tmp_path, "file", content), DEVICE)
    assert "\n" not in str(caught.value)


def test_unreadable_files(tmp_path):
    with pytest.raises(SpecError, match="cannot be read"):
        import_file(tmp_path / "nothing", DEVICE)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(SpecError, match="UTF-8"):
        import_file(tmp_path / "binary", DEVICE)
