"""Registry: which reader reads which family, and what is common to all of them.

Sources  See facts.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from roofline.models.architecture import Architecture
from roofline.models.draft import Draft, finish
from roofline.models.families.decoder import read_decoder
from roofline.models.families.facts import FAMILIES, Facts
from roofline.models.families.latent import DEEPSEEK, read_latent, read_longcat
from roofline.models.fields import Fields

Reader = Callable[[Fields], Draft]

READERS: dict[str, Reader] = {
    "longcat_flash": read_longcat,
}

LATENT: dict[str, Facts] = {
    "deepseek_v2": replace(DEEPSEEK, n_active=6),
    "deepseek_v3": DEEPSEEK,
    "deepseek_v32": DEEPSEEK,
    "kimi_k2": DEEPSEEK,
    "glm4_moe_lite": DEEPSEEK,
    "glm_moe_dsa": DEEPSEEK,
    "minicpm3": replace(DEEPSEEK, tied=True),
    "youtu": replace(DEEPSEEK, tied=True),
    "sarvam_mla": DEEPSEEK,
    "axk1": replace(DEEPSEEK, note="sparse_norm"),
    "mistral4": DEEPSEEK,
}


def reader_for(model_type: str, fields: Fields) -> Reader:
    """Choose the reader of a family; unknown families with the usual fields get the usual one."""
    if model_type in READERS:
        return READERS[model_type]
    if model_type in LATENT:
        facts = LATENT[model_type]
        return lambda given: read_latent(given, facts)
    if model_type in FAMILIES:
        family = FAMILIES[model_type]
        return lambda given: read_decoder(given, family)
    said = f"model_type {model_type!r} is not known" if model_type else "model_type not given"
    if fields.has("kv_lora_rank"):
        fields.assume(f"{said}: read as a decoder with latent attention, by its fields")
        return read_latent
    fields.assume(f"{said}: read as a Llama-like decoder, by its fields")
    return lambda given: read_decoder(given, Facts())


def read_family(
    config: Mapping[str, Any],
    *,
    name: str,
    where: str,
    formats: Mapping[str, Any] | None,
    source: str,
) -> Architecture:
    """Read a config into an architecture: text model, context, formats, towers."""
    top = Fields(config, where)
    model_type = top.text("model_type")
    fields = top
    draft = reader_for(model_type, fields)(fields)
    return finish(draft, fields, name=name, source=source, model_type=model_type)
