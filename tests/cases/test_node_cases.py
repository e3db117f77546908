"""Cases about links and nodes; expected values are the cases' own (tests/data/cases.jsonl)."""

import pytest

from roofline.diagnose.nvlink import link_health, parse_nvlinks
from roofline.economics.power import joules_per_token


def smi(name, rates):
    lines = [f"GPU 0: {name} (UUID: GPU-0)"]
    lines += [f"\t Link {n}: {'<inactive>' if rate is None else f'{rate} GB/s'}"
              for n, rate in enumerate(rates)]  # fmt: skip
    return "\n".join(lines)


class TestLinksThatAreUp:
    def test_two_of_six_are_down(self, cases):
        """topo-v100-2-links-down"""
        case = cases["topo-v100-2-links-down"]
        rates = [rate if isinstance(rate, float) else None
                 for rate in case["input"]["links"].values()]  # fmt: skip
        (gpu,) = parse_nvlinks(smi("Tesla V100-SXM2-32GB", rates))
        health = link_health(gpu)
        right = case["right_answer"]
        assert gpu.bytes_per_s / 1e9 == pytest.approx(right["GBs"], rel=1e-3)
        assert health.share == pytest.approx(right["share"], abs=1e-3)
        assert health.fault
        assert health.missing == (3, 5)

    def test_twelve_of_eighteen_behind_a_bridge_are_all(self, cases):
        """topo-h100pcie-12-of-18: the bridge wires twelve; 256.6 GB/s are 86 % of 300."""
        case = cases["topo-h100pcie-12-of-18"]
        given, right = case["input"], case["right_answer"]
        rates = [26.562] * given["active_links"]
        rates += [None] * (given["total_links"] - given["active_links"])
        (gpu,) = parse_nvlinks(smi("NVIDIA H100 PCIe", rates))
        health = link_health(gpu)
        assert health.fault is right["fault"]
        assert health.limit_bytes_per_s / 1e9 == pytest.approx(right["limit_GBs"])
        assert health.measured_share(given["measured_p2p_GBs"] * 1e9) == pytest.approx(
            right["share"], abs=1e-3
        )

    def test_the_same_twelve_on_an_sxm_board_are_a_fault(self):
        """The SXM5 board has 18 links (H100 datasheet: 900 GB/s both ways)."""
        (gpu,) = parse_nvlinks(smi("NVIDIA H100 80GB HBM3", [26.562] * 12 + [None] * 6))
        assert link_health(gpu).fault

    def test_a_measured_pair_against_its_bridge(self, cases):
        """topo-h100-pcie-bridge: 115.4 GB/s of 300 a direction; for two ranks busbw is algbw."""
        case = cases["topo-h100-pcie-bridge"]
        given, right = case["input"], case["right_answer"]
        algbw = given["bytes"] / given["time_us"] * 1e6
        assert algbw / 1e9 == pytest.approx(right["algbw"], rel=1e-3)
        assert algbw * 2 * (2 - 1) / 2 == algbw  # busbw = algbw × 2(n − 1)/n
        (gpu,) = parse_nvlinks(smi("NVIDIA H100 PCIe", [26.562] * 12 + [None] * 6))
        assert link_health(gpu).measured_share(algbw) == pytest.approx(right["share"], abs=1e-3)


@pytest.mark.parametrize(("gpus", "joules"), [(8, 0.4), (1, 0.05), (16, 0.8)])
def test_power_is_of_all_accelerators(cases, gpus, joules):
    """power-multi-gpu-mean: 8 × 600 W over 12,000 tok/s; a mean over rows gives an eighth."""
    given = cases["power-multi-gpu-mean"]["input"]
    found = joules_per_token(given["power_per_gpu_W"], gpus, given["tokens_per_s"])
    assert found == pytest.approx(joules)
