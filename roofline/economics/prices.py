"""Price tables: the user's own first, then the dated example that ships; never a silent default.

A file given by the user, or ``prices/*.csv`` in a folder of ``ROOFLINE_SPEC_PATH``, replaces the
shipped rows of every accelerator that it prices. Each price that is used says its offer and date.

Units    USD, hour.
Limits   Shipped prices are dated facts from public tables, not live ones and no offer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from roofline.economics.price_checks import ASKED, check_prices
from roofline.economics.price_row import TERMS, Finding, Price, read_prices
from roofline.errors import InputError, MissingDataError, SpecError, unknown_name
from roofline.hardware.accelerator import accelerator_ids
from roofline.hardware.folders import data_folders

SHIPPED = "prices.csv"


@dataclass(frozen=True)
class Quote:
    """What some accelerators cost an hour, and by which offer."""

    usd_per_hour: float
    price: Price
    instances: int
    warnings: tuple[str, ...] = ()

    @property
    def paid_accelerators(self) -> int:
        """Accelerators in the instances paid for: whole nodes."""
        return self.instances * self.price.gpu_count


@dataclass(frozen=True)
class PriceTable:
    """Offers, the user's own before the shipped ones."""

    prices: tuple[Price, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def unmapped(self) -> tuple[Price, ...]:
        """Rows that no spec id stands for: listed, never priced."""
        ids = frozenset(accelerator_ids())
        return tuple(price for price in self.prices if price.spec_id not in ids)

    def offers(
        self, spec_id: str, term: str, *, provider: str | None = None, region: str | None = None
    ) -> tuple[Price, ...]:
        """Offers of one accelerator by term, and by provider and region when asked."""
        if term not in TERMS:
            raise unknown_name("price term", str(term), TERMS)
        return tuple(
            price
            for price in self.prices
            if price.spec_id == spec_id and price.term == term
            and (provider is None or price.provider.lower() == provider.lower())
            and (region is None or region.lower() in price.region.lower())
        )  # fmt: skip

    def quote(
        self,
        spec_id: str,
        accelerators: int,
        term: str = "on_demand",
        *,
        provider: str | None = None,
        region: str | None = None,
        today: date | None = None,
    ) -> Quote:
        """Find the least hourly price of so many accelerators, in whole instances.

            usd_per_hour = least over offers of  ⌈accelerators / gpu_count⌉ × usd_per_hour

        Raises:
            MissingDataError: nobody offers it by that term; the message says what there is.

        >>> table = price_table({"h200-sxm-141gb": 3.5})
        >>> table.quote("h200-sxm-141gb", 8).usd_per_hour
        28.0
        """
        if isinstance(accelerators, bool) or accelerators < 1:
            raise InputError(f"accelerators needs to be at least 1, got {accelerators!r}")
        offers = [
            offer
            for offer in self.offers(spec_id, term, provider=provider, region=region)
            if offer.usd_per_hour is not None
        ]
        if not offers:
            raise MissingDataError(self._nothing(spec_id, term, provider, region))
        costs = [math.ceil(accelerators / p.gpu_count) * (p.usd_per_hour or 0) for p in offers]
        best = min(range(len(offers)), key=lambda index: costs[index])
        price = offers[best]
        age = price.age_days(today or date.today())
        warnings = []
        if age is None:
            warnings.append(f"the price of {spec_id} has no date ({price})")
        elif age > 90:
            warnings.append(f"the price of {spec_id} is {age} days old ({price})")
        warnings += [
            str(finding)
            for finding in self.findings
            if (finding.file, finding.line) == (price.file, price.line) and ASKED in finding.message
        ]
        return Quote(costs[best], price, math.ceil(accelerators / price.gpu_count), tuple(warnings))

    def _nothing(self, spec_id: str, term: str, provider: str | None, region: str | None) -> str:
        asked = " ".join(part for part in (term, provider, region) if part)
        terms = sorted({price.term for price in self.prices if price.spec_id == spec_id})
        have = f"there are prices {', '.join(terms)}" if terms else "there is none at all"
        return (
            f"no price of {spec_id} {asked}; {have}; give one: "
            f"--price {spec_id}=USD_PER_HOUR, or a price file"
        )


def price_table(
    prices: str | Path | Mapping[str, float] | Sequence[Price] | PriceTable | None = None,
    *,
    today: date | None = None,
) -> PriceTable:
    """Load prices: a file, a mapping of spec id to USD per accelerator and hour, or the defaults.

    Own prices come first: for an accelerator that they have, the shipped rows do not count.

    Raises:
        SpecError: a row that cannot be, with its line; ``roofline prices check`` lists all.
        InputError: a price in a mapping that is no number above 0.

    >>> price_table({"t4": 0.5}).quote("t4", 2).usd_per_hour
    1.0
    >>> price_table().quote("t4", 1).price.source_url != ""
    True
    """
    if isinstance(prices, PriceTable):
        return prices
    day = today or date.today()
    own: list[Price] = []
    findings: list[Finding] = []
    if isinstance(prices, Mapping):
        own = [_given(spec_id, usd, day) for spec_id, usd in prices.items()]
    elif isinstance(prices, str | Path):
        own, findings = _load(Path(prices), day, beside=_shipped())
    elif prices is not None:
        own = list(prices)
    for path in price_files():
        if path.name == SHIPPED and path == price_files()[-1]:
            continue
        rows, found = _load(path, day)
        own = _behind(own, rows)
        findings += found
    shipped = price_files()
    if shipped:
        rows, found = _load(shipped[-1], day)
        own = _behind(own, rows)
        findings += found
    return PriceTable(tuple(own), tuple(findings))


def price_files() -> tuple[Path, ...]:
    """List the price files that are found without being named, the user's own first."""
    found: list[Path] = []
    for folder in data_folders("gpu_specs/prices"):
        found += sorted(path for path in folder.glob("*.csv") if path not in found)
    return tuple(found)


def _behind(own: list[Price], rows: list[Price]) -> list[Price]:
    """Put rows behind own ones; the own rows of an accelerator replace these."""
    priced = {price.spec_id for price in own if price.spec_id}
    return own + [price for price in rows if price.spec_id not in priced]


def _given(spec_id: str, usd: float, today: date) -> Price:
    if isinstance(usd, bool) or not isinstance(usd, int | float):
        raise InputError(f"price of {spec_id}: need a number of USD per hour, got {usd!r}")
    if not math.isfinite(usd) or usd <= 0:
        raise InputError(f"price of {spec_id}: need USD per hour above 0, got {usd!r}")
    ids = accelerator_ids()
    if spec_id not in ids:
        raise unknown_name("accelerator", str(spec_id), ids)
    return Price("given", spec_id=spec_id, usd_per_hour=float(usd), as_of=today.isoformat(),
                 source_url="given by the user")  # fmt: skip


def _shipped() -> list[Price]:
    files = price_files()
    return read_prices(files[-1])[0] if files else []


def _load(
    path: Path, today: date, beside: Sequence[Price] = ()
) -> tuple[list[Price], list[Finding]]:
    prices, findings = read_prices(path)
    findings += check_prices(prices, accelerator_ids(), today=today, beside=beside)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        more = f" ({len(errors) - 1} more; see roofline prices check)" if len(errors) > 1 else ""
        raise SpecError(f"{errors[0]}{more}")
    return prices, findings
