"""Cost: what compute, bandwidth and tokens cost at an hourly price.

    USD per TFLOP-hour       = USD per hour / (peak × achieved share)
    USD per TB/s-hour        = USD per hour / (bandwidth × achieved share)
    USD per million tokens   = USD per hour / (tokens per second × 3600 × utilisation) × 10⁶

Shapes   numbers or arrays; results have the shape that the arguments broadcast to.
Units    USD, hour, token; peaks in FLOP per second, bandwidth in bytes per second.
Limits   A price per token means nothing without its utilisation and without saying whether input
         tokens are counted; both are arguments here. GPU-hours go beside every sum of money.
"""

import math
from dataclasses import dataclass

import numpy as np

from roofline.errors import InputError
from roofline.units import HOURS_PER_MONTH, MILLION, SECONDS_PER_HOUR, TERA, Numeric, as_float


def usd_per_tflop_hour(
    usd_per_hour: Numeric, flop_per_s: Numeric, achieved_share: Numeric = 1.0
) -> Numeric:
    """Cost of a TFLOP/s held for an hour: nominal at a share of 1, else effective.

    Raises:
        InputError: a price, peak or share that is not above 0.

    >>> usd_per_tflop_hour(2.5, 989.4e12)  # H100 SXM, dense bf16
    0.00253
    """
    _above_zero(usd_per_hour=usd_per_hour, flop_per_s=flop_per_s, achieved_share=achieved_share)
    return as_float(np.asarray(usd_per_hour / (flop_per_s / TERA * achieved_share)))


def usd_per_terabyte_per_s_hour(
    usd_per_hour: Numeric, bytes_per_s: Numeric, achieved_share: Numeric = 1.0
) -> Numeric:
    """Cost of a TB/s of memory bandwidth held for an hour.

    >>> usd_per_terabyte_per_s_hour(2.4, 4.8e12)
    0.5
    """
    _above_zero(usd_per_hour=usd_per_hour, bytes_per_s=bytes_per_s, achieved_share=achieved_share)
    return as_float(np.asarray(usd_per_hour / (bytes_per_s / TERA * achieved_share)))


def usd_per_million(usd: Numeric, count: Numeric) -> Numeric:
    """Cost of a million of what ``count`` counts: tokens and pages are different counts.

    >>> usd_per_million(0.036, 2190)
    16.4
    """
    _above_zero(usd=usd, count=count)
    return as_float(np.asarray(usd / count * MILLION))


def usd_per_million_tokens(
    usd_per_hour: Numeric, tokens_per_s: Numeric, utilisation: Numeric = 1.0
) -> Numeric:
    """Cost of a million tokens of the kind counted, at a share of the hours' full load.

    Raises:
        InputError: a price or rate that is not above 0, a utilisation outside (0, 1].

    >>> usd_per_million_tokens(4 * 2.5, 3000), usd_per_million_tokens(4 * 2.5, 3000, 0.3)
    (0.926, 3.086)
    """
    _above_zero(usd_per_hour=usd_per_hour, tokens_per_s=tokens_per_s)
    _share("utilisation", utilisation)
    return usd_per_million(usd_per_hour, tokens_per_s * SECONDS_PER_HOUR * utilisation)


def gpu_hours_per_million_tokens(
    accelerators: Numeric, tokens_per_s: Numeric, utilisation: Numeric = 1.0
) -> Numeric:
    """Accelerator-hours that a million tokens take: the cost without a price.

    >>> gpu_hours_per_million_tokens(4, 3000)
    0.37
    """
    return usd_per_million_tokens(accelerators, tokens_per_s, utilisation)


@dataclass(frozen=True)
class TokenPrices:
    """USD per million tokens: input and output apart, and all of it laid on the output."""

    input_usd: float
    output_usd: float
    all_on_output_usd: float
    blended_usd: float
    utilisation: float


def token_prices(
    usd_per_hour: float,
    *,
    requests_per_s: float,
    input_tokens: float,
    output_tokens: float,
    prefill_share: float,
    utilisation: float = 1.0,
) -> TokenPrices:
    """Divide an hourly price among input and output tokens by the machine time each takes.

        input  = price × prefill share / input tokens,  output = price × (1 − share) / output tokens

    Args:
        usd_per_hour: of everything that serves these requests.
        requests_per_s: rate at full load.
        input_tokens: mean prompt, cached tokens included.
        output_tokens: mean answer.
        prefill_share: share of busy time that prefill takes.
        utilisation: share of full load that is really there.

    >>> both = token_prices(36.0, requests_per_s=10, input_tokens=1000, output_tokens=100,
    ...                     prefill_share=0.25)
    >>> both.input_usd, both.output_usd, both.all_on_output_usd
    (0.25, 7.5, 10.0)
    """
    if not 0 <= prefill_share <= 1:
        raise InputError(f"prefill_share needs to be 0 to 1, got {prefill_share!r}")
    rate_in, rate_out = requests_per_s * input_tokens, requests_per_s * output_tokens
    whole_in = usd_per_million_tokens(usd_per_hour, rate_in, utilisation)
    whole_out = usd_per_million_tokens(usd_per_hour, rate_out, utilisation)
    blended = usd_per_million_tokens(usd_per_hour, rate_in + rate_out, utilisation)
    return TokenPrices(
        float(whole_in * prefill_share),
        float(whole_out * (1 - prefill_share)),
        float(whole_out),
        float(blended),
        float(utilisation),
    )


def usd_per_month(usd_per_hour: Numeric) -> Numeric:
    """Cost of a month of 730 hours, used or not.

    >>> usd_per_month(10.0)
    7300.0
    """
    return usd_per_hour * HOURS_PER_MONTH


def break_even_utilisation(own_usd_per_million: float, api_usd_per_million: float) -> float:
    """Share of full load above which one's own machine is cheaper than an API.

        share = own price at full load / API price, of the same count of tokens

    Returns infinity's honest form: above 1 means that the API is cheaper at any load.

    >>> break_even_utilisation(0.9, 3.0)
    0.3
    """
    _above_zero(own_usd_per_million=own_usd_per_million, api_usd_per_million=api_usd_per_million)
    return own_usd_per_million / api_usd_per_million


def break_even_tokens_per_month(usd_per_hour: float, api_usd_per_million: float) -> float:
    """Tokens a month whose API bill equals a machine that is paid for all month.

    >>> break_even_tokens_per_month(10.0, 2.0) / 1e9
    3.65
    """
    _above_zero(usd_per_hour=usd_per_hour, api_usd_per_million=api_usd_per_million)
    return float(usd_per_month(usd_per_hour)) / api_usd_per_million * MILLION


def _above_zero(**values: Numeric) -> None:
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype == bool or not np.all(np.isfinite(array)) or np.any(array <= 0):
            raise InputError(f"{name} needs to be above 0, got {value!r}")


def _share(name: str, value: Numeric) -> None:
    _above_zero(**{name: value})
    if np.any(np.asarray(value) > 1 + 1e-12) or (np.ndim(value) == 0 and math.isnan(float(value))):
        raise InputError(f"{name} is a share, above 0 and at most 1, got {value!r}")
