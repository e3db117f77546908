"""Facts files: one YAML file is one set of facts, read strictly and kept until it changes.

Limits   What is wrong is said with file and line; a changed file is read again.
"""

from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from roofline.errors import SpecError
from roofline.hardware.folders import data_folders
from roofline.hardware.quantity import FROM_FILE, Facts
from roofline.hardware.spec_errors import spec_error, spec_problems
from roofline.hardware.yaml_file import Document, read_yaml

Kind = TypeVar("Kind", bound=Facts)
SUFFIXES = (".yaml", ".yml")


def yaml_files(kind: str) -> dict[str, Path]:
    """Find the YAML files of one kind of facts, by id; a user's file comes before ours."""
    files: dict[str, Path] = {}
    for folder in data_folders(kind):
        for path in folder.iterdir():
            if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file():
                files.setdefault(path.stem.lower(), path)
    return files


def read_facts(path: Path, model: type[Kind], what: str) -> Kind:
    """Read one file of facts.

    Args:
        path: the file.
        model: what it holds.
        what: the same in a word, for errors.

    Raises:
        SpecError: the file does not load; the message has file, line and what to write.
    """
    try:
        stat = path.stat()
    except (OSError, ValueError):
        raise SpecError(f"no {what} file {str(path)[:200]!r}") from None
    found = _read_cached(path, model, what, stat.st_mtime_ns, stat.st_size)
    if not isinstance(found, model):
        raise SpecError(f"{path}: holds no {what}")
    return found


@lru_cache(maxsize=1024)
def _read_cached(path: Path, model: type[Facts], what: str, mtime_ns: int, size: int) -> Facts:
    del mtime_ns, size  # part of the key, so that a changed file is read again
    document = _read_mapping(path, what)
    try:
        return model.model_validate(document.value, context=FROM_FILE)
    except ValidationError as error:
        raise spec_error(document, model, error) from None


def _read_mapping(path: Path, what: str) -> Document:
    document = read_yaml(path)
    if not isinstance(document.value, dict):
        raise SpecError(f"{path}:1: a {what} is a mapping of fields (id: ..., name: ...)")
    return document


def facts_problems(path: Path, model: type[Facts], what: str) -> tuple[str, ...]:
    """Everything that is wrong with a file, one line each with file and line; empty: good."""
    try:
        document = _read_mapping(path, what)
        model.model_validate(document.value, context=FROM_FILE)
    except ValidationError as error:
        return spec_problems(document, model, error)
    except SpecError as error:
        return (str(error),)
    return ()
