"""The catalogue of accelerators: it loads, agrees with itself, and a name finds one variant."""

from pathlib import Path
from statistics import median

import pytest

from roofline.errors import MissingDataError, SpecError, UnknownNameError, UnsupportedError
from roofline.hardware import accelerator, folders
from roofline.hardware.accelerator import accelerator_ids, load_accelerator
from roofline.hardware.consistency import BINARY_OVER_DECIMAL, usable_ratio
from roofline.hardware.folders import data_folders
from roofline.hardware.measurement import measured_ids

# dense 16-bit peak = SMs × clock × FLOP per SM and clock, for these within 3 %
REPRODUCED = (
    "v100-sxm2-16gb", "v100-pcie-16gb", "v100-sxm2-32gb", "v100-pcie-32gb", "t4",
    "a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-40gb", "a100-pcie-80gb", "a30", "a10", "a10g",
    "a40", "rtx-a6000", "rtx-3090", "l4", "l40", "l40s", "rtx-4090", "rtx-6000-ada", "rtx-5090",
    "rtx-pro-6000-bw-ws", "gb200-nvl72", "gb300-nvl72", "gb10-dgx-spark", "mi210", "mi250x",
    "mi300x", "mi300a", "mi325x", "mi350x", "mi355x", "gaudi2",
)  # fmt: skip
# the datasheet rates these at another clock than the boost clock it prints
OTHER_CLOCK = {
    "h100-sxm5-80gb": 1830e6, "h100-pcie-80gb": 1620e6, "h100-nvl-94gb": 1545e6,
    "h800-sxm5-80gb": 1830e6, "h200-sxm-141gb": 1830e6, "h200-nvl-141gb": 1545e6,
    "gh200-96gb": 1830e6, "gh200-144gb": 1830e6, "b200-hgx": 1856e6, "gaudi3": 1750e6,
}  # fmt: skip
NO_DATASHEET = ("generic-cpu",)


@pytest.fixture(autouse=True)
def _no_overlay(monkeypatch):
    monkeypatch.delenv("ROOFLINE_SPEC_PATH", raising=False)


def sixteen_bit(spec):
    return spec.peak_flop_per_s("bf16" if "bf16" in spec.compute_types else "fp16")


@pytest.mark.parametrize("spec_id", accelerator_ids())
def test_every_spec_loads_with_sources(spec_id):
    spec = load_accelerator(spec_id)
    assert spec.id == spec_id
    if spec_id in NO_DATASHEET:
        return
    assert spec.confidence is not None
    assert spec.as_of is not None
    for group in (spec.memory, spec.compute, spec.link):
        assert group.source
    usable, assumption = spec.usable_memory()
    assert 0.75 * spec.memory.marketed_bytes <= usable <= 1.074 * spec.memory.marketed_bytes
    assert (assumption is None) == (spec.memory.usable_bytes is not None)
    assert max(spec.peak_flop_per_s(name) for name in spec.compute_types) > 1e12
    assert not set(spec.compute.unsourced_types) & set(spec.compute_types)


def test_all_64_variants_are_there():
    assert len(accelerator_ids()) - len(NO_DATASHEET) == 64


@pytest.mark.parametrize("spec_id", REPRODUCED)
def test_cores_times_clock_reproduce_the_peak(spec_id):
    """Another route to the datasheet's figure: cores × boost clock × FLOP per core and clock."""
    compute = load_accelerator(spec_id).compute
    derived = compute.sm_count * compute.boost_clock_hz * compute.flop_per_clock_per_sm
    assert sixteen_bit(load_accelerator(spec_id)) == pytest.approx(derived, rel=0.03)


@pytest.mark.parametrize("spec_id", OTHER_CLOCK)
def test_peaks_rated_at_another_clock(spec_id):
    """Tensor clocks of the H100 whitepaper and its successors (1830 MHz SXM, 1620 MHz PCIe)."""
    compute = load_accelerator(spec_id).compute
    derived = compute.sm_count * OTHER_CLOCK[spec_id] * compute.flop_per_clock_per_sm
    assert sixteen_bit(load_accelerator(spec_id)) == pytest.approx(derived, rel=0.003)


def test_every_source_is_a_document():
    for spec_id in accelerator_ids():
        spec = load_accelerator(spec_id)
        for group in (spec.memory, spec.compute, spec.link, spec.pcie, spec.power):
            assert all(len(source) > 15 for source in group.source)


def test_device_names_belong_to_one_variant():
    seen = {}
    for spec_id in accelerator_ids():
        for name in load_accelerator(spec_id).device_names:
            assert seen.setdefault(name.casefold(), spec_id) == spec_id


# usable memory -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec_id", "usable_gib"),
    [("h100-sxm5-80gb", 79.19), ("t4", 14.74), ("mi300x", 191.98), ("l40s", 44.52)],
)
def test_usable_memory_is_what_drivers_show(spec_id, usable_gib):
    """total_memory as torch prints it on these devices, in public logs."""
    assert load_accelerator(spec_id).usable_memory() == (
        pytest.approx(usable_gib * 2**30, rel=1e-9),
        None,
    )


def test_h200_shows_more_than_141_gb_and_less_than_141_gib():
    usable, _ = load_accelerator("h200-sxm-141gb").usable_memory()
    assert usable == 150_109_880_320
    assert 141e9 < usable < 141 * 2**30


def test_the_rule_for_unknown_memory_is_the_median_of_the_known():
    known = {}
    for spec_id in accelerator_ids():
        spec = load_accelerator(spec_id)
        memory = spec.memory
        if spec.vendor in ("NVIDIA", "AMD") and memory.usable_bytes:
            kind = memory.type.split()[0].upper()
            kind = "HBM" if kind.startswith("HBM") else kind if kind == "GDDR6" else "GDDR"
            ratio = memory.usable_bytes / memory.marketed_bytes
            known.setdefault((spec.vendor, kind), []).append(ratio)
    for (vendor, kind), ratios in known.items():
        rule, words = usable_ratio(vendor, {"GDDR": "GDDR7"}.get(kind, kind), 80e9)
        assert rule == pytest.approx(median(ratios), abs=2e-4), (vendor, kind)
        assert "median" in words


def test_a_rule_says_that_it_is_one():
    usable, assumption = load_accelerator("a100-sxm4-80gb").usable_memory()
    assert usable / 2**30 == pytest.approx(79.15, abs=0.3)  # drivers of A100s print 79.15 to 79.33
    assert "80 GB on the box (median of NVIDIA HBM parts with a known figure)" in assumption
    usable, assumption = load_accelerator("apple-m4-max").usable_memory()
    assert usable == pytest.approx(0.75 * 128 * 2**30, rel=1e-9)
    assert "three quarters" in assumption
    assert pytest.approx(1.0737418, rel=1e-7) == BINARY_OVER_DECIMAL


# what a device lacks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec_id", "asked", "has"),
    [
        ("t4", "bf16", "fp64, fp32, fp16, int8, int4"),
        ("t4", "fp8", "fp64, fp32, fp16, int8, int4"),
        ("v100-sxm2-16gb", "bf16", "fp64, fp32, fp16"),
        ("a100-sxm4-80gb", "fp8", "fp64, fp32, tf32, bf16, fp16, int8, int4"),
        ("h100-sxm5-80gb", "fp4", "fp64, fp32, tf32, bf16, fp16, fp8, int8"),
    ],
)
def test_a_missing_compute_type_is_refused_with_what_is_there(spec_id, asked, has):
    with pytest.raises(UnsupportedError, match=f"{spec_id} has no {asked}; it has {has}$"):
        load_accelerator(spec_id).peak_flop_per_s(asked)


def test_unknown_compute_types_are_refused():
    with pytest.raises(UnknownNameError, match="no compute type 'bf17'; did you mean bf16"):
        load_accelerator("t4").peak_flop_per_s("bf17")


def test_the_only_fp16_rate_of_a_p100_is_with_16_bit_accumulation():
    spec = load_accelerator("p100-sxm2-16gb")
    assert spec.peak_flop_per_s("fp16") == 21.2e12
    assert "16-bit accumulation" in spec.peak_assumption("fp16")
    assert load_accelerator("rtx-4090").peak_assumption("fp16") is None


def test_missing_figures_refuse_only_when_needed():
    spec = load_accelerator("ascend-910b")
    assert spec.peak_flop_per_s("bf16") == 376e12
    with pytest.raises(MissingDataError, match="ascend-910b has no sourced memory bandwidth"):
        spec.memory_bandwidth()
    with pytest.raises(MissingDataError, match="m4-max has bf16, but nobody has sourced its peak"):
        load_accelerator("apple-m4-max").peak_flop_per_s("bf16")
    with pytest.raises(MissingDataError, match="rate of its HCCS is not sourced"):
        spec.link_bandwidth()
    with pytest.raises(MissingDataError, match="a CPU takes its roofs from a measured record"):
        load_accelerator("generic-cpu").memory_bandwidth()


def test_specs_can_be_keys():
    first, second = load_accelerator("t4"), load_accelerator("l4")
    assert len({first, second, load_accelerator("T4")}) == 2


# names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "spec_id"),
    [
        ("T4", "t4"),
        ("H200-SXM-141GB", "h200-sxm-141gb"),
        (" h200-sxm-141gb ", "h200-sxm-141gb"),
        ("h100 sxm", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("b200", "b200-hgx"),
        ("RTX 4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("AMD Instinct MI300X", "mi300x"),
        ("A100 SXM4 80GB", "a100-sxm4-80gb"),
        ("TPU v5e", "tpu-v5e"),
        ("GeForce RTX 5090 32GB", "rtx-5090"),
        ("RTX PRO 6000 Blackwell Server 96GB", "rtx-pro-6000-bw-server"),
    ],
)
def test_a_name_that_fits_one_variant(given, spec_id):
    assert load_accelerator(given).id == spec_id


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("h100", "'h100' is several variants; write one of h100-nvl-94gb, h100-pcie-80gb, "),
        ("A100", "write one of a100-pcie-40gb, a100-pcie-80gb, a100-sxm4-40gb, a100-sxm4-80gb"),
        ("a100 80gb", "write one of a100-pcie-80gb, a100-sxm4-80gb"),
        ("h20O-sxm-141gb", "no accelerator 'h20O-sxm-141gb'; did you mean h200-sxm-141gb"),
        ("h300", "no accelerator 'h300'; did you mean"),
        ("141gb", "no accelerator '141gb'; did you mean"),
        ("hgx", "no accelerator 'hgx'"),
        ("", "no accelerator ''; there are:"),
        ("NVIDIA", "no accelerator 'NVIDIA'"),
        ("h100-sxm5-40gb", "no accelerator"),
        ("x" * 100_000, r"no accelerator 'x{77}\.\.\.'"),
    ],
)  # fmt: skip
def test_a_name_that_fits_none_or_several(given, message):
    with pytest.raises(UnknownNameError, match=message):
        load_accelerator(given)


# folders ---------------------------------------------------------------------------------------

MINE = """\
id: {id}
name: Mine
vendor: ACME
kind: gpu
memory: {{bytes_per_s: 1 TB/s, source: my own datasheet}}
"""


def test_the_users_folder_comes_first(tmp_path, monkeypatch):
    (tmp_path / "t4.yaml").write_text(MINE.format(id="t4"))
    (tmp_path / "mine-1.yml").write_text(MINE.format(id="mine-1"))
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    assert load_accelerator("t4").memory_bandwidth() == 1e12
    assert load_accelerator("mine-1").vendor == "ACME"
    assert {"mine-1", "h200-sxm-141gb"} <= set(accelerator_ids())
    assert len(accelerator_ids()) == 66
    monkeypatch.delenv("ROOFLINE_SPEC_PATH")
    assert load_accelerator("t4").memory_bandwidth() == 320e9


def test_several_folders_in_order(tmp_path, monkeypatch):
    for name, vendor in (("one", "ACME"), ("two", "Other")):
        folder = tmp_path / name / "gpu_specs"
        folder.mkdir(parents=True)
        (folder / "t4.yaml").write_text(MINE.format(id="t4").replace("ACME", vendor))
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", f"{tmp_path / 'two'}:{tmp_path / 'one'}")
    assert load_accelerator("t4").vendor == "Other"


def test_a_folder_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path / "gone"))
    with pytest.raises(SpecError, match=r"ROOFLINE_SPEC_PATH has .*gone', which is no folder"):
        load_accelerator("t4")


def test_a_file_whose_id_is_another_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t4.yaml").write_text(MINE.format(id="t5"))
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    with pytest.raises(SpecError, match=r"t4.yaml: holds id 't5'; id and file name must agree"):
        load_accelerator("t4")


def test_an_installed_wheel_finds_its_own_data(tmp_path, monkeypatch):
    """In a wheel the specs lie in roofline/_data, and there is no checkout around it."""
    package = tmp_path / "site-packages" / "roofline"
    specs = package / "_data" / "gpu_specs"
    specs.mkdir(parents=True)
    (specs / "mine-2.yaml").write_text(MINE.format(id="mine-2"))
    monkeypatch.setattr(folders, "PACKAGE", package)
    assert data_folders("gpu_specs") == (specs,)
    assert accelerator_ids() == ("mine-2",)
    assert load_accelerator("mine-2").name == "Mine"


def test_the_example_of_the_docstring_loads(tmp_path):
    text = accelerator.__doc__.split("::", 1)[1].split("Limits ")[0]
    path = Path(tmp_path) / "my-accelerator.yaml"
    path.write_text("\n".join(line.removeprefix("    ") for line in text.splitlines()))
    assert load_accelerator(path).peak_flop_per_s("fp8") == 1e15


def test_the_users_records_come_first_too(tmp_path, monkeypatch):
    (tmp_path / "measurements" / "mine-3").mkdir(parents=True)
    (tmp_path / "measurements" / "mine-3" / "2026-11-01-full.json").write_text("{}")
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    assert {"mine-3", "h200-sxm-141gb"} <= set(measured_ids())
