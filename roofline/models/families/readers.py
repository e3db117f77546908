"""Readers: the families that the shared pattern does not cover, and wrappers' inner types."""

from collections.abc import Callable
from dataclasses import replace

from roofline.models.draft import Draft
from roofline.models.families.compressed import read_deepseek_v4
from roofline.models.families.facts import Facts
from roofline.models.families.gemma import read_gemma3n, read_gemma4
from roofline.models.families.hybrid import (
    QWEN_NEXT,
    read_bamba,
    read_falcon_h1,
    read_gated_delta,
    read_granite_hybrid,
    read_jamba,
    read_olmo_hybrid,
)
from roofline.models.families.latent import DEEPSEEK, read_longcat
from roofline.models.families.linear import (
    read_bailing_hybrid,
    read_kimi_linear,
    read_lfm2,
    read_minimax,
    read_recurrent_gemma,
)
from roofline.models.families.nemotron import read_nemotron_h
from roofline.models.families.single import (
    read_bigcode,
    read_dbrx,
    read_doge,
    read_falcon,
    read_gpt_neox_japanese,
    read_hyperclovax,
    read_jetmoe,
    read_laguna,
    read_llama4,
    read_mimo,
    read_mllama,
    read_mpt,
    read_opt,
    read_qwen1,
    read_stablelm,
)
from roofline.models.families.stateful import read_mamba, read_mamba2, read_rwkv, read_xlstm
from roofline.models.families.zamba import read_zamba, read_zamba2
from roofline.models.fields import Fields

Reader = Callable[[Fields], Draft]
LARA = replace(QWEN_NEXT, gate="", head_dim=128, shared_gate=False, tied=True)

READERS: dict[str, Reader] = {
    "longcat_flash": read_longcat,
    "deepseek_v4": read_deepseek_v4,
    "gemma3n_text": read_gemma3n,
    "gemma3n": read_gemma3n,
    "gemma4_text": read_gemma4,
    "gemma4_unified_text": read_gemma4,
    "llama4_text": read_llama4,
    "llama4": read_llama4,
    "mimo_v2_flash": read_mimo,
    "mimo_v2": read_mimo,
    "jetmoe": read_jetmoe,
    "laguna": read_laguna,
    "falcon": read_falcon,
    "gpt_bigcode": read_bigcode,
    "mpt": read_mpt,
    "dbrx": read_dbrx,
    "opt": read_opt,
    "qwen": read_qwen1,
    "hyperclovax": read_hyperclovax,
    "stablelm": read_stablelm,
    "doge": read_doge,
    "gpt_neox_japanese": read_gpt_neox_japanese,
    "mllama_text_model": read_mllama,
    "qwen3_next": lambda fields: read_gated_delta(fields, "next"),
    "qwen3_5_text": read_gated_delta,
    "qwen3_5_moe_text": read_gated_delta,
    "qwen3_5": read_gated_delta,
    "qwen3_5_moe": read_gated_delta,
    "lara_mini": lambda fields: read_gated_delta(fields, "split", LARA),
    "olmo_hybrid": read_olmo_hybrid,
    "jamba": read_jamba,
    "bamba": read_bamba,
    "falcon_h1": read_falcon_h1,
    "granitemoehybrid": read_granite_hybrid,
    "nemotron_h": read_nemotron_h,
    "minimax": read_minimax,
    "minimax_text_01": read_minimax,
    "lfm2": read_lfm2,
    "lfm2_moe": read_lfm2,
    "lfm3": lambda fields: read_lfm2(fields, adjusts=False),
    "bailing_hybrid": read_bailing_hybrid,
    "recurrent_gemma": read_recurrent_gemma,
    "kimi_linear": read_kimi_linear,
    "mamba": read_mamba,
    "falcon_mamba": read_mamba,
    "mamba2": read_mamba2,
    "rwkv": read_rwkv,
    "xlstm": read_xlstm,
    "zamba": read_zamba,
    "zamba2": read_zamba2,
}

LATENT: dict[str, Facts] = {
    "deepseek_v2": replace(DEEPSEEK, n_active=6),
    "deepseek_v3": DEEPSEEK,
    "deepseek_v32": replace(DEEPSEEK, mlp_bias=False),
    "kimi_k2": DEEPSEEK,
    "glm4_moe_lite": DEEPSEEK,
    "glm_moe_dsa": replace(DEEPSEEK, mlp_bias=False),
    "minicpm3": replace(DEEPSEEK, tied=True),
    "youtu": replace(DEEPSEEK, tied=True),
    "sarvam_mla": DEEPSEEK,
    "axk1": replace(DEEPSEEK, sparse_norms=1),
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
