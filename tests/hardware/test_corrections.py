"""Errors that published GPU tables and sizing articles repeat, with the right figure.

Each expected value is the vendor's datasheet or an arithmetic identity on it, never our files.
"""

import pytest

from roofline.hardware.accelerator import load_accelerator
from roofline.hardware.links import load_link
from roofline.units import parse


@pytest.mark.parametrize(
    ("spec_id", "compute_type", "tflop_per_s", "wrong"),
    [
        pytest.param("h100-sxm5-80gb", "fp16", 989.4, 756, id="H100 SXM, with PCIe's peak"),
        pytest.param("h100-sxm5-80gb", "fp8", 1978.9, 1513, id="H100 SXM, with PCIe's FP8"),
        pytest.param("h100-pcie-80gb", "bf16", 756.5, 989.4, id="H100 PCIe"),
        pytest.param("h200-sxm-141gb", "fp16", 989.4, 756, id="H200 FP16"),
        pytest.param("h200-sxm-141gb", "fp8", 1978.9, 1513, id="H200 FP8"),
        pytest.param("l40s", "fp8", 733, 725, id="L40S FP8: 724 is the L40's sparse figure"),
        pytest.param("rtx-4090", "fp16", 165.2, 330.3, id="4090 FP16 with 16-bit accumulation"),
        pytest.param("rtx-4090", "bf16", 165.2, 330.3, id="4090 BF16"),
        pytest.param("rtx-4090", "fp8", 330.3, 660.6, id="4090 FP8 with 16-bit accumulation"),
        pytest.param("v100-pcie-16gb", "fp16", 112, 125, id="V100 PCIe with SXM2's peak"),
        pytest.param("a10g", "bf16", 70, 125, id="A10G with the A10's peak"),
        pytest.param("a30", "tf32", 82, 165, id="A30 TF32 sparse"),
        pytest.param("b300-hgx", "int8", 150, 4500, id="B300 INT8 of the B200"),
    ],
)
def test_dense_peaks(spec_id, compute_type, tflop_per_s, wrong):
    """NVIDIA datasheets and whitepapers of each part, dense columns."""
    peak = load_accelerator(spec_id).peak_flop_per_s(compute_type)
    assert peak == tflop_per_s * 1e12
    assert peak != wrong * 1e12


def test_the_4090_headline_is_kept_apart():
    """Ada whitepaper v2.1, appendix A, footnote 4: FP16 accumulation."""
    accumulate = load_accelerator("rtx-4090").compute.flop_per_s_fp16_accumulate
    assert accumulate == {"fp16": 330.3e12, "fp8": 660.6e12}


@pytest.mark.parametrize(
    ("spec_id", "bandwidth"),
    [
        ("a100-sxm4-80gb", "2039 GB/s"),
        ("a100-pcie-80gb", "1935 GB/s"),
        ("a100-sxm4-40gb", "1555 GB/s"),
        ("h100-sxm5-80gb", "3.35 TB/s"),
        ("h100-pcie-80gb", "2039 GB/s"),
        ("h200-sxm-141gb", "4.8 TB/s"),
        ("b200-hgx", "7.7 TB/s"),
        ("mi300x", "5.3 TB/s"),
        ("rtx-pro-6000-bw-server", "1597 GB/s"),
        ("t4", "320 GB/s"),
    ],
)
def test_bandwidth_belongs_to_one_variant(spec_id, bandwidth):
    """A100 datasheet: 2039 GB/s is the 80 GB SXM part, 1.6 TB/s the 40 GB one."""
    assert load_accelerator(spec_id).memory_bandwidth() == parse(bandwidth, "B/s")


@pytest.mark.parametrize(
    ("spec_id", "ridge"),
    [
        ("a100-sxm4-80gb", 153), ("a100-pcie-80gb", 161), ("a100-sxm4-40gb", 201), ("t4", 203),
        ("h20-96gb", 37),
    ],
)  # fmt: skip
def test_ridge_points(spec_id, ridge):
    """A100 datasheet: 312 / 2.039, 312 / 1.935, 312 / 1.555; T4 datasheet: 65 / 0.32."""
    spec = load_accelerator(spec_id)
    assert round(spec.peak_flop_per_s("fp16") / spec.memory_bandwidth()) == ridge


def test_l40s_board():
    """NVIDIA L40S table: 350 W (the L40 has 300), PCIe 4.0 x16 (64 GB/s both ways), no NVLink."""
    spec = load_accelerator("l40s")
    assert spec.power.tdp_w == 350
    assert load_accelerator("l40").power.tdp_w == 300
    assert (spec.pcie.generation, spec.pcie.lanes) == (4, 16)
    assert 2 * spec.pcie.bytes_per_s == pytest.approx(64e9, rel=0.02)  # 128b/130b coding
    assert spec.link.bytes_per_s is None
    assert spec.link.kind is None


def test_h100_boards_differ():
    """H100 table: 700 W SXM, 350 W PCIe; 900 and 600 GB/s of NVLink, both directions."""
    sxm, pcie = load_accelerator("h100-sxm5-80gb"), load_accelerator("h100-pcie-80gb")
    assert (sxm.power.tdp_w, pcie.power.tdp_w) == (700, 350)
    assert (2 * sxm.link_bandwidth(), 2 * pcie.link_bandwidth()) == (900e9, 600e9)
    assert (sxm.link.domain, pcie.link.domain) == (8, 2)
    assert 8 * sxm.power.tdp_w == 5600  # the GPUs of a node alone; the node takes about 10 kW


@pytest.mark.parametrize(
    ("link", "both_directions_gb_per_s"),
    [
        ("pcie-3.0-x16", 31.5), ("pcie-4.0-x16", 63), ("pcie-5.0-x16", 126), ("nvlink-2", 300),
        ("nvlink-3", 600), ("nvlink-4", 900), ("nvlink-5", 1800),
    ],
)  # fmt: skip
def test_link_rates_are_per_direction(link, both_directions_gb_per_s):
    """NVIDIA's NVLink page and PCI-SIG print the sum of both directions."""
    assert load_link(link).bytes_per_s == both_directions_gb_per_s / 2 * 1e9


def test_nvlink_3_is_600_per_gpu_not_per_link():
    """A100 whitepaper: 12 links of 50 GB/s, both directions."""
    assert 2 * load_link("nvlink-3").bytes_per_s / 12 == 50e9


def test_nvlink_over_pcie_in_the_same_direction():
    """300 / 31.5 = 9.5 (A100), 450 / 63 = 7.1 (H100): not 30 ×."""
    for spec_id, ratio in (("a100-sxm4-80gb", 9.5), ("h100-sxm5-80gb", 7.1)):
        spec = load_accelerator(spec_id)
        assert spec.link_bandwidth() / spec.pcie.bytes_per_s == pytest.approx(ratio, abs=0.05)


def test_gigabit_is_an_eighth_of_a_gigabyte():
    """140 GB over 1 Gb/s take 1,120 s, not 140; a ring of 8 moves 2 × 7/8 × 140 GB: 1,960 s."""
    gigabit = parse("1 Gb/s", "B/s")
    assert gigabit == 0.125e9
    assert 140e9 / gigabit == 1120
    assert 2 * 7 / 8 * 140e9 / gigabit == 1960


def test_all_reduce_of_140_gb_on_a_node_of_a100():
    """235 GB/s of bus bandwidth measured by nccl-tests: 245 GB in about 1.04 s; 0.82 s nominal."""
    link = load_link("nvlink-3")
    ring_bytes = 2 * 7 / 8 * 140e9
    assert ring_bytes == 245e9
    assert ring_bytes / link.bytes_per_s == pytest.approx(0.82, abs=0.005)
    assert ring_bytes / link.achieved_bytes_per_s == pytest.approx(1.04, abs=0.01)


@pytest.mark.parametrize(
    ("spec_id", "usd_per_hour", "usd_per_tflop_hour"),
    [
        ("h100-sxm5-80gb", 2.5, 0.00253),
        ("rtx-4090", 0.4, 0.00242),
        ("a100-sxm4-80gb", 1.5, 0.00481),
    ],
)
def test_the_4090_is_no_cheaper_per_peak(spec_id, usd_per_hour, usd_per_tflop_hour):
    """2.5 / 989.4, 0.4 / 165.2, 1.5 / 312: the wrong peaks gave 0.0033 and 0.0012."""
    peak = load_accelerator(spec_id).peak_flop_per_s("bf16") / 1e12
    assert usd_per_hour / peak == pytest.approx(usd_per_tflop_hour, abs=5e-6)


def test_flop_per_core_and_clock():
    """A100: 4 tensor cores a SM × 256 multiply-adds = 2,048 FLOP (V100: 8 × 64; H100: 4 × 512)."""
    for spec_id, cores, multiply_adds in (
        ("v100-sxm2-16gb", 8, 64), ("a100-sxm4-80gb", 4, 256), ("h100-sxm5-80gb", 4, 512),
    ):  # fmt: skip
        per_clock = load_accelerator(spec_id).compute.flop_per_clock_per_sm
        assert per_clock == cores * multiply_adds * 2


def test_a_matmul_of_4096():
    """4096³ multiply-adds are 137.4 GFLOP: a CPU of 2 to 4 TFLOP/s takes 34 to 69 ms, not 2 s."""
    flop = 2 * 4096**3
    assert flop == pytest.approx(137.4e9, rel=1e-3)
    assert flop / parse("4 TFLOP/s", "FLOP/s") == pytest.approx(0.034, abs=0.0005)
    assert flop / parse("2 TFLOP/s", "FLOP/s") == pytest.approx(0.069, abs=0.0005)


def test_a_feed_forward_matrix_on_an_a100():
    """4096 × 11008 in 16 bit are 90.2 MB: 44.2 µs at 2,039 GB/s, not 88; q takes 16.5 µs."""
    bandwidth = load_accelerator("a100-sxm4-80gb").memory_bandwidth()
    assert 2 * 4096 * 11008 / bandwidth == pytest.approx(44.2e-6, abs=0.05e-6)
    assert 2 * 4096 * 4096 / bandwidth == pytest.approx(16.5e-6, abs=0.05e-6)


def test_t4_as_in_its_datasheet():
    """NVIDIA T4 datasheet: 65 TFLOP/s FP16, 8.1 FP32, 130 INT8, 320 GB/s, 70 W."""
    spec = load_accelerator("t4")
    assert [spec.peak_flop_per_s(kind) / 1e12 for kind in ("fp16", "fp32", "int8")] == [
        65,
        8.1,
        130,
    ]
    assert spec.power.tdp_w == 70


def test_domains_of_racks_and_nodes():
    """GB200 NVL72 joins 72 GPUs, an HGX B200 eight; a pair of PCIe cards two."""
    domains = [
        load_accelerator(x).link.domain for x in ("gb200-nvl72", "b200-hgx", "a100-pcie-80gb")
    ]
    assert domains == [72, 8, 2]
