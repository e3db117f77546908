"""Importers: public price catalogues in the formats of gpuhunt and SkyPilot to price rows.

    gpuhunt    a folder of ``<provider>.csv`` [1]; ``price`` is of the whole instance
    skypilot   one ``vms.csv`` of a provider [2]; ``Price`` and ``SpotPrice`` of the instance

A catalogue names accelerators loosely ("H100"). The name with its memory, and the instance type
where that settles it, give the spec; what stays open is listed with the candidates, not guessed.

Limits   Rows without an accelerator are counted, zones of a region are merged at their least price.
Sources  [1] gpuhunt 0.1.34, catalogue columns, https://github.com/dstackai/gpuhunt.
         [2] SkyPilot 0.14, catalogue columns, https://github.com/skypilot-org/skypilot-catalog.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from roofline.economics.price_row import COLUMNS, MAX_FILE_BYTES, Finding, Price
from roofline.errors import InputError, SpecError
from roofline.files import read_text

_GPUHUNT_COLUMNS = ("instance_name", "location", "price", "gpu_count", "gpu_name", "spot")
_SKYPILOT_COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")

# name without punctuation to (spec id, memory in GB it is sold with); several: more must be known
_CANDIDATES: dict[str, tuple[tuple[str, float], ...]] = {
    "P100": (("p100-sxm2-16gb", 16), ("p100-pcie-16gb", 16)),
    "V100": (
        ("v100-sxm2-16gb", 16), ("v100-pcie-16gb", 16),
        ("v100-sxm2-32gb", 32), ("v100-pcie-32gb", 32),
    ),
    "T4": (("t4", 16),),
    "A100": (
        ("a100-sxm4-40gb", 40), ("a100-pcie-40gb", 40),
        ("a100-sxm4-80gb", 80), ("a100-pcie-80gb", 80),
    ),
    "A30": (("a30", 24),),
    "A10": (("a10", 24),),
    "A10G": (("a10g", 24),),
    "A40": (("a40", 48),),
    "A6000": (("rtx-a6000", 48),),
    "RTXA6000": (("rtx-a6000", 48),),
    "RTX3090": (("rtx-3090", 24),),
    "RTX4090": (("rtx-4090", 24),),
    "RTX5090": (("rtx-5090", 32),),
    "RTX6000ADA": (("rtx-6000-ada", 48),),
    "RTXPRO6000": (("rtx-pro-6000-bw-ws", 96), ("rtx-pro-6000-bw-server", 96)),
    "L4": (("l4", 24),),
    "L40": (("l40", 48),),
    "L40S": (("l40s", 48),),
    "H100": (("h100-sxm5-80gb", 80), ("h100-pcie-80gb", 80), ("h100-nvl-94gb", 94)),
    "H100NVL": (("h100-nvl-94gb", 94),),
    "H800": (("h800-sxm5-80gb", 80),),
    "H20": (("h20-96gb", 96),),
    "H200": (("h200-sxm-141gb", 141), ("h200-nvl-141gb", 141)),
    "H200NVL": (("h200-nvl-141gb", 141),),
    "GH200": (("gh200-96gb", 96), ("gh200-144gb", 144)),
    "B200": (("b200-hgx", 180),),
    "GB200": (("gb200-nvl72", 186),),
    "B300": (("b300-hgx", 288),),
    "GB300": (("gb300-nvl72", 288),),
    "MI210": (("mi210", 64),),
    "MI250X": (("mi250x", 128),),
    "MI300X": (("mi300x", 192),),
    "MI325X": (("mi325x", 256),),
    "MI350X": (("mi350x", 288),),
    "MI355X": (("mi355x", 288),),
    "GAUDI2": (("gaudi2", 96),),
    "GAUDI3": (("gaudi3", 128),),
    "TPUV4": (("tpu-v4", 32),),
    "TPUV5E": (("tpu-v5e", 16),),
    "TPUV5LITEPOD": (("tpu-v5e", 16),),
    "TPUV5P": (("tpu-v5p", 95),),
    "TPUV6E": (("tpu-v6e", 32),),
    "TRAINIUM": (("trainium1", 32),),
    "TRAINIUM1": (("trainium1", 32),),
    "TRAINIUM2": (("trainium2", 96),),
    "INFERENTIA2": (("inferentia2", 32),),
}  # fmt: skip
# instance types whose board is published by the provider, as pattern to a part of the spec id
_INSTANCES: tuple[tuple[str, str], ...] = (
    (r"p3(dn)?\.", "sxm2"),  # AWS P3: V100 with NVLink
    (r"p4de?\.", "sxm4"),
    (r"p5(\.|e\.|en\.)", "sxm"),
    (r"a2-(high|ultra|mega)gpu", "sxm4"),
    (r"a3-(high|mega|ultra|edge)gpu", "sxm"),
    (r"g4-standard", "server"),
    (r"nd\d*i?sr?_?h[12]00|nd96isr?_h[12]00|nd.*_h[12]00", "sxm"),
    (r"nd96.*a100", "sxm4"),
    (r"nc.*ads_a100", "pcie"),
    (r"nc.*ads_h100", "nvl"),
    (r"nc.*s_v3", "pcie"),
    (r"g7e\.", "server"),
    (r"bm\.gpu\.h[12]00", "sxm"),
    (r"(^|[^a-z])sxm\d?", "sxm"),
    (r"(^|[^a-z])pcie?", "pcie"),
    (r"(^|[^a-z])nvl($|[^a-z])", "nvl"),
)
_MEMORY_SLACK = 0.13
"""Catalogues write 80 GB, 79 GiB or 81,559 MiB for one card, and 288 GB for an MI325X of 256."""


@dataclass(frozen=True)
class Imported:
    """Rows of a catalogue: priced, open, and refused."""

    prices: tuple[Price, ...]
    unmapped: tuple[Price, ...]
    refused: tuple[Finding, ...]
    without_accelerator: int = 0

    def to_csv(self) -> str:
        """Write priced and open rows in the columns of a price file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for price in (*self.prices, *self.unmapped):
            cells = (getattr(price, name) for name in COLUMNS)
            writer.writerow(["" if cell is None else _cell(cell) for cell in cells])
        return text.getvalue()


def _cell(value: object) -> object:
    return f"{value:g}" if isinstance(value, float) else value


def candidates(name: str, memory_gb: float | None, instance: str) -> tuple[str, ...]:
    """List the spec ids that a catalogue's accelerator may be; one when it is settled.

    >>> candidates("H100", 80, "p5.48xlarge"), candidates("H100", 80, "gpu_1x")
    (('h100-sxm5-80gb',), ('h100-sxm5-80gb', 'h100-pcie-80gb'))
    """
    upper = name.strip().upper()
    form = next((word for word in ("SXM", "PCIE", "NVL") if word in upper), None)
    sized = re.search(r"(\d+)\s*GB", upper)
    if sized is not None:
        memory_gb = float(sized[1])
    plain = re.sub(r"\d+\s*GB|SXM\d?|PCIE|NVL|^(NVIDIA|AMD|TESLA)\b|[^A-Z0-9]", "", upper)
    for key in (re.sub(r"[^A-Z0-9]", "", upper), plain):
        if key in _CANDIDATES:
            found = _CANDIDATES[key]
            break
    else:
        return ()
    if memory_gb is not None and memory_gb > 0:
        found = tuple((i, gb) for i, gb in found if abs(gb - memory_gb) <= _MEMORY_SLACK * gb)
    ids = tuple(spec_id for spec_id, _ in found)
    if len(ids) > 1 and form is not None:
        ids = tuple(i for i in ids if form.lower() in i) or ids
    if len(ids) > 1:
        for pattern, part in _INSTANCES:
            if re.search(pattern, instance.lower()):
                narrowed = tuple(i for i in ids if part in i)
                if narrowed:
                    ids = narrowed
                    break
    return ids


def import_gpuhunt(folder: str | Path, *, as_of: str | None = None) -> Imported:
    """Read a gpuhunt catalogue: a folder of ``<provider>.csv`` files, or one of them.

    Raises:
        SpecError: no CSV files, or one without gpuhunt's columns.
    """
    given = Path(folder)
    files = sorted(given.glob("*.csv")) if given.is_dir() else [given]
    if not files:
        raise SpecError(f"{given}: no CSV file; a gpuhunt catalogue is a folder of <provider>.csv")
    parts = [_import(file, _GPUHUNT_COLUMNS, _gpuhunt_rows, file.stem, as_of) for file in files]
    return Imported(
        tuple(price for part in parts for price in part.prices),
        tuple(price for part in parts for price in part.unmapped),
        tuple(finding for part in parts for finding in part.refused),
        sum(part.without_accelerator for part in parts),
    )


def import_skypilot(
    file: str | Path, *, provider: str | None = None, as_of: str | None = None
) -> Imported:
    """Read a SkyPilot catalogue of one provider; the provider is the folder's name when left out.

    Raises:
        SpecError: the file does not read or lacks SkyPilot's columns.
        InputError: no provider given and none in the path.
    """
    path = Path(file)
    name = provider or path.resolve().parent.name
    if not name:
        raise InputError(f"{path}: whose catalogue is this? give provider")
    return _import(path, _SKYPILOT_COLUMNS, _skypilot_rows, name, as_of)


@dataclass(frozen=True)
class _Offer:
    """A row of a catalogue before its accelerator is looked up."""

    instance: str
    region: str
    name: str
    memory_gb: float | None
    count: str
    price: str
    term: str


def _gpuhunt_rows(row: dict[str, str]) -> Iterator[_Offer]:
    spot = row["spot"].strip().lower()
    yield _Offer(
        row["instance_name"], row["location"], row["gpu_name"], _gigabytes(row.get("gpu_memory")),
        row["gpu_count"], row["price"], "spot" if spot in ("true", "1") else "on_demand",
    )  # fmt: skip


def _skypilot_rows(row: dict[str, str]) -> Iterator[_Offer]:
    common = (row["InstanceType"], row["Region"], row["AcceleratorName"])
    size = re.search(r"SizeInMiB\W+(\d+)", row.get("GpuInfo", ""))
    memory_gb = None if size is None else _gigabytes(size[1])
    for column, term in (("Price", "on_demand"), ("SpotPrice", "spot")):
        price = row.get(column, "").strip()
        if price or term == "on_demand":
            yield _Offer(*common, memory_gb, row["AcceleratorCount"], price, term)


def _gigabytes(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    if not 0 < value < 1e7:
        return None
    return value / 1024 if value > 2000 else value


def _import(
    path: Path,
    columns: tuple[str, ...],
    offers: Callable[[dict[str, str]], Iterator[_Offer]],
    provider: str,
    as_of: str | None,
) -> Imported:
    rows = _read(path, columns)
    try:
        day = as_of or date.fromtimestamp(path.stat().st_mtime).isoformat()
    except (OSError, OverflowError, ValueError):
        day = as_of or ""
    note = "" if as_of else "dated by the file"
    best: dict[tuple[str, str, str, str, int], Price] = {}
    refused: list[Finding] = []
    bare = 0
    for line, row in rows:
        for offer in offers(row):
            if not offer.name.strip() or offer.count.strip() in ("", "0", "0.0"):
                bare += 1
                continue
            try:
                price = _row(offer, provider, day, note, path, line)
            except ValueError as error:
                refused.append(Finding("error", str(path), line, str(error)))
                continue
            key = (price.instance, price.region, price.term, price.item, price.gpu_count)
            known = best.get(key)
            if known is None or (price.usd_per_hour or 0) < (known.usd_per_hour or 0):
                best[key] = price
    prices = tuple(best.values())
    return Imported(
        tuple(price for price in prices if price.spec_id),
        tuple(price for price in prices if not price.spec_id),
        tuple(refused),
        bare,
    )


def _row(offer: _Offer, provider: str, day: str, note: str, path: Path, line: int) -> Price:
    try:
        count, usd = float(offer.count), float(offer.price or "nan")
    except ValueError:
        raise ValueError(
            f"{offer.name[:60]}: count {offer.count[:20]!r} or price {offer.price[:20]!r} "
            "is no number"
        ) from None
    if not 0 < usd < 1e7:
        raise ValueError(f"{offer.name[:60]} at {offer.price[:20] or 'no price'}: not above 0")
    if count != int(count) or not 1 <= count <= 100_000:
        raise ValueError(f"{offer.name[:60]}: {offer.count[:20]} accelerators is no whole number")
    ids = candidates(offer.name, offer.memory_gb, offer.instance)
    price = Price(
        provider, offer.instance, offer.region, item=offer.name, gpu_count=int(count),
        usd_per_hour=usd, term=offer.term, as_of=day, source_url=f"catalogue {path.name}",
        notes=note, file=str(path), line=line,
    )  # fmt: skip
    if len(ids) == 1:
        return replace(price, spec_id=ids[0])
    reason = f"ambiguous: {' or '.join(ids)}" if ids else "no spec of this name and memory"
    return replace(price, notes="; ".join(part for part in (reason, note) if part))


def _read(path: Path, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    text = read_text(path, most_bytes=MAX_FILE_BYTES * 4, what="offers of a catalogue")
    try:
        reader = csv.DictReader(io.StringIO(text), strict=True)
        header = list(reader.fieldnames or [])
        missing = [name for name in columns if name not in header]
        if missing:
            raise SpecError(f"{path}:1: no column {', '.join(missing)}; is it another catalogue?")
        return [
            (reader.line_num, {str(k): (v or "") for k, v in row.items() if isinstance(k, str)})
            for row in reader
        ]
    except csv.Error as error:
        raise SpecError(f"{path}: no CSV: {error}") from None
