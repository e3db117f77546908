"""Parquet parts of a sweep: one file a task, whole or not at all, so that a run can go on."""

from collections.abc import Callable
from pathlib import Path

from roofline.api.sweep.columns import COLUMNS
from roofline.api.sweep.keep import Reduced
from roofline.errors import MissingPackageError
from roofline.files import replacing


def write_part(
    folder: Path, number: int, make: Callable[[], tuple[Reduced, int]]
) -> tuple[Path, int]:
    """Write a task's rows, unless its file is there already; give file and number of rows.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPackageError(
            "Parquet needs pyarrow: pip install 'roofline[cluster]'"
        ) from None
    path = folder / f"part-{number:06d}.parquet"
    if path.exists():
        return path, parquet.read_metadata(path).num_rows
    rows, feasible = make()
    table = pyarrow.table(rows)
    units = {name.encode(): unit.encode() for name, unit in COLUMNS.items() if name in rows}
    table = table.replace_schema_metadata(units)
    with replacing(path) as temporary:
        parquet.write_table(table, temporary)
    return path, feasible
