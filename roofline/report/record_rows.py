"""Rows of a measured record: what was reached beside what the datasheet says.

Units    FLOP/s, bytes/s; ``share`` is measured over nominal.
Limits   The best row of each kind counts; buffers that a cache holds are no memory bandwidth.
"""

from collections.abc import Iterable
from typing import Any

from roofline.errors import RooflineError
from roofline.hardware.accelerator import Accelerator
from roofline.hardware.measurement import Measurement
from roofline.report.answer import Table
from roofline.units import show

MEMORY_OPS = ("copy", "read", "write", "add", "triad")


def nominal_and_measured(
    record: Measurement, accelerator: Accelerator | None
) -> list[dict[str, Any]]:
    """Each rate that the record holds, beside the datasheet's where there is one.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.hardware.measurement import load_measurement
    >>> rows = nominal_and_measured(load_measurement("h200-sxm-141gb"),
    ...                             load_accelerator("h200-sxm-141gb"))
    >>> [row["what"] for row in rows][:2]
    ['memory, copy', 'memory, read']
    """
    rows = []
    bandwidth = _nominal(accelerator, "memory")
    for op in MEMORY_OPS:
        rates = [row.bytes_per_s for row in record.copy_rows
                 if row.op == op and not any("cache" in flag for flag in row.flags)]  # fmt: skip
        rows += _row(f"memory, {op}", "B/s", rates, bandwidth)
    for compute in dict.fromkeys(row.compute for row in record.matmul_rows):
        for mode in ("burst", "sustained"):
            rates = [row.flop_per_s for row in record.matmul_rows
                     if (row.compute, row.mode, row.data) == (compute, mode, "random")]  # fmt: skip
            rows += _row(f"{compute} matmul, {mode}", "FLOP/s", rates,
                         _nominal(accelerator, compute))  # fmt: skip
    for direction in ("host_to_device", "device_to_host"):
        rates = [row.bytes_per_s for row in record.host_link_rows
                 if row.direction == direction and row.pinned]  # fmt: skip
        rows += _row(f"{direction.replace('_', ' ')}, pinned", "B/s", rates,
                     _nominal(accelerator, "pcie"))  # fmt: skip
    for op, ranks in dict.fromkeys((row.op, row.n_ranks) for row in record.collective_rows):
        rates = [row.bus_bytes_per_s for row in record.collective_rows
                 if (row.op, row.n_ranks) == (op, ranks)]  # fmt: skip
        rows += _row(f"{op.replace('_', '-')} over {ranks}, bus", "B/s", rates,
                     _nominal(accelerator, "link"))  # fmt: skip
    return rows


def _nominal(accelerator: Accelerator | None, what: str) -> float | None:
    if accelerator is None or accelerator.is_measured:
        return None
    try:
        match what:
            case "memory":
                return accelerator.memory_bandwidth()
            case "pcie":
                return accelerator.pcie.bytes_per_s
            case "link":
                return accelerator.link.bytes_per_s
        return accelerator.peak_flop_per_s(what)
    except RooflineError:
        return None


def _row(
    what: str, unit: str, rates: Iterable[float], nominal: float | None
) -> list[dict[str, Any]]:
    best = max(rates, default=None)
    if best is None:
        return []
    return [{"what": what, "unit": unit, "nominal": nominal, "measured": best,
             "share": None if nominal is None else best / nominal}]  # fmt: skip


def nominal_table(rows: Iterable[dict[str, Any]]) -> Table:
    """The rows for readers."""
    return Table(
        "Nominal against measured",
        ("what", "nominal · datasheet", "measured", "measured / nominal"),
        [(row["what"], show(row["nominal"], row["unit"]), show(row["measured"], row["unit"]),
          "–" if row["share"] is None else f"{row['share']:.0%}") for row in rows],
    )  # fmt: skip


def section_table(record: Measurement, section: str) -> Table:
    """Every row of a section, in base units, without its raw times."""
    rows = record.rows(section)
    names = [name for name in type(rows[0]).model_fields if name != "times_s"] if rows else []
    cells = [[_plain(getattr(row, name)) for name in names] for row in rows]
    return Table(f"{section}: {len(rows)} rows", names, cells)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return "; ".join(map(str, value))
    return str(value) if isinstance(value, dict) else value
