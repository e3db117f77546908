"""Text files of users, read whole up to a limit: a device or a disk image is refused, not read.

Units    bytes.
"""

from pathlib import Path

from roofline.errors import SpecError


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
