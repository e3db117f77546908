"""The published tables of measurements/published/: where they are, and their lines as they stand.

Limits   The tables belong to the source tree and not to the wheel; an installed roofline finds them
         when ``ROOFLINE_SPEC_PATH`` names a folder that has ``measurements/published/``.
"""

import csv
import functools
from collections.abc import Iterator
from pathlib import Path

from roofline.errors import MissingDataError, SpecError, unknown_name
from roofline.hardware.folders import data_folders

TABLES = ("serving", "engines", "capacity", "peaks", "startup")
_REQUIRED = ("id", "source", "date")


def published_folder() -> Path:
    """Find the folder of published tables.

    Raises:
        MissingDataError: this installation has none.

    >>> (published_folder() / "README.md").is_file()
    True
    """
    for folder in data_folders("measurements"):
        if (folder / "published").is_dir():
            return folder / "published"
    raise MissingDataError(
        "the published tables are not part of an installed roofline; run this in a checkout, or "
        "let ROOFLINE_SPEC_PATH name a folder with measurements/published/"
    )


def table_lines(name: str) -> tuple[dict[str, str], ...]:
    """Read one published table, every cell as text.

    Raises:
        UnknownNameError: no such table.
        SpecError: the file has no header, a line of another length, or one without its source.

    >>> len(table_lines("serving")), len(table_lines("engines"))
    (5263, 2137)
    """
    if name not in TABLES:
        raise unknown_name("published table", name, TABLES)
    return _read(published_folder() / f"{name}.csv")


@functools.lru_cache(maxsize=8)
def _read(path: Path) -> tuple[dict[str, str], ...]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(_checked(path, csv.reader(file)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"{path.name} does not load: {error}") from error


def _checked(path: Path, lines: "Iterator[list[str]]") -> Iterator[dict[str, str]]:
    header = next(lines, [])
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        has = ", ".join(header[:8])
        raise SpecError(f"{path.name} has no column {', '.join(missing)}; it has {has}")
    for number, cells in enumerate(lines, start=2):
        if len(cells) != len(header):
            raise SpecError(f"{path.name}:{number} has {len(cells)} cells, not {len(header)}")
        row = dict(zip(header, cells, strict=True))
        if not all(row[name].strip() for name in _REQUIRED):
            raise SpecError(f"{path.name}:{number} lacks its {', '.join(_REQUIRED)}")
        yield row
