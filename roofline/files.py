"""Files of users: read up to a limit, and written whole or not at all.

Units    bytes.
Limits   A device or a disk image is refused, not read.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roofline.errors import InputError, SpecError


def read_text(path: Path, *, most_bytes: int, what: str, errors: str = "strict") -> str:
    """Read a UTF-8 file of at most so many bytes; ``what`` names its content in errors.

    ``errors`` is ``bytes.decode``'s: what becomes of bytes that are no UTF-8.

    Raises:
        SpecError: no such file, a folder, longer than ``most_bytes``, or no UTF-8 text.

    >>> read_text(Path("/dev/zero"), most_bytes=1000, what="prices")
    Traceback (most recent call last):
    roofline.errors.SpecError: /dev/zero: larger than 1,000 bytes, which is too long for prices
    """
    try:
        with path.open("rb") as file:
            raw = file.read(most_bytes + 1)  # never all of it: /dev/zero has no end
    except OSError as error:
        raise SpecError(f"{path}: cannot be read as {what}: {error.strerror or error}") from None
    except ValueError:  # a NUL in the name
        raise SpecError(f"{str(path)!r} is no file name") from None
    if len(raw) > most_bytes:
        raise SpecError(f"{path}: larger than {most_bytes:,} bytes, which is too long for {what}")
    try:
        return raw.decode("utf-8-sig", errors)
    except UnicodeDecodeError:
        raise SpecError(f"{path}: cannot be read as {what}: not text in UTF-8") from None


@contextmanager
def replacing(path: Path, *, make_folder: bool = False) -> Iterator[Path]:
    """Give a file beside ``path`` to write, which takes its name when all went well.

    Raises:
        InputError: the folder does not exist or cannot be written.

    >>> with replacing(Path("/no/such/folder/a.csv")) as temporary:
    ...     pass
    Traceback (most recent call last):
    roofline.errors.InputError: cannot write /no/such/folder/a.csv: No such file or directory
    """
    temporary = None
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        # no suffix of the target: a reader of the folder must not find it
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, make_folder: bool = False) -> Path:
    """Write a text file in UTF-8 and give its path.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    with replacing(path, make_folder=make_folder) as temporary:
        temporary.write_bytes(text.encode())
    return path
