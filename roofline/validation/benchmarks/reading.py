"""Reading files that anybody may have written: size, encoding and nesting are limited.

JSON documents may stand alone, one a line, or one after another; NaN and Infinity are let through
here and dropped where numbers are read. Files may be gzipped.
"""

import csv
import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any

from roofline.errors import InputError

LARGEST_BYTES = 512 * 10**6
_GZIP_MAGIC = b"\x1f\x8b"


def read_text(path: Path) -> str:
    """Read a text file, gzipped or not.

    Raises:
        InputError: not a readable file, more than ``LARGEST_BYTES``, or no UTF-8 text.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the benchmark's file in it")
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)  # never all of it: a device has no end
        if len(content) > LARGEST_BYTES:
            raise InputError(f"{path} has more than {LARGEST_BYTES / 1e6:.0f} MB; {_SMALLER}")
        if content.startswith(_GZIP_MAGIC):
            content = _unpacked(path, content)
        decoded = content.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text (UTF-8) file") from None
    if "\0" in decoded:
        raise InputError(f"{path} is no text file: it has zero bytes")
    if not decoded.strip():
        raise InputError(f"{path} is empty")
    return decoded


_SMALLER = "give the summary file, without the details of every request"


def _unpacked(path: Path, content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            unpacked = file.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise InputError(f"{path} is a damaged gzip file") from None
    if len(unpacked) > LARGEST_BYTES:
        raise InputError(f"{path} unpacks to more than {LARGEST_BYTES / 1e6:.0f} MB; {_SMALLER}")
    return unpacked


def json_documents(text: str, path: Path) -> list[Any]:
    """Read all JSON documents of a text, one after another.

    Raises:
        InputError: one of them is cut or no JSON; the message says where.

    >>> json_documents('{"a": 1}' + chr(10) + '{"a": Infinity}', Path("runs.jsonl"))
    [{'a': 1}, {'a': inf}]
    """
    decoder = json.JSONDecoder()
    documents, position = [], _next(text, 0)
    while position < len(text):
        try:
            document, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            cut = not text[error.pos :].strip()
            what = "is cut off" if cut else f"is no JSON ({error.msg})"
            raise InputError(f"{path}:{error.lineno} {what}, column {error.colno}") from None
        except RecursionError:
            raise InputError(f"{path} is nested too deep to be a benchmark's file") from None
        except ValueError as error:  # a number of thousands of digits
            raise InputError(f"{path} is no JSON: {str(error)[:80]}") from None
        documents.append(document)
        position = _next(text, position)
    return documents


def _next(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    return position


def csv_lines(text: str, path: Path) -> list[list[str]]:
    """Read the lines of a CSV text, empty ones included.

    Raises:
        InputError: no CSV.
    """
    try:
        return list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise InputError(f"{path} is no CSV: {error}") from None
