"""Node records: round trip, refusals, nothing private."""

from datetime import UTC, datetime

import pytest

from roofline.errors import InputError, SpecError
from roofline.hardware.node_record import (
    NodeRecord,
    Probe,
    read_node_record,
    save_node_record,
    without_identifiers,
)


@pytest.fixture
def record():
    probe = Probe(name="copy", device=0, unit="B/s", work=8e9, median_s=0.002, spread=0.01)
    return NodeRecord(
        node="a/b c", date=datetime(2026, 11, 29, 12, tzinfo=UTC), probes=(probe,),
        software={"driver": "580"},
    )  # fmt: skip


def test_round_trip(tmp_path, record):
    path = save_node_record(record, tmp_path)
    assert path.name == "a-b-c-2026-11-29T120000Z.json"
    assert read_node_record(path) == record
    assert save_node_record(record, tmp_path / "x.json").name == "x.json"
    assert not list(tmp_path.glob(".*"))


def test_rate(record):
    assert record.probes[0].rate == 4e12
    launch = Probe(name="launch", device=0, unit="s", work=1.0, median_s=5e-6)
    assert launch.rate == 5e-6


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no node record"),
        ("{", "no node record"),
        ("[]", "no node record"),
        ('{"schema_version": 2, "node": "a", "date": "2026-11-01T00:00:00Z"}', "schema_version"),
        ('{"node": "a", "date": "2026-11-01T00:00:00Z", "extra": 1}', "extra"),
        ('{"node": "a", "date": "2026-11-01"}', "date"),
        ('{"node": "a", "date": "2026-11-01T00:00:00Z", "duration_s": NaN}', "no node record"),
    ],
)
def test_bad_files(tmp_path, text, says):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(SpecError, match=says) as error:
        read_node_record(path)
    assert "\n" not in str(error.value)


def test_missing_binary_and_huge(tmp_path):
    with pytest.raises(SpecError, match="cannot be read"):
        read_node_record(tmp_path / "none.json")
    path = tmp_path / "b.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="UTF-8"):
        read_node_record(path)
    path.write_bytes(b" " * (65 * 2**20))
    with pytest.raises(SpecError, match="larger than"):
        read_node_record(path)


def test_cannot_write(tmp_path, record):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="cannot write"):
        save_node_record(record, file / "sub")


def test_no_identifiers():
    text = "GPU 0: NVIDIA H200 (UUID: GPU-43892aed-94c6-acaf-5490-3ee50349ef57)\n Link 0: 26 GB/s"
    assert "43892aed" not in without_identifiers(text)
    assert "Link 0: 26 GB/s" in without_identifiers(text)
