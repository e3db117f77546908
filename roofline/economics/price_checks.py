"""Price checks: offers against each other, the known specs and the calendar.

Units    USD per hour.
Sources  Rules of thumb: nodes have 4 or 8 accelerators, and offers of one kind and term differ
         by less than a factor of 3; marketplaces and serverless offers differ by more.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from statistics import median
from typing import Any

from roofline.economics.price_row import Finding, Price

STALE_AFTER_DAYS = 90
NODE_SHARE = 0.35
"""A node whose price per accelerator is below this share of the others' median is asked about."""
NODE_MULTIPLE = 3.8
"""One accelerator at so many times the others' median is asked about."""
WIDE_TERMS = ("serverless", "marketplace")
ASKED = "where others ask"


def check_prices(
    prices: Sequence[Price],
    known_ids: Iterable[str],
    *,
    today: date,
    beside: Sequence[Price] = (),
) -> list[Finding]:
    """Check rows against each other, the known specs, the calendar and the prices ``beside`` them.

    Errors: a spot price above its on-demand price, and a node that seems to have the price of one
    accelerator. Warnings: an unmapped row, no date, one older than 90 days, an offer that stands
    there twice, and one accelerator that seems to have the price of a node.
    """
    ids = frozenset(known_ids)
    findings: list[Finding] = []

    def add(severity: str, price: Price, message: str) -> None:
        findings.append(Finding(severity, price.file, price.line, message))

    on_demand = {
        _offer(price): price
        for price in prices
        if price.term == "on_demand" and price.usd_per_hour is not None
    }
    seen: dict[tuple[Any, ...], Price] = {}
    for price in prices:
        twin = seen.setdefault((*_offer(price), price.term), price)
        if twin is not price and (price.instance or price.region):
            same = twin.usd_per_hour == price.usd_per_hour
            other = "" if same else " at another price"
            add("warning", price, f"the same offer as line {twin.line}{other}; the least counts")
        if not price.spec_id:
            reason = price.notes.split(";")[0] or "no spec id"
            add("warning", price, f"{price.item}: not mapped to a spec ({reason})")
        elif price.spec_id not in ids:
            add("warning", price, f"{price.spec_id}: no such spec; not mapped")
        dear = on_demand.get(_offer(price))
        if (
            price.term == "spot" and dear is not None and price.usd_per_hour is not None
            and dear.usd_per_hour is not None and price.usd_per_hour > dear.usd_per_hour
        ):  # fmt: skip
            add("error", price,
                f"spot at {price.usd_per_hour:g} USD/h is above on-demand at "
                f"{dear.usd_per_hour:g} (line {dear.line})")  # fmt: skip
        age = price.age_days(today)
        if age is None:
            add("warning", price, "no date (as_of); nobody can say how old this price is")
        elif age > STALE_AFTER_DAYS:
            add("warning", price, f"{price.as_of} is {age} days old, over {STALE_AFTER_DAYS}")
        elif age < 0:
            add("warning", price, f"as_of {price.as_of} lies in the future")
    findings.extend(_suspicious(prices, beside))
    return sorted(findings, key=lambda finding: (finding.severity, finding.file, finding.line))


def _offer(price: Price) -> tuple[str, str, str, str, int]:
    return (
        price.provider.lower(), price.instance.lower(), price.region.lower(),
        price.spec_id or price.item, price.gpu_count,
    )  # fmt: skip


def _suspicious(prices: Sequence[Price], beside: Sequence[Price] = ()) -> list[Finding]:
    """Find nodes priced as one accelerator (an error), and accelerators priced as a node.

    What is only suspicious next to the prices ``beside`` is a warning: those may be old.
    """
    found = []
    for price in prices:
        if price.spec_id and price.usd_per_hour is not None and price.term not in WIDE_TERMS:
            near = _alike(price, prices)
            words = _doubt(price, near)
            severity = "error" if words and price.gpu_count > 1 else "warning"
            if words is None and not near:
                words = _doubt(price, _alike(price, beside))
            if words is not None:
                found.append(Finding(severity, price.file, price.line, words))
    return found


def _alike(price: Price, offers: Sequence[Price]) -> list[Price]:
    """Other offers of the kind and term; for a node those of fewer accelerators, or of one."""
    return [
        other
        for other in offers
        if other is not price and other.usd_per_hour is not None
        and (other.spec_id, other.term) == (price.spec_id, price.term)
        and (price.gpu_count == 1 or other.gpu_count < price.gpu_count)
    ]  # fmt: skip


def _doubt(price: Price, others: Sequence[Price]) -> str | None:
    if not others or price.usd_per_hour is None:
        return None
    usual = median(other.usd_per_accelerator_hour or 0.0 for other in others)
    each = price.usd_per_hour / price.gpu_count
    if price.gpu_count == 1 and each >= NODE_MULTIPLE * usual:
        return (
            f"{each:g} USD/h for one {price.spec_id} {ASKED} {usual:.3g}; is it a node's price? "
            "write its accelerators in gpu_count"
        )
    if price.gpu_count > 1 and each < NODE_SHARE * usual <= price.usd_per_hour:
        return (
            f"{price.usd_per_hour:g} USD/h for {price.gpu_count} × {price.spec_id} is {each:.3g} "
            f"each {ASKED} {usual:.3g}; write the price of the whole node, not of one accelerator"
        )
    return None
