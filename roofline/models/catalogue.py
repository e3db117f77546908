"""Catalogue: well-known models by short name, for people without a network.

Each entry is the part of the model's public config.json that the architecture follows from (or what
it adds to its ``base``), with its address; ``load_named`` reads it as any other config. Aliases are
the models' names on the Hugging Face hub, in any case, with ``/`` or ``--`` between owner and name;
words that change no dimension (``-Instruct``, ``-it``, ``-hf``) may be missing or there.

Limits   Facts as published by November 2026; a fine-tuned model has the architecture of its base.
Sources  Each entry's own ``source``.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from roofline.errors import unknown_name
from roofline.models.architecture import Architecture
from roofline.models.families.registry import read_family


@cache
def _entries() -> dict[str, dict[str, Any]]:
    text = files("roofline.models").joinpath("data/catalogue.json").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = json.loads(text)
    return entries


@cache
def _aliases() -> dict[str, str]:
    aliases: dict[str, str] = {}
    for name, entry in _entries().items():
        for alias in (name, entry["hub"], entry["hub"].split("/")[-1], *entry["aliases"]):
            aliases.setdefault(_key(alias), name)
            aliases.setdefault(_key(alias.split("/")[-1]), name)
    return aliases


_HARMLESS = ("-instruct", "-it", "-chat", "-hf", "-base", "-bf16", "-pt", "-preview")


def _key(name: str) -> str:
    return "-".join(name.lower().split()).replace("--", "/").replace("_", "-")


def _candidates(name: str) -> Iterator[str]:
    """The name as it is, without its owner, and without words that change no dimension."""
    key = _key(name)
    for form in (key, key.rsplit("/", 1)[-1]):
        yield form
        for word in _HARMLESS:
            if form.endswith(word):
                yield form.removesuffix(word)


def model_names() -> tuple[str, ...]:
    """List the catalogue's names.

    >>> "llama-3.1-8b" in model_names()
    True
    """
    return tuple(sorted(_entries()))


def resolve(name: str) -> str:
    """Find the short name of a name or alias.

    Raises:
        UnknownNameError: no such model; the message has the nearest names.

    >>> resolve("meta-llama--Llama-3.1-8B-Instruct")
    'llama-3.1-8b'
    """
    aliases = _aliases()
    for form in _candidates(name):
        if form in aliases:
            return aliases[form]
    raise unknown_name("model", name, _entries())


@lru_cache(maxsize=256)
def load_named(name: str) -> Architecture:
    """Load a model of the catalogue.

    Raises:
        UnknownNameError: no such model; the message has the nearest names.

    >>> load_named("tinyllama-1.1b").parameters
    1100048384
    """
    short = resolve(name)
    entry = _entries()[short]
    base = _entries()[entry["base"]]["config"] if "base" in entry else {}
    architecture = read_family(
        {**base, **entry["config"]},
        name=short,
        where=f"catalogue, {short}",
        formats=None,
        source=entry["source"],
    )
    if "note" not in entry:
        return architecture
    return replace(architecture, assumptions=(entry["note"], *architecture.assumptions))
