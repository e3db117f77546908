"""Price rows: what one offer costs, read strictly; ``price_checks`` compares them.

One CSV row is one offer of a whole instance with all its accelerators:

    provider,instance,region,spec_id,item,gpu_count,usd_per_hour,term,currency,as_of,source_url,notes

and, for what is owned, ``capex_usd,amort_years,power_w,pue,usd_per_kwh,colo_usd_month``.
``spec_id`` may be blank: the offer is then listed as unmapped, and ``item`` says what it is.

Units    USD, hour (the unit of every price list), year, watt; capex of the whole instance.
Limits   USD only; taxes, storage and traffic are not in a price. A month or year as date counts
         from its first day.
"""

import csv
import io
import math
import re
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

from roofline.errors import SpecError
from roofline.files import read_text

TERMS = (
    "on_demand", "spot", "reserved", "1y", "3y", "owned",
    "serverless", "marketplace", "capacity_block", "flex_start",
)  # fmt: skip
MAX_FILE_BYTES = 64_000_000
_REQUIRED = ("provider", "spec_id", "gpu_count", "usd_per_hour", "term")
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")


@dataclass(frozen=True)
class Price:
    """One offer; ``line`` is where it stands in ``file``."""

    provider: str
    instance: str = ""
    region: str = ""
    spec_id: str = ""
    item: str = ""
    gpu_count: int = 1
    usd_per_hour: float | None = None
    term: str = "on_demand"
    currency: str = "USD"
    as_of: str = ""
    source_url: str = ""
    notes: str = ""
    capex_usd: float | None = None
    amort_years: float | None = None
    power_w: float | None = None
    pue: float | None = None
    usd_per_kwh: float | None = None
    colo_usd_month: float | None = None
    file: str = ""
    line: int = 0

    @property
    def usd_per_accelerator_hour(self) -> float | None:
        """Hourly price of the instance over its accelerators."""
        return None if self.usd_per_hour is None else self.usd_per_hour / self.gpu_count

    def age_days(self, today: date) -> int | None:
        """Days since the price was true; None when nobody wrote a date."""
        begun = first_day(self.as_of)
        return None if begun is None else (today - begun).days

    def __str__(self) -> str:
        where = " ".join(part for part in (self.provider, self.instance, self.region) if part)
        price = (
            f"{self.capex_usd:g} USD to buy" if self.usd_per_hour is None
            else f"{self.usd_per_hour:g} USD/h"
        )  # fmt: skip
        count = f" for {self.gpu_count} accelerators" if self.gpu_count > 1 else ""
        return f"{price}{count}, {self.term}, {where}, {self.as_of or 'undated'}"


COLUMNS = tuple(field.name for field in fields(Price) if field.name not in ("file", "line"))


@dataclass(frozen=True)
class Finding:
    """What is wrong (``error``) or doubtful (``warning``) about a line of a price file."""

    severity: str
    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def first_day(text: str) -> date | None:
    """Read 2026-09-17, 2026-09 or 2026; anything else is no date.

    >>> first_day("2026-09"), first_day("soon")
    (datetime.date(2026, 9, 1), None)
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        return None


def read_prices(path: Path) -> tuple[list[Price], list[Finding]]:
    """Read a price file row by row; rows that cannot be are findings, not prices.

    Raises:
        SpecError: the file is no CSV, is too large, or lacks a column.
    """
    text = read_text(path, most_bytes=MAX_FILE_BYTES, what="prices")
    reader = csv.DictReader(io.StringIO(text), strict=True)
    prices: list[Price] = []
    findings: list[Finding] = []
    try:
        header = [name.strip() for name in reader.fieldnames or []]
        missing = [name for name in _REQUIRED if name not in header]
        if missing:
            raise SpecError(
                f"{path}:1: no column {', '.join(missing)}; a price table has {','.join(COLUMNS)}"
            )
        unknown = [name for name in header if name not in COLUMNS]
        if unknown or len(set(header)) < len(header):
            named = ", ".join(unknown) or "one twice"
            raise SpecError(f"{path}:1: columns that mean nothing here: {named[:200]}")
        for row in reader:
            cells = {str(key).strip(): value for key, value in row.items() if key is not None}
            try:
                if None in row:
                    raise ValueError("more cells than columns; quote text that has commas")
                prices.append(_price(cells, str(path), reader.line_num))
            except ValueError as error:
                findings.append(Finding("error", str(path), reader.line_num, str(error)))
    except csv.Error as error:
        raise SpecError(f"{path}:{reader.line_num}: no CSV: {error}") from None
    if not prices and not findings:
        raise SpecError(f"{path}: no rows below the header")
    return prices, findings


def _price(cells: dict[str, str | None], file: str, line: int) -> Price:
    text = {name: (cells.get(name) or "").strip() for name in COLUMNS}
    if not text["provider"]:
        raise ValueError("provider is blank; say whose price it is")
    if not text["spec_id"] and not text["item"]:
        raise ValueError("spec_id and item are both blank; say what is priced")
    if text["term"] not in TERMS:
        raise ValueError(f"no term {text['term'][:80]!r}; there are: {', '.join(TERMS)}")
    currency = text["currency"] or "USD"
    if currency != "USD":
        raise ValueError(f"currency {currency[:20]!r}; convert to USD, with the rate in notes")
    if text["as_of"] and first_day(text["as_of"]) is None:
        raise ValueError(f"as_of {text['as_of'][:40]!r} is no date; write 2026-09-17")
    count = _number("gpu_count", text["gpu_count"])
    if count is None or count != int(count) or count > 100_000:
        raise ValueError(
            f"gpu_count {text['gpu_count'][:40]!r}; write how many accelerators the instance has"
        )
    price = _number("usd_per_hour", text["usd_per_hour"])
    capex = _number("capex_usd", text["capex_usd"])
    if text["term"] == "owned":
        if price is None and capex is None:
            raise ValueError("an owned row needs capex_usd, or your own usd_per_hour")
    elif price is None:
        raise ValueError("usd_per_hour is blank; write the hourly price of the whole instance")
    values: dict[str, Any] = dict(text)
    for name in ("amort_years", "power_w", "pue", "usd_per_kwh", "colo_usd_month"):
        values[name] = _number(name, text[name])
    if values["pue"] is not None and values["pue"] < 1:
        raise ValueError(f"pue {values['pue']:g}; power in over power used is at least 1")
    values.update(gpu_count=int(count), usd_per_hour=price, currency=currency, capex_usd=capex)
    return Price(**values, file=file, line=line)


def _number(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name} {text[:40]!r} is no number") from None
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"{name} {text[:40]!r}; it needs to be above 0")
    return number
