"""Ownership: what an owned machine costs an hour, and when buying beats renting.

    USD per hour = (purchase − residual) / (years × 8760)
                 + power / 1000 × PUE × USD per kWh + (hosting + staff per month) / 730

Units    USD, year, watt at the socket of the server, USD per kWh; hour.
Limits   Straight-line, without interest or tax. Defaults are averages with a date, and every
         result lists them: PUE 1.54 [1], USD 0.081 per kWh [2], four years.
Sources  [1] Uptime Institute, Global Data Center Survey 2025: average PUE 1.54 (Europe 1.50,
             North America 1.49).
         [2] U.S. EIA, retail sales of electricity, industrial average 2023: 8.1 cents per kWh.
"""

import math
from dataclasses import dataclass

from roofline.economics.price_row import Price
from roofline.errors import InputError, MissingDataError
from roofline.units import HOURS_PER_MONTH, KILO

INDUSTRY_PUE = 1.54
INDUSTRIAL_USD_PER_KWH = 0.081
AMORTISATION_YEARS = 4.0
MONTHS_PER_YEAR = 12


@dataclass(frozen=True)
class Ownership:
    """An owned machine: what it cost, how long it is kept, what it draws, who looks after it.

    >>> cost = Ownership(purchase_usd=350_400, years=4, power_w=10_000, pue=1.5, usd_per_kwh=0.10)
    >>> cost.purchase_usd_per_hour, cost.electricity_usd_per_hour, cost.usd_per_hour
    (10.0, 1.5, 11.5)
    """

    purchase_usd: float
    years: float = AMORTISATION_YEARS
    power_w: float = 0.0
    pue: float = INDUSTRY_PUE
    usd_per_kwh: float = INDUSTRIAL_USD_PER_KWH
    hosting_usd_per_month: float = 0.0
    staff_usd_per_month: float = 0.0
    residual_usd: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (
            ("purchase_usd", 0.0), ("years", 0.0), ("power_w", 0.0), ("pue", 1.0),
            ("usd_per_kwh", 0.0), ("hosting_usd_per_month", 0.0), ("staff_usd_per_month", 0.0),
            ("residual_usd", 0.0),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{name} needs a number, got {value!r}")
            if not math.isfinite(value) or value < least:
                raise InputError(f"{name} needs to be at least {least:g}, got {value!r}")
        if self.purchase_usd <= 0 or self.years <= 0:
            raise InputError(
                f"an owned machine needs purchase_usd and years above 0, got "
                f"{self.purchase_usd!r} and {self.years!r}"
            )
        if self.residual_usd > self.purchase_usd:
            raise InputError(
                f"residual_usd {self.residual_usd:g} is above the purchase, {self.purchase_usd:g}"
            )

    @property
    def purchase_usd_per_hour(self) -> float:
        """Purchase less residual value over the hours it is kept."""
        hours = self.years * MONTHS_PER_YEAR * HOURS_PER_MONTH
        return (self.purchase_usd - self.residual_usd) / hours

    @property
    def electricity_usd_per_hour(self) -> float:
        """Power with the building's share, at the price of electricity."""
        return self.power_w / KILO * self.pue * self.usd_per_kwh

    @property
    def services_usd_per_hour(self) -> float:
        """Hosting and staff."""
        return (self.hosting_usd_per_month + self.staff_usd_per_month) / HOURS_PER_MONTH

    @property
    def usd_per_hour(self) -> float:
        """All of it, every hour, used or not."""
        return (
            self.purchase_usd_per_hour + self.electricity_usd_per_hour + self.services_usd_per_hour
        )

    def assumptions(self) -> tuple[str, ...]:
        """Say in words what the hourly cost rests on."""
        return (
            f"owned: {self.purchase_usd:,.0f} USD over {self.years:g} years, residual "
            f"{self.residual_usd:,.0f}, no interest",
            f"owned: {self.power_w:,.0f} W × PUE {self.pue:g} at {self.usd_per_kwh:g} USD/kWh",
            f"owned: hosting {self.hosting_usd_per_month:,.0f} and staff "
            f"{self.staff_usd_per_month:,.0f} USD a month",
        )

    def to_dict(self) -> dict[str, float]:
        """The parts of the hourly cost."""
        return {
            "purchase_usd_per_hour": self.purchase_usd_per_hour,
            "electricity_usd_per_hour": self.electricity_usd_per_hour,
            "services_usd_per_hour": self.services_usd_per_hour,
            "usd_per_hour": self.usd_per_hour,
        }


def ownership_of(price: Price, *, power_w: float) -> Ownership:
    """Make the ownership of one accelerator from an owned row; its own columns go first.

    Raises:
        MissingDataError: a row without a purchase price.
    """
    if price.capex_usd is None:
        raise MissingDataError(f"{price.spec_id or price.item}: no capex_usd in {price}")
    return Ownership(
        price.capex_usd / price.gpu_count,
        years=price.amort_years or AMORTISATION_YEARS,
        power_w=power_w if price.power_w is None else price.power_w / price.gpu_count,
        pue=price.pue or INDUSTRY_PUE,
        usd_per_kwh=price.usd_per_kwh or INDUSTRIAL_USD_PER_KWH,
        hosting_usd_per_month=(price.colo_usd_month or 0.0) / price.gpu_count,
    )


def rent_or_buy_months(ownership: Ownership, rent_usd_per_hour: float) -> float:
    """Months of use after which buying has cost less than renting; infinity when never.

        months = purchase / (rent − running cost) per month

    >>> own = Ownership(purchase_usd=73_000, years=4, usd_per_kwh=0.0)
    >>> rent_or_buy_months(own, 10.0), rent_or_buy_months(own, 10.0 / 20)
    (10.0, 200.0)
    """
    if not (math.isfinite(rent_usd_per_hour) and rent_usd_per_hour > 0):
        raise InputError(f"rent_usd_per_hour needs to be above 0, got {rent_usd_per_hour!r}")
    running = ownership.electricity_usd_per_hour + ownership.services_usd_per_hour
    saved = (rent_usd_per_hour - running) * HOURS_PER_MONTH
    return ownership.purchase_usd / saved if saved > 0 else math.inf
