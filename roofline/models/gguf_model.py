"""GGUF model: a GGUF file's metadata read into an ``Architecture``, each matrix in its block type.

The metadata is translated to the words of a config.json and read by the same family readers; the
block types come from the file's own tensor list.

Limits   The architectures in ``ARCHITECTURES``; others are refused by name. The token table's block
         type is not part of an ``Architecture``: ``read_checkpoint`` has the file's exact bytes.
Sources  [1] ggml, docs/gguf.md (2026-11). [2] llama.cpp, gguf-py, constants: tensor names.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from roofline.dtypes import DTYPES, Dtype
from roofline.errors import SpecError, UnsupportedError
from roofline.models.architecture import Architecture, LayerGroup, Linear
from roofline.models.families.registry import read_family
from roofline.models.fields import show
from roofline.models.gguf_header import GgufHeader, read_gguf
from roofline.models.parts import merge

# general.architecture: model_type, and whether experts make it another
ARCHITECTURES: dict[str, str] = {
    "llama": "llama", "qwen2": "qwen2", "qwen2moe": "qwen2_moe", "qwen3": "qwen3",
    "qwen3moe": "qwen3_moe", "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3_text",
    "phi3": "phi3", "command-r": "cohere", "cohere2": "cohere2", "starcoder2": "starcoder2",
    "olmo": "olmo", "olmo2": "olmo2", "olmoe": "olmoe", "granite": "granite",
    "granitemoe": "granitemoe", "stablelm": "stablelm", "gpt-oss": "gpt_oss",
    "deepseek2": "deepseek_v2", "internlm2": "internlm2", "smollm3": "smollm3",
    "exaone": "exaone", "exaone4": "exaone4", "mistral3": "ministral3", "seed_oss": "seed_oss",
    "baichuan": "baichuan", "glm4": "glm4", "apertus": "apertus", "ernie4_5": "ernie4_5",
    "arcee": "arcee", "minicpm": "minicpm",
}  # fmt: skip
KEYS: dict[str, str] = {
    "block_count": "num_hidden_layers", "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim",
    "context_length": "max_position_embeddings", "attention.sliding_window": "sliding_window",
    "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size", "vocab_size": "vocab_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "expert_shared_count": "n_shared_experts", "leading_dense_block_count": "first_k_dense_replace",
    "attention.kv_lora_rank": "kv_lora_rank", "attention.q_lora_rank": "q_lora_rank",
}  # fmt: skip
TENSORS: dict[str, str] = {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
    "qkv_proj": "attn_qkv", "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
    "w1": "ffn_gate", "w3": "ffn_up", "w2": "ffn_down", "c_fc": "ffn_up", "c_proj": "ffn_down",
    "q_a_proj": "attn_q_a", "q_b_proj": "attn_q_b", "kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "kv_b_proj": "attn_kv_b", "gate": "ffn_gate_inp", "router": "ffn_gate_inp",
}  # fmt: skip
_BLOCK = re.compile(r"blk\.(\d+)\.(.+)\.weight$")


def load_gguf(file: Path) -> Architecture:
    """Load a model from a GGUF file's header.

    Raises:
        SpecError: the file cannot be read, or its metadata lacks what the architecture needs.
        UnsupportedError: an architecture that is not modelled; the message names it.
    """
    header = read_gguf(file)
    kind = header.metadata.get("general.architecture")
    if not isinstance(kind, str):
        raise SpecError(f"{file}: no 'general.architecture'; a GGUF model has one")
    if kind not in ARCHITECTURES:
        raise UnsupportedError(
            f"{file}: GGUF architecture {show(kind)} is not modelled; "
            f"modelled are {', '.join(sorted(ARCHITECTURES))}"
        )
    config = _config(header, kind)
    model = read_family(config, name=file.stem, where=str(file), formats=None, source=str(file))
    return _with_blocks(model, header)


def _config(header: GgufHeader, kind: str) -> dict[str, object]:
    """Translate metadata to the words of a config.json."""
    config: dict[str, object] = {"model_type": ARCHITECTURES[kind], "torch_dtype": "float16"}
    for key, word in KEYS.items():
        value = header.metadata.get(f"{kind}.{key}")
        if isinstance(value, list) and value and all(entry == value[0] for entry in value):
            value = value[0]  # one entry a layer, all alike
        if value is not None:
            config[word] = value
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    table = shapes.get("token_embd.weight")
    if table is not None and len(table) == 2:
        config["vocab_size"] = table[1]
    elif "vocab_size" not in config and "tokenizer.ggml.tokens" in header.lengths:
        config["vocab_size"] = header.lengths["tokenizer.ggml.tokens"]
    config["tie_word_embeddings"] = "output.weight" not in shapes
    config["attention_bias"] = any(name.endswith("attn_q.bias") for name in shapes)
    if kind == "llama" and config.get("num_experts"):
        config["model_type"] = "mixtral"
    if kind == "deepseek2":
        _latent(config, header, kind, shapes)
    if kind == "gpt-oss":
        config["intermediate_size"] = config.get("moe_intermediate_size")
    return config


def _latent(
    config: dict[str, object], header: GgufHeader, kind: str, shapes: dict[str, tuple[int, ...]]
) -> None:
    """Add the dimensions of latent attention, which older files write under other keys."""
    rope = header.metadata.get(f"{kind}.rope.dimension_count")
    keys = header.metadata.get(f"{kind}.attention.key_length_mla") or header.metadata.get(
        f"{kind}.attention.key_length"
    )
    values = header.metadata.get(f"{kind}.attention.value_length_mla") or header.metadata.get(
        f"{kind}.attention.value_length"
    )
    if not (isinstance(rope, int) and isinstance(keys, int) and isinstance(values, int)):
        raise SpecError("deepseek2: key_length, value_length and rope.dimension_count are needed")
    config |= {"qk_rope_head_dim": rope, "qk_nope_head_dim": keys - rope, "v_head_dim": values}
    config["n_routed_experts"] = config.pop("num_experts", None)
    config.pop("head_dim", None)
    config["num_key_value_heads"] = config.get("num_attention_heads")


def _with_blocks(model: Architecture, header: GgufHeader) -> Architecture:
    """Put each matrix's block type on it."""
    types: dict[tuple[int, str], str] = {}
    output = None
    for tensor in header.tensors:
        found = _BLOCK.match(tensor.name)
        if found and len(found[1]) < 6:
            types[int(found[1]), found[2]] = tensor.dtype
        elif tensor.name == "output.weight":
            output = DTYPES.get(tensor.dtype)
    layers = [
        _typed(replace(group, n_layers=1, layers=(position,)), types)
        for group in model.layers
        for position in group.layers
    ]
    layers.sort(key=lambda layer: layer.layers)
    head = model.lm_head
    if head is not None and output is not None and output != model.dtype:
        head = replace(head, dtype=output)
    kinds = sorted({tensor.dtype for tensor in header.tensors if len(tensor.shape) > 1})
    table = next((t.dtype for t in header.tensors if t.name == "token_embd.weight"), "")
    notes = model.assumptions
    if table and table != model.dtype.name:
        notes = (*notes, f"the token table is stored in {table} and counted as {model.dtype}")
    return replace(
        model,
        layers=merge(layers),
        lm_head=head,
        quantisation="gguf: " + ", ".join(kinds),
        assumptions=notes,
    )


def _typed(layer: LayerGroup, types: dict[tuple[int, str], str]) -> LayerGroup:
    position = layer.layers[0]

    def stored(suffix: str) -> Callable[[Linear], Linear]:
        def put(linear: Linear) -> Linear:
            word = TENSORS.get(linear.name.rsplit(".", 1)[-1], "")
            shared = "_shexp" if "shared" in linear.name else suffix
            dtype: Dtype | None = DTYPES.get(types.get((position, word + shared), ""))
            return linear if dtype is None else replace(linear, dtype=dtype)

        return put

    linears = tuple(map(stored(""), layer.linears))
    experts = layer.experts
    if experts is not None:
        experts = replace(experts, linears=tuple(map(stored("_exps"), experts.linears)))
    return replace(layer, linears=linears, experts=experts)
