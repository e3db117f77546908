"""Training records load as they were saved, and refuse what they are not."""

from pathlib import Path

import pytest

from roofline.errors import SpecError
from roofline.hardware.training_record import read_training_record, save_training_record

RECORDS = Path(__file__).parents[2] / "measurements" / "training"


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*/*.json")), ids=lambda path: path.stem)
def test_a_record_survives_the_round_trip(path, tmp_path):
    record = read_training_record(path)
    assert record.training_rows
    again = read_training_record(save_training_record(record, tmp_path / "again.json"))
    assert again == record


def test_the_reference_record_has_the_parameters_of_llama_3_2_1b():
    """1,235,814,400: the parameter count of the published Llama-3.2-1B checkpoint."""
    record = read_training_record(RECORDS / "h200-sxm-141gb" / "2026-11-reference.json")
    assert len(record.training_rows) == 24
    assert {row.trainable for row in record.training_rows if row.mode != "lora"} == {1_235_814_400}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"date": 3}', "\x00", '{"training_rows": [{}]}'])
def test_what_is_no_record_is_refused_in_one_line(text, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(SpecError, match=r"bad\.json: no training record") as caught:
        read_training_record(path)
    assert "\n" not in str(caught.value)


def test_binary_is_refused(tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not text in UTF-8"):
        read_training_record(path)
