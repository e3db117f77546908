"""Real baselines of the H200 machine, and faults injected into a copy of the newest."""

from pathlib import Path

import pytest

from roofline.diagnose.baseline import compare_baselines
from roofline.hardware.node_record import read_node_record

FOLDER = Path(__file__).resolve().parents[2] / "measurements/baselines/h200-sxm-141gb"
RECORDS = sorted(map(read_node_record, FOLDER.glob("*.json")), key=lambda record: record.date)
PAIR = FOLDER.parents[2] / "examples/diagnosis/topology_h200_pair.txt"


@pytest.fixture
def later():
    return RECORDS[-1]


@pytest.fixture
def earlier(later):
    """The last one before it with as many GPUs: the machines lent differ in their number."""
    before = [r for r in RECORDS[:-1] if len(r.devices) == len(later.devices)]
    return before[-1]


def test_the_probes_are_those_of_an_h200(later):
    """Near the reference runs' copy of 4.17 TB/s and matmul of 650 (hot) to 786 TFLOP/s."""
    rates = {probe.name: probe.rate for probe in later.probes}
    assert rates["copy"] == pytest.approx(4.17e12, rel=0.15)
    assert 620e12 < rates["matmul"] < 800e12
    assert "H200" in later.devices[0].name
    assert later.devices[0].max_sm_clock_hz == 1980e6


def test_the_same_machine_twice_has_no_fault(earlier, later):
    found = compare_baselines(later, earlier=earlier)
    assert [f.text for f in found.findings if f.severity == "fault"] == []


def test_an_injected_dead_link_is_found(earlier, later):
    """One of 18 links goes; a machine with one GPU lends the links of the pair."""
    links = later.nvlink_text if "Link 7" in later.nvlink_text else PAIR.read_text()
    before = earlier.model_copy(update={"nvlink_text": links})
    lines = links.splitlines()
    at = next(i for i, line in enumerate(lines) if "Link 7" in line)
    lines[at] = "\t Link 7: <inactive>"
    sick = later.model_copy(update={"nvlink_text": "\n".join(lines) + "\n"})
    found = compare_baselines(sick, earlier=before)
    assert found.sick_nodes == (later.node,)
    first = found.findings[0]
    assert (first.what, first.severity) == ("NVLink", "fault")
    assert "17 of the 18 links" in first.text


def test_an_injected_throttled_clock_is_found(earlier, later):
    probes = tuple(
        probe.model_copy(
            update={
                "sm_clock_hz": 1005e6,
                "median_s": probe.median_s * 1.4,
                "throttle": ("hardware thermal slowdown",),
            }
        )
        if probe.name == "matmul under load"
        else probe
        for probe in later.probes
    )
    found = compare_baselines(later.model_copy(update={"probes": probes}), earlier=earlier)
    assert found.sick_nodes == (later.node,)
    assert {"throttle", "clock"} <= {f.what for f in found.findings if f.severity == "fault"}
    assert any(f.what == "matmul" and f.severity == "slower" for f in found.findings)


def test_links_of_the_pair_carry_what_they_should():
    """Two H200 of one host: 384 GB/s of 450 a direction, 312 GB/s of bus bandwidth in a ring."""
    record = next(record for record in RECORDS if len(record.devices) == 2)
    copies = [probe.rate for probe in record.probes if probe.name == "p2p"]
    assert copies == pytest.approx([384e9, 384e9], rel=0.01)
    largest = max((p for p in record.probes if p.name == "all_reduce"), key=lambda p: p.size_bytes)
    assert largest.rate == pytest.approx(312e9, rel=0.01)
    assert compare_baselines(record).findings == ()


def test_an_injected_slow_pair_is_found():
    """Peer copies that go through host memory: 40 GB/s where 18 links give 450."""
    record = next(record for record in RECORDS if len(record.devices) == 2)
    probes = tuple(
        probe.model_copy(update={"median_s": probe.work / 40e9}) if probe.name == "p2p" else probe
        for probe in record.probes
    )
    found = compare_baselines(record.model_copy(update={"probes": probes}), earlier=record)
    assert {f.where for f in found.findings if f.severity == "fault"} == {"GPU 0→1", "GPU 1→0"}
