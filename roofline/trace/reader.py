"""Reader: a torch.profiler chrome trace, plain or gzip, to columns.

msgspec decodes only the fields that are used, when it is installed; the standard library reads the
same file about five times slower. Kernels whose time stamps are zero (a CUPTI defect before CUDA
13.1) are counted and left out of every total.

Limits   ``limit_bytes`` of decoded text (4 GiB unless told otherwise), against files that unpack
         without end.
Sources  [1] PyTorch, torch.profiler, ``export_chrome_trace`` (torch 2.11: event fields as written).
         [2] pytorch/pytorch issue 188481 and kineto issue 109: kernels with ts = 0 and dur = 0.
"""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from roofline.errors import InputError, MissingPackageError
from roofline.trace.columns import columns_of
from roofline.trace.events import Trace
from roofline.units import GIB, MB, show

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 16 * MB
DEFAULT_LIMIT_BYTES = 4 * GIB


def read_trace(
    path: "str | Path | Trace", *, reader: str = "auto", limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Trace:
    """Read a chrome trace that ``torch.profiler`` exported (``.json`` or ``.json.gz``).

    Args:
        path: the file; a trace already read passes through.
        reader: "msgspec", "json" (standard library) or "auto", the first that is installed.
        limit_bytes: most bytes of text to unpack.

    Raises:
        InputError: no such file, cut, no JSON, no trace, or larger than the limit.

    >>> import json, tempfile
    >>> kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1.0, "dur": 2.0, "pid": 0,
    ...           "tid": 7, "args": {"stream": 7, "correlation": 5}}
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write(json.dumps({"traceEvents": [kernel]}))
    ...     file.flush()
    ...     len(read_trace(file.name).device)
    1
    """
    if isinstance(path, Trace):
        return path
    file = Path(path)
    text = _text(file, limit_bytes)
    if reader not in ("auto", "msgspec", "json"):
        raise InputError(f"no trace reader {reader!r}; use auto, msgspec or json")
    document, read_by = _decode(text, file, reader)
    return columns_of(document, source=str(file), read_by=read_by)


def _text(file: Path, limit_bytes: int) -> bytes:
    if not file.exists():
        raise InputError(f"no trace file {str(file)!r}; give a .json or .json.gz of torch.profiler")
    if file.is_dir():
        raise InputError(f"{str(file)!r} is a folder; give one trace file, or several of them")
    if not file.is_file():  # a device has no end, a pipe cannot be read twice
        raise InputError(f"{str(file)!r} is a device or a pipe; save the trace to a file first")
    try:
        with file.open("rb") as raw:
            packed = raw.read(2) == _GZIP_MAGIC
        if not packed:
            if file.stat().st_size > limit_bytes:
                raise _too_large(file, limit_bytes)
            text = file.read_bytes()
        else:
            text = _unpack(file, limit_bytes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{file.name}: the gzip file is cut or damaged ({error}); export the trace again"
        ) from None
    except OSError as error:
        raise InputError(f"{file.name}: cannot be read ({error.strerror or error})") from None
    if not text.strip():
        raise InputError(f"{file.name} is empty; export the trace again")
    return text


def _unpack(file: Path, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    with gzip.open(file, "rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > limit_bytes:
                raise _too_large(file, limit_bytes)
            parts.append(chunk)
    return b"".join(parts)


def _too_large(file: Path, limit_bytes: int) -> InputError:
    return InputError(
        f"{file.name} holds more than {show(limit_bytes, 'GiB')} of text; "
        "profile fewer steps (torch.profiler.schedule) or raise limit_bytes"
    )


def _decode(text: bytes, file: Path, reader: str) -> tuple[Any, str]:
    if reader != "json":
        try:
            from roofline.trace.fast import decode
        except ImportError:
            if reader == "msgspec":
                raise MissingPackageError(
                    "msgspec is not installed; pip install 'roofline[fast]', or reader='json'"
                ) from None
        else:
            document = decode(text)
            if document is not None:
                return document, "msgspec"
    try:
        return json.loads(text), "json"
    except (UnicodeDecodeError, ValueError) as error:
        raise InputError(_broken(text, file, error)) from None
    except RecursionError:
        raise InputError(f"{file.name}: nested too deeply to be a profiler trace") from None


def _broken(text: bytes, file: Path, error: Exception) -> str:
    tail = text.rstrip()[-1:]
    if isinstance(error, json.JSONDecodeError):
        where = f"line {error.lineno}, character {error.pos:,}"
        if text.lstrip()[:1] in (b"{", b"[") and error.pos >= len(text) * 0.99 - 64:
            what = "the file is cut" if tail not in (b"}", b"]") else "the JSON does not end"
            return f"{file.name}: {what} at {where} of {len(text):,}; export the trace again"
        return f"{file.name}: no JSON at {where} ({error.msg}); is it a chrome trace?"
    return f"{file.name}: no JSON ({type(error).__name__}); is it a chrome trace?"
