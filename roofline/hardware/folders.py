"""Folders: where specs, links, prices and records are looked for, and in which order.

The user's own folders (``ROOFLINE_SPEC_PATH``, one or several) come first, then what travels in the
wheel (``roofline/_data/``), then the checkout that roofline runs from. The first folder that has a
file of the asked name wins, so a user's file replaces ours.

Limits   A user's folder may hold specs directly, or ``gpu_specs/`` and ``measurements/`` as here.
"""

import os
from pathlib import Path

from roofline.errors import SpecError

PACKAGE = Path(__file__).resolve().parents[1]
SPEC_PATH_VARIABLE = "ROOFLINE_SPEC_PATH"


def data_folders(kind: str) -> tuple[Path, ...]:
    """List the folders that hold one kind of data, in the order of search.

    Args:
        kind: ``gpu_specs``, ``gpu_specs/links``, ``gpu_specs/prices`` or ``measurements``.

    Raises:
        SpecError: ``ROOFLINE_SPEC_PATH`` names something that is no folder.

    >>> data_folders("gpu_specs")[-1].name
    'gpu_specs'
    """
    folders: list[Path] = []
    for entry in os.environ.get(SPEC_PATH_VARIABLE, "").split(os.pathsep):
        if not entry.strip():
            continue
        own = Path(entry.strip()).expanduser()
        if not own.is_dir():
            raise SpecError(
                f"{SPEC_PATH_VARIABLE} has {str(own)!r}, which is no folder; "
                f"name folders separated by {os.pathsep!r}, or unset it"
            )
        folders.append(own / kind)
        inside = Path(kind).parts[1:]  # a folder of specs needs no gpu_specs/ above it
        if Path(kind).parts[0] == "gpu_specs":
            folders.append(own.joinpath(*inside))
    folders += [PACKAGE / "_data" / kind, PACKAGE.parent / kind]
    return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))
