"""Device names as NVML and torch print them, and devices that must stay unknown."""

import pytest

from roofline.hardware.accelerator import accelerator_ids, load_accelerator
from roofline.hardware.names import identify, unidentified_hint

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("name", "memory_bytes", "spec_id"),
    [
        ("NVIDIA H200", 143_771 * MIB, "h200-sxm-141gb"),  # nvidia-smi
        ("NVIDIA H200", 150_109_880_320, "h200-sxm-141gb"),  # torch
        ("NVIDIA H100 80GB HBM3", 81_559 * MIB, "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", 79.11 * GIB, "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", 99_456_909_312, "h100-nvl-94gb"),
        ("NVIDIA H800", 79.1 * GIB, "h800-sxm5-80gb"),
        ("NVIDIA GH200 480GB", 97_280 * MIB, "gh200-96gb"),  # 480 GB is the CPU's memory
        ("NVIDIA B300 SXM6 AC", 275_040 * MIB, "b300-hgx"),
        ("NVIDIA B200", 182_642 * MIB, "b200-hgx"),
        ("NVIDIA A100-SXM4-40GB", 39.4 * GIB, "a100-sxm4-40gb"),
        ("NVIDIA A100-SXM4-80GB", 79.15 * GIB, "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", 79.25 * GIB, "a100-pcie-80gb"),
        ("NVIDIA_A100_80GB_PCIe", 79.25 * GIB, "a100-pcie-80gb"),
        ("  nvidia   a10g ", 22_587 * MIB, "a10g"),
        ("Tesla T4", 15_079 * MIB, "t4"),
        ("NVIDIA L40S", 45_589 * MIB, "l40s"),
        ("NVIDIA GeForce RTX 4090", 24_563 * MIB, "rtx-4090"),
        ("AMD Instinct MI300X", 191.98 * GIB, "mi300x"),
        ("Tesla V100-SXM2-16GB", 15.75 * GIB, "v100-sxm2-16gb"),
        ("Apple M4 Max", 128 * GIB, "apple-m4-max"),
    ],
)
def test_devices_as_drivers_show_them(name, memory_bytes, spec_id):
    """Names and memory from nvidia-smi and torch printouts in public logs."""
    assert identify(name, memory_bytes) == spec_id


@pytest.mark.parametrize(
    ("name", "memory_bytes"),
    [
        ("NVIDIA H100", 79.1 * GIB),  # no driver says so
        ("NVIDIA H200 NVL 2g", 139 * GIB),
        ("NVIDIA H20-3e", 140 * GIB),
        ("NVIDIA GeForce RTX 4090 D", 24 * GIB),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16 * GIB),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 95 * GIB),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 9.5 * GIB),
        ("NVIDIA A100-SXM4-80GB MIG 7g.80gb", 79 * GIB),
        ("NVIDIA A100-SXM4-80GB", 39 * GIB),  # a variant nobody has sourced
        ("NVIDIA A100-SXM4-80GB", 96 * GIB),
        ("AMD Instinct MI250X", 64 * GIB),  # one die of two
        ("Apple M4 Max", 64 * GIB),
        ("", 80 * GIB),
        ("NVIDIA H200", float("nan")),
        ("NVIDIA H200", float("inf")),
        ("NVIDIA H200", 0),
        ("NVIDIA H200", -1),
        ("NVIDIA H200", True),
        ("x" * 100_000, 80 * GIB),
    ],
)
def test_what_stays_unknown(name, memory_bytes):
    assert identify(name, memory_bytes) is None
    hint = unidentified_hint(name, memory_bytes)
    assert "\n" not in hint
    assert "--spec" in hint


def test_every_spec_with_a_name_finds_itself():
    """Another route: the usable memory of a spec, known or by rule, is what its driver shows."""
    for spec_id in accelerator_ids():
        spec = load_accelerator(spec_id)
        if spec.vendor == "Apple":  # three quarters of it are usable; the name shows all
            continue
        for name in spec.device_names:
            assert identify(name, spec.usable_memory()[0] * 0.999) == spec_id


def test_the_limits_of_memory():
    """0.90 to 1.05 of the size on the box, 80 GiB here."""
    name = "NVIDIA H100 80GB HBM3"
    found = [identify(name, share * 80 * GIB) for share in (0.89, 0.91, 1.04, 1.06)]
    assert found == [None, "h100-sxm5-80gb", "h100-sxm5-80gb", None]


def test_hints_say_what_is_known():
    assert "partition (MIG)" in unidentified_hint("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10 * GIB)
    assert "64.0 GiB of memory, not about 128 GB" in unidentified_hint(
        "AMD Instinct MI250X", 64 * GIB
    )
    assert "(80.0 GiB and 99 SMs)" in unidentified_hint("NVIDIA X", 80 * GIB, 99)


def test_a_broken_file_of_the_user_hides_no_device(tmp_path, monkeypatch):
    (tmp_path / "broken.yaml").write_text("id: [")
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    assert identify("Tesla T4", 15_079 * MIB) == "t4"
