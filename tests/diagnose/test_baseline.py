"""Baselines: faults injected into copies of a record are found, and the sick node is named."""

from datetime import UTC, datetime

import numpy as np
import pytest

from roofline.diagnose.baseline import compare_baselines, merge_nodes, read_nodes
from roofline.errors import InputError, SpecError
from roofline.hardware.node_record import DeviceHealth, NodeRecord, Probe, save_node_record

LINKS = "".join(
    f"GPU {gpu}: NVIDIA H200\n" + "".join(f"\t Link {i}: 26.562 GB/s\n" for i in range(18))
    for gpu in range(2)
)
# rates of the H200 machine (copy, bf16 matmul burst and under load, all-reduce of 512 MiB)
RATES = {
    "copy": ("B/s", 4.17e12), "matmul": ("FLOP/s", 786e12), "kv_read": ("B/s", 3.6e12),
    "matmul under load": ("FLOP/s", 650e12), "host_to_device": ("B/s", 55e9),
}  # fmt: skip


def probe(name, value, unit="B/s", *, device=0, **more):
    work = 1.0 if unit == "s" else value
    return Probe(
        name=name, device=device, unit=unit, work=work,
        median_s=value if unit == "s" else 1.0, spread=0.01, **more,
    )  # fmt: skip


def healthy(node="n0", scale=1.0, day=1):
    devices = tuple(
        DeviceHealth(
            index=i, name="NVIDIA H200", max_sm_clock_hz=1980e6, pcie_lanes=16,
            pcie_lanes_max=16, ecc_uncorrected=0, temperature_c=35.0,
        )
        for i in range(2)
    )  # fmt: skip
    probes = [
        probe(name, value * scale, unit, device=i, sm_clock_hz=1440e6 if "load" in name else None)
        for i in range(2)
        for name, (unit, value) in RATES.items()
    ]
    probes += [probe("launch", 5e-6 * scale, "s"), probe("p2p", 390e9 * scale, peer=1)]
    probes += [
        Probe(name="all_reduce", ranks=2, size_bytes=2**29, unit="B/s", work=320e9 * scale,
              median_s=1.0)
    ]  # fmt: skip
    return NodeRecord(
        node=node, date=datetime(2026, 11, day, tzinfo=UTC), devices=devices,
        probes=tuple(probes), nvlink_text=LINKS, software={"driver": "580.95.05"},
    )  # fmt: skip


def changed(record, name, factor, *, device=0, **more):
    probes = [
        p.model_copy(update={"median_s": p.median_s / factor, **more})
        if p.name == name and p.device in (device, None)
        else p
        for p in record.probes
    ]
    return record.model_copy(update={"probes": tuple(probes)})


def test_equal_records_have_no_finding():
    found = compare_baselines(healthy(day=2), earlier=healthy())
    assert found.findings == ()
    assert "no fault in" in found.verdict
    assert found.compared > 20


def test_scatter_of_two_percent_is_no_finding():
    assert compare_baselines(healthy(scale=0.98), earlier=healthy()).findings == ()


def test_one_degraded_link_is_found():
    """Injected: one of 18 links of GPU 1 is down; nothing else changed."""
    text = LINKS.replace("26.562 GB/s", "<inactive>", 19).replace("<inactive>", "26.562 GB/s", 18)
    sick = healthy(day=2).model_copy(update={"nvlink_text": text})
    found = compare_baselines(sick, earlier=healthy())
    assert found.sick_nodes == ("n0",)
    first = found.findings[0]
    assert (first.what, first.where, first.severity) == ("NVLink", "GPU 1", "fault")
    assert "17 of the 18 links" in first.text
    assert any(f.against == "its earlier record" and f.what == "NVLink" for f in found.findings)


def test_a_throttled_clock_is_found():
    """Injected: GPU 1 held at 1,005 MHz under load, matmul down in proportion."""
    sick = changed(
        healthy(day=2), "matmul under load", 1005 / 1440, device=1, sm_clock_hz=1005e6,
        throttle=("hardware thermal slowdown",),
    )  # fmt: skip
    found = compare_baselines(sick, earlier=healthy())
    kinds = {(f.what, f.where) for f in found.findings if f.severity == "fault"}
    assert {("throttle", "GPU 1"), ("clock", "GPU 1")} <= kinds
    slower = [f for f in found.findings if f.severity == "slower"]
    assert slower[0].change == pytest.approx(-0.302, abs=0.001)
    assert not any("0" in f.where.split() for f in found.findings if f.severity == "fault")


def test_a_power_cap_is_no_fault():
    capped = changed(healthy(), "matmul under load", 1.0, throttle=("software power cap",))
    assert compare_baselines(capped).findings == ()


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("ecc_uncorrected", 3, "ECC"),
        ("rows_pending", True, "ECC"),
        ("pcie_lanes", 8, "PCIe"),
        ("throttle", ("hardware power brake",), "throttle"),
    ],
)
def test_faults_of_one_record(field, value, what):
    record = healthy()
    devices = (record.devices[0].model_copy(update={field: value}), record.devices[1])
    found = compare_baselines(record.model_copy(update={"devices": devices}))
    assert [f.what for f in found.findings] == [what]


def test_heat_under_load():
    hot = changed(healthy(), "matmul under load", 1.0, temperature_c=91.0)
    assert compare_baselines(hot).findings[0].what == "temperature"


def fleet(n=8):
    rng = np.random.default_rng(1)
    return [healthy(f"n{i}", scale=1 + 0.01 * rng.standard_normal()) for i in range(n)]


def test_the_sick_node_of_a_fleet_is_named():
    nodes = fleet()
    nodes[3] = changed(nodes[3], "p2p", 0.5)
    found = compare_baselines(nodes)
    assert found.sick_nodes == ("n3",)
    assert "node n3 is sick" in found.verdict
    assert found.findings[0].against == "the fleet's median"
    assert found.to_frame().loc[0, "node"] == "n3"


def test_a_slow_host_is_found_in_the_launch_time():
    nodes = fleet()
    nodes[5] = changed(nodes[5], "launch", 0.5)  # twice the time
    assert compare_baselines(nodes).sick_nodes == ("n5",)


def test_a_healthy_fleet_and_two_nodes():
    assert compare_baselines(fleet()).sick_nodes == ()
    found = compare_baselines(fleet(2))
    assert "no fleet" in found.notes[0]


def test_one_node_against_a_given_fleet():
    found = compare_baselines(changed(healthy("x"), "copy", 0.7), fleet=fleet(5))
    assert found.sick_nodes == ("x",)
    assert {f.node for f in found.findings} == {"x"}


def test_another_driver_is_said():
    nodes = fleet(4)
    nodes[2] = nodes[2].model_copy(update={"software": {"driver": "550.1"}})
    found = compare_baselines(nodes)
    assert [(f.node, f.severity) for f in found.findings] == [("n2", "changed")]
    assert found.sick_nodes == ()


def test_a_probe_that_is_gone():
    now = healthy(day=2)
    now = now.model_copy(update={"probes": now.probes[:-1]})
    found = compare_baselines(now, earlier=healthy())
    assert [(f.what, f.severity) for f in found.findings] == [("missing", "fault")]


def test_files_of_many_nodes(tmp_path):
    """One file a node, as srun or torchrun leave them, some nodes twice: the newest counts."""
    for record in (*fleet(4), healthy("n1", day=9)):
        save_node_record(record, tmp_path)
    records = read_nodes([tmp_path])
    assert len(records) == 5
    assert sorted(compare_baselines([tmp_path]).nodes) == ["n0", "n1", "n2", "n3"]
    merged = tmp_path / "all.jsonl"
    merged.write_text(merge_nodes(records))
    assert read_nodes([merged]) == records
    merged.write_text(merge_nodes(records)[:-40])
    with pytest.raises(SpecError, match=r"all\.jsonl:5"):
        read_nodes([merged])
    merged.write_text("\n")
    with pytest.raises(SpecError, match="no record in it"):
        read_nodes([merged])


def test_refusals(tmp_path):
    with pytest.raises(InputError, match=r"no \.json file"):
        compare_baselines(tmp_path)
    with pytest.raises(InputError, match="no record of a node"):
        compare_baselines([])
    with pytest.raises(InputError, match="one node"):
        compare_baselines(fleet(2), earlier=healthy())
    bad = tmp_path / "bad.json"
    bad.write_text('{"node": ')
    with pytest.raises(SpecError, match="no node record"):
        compare_baselines(bad)


TOPOLOGY = "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"


def test_peer_copies_far_below_their_links():
    """18 links of 25 GB/s give 450: 390 is healthy, 60 means that copies go another way."""
    record = healthy().model_copy(update={"topology_text": TOPOLOGY})
    assert compare_baselines(record).findings == ()
    slow = changed(record, "p2p", 60 / 390)
    (finding,) = compare_baselines(slow).findings
    assert "13 % of its links' 450 GB/s" in finding.text
