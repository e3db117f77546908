"""An accelerator out of a measured record, for devices that have no datasheet (a CPU).

Its roofs are the best that the record holds: the fastest matmul of each compute type, and the
fastest move of buffers that no cache holds. They are measured roofs, never bounds.

Units    As in ``spec``.
Limits   Caches are not roofs: rows whose buffer is below four times the last-level cache are left
         out, and without a known cache only the largest buffers count.
"""

from pydantic import ValidationError

from roofline.errors import MissingDataError, SpecError
from roofline.hardware.measurement import Measurement
from roofline.hardware.spec import Accelerator, Compute, Memory

_CACHES_PER_BUFFER = 4  # a buffer this many times the cache leaves at most a quarter in it
_MEMORY_OPS = ("copy", "read", "write", "add", "triad")


def measured_accelerator(record: Measurement) -> Accelerator:
    """Make an accelerator whose roofs are the best rows of a record.

    Raises:
        MissingDataError: the record has no copy or no matmul rows.
        SpecError: its figures cannot be those of a device.

    >>> from roofline.hardware.measurement import load_measurement
    >>> h200 = measured_accelerator(load_measurement("h200-sxm-141gb"))
    >>> h200.confidence, h200.memory_bandwidth() < 4.8e12, h200.peak_flop_per_s("bf16") < 989.4e12
    ('measured', True, True)
    """
    try:
        return _accelerator(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise SpecError(
            f"the record of {record.device.name} makes no accelerator: {field} {first['msg']}"
        ) from None


def _accelerator(record: Measurement) -> Accelerator:
    device = record.device
    source = f"measured {record.date:%Y-%m-%d} on this device, {record.source}"
    rates: dict[str, float] = {}
    for row in record.rows("matmul"):
        if row.data == "random":
            rates[row.compute] = max(rates.get(row.compute, 0.0), row.flop_per_s)
    is_cpu = device.kind == "cpu"
    return Accelerator(
        id=device.record_id,
        name=" ".join(device.name.split())[:120] or "unknown device",
        vendor="any",
        kind="cpu" if is_cpu else "gpu",
        compute_capability=device.compute_capability,
        confidence="measured",
        as_of=f"{record.date:%Y-%m-%d}",
        memory=Memory(
            usable_bytes=device.memory_bytes,
            bytes_per_s=_bandwidth(record),
            source=(source,),
        ),
        compute=Compute(
            flop_per_s=_peaks(record, rates),
            sm_count=device.sm_count,
            l2_bytes=device.l2_bytes or None,
            llc_bytes=device.llc_bytes or None,
            source=(source,),
        ),
    )


def _peaks(record: Measurement, rates: dict[str, float]) -> dict[str, float]:
    if not rates:
        raise MissingDataError(
            f"the record of {record.device.name} has no matmul rows; run: roofline measure"
        )
    return rates


def _bandwidth(record: Measurement) -> float:
    rows = [row for row in record.rows("copy") if row.op in _MEMORY_OPS]
    if not rows:
        raise MissingDataError(
            f"the record of {record.device.name} has no copy rows; run: roofline measure"
        )
    cache = max(record.device.l2_bytes or 0, record.device.llc_bytes or 0)
    largest = max(row.buffer_bytes for row in rows)
    least = min(_CACHES_PER_BUFFER * cache, largest) if cache else largest
    return max(row.bytes_per_s for row in rows if row.buffer_bytes >= least)
