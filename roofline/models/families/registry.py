"""Registry: which reader reads which family, and what is common to all of them.

Limits   A wrapper around a text model (vision, audio) is read for its text model; the towers beside
         it are counted apart.
Sources  See facts.py.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from roofline.dtypes import Dtype
from roofline.errors import UnsupportedError
from roofline.models.architecture import Architecture, LayerGroup
from roofline.models.context import max_context
from roofline.models.draft import Draft, finish
from roofline.models.families.decoder import HEADS, read_decoder
from roofline.models.families.facts import Facts
from roofline.models.families.family_table import FAMILIES
from roofline.models.families.latent import DEEPSEEK, read_latent
from roofline.models.families.readers import LATENT, READERS, WRAPPED
from roofline.models.families.refused import REFUSED
from roofline.models.families.sparse import DENSE_WIDTH, EXPERTS, WIDTH
from roofline.models.families.towers import read_towers
from roofline.models.fields import Fields, show
from roofline.models.quantisation import Scheme, apply, read_scheme

NESTED = ("text_config", "llm_config", "language_config", "language_model_config", "lm_config",
          "thinker_config", "decoder_config", "decoder")  # fmt: skip
INHERITED = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config")
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")

MATTERS = re.compile(
    r"_lora_rank$|layer.*types?$|layers?_block_type|^compress|window|block_types|hybrid.*pattern"
    r"|_every_n_|_interval$|_period$|^mtp_|linear_attn|^index_|^indexer|kv_shared|cross_attention"
    r"|zero_expert|latent|routed_expert_hidden|^hc_|^attn_res|^kda_|gate_rank|conv_kernel|^ssm_|^mamba_|state_size"
)
HARMLESS = frozenset({
    "add_cross_attention", "cross_attention_hidden_size", "cross_attention_freq",
    "use_sliding_window", "sliding_window", "max_window_layers", "index_topk_freq",
    "index_skip_topk_offset", "index_share_for_mtp_iteration", "indexer_rope_interleave",
    "num_nextn_predict_layers", "mtp_loss_scaling_factor", "tie_word_embeddings",
    "no_rope_layer_interval", "no_rope_layers", "latent_moe_use_norm", "hc_eps",
    "hc_sinkhorn_iters", "hc_magnitude", "compress_rope_theta", "mtp_use_dedicated_embeddings",
    "kda_safe_gate", "kda_lower_bound", "mamba_hidden_act", "mamba_chunk_size",
    "mamba_norm_before_gate", "mamba_ssm_dtype", "mamba_ssm_cache_dtype", "num_kv_shared_layers",
    "layer_rope_theta", "ssm_in_multiplier", "ssm_out_multiplier", "ssm_multipliers",
    "mamba_dt_rank", "use_mamba_kernels", "moe_layer_interval", "layer_types", "mlp_layer_types",
    "chunk_attn_window",
})  # fmt: skip


def text_fields(top: Fields) -> tuple[Fields, str, bool]:
    """Find the part of a config that describes the text model, its type, whether it is nested."""
    model_type = top.text("model_type")
    if top.has(*LAYER_COUNTS) and not (model_type in WRAPPED and top.has(*NESTED)):
        return top, model_type, False
    inner = top.child(*NESTED)
    if inner is None:
        return top, model_type, False
    deeper = inner.child(*NESTED) if not inner.has(*LAYER_COUNTS) else None
    inner = deeper or inner
    inherited = {key: top.values[key] for key in INHERITED if top.values.get(key) is not None}
    own, outer = inner.values.get("tie_word_embeddings"), inherited.get("tie_word_embeddings")
    if own is not None and outer is not None and own != outer:
        top.assume("tie_word_embeddings differs between the levels of the config: the outer counts")
    values = {**inner.values, **{k: v for k, v in inherited.items() if k != "dtype"}}
    if inner.has("torch_dtype", "dtype"):
        values |= {k: inner.values[k] for k in ("torch_dtype", "dtype") if k in inner.values}
    fields = Fields(values, inner.where, top.notes)
    inner_type = fields.text("model_type")
    return fields, inner_type or WRAPPED.get(model_type, model_type), True


def reader_for(model_type: str, fields: Fields) -> Callable[[Fields], Draft]:
    """Choose the reader of a family; unknown families with the usual fields get the usual one."""
    if model_type in REFUSED:
        known = len(READERS) + len(LATENT) + len(FAMILIES)
        raise UnsupportedError(
            f"{fields.where}: model_type {show(model_type)} is not modelled: "
            f"{REFUSED[model_type]}; "
            f"{known} families of decoders are"
        )
    if fields.values.get("is_encoder_decoder") is True:
        raise UnsupportedError(f"{fields.where}: an encoder with a decoder is not modelled")
    if model_type in READERS:
        return READERS[model_type]
    if model_type in LATENT:
        facts = LATENT[model_type]
        return lambda given: read_latent(given, facts)
    family = FAMILIES.get(model_type) or FAMILIES.get(model_type.removesuffix("_text"))
    if family is not None:
        chosen = family
        return lambda given: read_decoder(given, chosen)
    said = f"model_type {show(model_type)} is not known" if model_type else "model_type not given"
    if fields.has("compress_ratios", "compress_rates") and fields.has("o_lora_rank"):
        fields.assume(f"{said}: read as DeepSeek-V4, by its fields")
        return READERS["deepseek_v4"]
    if fields.has("linear_num_value_heads", "full_attention_interval"):
        fields.assume(f"{said}: read as gated delta networks with attention, by its fields")
        return READERS["qwen3_5_text"]
    if fields.has("kv_lora_rank"):
        fields.assume(f"{said}: read as a decoder with latent attention, by its fields")
        return lambda given: read_latent(given, DEEPSEEK)
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
    """Read a config into an architecture: text model, context, formats, towers.

    Raises:
        SpecError: a field is missing or cannot be.
        UnsupportedError: parts that are not modelled.
    """
    if not config:
        raise Fields(config, where).error("an empty mapping; a model's config has layers and sizes")
    top = Fields(config, where)
    outer = top.text("model_type")
    if outer in REFUSED:
        reader_for(outer, top)
    fields, model_type, nested = text_fields(top)
    model_type = model_type or _from_class(top)
    _fill(fields, model_type)
    fields.partial = _is_excerpt(fields)
    draft = reader_for(model_type, fields)(fields)
    scheme = read_scheme(fields, formats)
    if scheme != Scheme():
        draft = _store(draft, scheme)
    architecture = finish(draft, fields, name=name, source=source, model_type=model_type)
    towers = (
        (*architecture.towers, *read_towers(top, fields))
        if nested or top.has("vision_config", "audio_config")
        else architecture.towers
    )
    dtype = _dtype(fields)
    context = max_context(fields)
    biases = _router_biases(architecture, fields, model_type)
    _say_unmodelled(fields)
    return replace(
        architecture,
        dtype=dtype,
        kv_dtype=scheme.kv_dtype,
        quantisation=scheme.words,
        max_context_tokens=context,
        towers=towers,
        router_biases=biases,
        assumptions=tuple(fields.notes),
    )


_CLASS_ENDS = re.compile(r"(ForCausalLM|ForConditionalGeneration|LMHeadModel|Model)$")


def _from_class(top: Fields) -> str:
    """Find a model_type by the name of the class (``architectures``) when none is given."""
    for entry in top.items("architectures") or ():
        word = _CLASS_ENDS.sub("", entry).lower() if isinstance(entry, str) else ""
        for known in (*READERS, *LATENT, *FAMILIES, *REFUSED):
            if word and known.replace("_", "") == word.replace("_", ""):
                top.assume(f"model_type not given: {known}, by the name of the class")
                return known
    return ""


UNSAID: dict[str, dict[str, int]] = {
    "gemma3_text": {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
    },
}  # fmt: skip
"""Sizes that a family's public configs leave out where they are the class's own."""


def _fill(fields: Fields, model_type: str) -> None:
    """Add the sizes that a family's public configs leave out, and say so."""
    for name, value in UNSAID.get(model_type, {}).items():
        if fields.has("num_hidden_layers") and fields.values.get(name) is None:
            fields.assume(f"{name} not given: taken as {value}, as the family")
            fields.values = {**fields.values, name: value}


def _is_excerpt(fields: Fields) -> bool:
    """Whether a config describes attention alone: neither a vocabulary nor a feed-forward."""
    if fields.has("vocab_size", "padded_vocab_size", *DENSE_WIDTH, *WIDTH, *EXPERTS):
        return False
    if not fields.has(*HEADS) or fields.text("model_type") in BY_RULE:
        return False
    fields.assume(
        "an excerpt of a config, without vocabulary and feed-forward: only attention counts, "
        "weights and times are too low"
    )
    return True


BY_RULE = frozenset({"gpt2", "gpt_bigcode", "gptj", "gpt_neo", "codegen", "bloom", "mpt", "dbrx"})
"""Families whose feed-forward follows from the hidden size: no excerpt can be told from them."""

BALANCED = frozenset({
    "deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_linear", "glm4_moe", "glm4_moe_lite",
    "glm_moe_dsa", "minimax_m2", "dots1", "mimo_v2_flash", "longcat_flash", "lfm2_moe",
    "exaone_moe", "deepseek_v4",
})  # fmt: skip
"""Families whose checkpoints hold a bias for each expert, to balance them, that no class counts."""


def _router_biases(architecture: Architecture, fields: Fields, model_type: str) -> int:
    stated = fields.text("topk_method") == "noaux_tc" or any(
        fields.flag(name, default=False) for name in ("use_routing_bias", "use_moe_router_bias")
    )
    if not stated and model_type not in BALANCED:
        return 0
    return sum(
        group.n_layers * (group.experts.n_experts + group.experts.n_identity)
        for group in architecture.layers
        if group.experts is not None
    )


def _store(draft: Draft, scheme: Scheme) -> Draft:
    """Put the checkpoint's formats on every matrix."""
    head = draft.head
    if head is not None:
        for names, dtype in scheme.listed:
            if names.has(head.name):
                head = replace(head, dtype=dtype)
                break
    return replace(
        draft,
        layers=[apply(scheme, layer) for layer in draft.layers],
        prediction=[_predicted(scheme, layer) for layer in draft.prediction],
        head=head,
    )


def _predicted(scheme: Scheme, layer: LayerGroup) -> LayerGroup:
    """Formats of a prediction layer: excluded when the list names them by either of their names."""
    if scheme.excluded.has("mtp.layers.0"):
        return layer
    return apply(scheme, layer)


_DTYPES = {
    "bfloat16": Dtype.BF16, "bf16": Dtype.BF16, "float16": Dtype.FP16, "fp16": Dtype.FP16,
    "half": Dtype.FP16, "float32": Dtype.FP32, "fp32": Dtype.FP32, "float": Dtype.FP32,
}  # fmt: skip


def _dtype(fields: Fields) -> Dtype:
    name, value = fields.find("torch_dtype", "dtype", "params_dtype")
    if not name:
        fields.assume("dtype not given: taken as bf16")
        return Dtype.BF16
    word = str(value).removeprefix("torch.").lower() if isinstance(value, str) else ""
    if word == "auto":
        fields.assume("dtype is 'auto': taken as bf16")
        return Dtype.BF16
    if word not in _DTYPES:
        raise fields.error(f"'{name}' is {show(value)}; known are {', '.join(_DTYPES)}")
    return _DTYPES[word]


def _say_unmodelled(fields: Fields) -> None:
    """Note keys that matter and that no reader has looked at."""
    for key, value in fields.values.items():
        if key in fields.seen or key in HARMLESS or value in (None, False, 0, [], {}):
            continue
        if isinstance(key, str) and MATTERS.search(key):
            fields.assume(f"unmodelled field {key} = {show(value)}: not part of this answer")
