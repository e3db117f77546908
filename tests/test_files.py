"""Files without an end, folders and names that are none: one clear line each."""

from pathlib import Path

import pytest

from roofline import files
from roofline.diagnose.fabric_reader import read_fabric
from roofline.diagnose.symptoms import read_symptoms
from roofline.economics.catalogues import import_skypilot
from roofline.economics.price_row import read_prices
from roofline.errors import SpecError
from roofline.hardware.measurement import read_measurement
from roofline.hardware.node_record import read_node_record
from roofline.hardware.training_record import read_training_record
from roofline.serving.lengths import load_lengths

ENDLESS = Path("/dev/zero")


@pytest.mark.parametrize(
    "read",
    [
        read_prices, load_lengths, import_skypilot, read_fabric, read_symptoms, read_measurement,
        read_node_record, read_training_record,
    ],
)  # fmt: skip
def test_a_device_without_end_is_refused(read):
    """A character device has the size 0 and never ends: reading it whole takes all memory."""
    with pytest.raises(SpecError, match="too long for"):
        read(ENDLESS)


@pytest.mark.parametrize("read", [read_prices, load_lengths])
def test_folders_and_missing_files(tmp_path, read):
    with pytest.raises(SpecError, match=r"Is a directory|Permission denied"):
        read(tmp_path)
    with pytest.raises(SpecError, match=r"cannot be read as .*: No such file"):
        read(tmp_path / "none.csv")
    with pytest.raises(SpecError, match="no file name"):
        read(Path("a\0b"))


def test_a_byte_order_mark_is_dropped_and_the_limit_counts_bytes(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfab")
    assert files.read_text(path, most_bytes=5, what="words") == "ab"
    with pytest.raises(SpecError, match="larger than 4 bytes"):
        files.read_text(path, most_bytes=4, what="words")
