"""Cost, ownership and power against published arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.economics.cost import (
    break_even_tokens_per_month,
    break_even_utilisation,
    gpu_hours_per_million_tokens,
    token_prices,
    usd_per_million,
    usd_per_million_tokens,
    usd_per_month,
    usd_per_terabyte_per_s_hour,
    usd_per_tflop_hour,
)
from roofline.economics.ownership import Ownership, ownership_of, rent_or_buy_months
from roofline.economics.power import capped_roofs, deployment_power, draw_w, joules_per_token
from roofline.economics.prices import price_table
from roofline.errors import InputError, MissingDataError
from roofline.hardware.accelerator import load_accelerator


@pytest.mark.parametrize(
    ("spec_id", "usd", "printed"),
    [
        ("h100-sxm5-80gb", 2.5, 0.00253),
        ("rtx-4090", 0.4, 0.00242),
        ("a100-sxm4-80gb", 1.5, 0.00481),
    ],
)
def test_the_corrected_price_table(spec_id, usd, printed):
    """A published comparison divided by 756, 312 and 330 TFLOP/s; dense with fp32 accumulation
    the peaks are 989.4, 312 and 165.2 (NVIDIA datasheets), so the order of the first two turns."""
    peak = load_accelerator(spec_id).peak_flop_per_s("bf16")
    assert usd_per_tflop_hour(usd, peak) == pytest.approx(printed, rel=0.003)


def test_effective_cost_ranks_otherwise():
    """Measured shares, ml-engineering's accelerator table (2026-08): A100 86.9 %, H100 80.3 %,
    MI300X 51.4 % of its 1,307 TFLOP/s. Nominally MI300X at 3 USD beats an H100 at 2.5."""
    nominal = [usd_per_tflop_hour(2.5, 989.4e12), usd_per_tflop_hour(3.0, 1307.4e12)]
    effective = [
        usd_per_tflop_hour(2.5, 989.4e12, 0.803), usd_per_tflop_hour(3.0, 1307.4e12, 0.514)
    ]  # fmt: skip
    assert nominal[1] < nominal[0]
    assert effective[0] < effective[1]


def test_pages_are_not_tokens():
    """allenai/olmocr issue 249: 32.82 s at 0.001097 USD/s gave 2,190 tokens on 3 pages."""
    usd = 32.82 * 0.001097
    assert usd_per_million(usd, 2190) == pytest.approx(16.44, rel=0.001)
    assert usd_per_million(usd, 3) == pytest.approx(12_001, rel=0.001)


def test_utilisation_is_part_of_the_price():
    """inference-perf issue 139: four GPUs at 2.5 USD, 3,000 tokens/s: 0.926, at 30 % 3.09."""
    assert usd_per_million_tokens(10, 3000) == pytest.approx(0.926, rel=0.001)
    assert usd_per_million_tokens(10, 3000, 0.3) == pytest.approx(3.09, rel=0.002)
    assert gpu_hours_per_million_tokens(4, 3000) == pytest.approx(0.3704, rel=0.001)


def test_bandwidth_by_hand():
    assert usd_per_terabyte_per_s_hour(3.6, 4.8e12, 0.9) == pytest.approx(0.8333, rel=0.001)


def test_input_and_output_add_up_to_the_bill():
    """An hour of 36,000 requests at 36 USD: what all tokens pay is the 36 USD again."""
    both = token_prices(
        36.0, requests_per_s=10, input_tokens=1000, output_tokens=100, prefill_share=0.25,
        utilisation=0.5,
    )  # fmt: skip
    requests = 10 * 3600 * 0.5
    paid = requests * (1000 * both.input_usd + 100 * both.output_usd) / 1e6
    assert paid == pytest.approx(36.0)
    assert requests * 1100 * both.blended_usd / 1e6 == pytest.approx(36.0)
    assert requests * 100 * both.all_on_output_usd / 1e6 == pytest.approx(36.0)


def test_break_even():
    """A machine at 0.9 USD per million at full load against an API at 3 USD: at 30 % load."""
    assert break_even_utilisation(0.9, 3.0) == pytest.approx(0.3)
    assert break_even_tokens_per_month(10.0, 2.0) == pytest.approx(3.65e9)
    assert usd_per_month(1.0) == 730


def test_arrays_equal_scalars():
    prices, rates = np.array([1.0, 2.0, 8.0]), np.array([10.0, 500.0, 3000.0])
    together = usd_per_million_tokens(prices, rates)
    alone = [usd_per_million_tokens(float(p), float(r)) for p, r in zip(prices, rates, strict=True)]
    np.testing.assert_array_equal(together, alone)


@given(st.floats(0.01, 1000), st.floats(0.01, 1000), st.floats(1, 1e6))
def test_a_cheaper_price_never_costs_more(price_a, price_b, rate):
    low, high = sorted((price_a, price_b))
    assert usd_per_million_tokens(low, rate) <= usd_per_million_tokens(high, rate)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: usd_per_million_tokens(0, 10), "usd_per_hour needs to be above 0"),
        (lambda: usd_per_million_tokens(1, 10, 1.2), "utilisation is a share"),
        (lambda: usd_per_million_tokens(1, 10, 0), "utilisation"),
        (lambda: usd_per_tflop_hour(math.nan, 1e12), "usd_per_hour"),
        (lambda: usd_per_tflop_hour(True, 1e12), "usd_per_hour"),
        (lambda: Ownership(purchase_usd=-1), "purchase_usd"),
        (lambda: Ownership(purchase_usd=1, pue=0.9), "pue needs to be at least 1"),
        (lambda: Ownership(purchase_usd=1, years=0), "above 0"),
        (lambda: Ownership(purchase_usd=1, residual_usd=2), "above the purchase"),
        (lambda: draw_w(700, busy_share=1.1), "busy_share"),
        (lambda: joules_per_token(600, 0, 10), "above 0"),
        (lambda: token_prices(1, requests_per_s=1, input_tokens=1, output_tokens=1,
                              prefill_share=2), "prefill_share"),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_owned_by_hand():
    """350,400 USD over 35,040 hours is 10 USD; 10 kW × 1.5 × 0.10 USD/kWh is 1.5 USD an hour."""
    owned = Ownership(
        purchase_usd=350_400, years=4, power_w=10_000, pue=1.5, usd_per_kwh=0.10,
        hosting_usd_per_month=730, staff_usd_per_month=1460,
    )  # fmt: skip
    assert owned.usd_per_hour == pytest.approx(10 + 1.5 + 1 + 2)
    assert len(owned.assumptions()) == 3


def test_buying_pays_after_some_months_or_never():
    """73,000 USD against 10 USD an hour, 7,300 a month: ten months without running costs."""
    assert rent_or_buy_months(Ownership(73_000, usd_per_kwh=0.0), 10.0) == pytest.approx(10)
    dear = Ownership(73_000, power_w=1e6, usd_per_kwh=1.0)
    assert rent_or_buy_months(dear, 10.0) == math.inf


def test_ownership_from_the_table():
    (row,) = price_table().offers("mi300x", "owned")
    owned = ownership_of(row, power_w=750)
    assert owned.purchase_usd == 15_000
    rented = price_table().offers("t4", "on_demand")[0]
    with pytest.raises(MissingDataError, match="no capex_usd"):
        ownership_of(rented, power_w=70)


def test_power_is_of_all_accelerators():
    """Prism harness, cortex pull request 166: 8 × 600 W at 12,000 tokens/s is 0.4 J, not 0.05."""
    assert joules_per_token(600, 8, 12_000) == pytest.approx(0.4)


def test_a_dgx_draws_what_its_datasheet_says():
    """NVIDIA DGX H100 datasheet: 10.2 kW at most, eight boards of 700 W; four fit into 40.8 kW."""
    power = deployment_power(
        accelerators=72, draw_per_accelerator_w=700, tdp_w=700, rack_limit_w=40.8e3,
        output_tokens_per_s=91_728,
    )  # fmt: skip
    assert power.node_w == pytest.approx(10_200, rel=0.002)
    assert (power.nodes, power.racks) == (9, 3)
    assert power.tokens_per_joule == pytest.approx(1.0, rel=0.002)
    assert power.tokens_per_s_per_megawatt == pytest.approx(1e6, rel=0.002)


def test_a_node_above_the_racks_limit():
    with pytest.raises(InputError, match="10,192 W, above the rack's limit of 8,000 W"):
        deployment_power(accelerators=8, draw_per_accelerator_w=700, tdp_w=700, rack_limit_w=8000)


def test_a_power_cap_slows_compute_not_memory():
    """ninfer-3090 pull request 72: at 315 W the memory clock stands at 9,501 MHz; the SM clock
    falls to 1,642 of 1,695 MHz in prefill and 1,507 in decode."""
    prefill = capped_roofs(71e12, 936e9, sm_clock_hz=1642e6, boost_clock_hz=1695e6)
    decode = capped_roofs(71e12, 936e9, sm_clock_hz=1507e6, boost_clock_hz=1695e6)
    assert prefill.compute_factor == pytest.approx(0.969, abs=0.001)
    assert decode.compute_factor == pytest.approx(0.889, abs=0.001)
    assert decode.bytes_per_s == 936e9
