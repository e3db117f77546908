"""Pricing: what a number of accelerators costs on the chosen basis, or why nobody can say.

Units    USD per hour.
"""

from dataclasses import dataclass

from roofline.economics.ownership import ownership_of
from roofline.economics.power import NODE_OVERHEAD_SHARE
from roofline.economics.prices import PriceTable
from roofline.errors import MissingDataError
from roofline.hardware.accelerator import Accelerator


@dataclass(frozen=True)
class Pricing:
    """A price table and the basis that is asked of it.

    Args:
        table: offers.
        term: ``on_demand``, ``spot``, ``reserved``, ``1y``, ``3y``, ``owned``, …
        provider, region: only their offers; None: anybody's.
    """

    table: PriceTable
    term: str = "on_demand"
    provider: str | None = None
    region: str | None = None


@dataclass(frozen=True)
class Charge:
    """What accelerators cost an hour, by which offer."""

    usd_per_hour: float
    paid_accelerators: int
    basis: str
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def charge(pricing: Pricing, accelerator: Accelerator, accelerators: int) -> Charge:
    """Price so many accelerators; owned ones by purchase, power and hosting.

    Raises:
        MissingDataError: there is no offer on that basis; nothing is assumed instead.

    >>> from roofline.economics.prices import price_table
    >>> from roofline.hardware.accelerator import load_accelerator
    >>> charge(Pricing(price_table({"t4": 0.5})), load_accelerator("t4"), 4).usd_per_hour
    2.0
    """
    if pricing.term == "owned":
        return _owned(pricing, accelerator, accelerators)
    quote = pricing.table.quote(
        accelerator.id, accelerators, pricing.term,
        provider=pricing.provider, region=pricing.region,
    )  # fmt: skip
    price = quote.price
    words = [f"price of {accelerator.id}: {price} ({price.source_url or 'no source'})"]
    if quote.paid_accelerators > accelerators:
        words.append(
            f"{quote.paid_accelerators} {accelerator.id} are paid for and {accelerators} used: "
            f"instances of {price.gpu_count}"
        )
    if 1 == price.gpu_count < accelerators:
        words.append(
            f"{accelerator.id} is priced one by one: whether a node of them costs the same is "
            "the provider's to say"
        )
    return Charge(
        quote.usd_per_hour, quote.paid_accelerators, str(price), tuple(words), quote.warnings
    )


def _owned(pricing: Pricing, accelerator: Accelerator, accelerators: int) -> Charge:
    offers = pricing.table.offers(
        accelerator.id, "owned", provider=pricing.provider, region=pricing.region
    )
    if not offers:
        raise MissingDataError(
            f"no purchase price of {accelerator.id}; add an owned row with capex_usd to a price "
            "file"
        )
    hourly = [price for price in offers if price.usd_per_hour is not None]
    if hourly:
        price = min(hourly, key=lambda one: one.usd_per_accelerator_hour or 0.0)
        each = price.usd_per_accelerator_hour or 0.0
        return Charge(each * accelerators, accelerators, str(price), (f"owned: {price}",))
    price = min(offers, key=lambda one: (one.capex_usd or 0.0) / one.gpu_count)
    if price.power_w is None and accelerator.power.tdp_w is None:
        raise MissingDataError(
            f"{accelerator.id} has no sourced TDP; give power_w in the owned row"
        )
    watts = (accelerator.power.tdp_w or 0.0) * (1 + NODE_OVERHEAD_SHARE)
    owned = ownership_of(price, power_w=watts)
    words = (f"price of {accelerator.id}: {price} ({price.source_url})", *owned.assumptions())
    return Charge(owned.usd_per_hour * accelerators, accelerators, str(price), words)
