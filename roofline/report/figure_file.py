"""Figures as files: PNG, SVG or PDF, whole or not at all.

Units    150 dots per inch.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from roofline.errors import InputError
from roofline.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def checked_figure_path(path: Path) -> Path:
    """Give back a path that a figure can be written to, before anything is computed for it.

    Raises:
        InputError: another suffix, or no such folder.

    >>> checked_figure_path(Path("roof.gif"))
    Traceback (most recent call last):
    roofline.errors.InputError: roof.gif: a figure is written as .png, .svg or .pdf
    """
    if path.suffix.lower() not in FIGURE_SUFFIXES:
        raise InputError(f"{path}: a figure is written as .png, .svg or .pdf")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")
    return path


def save_figure(figure: "Figure", path: Path) -> Path:
    """Write a figure.

    Raises:
        InputError: another suffix, or a folder that cannot be written.
    """
    suffix = checked_figure_path(path).suffix.lower()
    with replacing(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], dpi=150)
    return path
