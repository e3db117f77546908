"""Spec files that are wrong, one kind at a time: file, line, and what to write instead."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.errors import (
    InputError,
    MissingDataError,
    SpecError,
    UnknownNameError,
    UnsupportedError,
)
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.hardware.quantity import read_quantity

GOOD = """\
id: x1
name: X1 80GB
vendor: NVIDIA
kind: gpu
compute_capability: "9.0"
memory:
  type: HBM3
  marketed_bytes: 80 GB
  usable_bytes: 79.19 GiB
  bytes_per_s: 3.35 TB/s
  source: X1 datasheet, 2026, page 1
compute:
  flop_per_s:
    tf32: 494.7 TFLOP/s
    bf16: 989.4 TFLOP/s
    fp16: 989.4 TFLOP/s
    fp8: 1978.9 TFLOP/s
    int8: 1978.9 TOP/s
  sm_count: 132
  boost_clock_hz: 1980 MHz
  source: X1 datasheet, 2026, page 2
link:
  kind: NVLink 4 (18 links)
  bytes_per_s: 450 GB/s
  domain: 8
  source: X1 datasheet, 2026, page 2
pcie:
  generation: 5
  lanes: 16
  bytes_per_s: 63 GB/s
  source: X1 datasheet, 2026, page 2
"""


def write(tmp_path, text, name="x1.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_good_file_loads(tmp_path):
    spec = load_accelerator(write(tmp_path, GOOD))
    assert spec.memory_bandwidth() == 3.35e12
    assert load_accelerator(str(tmp_path / "x1.yaml")) is spec
    assert load_accelerator(spec) is spec


SLIPS = {
    "unknown-field": ("name: X1", "nam: X1", 2, r"nam is no field .* did you mean name"),
    "unknown-field-in-group": (
        "  bytes_per_s: 3.35", "  bandwidth: 3.35", 10,
        r"memory.bandwidth is no field of a spec; ",
    ),
    "duplicate-key": (
        "kind: gpu", "kind: gpu\nkind: gpu", 5,
        r"'kind' is there twice; first in line 4",
    ),
    "rate-without-unit": (
        "3.35 TB/s", "3350", 10,
        r"memory.bytes_per_s .*3350 has no unit; write it as in the datasheet",
    ),
    "text-without-unit": ("3.35 TB/s", "'3350'", 10, r" has no unit"),
    "amount-for-rate": ("3.35 TB/s", "3.35 TB", 10, r"'TB' is no unit here"),
    "decimal-comma": ("3.35 TB/s", "3,35 TB/s", 10, r"no number with a unit"),
    "inf": ("3.35 TB/s", ".inf", 10, r".inf is not finite"),
    "inf-with-unit": ("3.35 TB/s", "inf TB/s", 10, r"no number with a unit"),
    "nan-with-unit": ("3.35 TB/s", "nan TB/s", 10, r"no number with a unit"),
    "overflow": ("3.35 TB/s", "1e999 TB/s", 10, r"not finite"),
    "negative": ("3.35 TB/s", "-3.35 TB/s", 10, r"cannot be"),
    "zero": ("3.35 TB/s", "0 TB/s", 10, r"cannot be"),
    "boolean": ("3.35 TB/s", "true", 10, r"True is no quantity"),
    "thousandfold": ("3.35 TB/s", "3350 TB/s", 10, r"check the unit"),
    "memory-in-TB": ("80 GB\n", "80 TB\n", 8, r"check the unit"),
    "usable-in-GB": ("79.19 GiB", "79.19 GB", 9, r"GB and GiB mixed up"),
    "usable-above": ("79.19 GiB", "85.9 GiB", 9, r"GB and GiB mixed up"),
    "usable-far-below": ("79.19 GiB", "40 GiB", 9, r"expected"),
    "sparse-bf16": (
        "bf16: 989.4 TFLOP/s", "bf16: 1979 TFLOP/s", 15,
        r"compute.flop_per_s.bf16 .*sparse",
    ),
    "sparse-in-words": (
        "bf16: 989.4 TFLOP/s", "bf16: 1979 TFLOP/s sparse", 15,
        r"sparse figure; write the dense",
    ),
    "sparse-fp8": (
        "fp8: 1978.9 TFLOP/s", "fp8: 3957.8 TFLOP/s", 17,
        r"compute.flop_per_s.fp8 .*4.00 × the 16-bit rate.*sparse",
    ),
    "sparse-int8": ("int8: 1978.9 TOP/s", "int8: 3957.8 TOP/s", 18, r"sparse"),
    "sparse-tf32": ("tf32: 494.7", "tf32: 989.4", 14, r"tf32 .*sparse"),
    "sparse-field": (
        "  sm_count: 132", "  sparse_flop_per_s: {bf16: 1979 TFLOP/s}\n  sm_count: 132", 19,
        r"sparse figures are not kept",
    ),
    "flops": (
        "bf16: 989.4 TFLOP/s", "bf16: 989.4 TFLOPS", 15,
        r"count or a rate; write a rate, e.g. '989.4 TFLOP/s'",
    ),
    "unknown-type": ("bf16: 989.4", "bf17: 989.4", 13, r"no compute type 'bf17'; there are: fp64"),
    "no-source": (
        "  source: X1 datasheet, 2026, page 1\n", "", 6,
        r"memory has figures and no source",
    ),
    "todo-source": ("X1 datasheet, 2026, page 1", "TODO", 11, r"memory.source .*is no source"),
    "empty-source": ("X1 datasheet, 2026, page 1", "''", 11, r"is no source"),
    "no-sources": ("X1 datasheet, 2026, page 1", "[]", 6, r"memory has figures and no source"),
    "nvlink-both-directions": (
        "bytes_per_s: 450 GB/s", "bytes_per_s: 900 GB/s", 24,
        r"link.bytes_per_s .*both directions added",
    ),
    "pcie-both-directions": (
        "bytes_per_s: 63 GB/s", "bytes_per_s: 128 GB/s", 30,
        r"pcie.bytes_per_s .*63.0 GB/s per direction.*both directions",
    ),
    "unquoted": ('"9.0"', "9.0", 5, r"compute_capability needs text; write it in quotes"),
    "fraction": ("domain: 8", "domain: 8.5", 25, r"link.domain needs a whole number"),
    "no-domain": ("domain: 8", "domain: 0", 25, r"link.domain cannot be 0"),
    "unknown-kind": ("kind: gpu", "kind: toaster", 4, r"kind cannot be 'toaster'"),
    "no-id": ("id: x1\n", "", 1, r"id is missing"),
    "hostile-id": ("id: x1", "id: ../x1", 1, r"id cannot be"),
    "alias": ("vendor: NVIDIA", "vendor: *v", 3, r"anchors and aliases"),
    "group-is-number": (
        "memory:\n", "memory: 5\nignored:\n", 6,
        r"memory needs a mapping of fields",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_named_with_its_line(tmp_path, old, new, line, message):
    assert GOOD.count(old) >= 1
    with pytest.raises(SpecError, match=rf"x1.yaml:{line}: .*{message}") as caught:
        load_accelerator(write(tmp_path, GOOD.replace(old, new, 1)))
    assert "\n" not in str(caught.value)


def test_fp16_accumulate_has_its_own_place(tmp_path):
    """The GeForce headline (NVIDIA Ada whitepaper v2.1, appendix A: 330.3 against 165.2)."""
    text = (
        "id: g\nname: G\nvendor: NVIDIA\nkind: gpu\ncompute:\n  source: whitepaper, table 3\n"
        "  flop_per_s:\n    bf16: 165.2 TFLOP/s\n    fp16: 330.3 TFLOP/s\n"
    )
    with pytest.raises(SpecError, match=r"x1.yaml:9: .*flop_per_s_fp16_accumulate"):
        load_accelerator(write(tmp_path, text))


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "just text", "5"])
def test_a_file_that_is_no_mapping(tmp_path, text):
    with pytest.raises(SpecError, match="a spec is a mapping of fields"):
        load_accelerator(write(tmp_path, text))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(SpecError, match="no spec file"):
        load_accelerator(str(tmp_path / "gone.yaml"))
    with pytest.raises(SpecError, match="is a folder"):
        load_accelerator(tmp_path)
    with pytest.raises(UnknownNameError, match="not int"):
        load_accelerator(5)  # type: ignore[arg-type]


def test_an_incomplete_spec_loads_and_what_needs_the_figure_refuses(tmp_path):
    spec = load_accelerator(write(tmp_path, "id: bare\nname: Bare\nvendor: ACME\nkind: npu\n"))
    with pytest.raises(MissingDataError, match="bare has no sourced memory bandwidth"):
        spec.memory_bandwidth()
    with pytest.raises(MissingDataError, match="bare has no sourced peak"):
        spec.peak_flop_per_s("bf16")
    with pytest.raises(MissingDataError, match="bare has no sourced memory size"):
        spec.usable_memory()
    with pytest.raises(UnsupportedError, match="no scale-up link"):
        spec.link_bandwidth()


def test_a_changed_file_is_read_again(tmp_path):
    path = write(tmp_path, GOOD)
    assert load_accelerator(path).memory_bandwidth() == 3.35e12
    write(tmp_path, GOOD.replace("3.35 TB/s", "3.3500001 TB/s"))
    assert load_accelerator(path).memory_bandwidth() == 3.3500001e12


def test_base_units_round_trip(tmp_path):
    spec = load_accelerator(write(tmp_path, GOOD))
    assert Accelerator.model_validate(spec.model_dump()) == spec
    assert Accelerator.model_validate_json(spec.model_dump_json()) == spec


@given(st.floats(min_value=1, max_value=9999), st.sampled_from(["GB", "GiB"]))
def test_a_size_means_what_its_unit_says(number, unit):
    """GB = 10⁹ and GiB = 2³⁰ (IEC 80000-13)."""
    size = read_quantity(f"{number!r} {unit}", "B", 0, 1e15, from_file=True)
    assert size == pytest.approx(number * {"GB": 10**9, "GiB": 2**30}[unit], rel=1e-12)


@given(st.text(max_size=40))
def test_any_text_for_a_rate_is_read_or_refused_in_words(text):
    with suppress(InputError):
        assert read_quantity(text, "B/s", 1, 1e15, from_file=True) >= 1


_LINES = GOOD.splitlines()
_ODD = st.sampled_from(
    ["null", "[]", "{}", "[1]", "{a: 1}", "-1", "1e400", "''", "true", "2**80", "'\\u0000'", "~",
     "9" * 400, "x" * 5000, "1 " + " " * 3000 + "GB", "٣ GB", "½ GB", "0x10 GB", "1e-400 GB"]
)  # fmt: skip


@given(st.integers(0, len(_LINES) - 1), _ODD)
def test_any_odd_value_is_read_or_refused_in_one_line(tmp_path_factory, line, value):
    """No value of any field gives anything but a spec or a SpecError."""
    lines = list(_LINES)
    lines[line] = f"{lines[line].split(':')[0]}: {value}"
    path = tmp_path_factory.mktemp("odd") / "x1.yaml"
    path.write_text("\n".join(lines))
    said = ""
    try:
        load_accelerator(path)
    except SpecError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) < 600
