"""Measured records: what loads, what is refused, and how records of one spec are merged.

Expected values are those printed in the reference runs' own description (H200, November 2026).
"""

import json
from datetime import UTC, datetime

import pytest

from roofline.errors import InputError, MissingDataError, SpecError, UnknownNameError
from roofline.hardware.measured_rows import bus_factor
from roofline.hardware.measurement import (
    CopyRow,
    DecoderRow,
    Device,
    MatmulRow,
    Measurement,
    load_measurement,
    measurement_files,
    parse_measurement,
    read_measurement,
    save_measurement,
    to_json,
)


def row(median_s=1e-3, op="copy", size=2**30):
    return CopyRow(op=op, buffer_bytes=size, moved_bytes=2 * size, median_s=median_s)


def record(day=1, level="full", limit_w=700.0, sections=("copy",), **rows):
    rows = rows or {"copy_rows": (row(),)}
    return Measurement(
        device=Device(
            name="NVIDIA H999", spec_id="h999", memory_bytes=2**37, power_limit_w=limit_w
        ),
        date=datetime(2026, 11, day, tzinfo=UTC),
        level=level,
        complete_sections=sections,
        **rows,
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOFLINE_MEASUREMENTS", str(tmp_path))
    return tmp_path


def test_saved_record_loads_again(folder):
    path = save_measurement(record(), folder)
    assert path == folder / "h999" / "2026-11-01T000000Z-full.json"
    assert read_measurement(path) == record()
    assert load_measurement(str(path)) == record()
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # nothing temporary left


def test_each_section_comes_from_its_newest_full_record(folder):
    matmul = MatmulRow(compute="bf16", m=8, n=8, k=8, shape="square", median_s=1e-6)
    both = ("copy", "matmul")
    save_measurement(record(1, copy_rows=(row(1.0),), matmul_rows=(matmul,), sections=both), folder)
    save_measurement(record(2, copy_rows=(row(2.0),)), folder)
    save_measurement(record(3, level="quick", copy_rows=(row(3.0),)), folder)
    save_measurement(record(4, sections=(), copy_rows=(row(4.0),)), folder)  # interrupted
    merged = load_measurement("h999")
    assert [r.median_s for r in merged.copy_rows] == [2.0]
    assert merged.matmul_rows == (matmul,)
    assert {(o.section, o.date.day) for o in merged.origins} == {("copy", 2), ("matmul", 1)}
    assert any("2026-11-02" in text and "copy" in text for text in merged.assumptions)
    assert any("no full measurement of attention" in text for text in merged.assumptions)


def test_other_power_limits_are_not_mixed(folder):
    save_measurement(record(1, limit_w=700.0, copy_rows=(row(1.0),)), folder)
    save_measurement(record(2, limit_w=500.0, copy_rows=(row(2.0),)), folder)
    assert load_measurement("h999").copy_rows[0].median_s == 2.0
    assert load_measurement("h999", power_limit_w=700.0).copy_rows[0].median_s == 1.0
    with pytest.raises(MissingDataError, match=r"no full record at 300 W; .* 500.0, 700.0 W"):
        load_measurement("h999", power_limit_w=300)


def test_models_add_up_over_records(folder):
    def steps(model, median_s):
        return DecoderRow(
            phase="decode", model=model, weights="bf16", batch=1, context_tokens=256, mode="graph",
            median_s=median_s,
        )  # fmt: skip

    old, new = (steps("a", 1.0), steps("b", 1.0)), (steps("b", 2.0),)
    save_measurement(record(1, decoder_rows=old, sections=("decoder",)), folder)
    save_measurement(record(2, decoder_rows=new, sections=("decoder",)), folder)
    merged = load_measurement("h999").decoder_rows
    assert {(r.model, r.median_s) for r in merged} == {("a", 1.0), ("b", 2.0)}


def test_quick_records_do_not_answer_for_a_spec(folder):
    save_measurement(record(level="quick"), folder)
    with pytest.raises(MissingDataError, match="roofline measure --full"):
        load_measurement("h999")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no measured record"),
        ("[]", "no measured record"),
        ('{"schema_version": 2}', "schema_version"),
        ('{"device": {"name": "x", "memory_bytes": true}}', "device.memory_bytes"),
        ("[" * 100_000, "no measured record"),
        ('{"date": NaN}', "no measured record"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(tmp_path, text, says):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(SpecError, match=says) as caught:
        load_measurement(path)
    assert "\n" not in str(caught.value)


def test_cut_binary_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(to_json(record())[:-40])
    with pytest.raises(SpecError, match="no measured record"):
        load_measurement(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not text"):
        load_measurement(path)
    with pytest.raises(SpecError, match="cannot be read"):
        load_measurement(tmp_path / "nothing.json")
    with pytest.raises(SpecError, match="cannot be read"):
        load_measurement(tmp_path)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
def test_times_are_positive_and_finite(bad):
    data = json.loads(to_json(record()))
    data["copy_rows"][0]["median_s"] = bad
    with pytest.raises(SpecError):
        parse_measurement(json.dumps(data))


@pytest.mark.parametrize(
    "text", ["/home/me/run.py", "GPU-43892aed-94c6-acaf-5490-3ee50349ef57", "--out /root/x"]
)
def test_private_text_is_refused(tmp_path, text):
    with pytest.raises(SpecError, match="looks private"):
        save_measurement(record().model_copy(update={"command": text}), tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def test_unknown_and_hostile_names(folder):
    with pytest.raises(UnknownNameError, match="h200-sxm-141gb"):
        load_measurement("h200-sxm-141")
    with pytest.raises(SpecError):
        load_measurement("../../etc/passwd")
    assert measurement_files("../..") == ()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        save_measurement(record(), tmp_path / "file")


@pytest.mark.parametrize("path", measurement_files(), ids=lambda path: path.stem)
def test_shipped_records_load(path):
    found = read_measurement(path)
    assert found.device.record_id == path.parent.name
    assert found.complete_sections or not found.finished  # an interrupted run can be resumed


def test_reference_sweeps_hold_the_published_rates():
    """The reference runs' description: add 4.37, read 4.40, write 4.69 TB/s; bf16 786 at N = 8192,
    650 sustained; fp8 1,490-1,525 TFLOP/s; launch in a graph 1.1 µs."""
    found = read_measurement(
        next(
            path for path in measurement_files("h200-sxm-141gb") if "reference-sweeps" in path.name
        )
    )
    best = {}
    for r in found.copy_rows:
        if r.buffer_bytes >= 2**30:
            best[r.op] = max(best.get(r.op, 0), r.bytes_per_s / 1e12)
    assert best["add"] == pytest.approx(4.37, abs=0.01)  # three digits are printed
    assert best["read"] == pytest.approx(4.40, abs=0.01)
    assert best["write"] == pytest.approx(4.69, abs=0.01)
    assert best["copy_engine"] == pytest.approx(2.77, abs=0.01)
    square = {
        (r.compute, r.n, r.mode): r.flop_per_s / 1e12
        for r in found.matmul_rows
        if r.shape == "square"
    }
    assert square["bf16", 8192, "burst"] == pytest.approx(786, abs=1)
    assert square["bf16", 8192, "sustained"] == pytest.approx(650, abs=1)
    assert square["fp8", 16384, "burst"] == pytest.approx(1525, abs=1)
    launch = {r.mode: r.median_s for r in found.launch_rows}
    assert launch["graph"] == pytest.approx(1.1e-6, abs=0.05e-6)


def test_bus_factors_as_nccl_tests_documents_them():
    """nccl-tests doc/PERFORMANCE.md: 2(n-1)/n for all-reduce, (n-1)/n for gathers, 1 for send."""
    assert [bus_factor("all_reduce", n) for n in (1, 2, 4)] == [0, 1, 1.5]
    assert bus_factor("all_to_all", 4) == bus_factor("reduce_scatter", 4) == 0.75
    with pytest.raises(InputError, match="no collective"):
        bus_factor("allreduce", 2)
