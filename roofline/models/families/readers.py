"""Readers: the families that the shared pattern does not cover, and wrappers' inner types."""

from collections.abc import Callable
from dataclasses import replace

from roofline.models.draft import Draft
from roofline.models.families.facts import Facts
from roofline.models.families.latent import DEEPSEEK, read_longcat
from roofline.models.fields import Fields

READERS: dict[str, Callable[[Fields], Draft]] = {
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

WRAPPED: dict[str, str] = {
    "qwen2_vl": "qwen2", "qwen2_5_vl": "qwen2", "qwen3_vl": "qwen3", "qwen3_vl_moe": "qwen3_moe",
    "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text", "gemma3": "gemma3_text",
    "gemma4": "gemma4_text", "gemma3n": "gemma3n_text", "llama4": "llama4_text",
    "mllama": "mllama_text_model", "paligemma": "gemma", "llava": "llama",
    "llava_next": "llama", "llava_onevision": "qwen2", "mistral3": "mistral", "idefics3": "llama",
    "smolvlm": "llama", "kimi_k25": "deepseek_v3", "kimi_vl": "deepseek_v3",
    "internvl_chat": "qwen2", "internvl": "qwen2", "glm4v": "glm4", "glm4v_moe": "glm4_moe",
}  # fmt: skip
"""Type of the text model when a wrapper's own text config does not name it."""
