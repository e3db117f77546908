"""Records given as a word, a path, several or a mapping mean the same."""

from pathlib import Path

import pytest

from roofline.errors import RooflineError
from roofline.hardware.measurement import load_measurement
from roofline.planning.machines import machines_by_spec

ID = "h200-sxm-141gb"
FILE = Path(__file__).parents[2] / "measurements" / ID / "2026-11-29T155032Z-full.json"


@pytest.mark.parametrize(
    "given",
    [ID, [ID], FILE, load_measurement(FILE), {ID: ID}],
    ids=lambda each: type(each).__name__,
)
def test_a_record_replaces_the_roofs_of_its_own_device(given):
    assert list(machines_by_spec(given)) == [ID]


def test_none_is_no_machine():
    assert machines_by_spec(None) == {}


@pytest.mark.parametrize("given", [3, ["no-such-machine"], "no-such-machine.json"])
def test_what_is_no_record_is_refused(given):
    with pytest.raises(RooflineError, match=r"machine|no-such"):
        machines_by_spec(given)
