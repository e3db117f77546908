"""Records: the one of measurements/h200-sxm-141gb, and uploads that are none."""

import time

import pytest

from roofline.app.measuring import start
from roofline.errors import UnsupportedError
from roofline.hardware.accelerator import load_accelerator
from roofline.hardware.measurement import load_measurement, to_json
from roofline.report.record_rows import nominal_and_measured, section_table

RECORD = load_measurement("h200-sxm-141gb")


def test_page_shows_nominal_and_measured(opened):
    """H200 datasheet: 4.8 TB/s, 989.4 TFLOP/s bf16; the record reached less of each."""
    at = opened("measure")
    frame = at.dataframe[0].value.set_index("what")
    assert frame.loc["memory, read", "nominal · datasheet"] == "4.80 TB/s"
    assert frame.loc["bf16 matmul, burst", "nominal · datasheet"] == "989 TFLOP/s"
    for share in frame["measured / nominal"]:
        assert share == "–" or int(share.rstrip("%")) <= 100


def test_no_measurement_beats_its_datasheet():
    rows = nominal_and_measured(RECORD, load_accelerator("h200-sxm-141gb"))
    assert rows
    assert all(row["share"] <= 1 for row in rows if row["share"] is not None)


def test_rows_of_a_section_are_all_there():
    assert len(section_table(RECORD, "copy").rows) == len(RECORD.copy_rows)


def test_upload_becomes_the_machine_of_predictions(opened):
    sweep = RECORD.model_copy(update={"origins": (), "assumptions": ()})
    at = opened("measure", accelerator="h200-sxm-141gb")
    upload = ("mine.json", to_json(sweep).encode(), "application/json")
    at.file_uploader(key="record_file").set_value(upload).run()
    assert not at.exception
    assert at.selectbox(key="record_choice-1").value == "your record"
    assert at.session_state["record"] == to_json(sweep)
    at.selectbox(key="machine").set_value("uploaded").run()
    assert not at.error


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", b"{}", "no measured record"),
        ("a.json", b'{"schema_version": 1', "no measured record"),
        ("a.json", b"\xff\xfe\x00", "UTF-8"),
        ("a.json", b"   ", "empty"),
        ("../../etc/passwd.json", b"[]", "passwd"),
        ("<img src=x onerror=alert(1)>.json", b"[]", "no measured record"),
    ],
)
def test_upload_that_is_no_record_is_refused(opened, name, content, words):
    at = opened("measure")
    at.file_uploader(key="record_file").set_value((name, content, "application/json")).run()
    assert not at.exception
    (error,) = at.error
    assert words in error.value.replace("\\", "")
    assert "<img" not in error.value
    assert ".." not in error.value


def test_uploaded_machine_without_a_record_says_so(opened):
    at = opened(machine="uploaded")
    assert "no record was uploaded" in at.error[0].value.replace("\\", "")


def test_a_sweep_runs_alone_and_can_be_stopped():
    pytest.importorskip("torch")
    job = start("quick", "cpu", ("launch",))
    try:
        with pytest.raises(UnsupportedError, match="being measured already"):
            start("quick", "cpu")
        assert 0 <= job.progress()[0] <= 1
    finally:
        job.stop()
    assert job.finished
    assert job.record_file() is not None or job.trouble()
    job.clear()


def test_a_sweep_of_a_word_that_is_no_level_is_refused():
    with pytest.raises(UnsupportedError, match="quick, standard"):
        start("--output-dir=/", "cpu")


def test_a_sweep_that_fails_gives_its_last_line():
    pytest.importorskip("torch")
    job = start("quick", "cpu", ("nothing",))
    for _ in range(300):
        if job.finished:
            break
        time.sleep(0.1)
    assert "no sweep 'nothing'" in job.trouble()
    job.clear()
