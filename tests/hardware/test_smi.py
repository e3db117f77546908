"""Text of nvidia-smi, as drivers print it, to states of devices."""

import pytest

from roofline.errors import InputError
from roofline.hardware.smi import QUERY_FIELDS, parse_query, reasons_of

# one row of an H200 server in the order of QUERY_FIELDS (driver 580)
ROW = (
    "0, NVIDIA H200, 00000000:19:00.0, 143771, 4, 34, 36, 76.51, 700.00, 345, 3201, 1980, 3201, "
    "5, 5, 16, 16, 0, 0, [N/A], 0x0000000000000001, 580.95.05"
)


def test_a_row():
    (device,) = parse_query(ROW)
    assert len(ROW.split(",")) == len(QUERY_FIELDS)
    assert device.memory_bytes == 143771 * 2**20
    assert device.sm_clock_hz == 345e6
    assert device.max_sm_clock_hz == 1980e6
    assert device.power_limit_w == 700.0
    assert (device.pcie_lanes, device.pcie_lanes_max) == (16, 16)
    assert device.rows_pending is None
    assert device.throttle == ()  # idle is no throttling


def test_what_the_driver_does_not_know_is_none():
    row = ROW.replace("36, 76.51", "N/A, [Not Supported]")
    (device,) = parse_query(row)
    assert device.memory_temperature_c is None
    assert device.power_w is None


def test_several_rows_and_older_names():
    fields = ("index", "name", "clocks_throttle_reasons.active")
    first, second = parse_query("0, A, 0x0000000000000044\n1, B, Active\n", fields)
    assert first.throttle == ("software power cap", "hardware thermal slowdown")
    assert second.throttle == ()


def test_cut_output():
    with pytest.raises(InputError, match="3 columns where 22 were asked"):
        parse_query("0, NVIDIA H200, 0")


def test_empty_output_is_no_device():
    assert parse_query("") == ()


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0x0, ()),
        (0x1, ()),
        (0x8, ("hardware slowdown",)),
        (0x20, ("software thermal slowdown",)),
        (0x80, ("hardware power brake",)),
    ],
)
def test_reasons(mask, names):
    """Bits of nvmlClocksEventReasons in NVML's reference."""
    assert reasons_of(mask) == names
