"""Measured records of the accelerators that are planned with, each by its spec id."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from roofline.errors import InputError, MissingDataError
from roofline.hardware.measurement import Measurement, load_measurement

Record = str | Path | Measurement


def machines_by_spec(
    machine: "Record | Iterable[Record] | Mapping[str, Record] | None",
) -> dict[str, Record]:
    """Records by the spec id that each replaces the roofs of.

    Args:
        machine: a record (path, Measurement, or spec id: its newest), several, or records by spec
            id; None: none.

    Raises:
        MissingDataError: a record of a device that has no spec, given without an id.

    >>> machines_by_spec("h200-sxm-141gb")
    {'h200-sxm-141gb': 'h200-sxm-141gb'}
    """
    if machine is None:
        return {}
    if isinstance(machine, Mapping):
        return dict(machine)
    records = [machine] if isinstance(machine, Record) else machine
    if not isinstance(records, Iterable):
        raise InputError(f"machine is a record, a spec id or a mapping of them, got {machine!r}")
    found: dict[str, Record] = {}
    for record in records:
        device = load_measurement(record).device
        if device.spec_id is None:
            raise MissingDataError(
                f"the record is of {device.name!r}, which has no spec; give it by the id of yours: "
                "ID=RECORD, or {id: record}"
            )
        found[device.spec_id] = record
    return found
