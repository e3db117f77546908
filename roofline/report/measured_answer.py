"""A measured record as an answer: its roofs, launches, models and curves over batch."""

from roofline.errors import MissingDataError
from roofline.hardware.measurement import Measurement, load_measurement, measured_ids
from roofline.report.answer import Answer, Table
from roofline.report.measured import record_curves, roof_lines
from roofline.units import show


def record_answer(record: Measurement) -> Answer:
    """A record as an answer: device and date, the table of its roofs, its models.

    >>> from roofline.hardware.measurement import load_measurement
    >>> record_answer(load_measurement("h200-sxm-141gb")).tables[0].columns
    ('roof', 'nominal', 'measured', '%', 'why')
    """
    device = record.device
    found = f"spec {device.spec_id}" if device.spec_id else "no spec known"
    lines = [
        f"{device.name} ({found}), {show(device.memory_bytes, 'GiB')}, {record.level} record of "
        f"{record.date:%Y-%m-%d}, {record.source}"
    ]
    roofs = roof_lines(record)
    tables = []
    if roofs:
        rows = [
            (
                line.what, show(line.nominal, line.unit), show(line.measured, line.unit),
                None if line.share is None else round(100 * line.share, 1), line.why,
            )
            for line in roofs
        ]  # fmt: skip
        tables.append(Table("Roofs", ("roof", "nominal", "measured", "%", "why"), rows))
    launches = [row for row in record.launch_rows if row.what != "python_call"]
    if launches:
        costs = [
            (row.what.replace("_", " "), row.mode, show(row.median_s, "s")) for row in launches
        ]
        tables.append(Table("What starting things costs", ("item", "how", "time"), costs))
    if record.decoder_rows:
        tables.append(_decoder_table(record))
        tables += _curve_tables(record)
    results = {
        "record": record.model_dump(mode="json", exclude_defaults=True),
        "roofs": [
            {"what": line.what, "unit": line.unit, "nominal": line.nominal,
             "measured": line.measured, "share": line.share, "why": line.why}
            for line in roofs
        ],
    }  # fmt: skip
    return Answer("measure", {}, results, tables, lines)


def _decoder_table(record: Measurement) -> Table:
    columns = (
        "model", "weights", "tp", "mode", "phase", "batch", "tokens", "time", "tokens/s", "peak",
        "flags",
    )  # fmt: skip
    rows = [
        (
            row.model, row.weights, row.tp, row.mode, row.phase, row.batch, row.context_tokens,
            show(row.median_s, "s"), round(row.tokens_per_s, 1),
            show(row.peak_memory_bytes, "GiB"), "; ".join(row.flags),
        )
        for row in record.decoder_rows
    ]  # fmt: skip
    return Table("Models with random weights (measured)", columns, rows)


def _curve_tables(record: Measurement) -> list[Table]:
    roofs = record
    if not (record.matmul_rows and record.copy_rows) and record.device.record_id in measured_ids():
        roofs = load_measurement(record.device.record_id)
    try:
        found = record_curves(record, roofs)
    except MissingDataError:
        return []
    rows = [
        (curve.model, curve.weights, curve.mode, curve.context_tokens, curve.leaves_at or "–",
         curve.why)
        for curve in found
    ]  # fmt: skip
    columns = ("model", "weights", "mode", "context", "leaves the slope at batch", "why")
    return [Table("Over batch", columns, rows)] if rows else []
