"""Catalogue: well-known models by short name, for people without a network.

Each entry is the part of the model's public config.json that the architecture follows from, with
its address; ``load_named`` reads it as any other config. Aliases are the models' names on the
Hugging Face hub, in any case, with ``/`` or ``--`` between owner and name.

Limits   Facts as published by November 2026; a fine-tuned model has the architecture of its base.
Sources  Each entry's own ``source``.
"""

import json
from functools import cache
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


def _key(name: str) -> str:
    return name.strip().lower().replace("--", "/").replace("_", "-")


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
    key = _key(name)
    if key not in aliases:
        raise unknown_name("model", name, aliases)
    return aliases[key]


@cache
def load_named(name: str) -> Architecture:
    """Load a model of the catalogue.

    Raises:
        UnknownNameError: no such model; the message has the nearest names.

    >>> load_named("tinyllama-1.1b").parameters
    1100048384
    """
    short = resolve(name)
    entry = _entries()[short]
    return read_family(
        entry["config"],
        name=short,
        where=f"catalogue, {short}",
        formats=None,
        source=entry["source"],
    )
