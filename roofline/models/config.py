"""Config: a model's ``config.json``, read into an ``Architecture``. Nothing in it is executed.

``load_model`` takes a catalogue name, a path to a config.json, the folder around it or a GGUF file,
a mapping, or an ``Architecture``; a hub id that was fetched before is read from the local cache. A
family that is known is read as its reference implementation builds it, to the parameter; one that
is not known but has the usual fields is read as the usual decoder, and says so; one whose parts are
not modelled is refused by name.

Limits   Dimensions and formats only: weights and tokenizers are not opened (checkpoint.py reads the
         headers of weight files, hub.py fetches configs when asked).
Sources  See families/facts.py.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roofline.errors import InputError, SpecError
from roofline.files import read_text
from roofline.models.architecture import Architecture
from roofline.models.catalogue import load_named
from roofline.models.families.registry import read_family
from roofline.models.fields import show
from roofline.models.gguf_model import load_gguf
from roofline.models.hub_cache import cached_folder

LARGEST_FILE = 64 * 2**20
"""Bytes of a config that is still read; the largest known quantisation list has 1 MB."""


def load_model(source: "str | Path | Mapping[str, Any] | Architecture") -> Architecture:
    """Load a model by catalogue name, path, mapping, or hand an ``Architecture`` through.

    Raises:
        UnknownNameError: no such name or path; the message has the nearest names.
        SpecError: the config cannot be read.
        UnsupportedError: the model has parts that are not modelled; the message names them.

    >>> load_model({"model_type": "llama", "num_hidden_layers": 22, "hidden_size": 2048,
    ...     "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632,
    ...     "vocab_size": 32000, "tie_word_embeddings": False}).parameters
    1100048384
    """
    if isinstance(source, Architecture):
        return source
    if isinstance(source, Mapping):
        return read_config(source, name=_own_name(source), where="config")
    if isinstance(source, Path):
        return load_path(source)
    if not isinstance(source, str):
        raise InputError(f"a model is a name, a path or a mapping, got {show(source)}")
    if _looks_like_path(source):
        return load_path(Path(source))
    cached = cached_folder(source)
    if cached is None:
        return load_named(source)
    return load_path(cached).renamed(source.rsplit("/", 1)[-1].lower())


def _looks_like_path(text: str) -> bool:
    if not text or "\0" in text or len(text) > 4096:
        return False
    if text.endswith((".json", ".gguf")) or text.startswith((".", "/", "~")):
        return True
    try:
        return Path(text).exists()
    except OSError:
        return False


def _own_name(config: Mapping[str, Any]) -> str:
    name = config.get("_name_or_path") or config.get("model_type") or "model"
    return Path(str(name)).name or "model"


def load_path(path: Path) -> Architecture:
    """Load a model from a config.json or the folder that holds it.

    Raises:
        SpecError: no such file, or it cannot be read.
    """
    path = path.expanduser()
    try:
        folder = path if path.is_dir() else path.parent
        file = path / "config.json" if path.is_dir() else path
        if not file.is_file():
            ggufs = sorted(path.glob("*.gguf")) if path.is_dir() else []
            if len(ggufs) == 1:
                return load_gguf(ggufs[0])
            what = "the folder has no config.json" if path.is_dir() else "no such file"
            raise SpecError(f"{path}: {what}; a model is a config.json or the folder with it")
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read ({error})") from None
    if file.suffix == ".gguf":
        return load_gguf(file)
    config = read_json(file)
    beside = folder / "hf_quant_config.json"
    formats = read_json(beside) if beside.is_file() else None
    name = folder.resolve().name.rsplit("--", 1)[-1] if file.name == "config.json" else file.stem
    return read_config(config, name=name, where=str(file), formats=formats)


def read_json(file: Path) -> Mapping[str, Any]:
    """Read a JSON file that holds a mapping.

    Raises:
        SpecError: it is too large, no text, no JSON, or no mapping.
    """
    text = read_text(file, most_bytes=LARGEST_FILE, what="a JSON file")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise SpecError(f"{file}, line {error.lineno}: no JSON ({error.msg})") from None
    except (RecursionError, ValueError):
        raise SpecError(f"{file}: no JSON (nested too deep or a number too long)") from None
    if not isinstance(value, Mapping):
        raise SpecError(f"{file}: holds {type(value).__name__}; a config is a mapping")
    return value


def read_config(
    config: Mapping[str, Any],
    *,
    name: str,
    where: str,
    formats: Mapping[str, Any] | None = None,
    source: str = "",
) -> Architecture:
    """Read a config that is already a mapping; ``formats`` is the hf_quant_config.json beside it.

    Raises:
        SpecError: a field is missing or cannot be.
        UnsupportedError: the model has parts that are not modelled.
    """
    return read_family(config, name=name, where=where, formats=formats, source=source or where)
