"""Single: families with one thing of their own around the shared pattern.

Sources  See facts.py.
"""

from dataclasses import replace

from roofline.models.architecture import Experts, Linear, Split
from roofline.models.attention_parts import AttentionStyle, Heads, grouped_query
from roofline.models.draft import Draft, output_head
from roofline.models.families.decoder import (
    HIDDEN,
    LAYERS,
    VOCAB,
    close,
    heads_of,
    qk_norm,
    read_decoder,
    style_of,
    transform,
)
from roofline.models.families.facts import Facts
from roofline.models.families.family_table import FAMILIES
from roofline.models.families.sparse import dense_width, expert_block, n_experts, sparse_layers
from roofline.models.families.windows import layer_kinds, window_of
from roofline.models.fields import Fields
from roofline.models.parts import Part, feed_forward, join


def read_llama4(fields: Fields) -> Draft:
    """Read Llama-4: chunks, experts in every n-th layer with a shared one, wide dense layers."""
    facts = FAMILIES["llama4_text"]
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    attention = grouped_query(heads_of(fields, hidden, facts.head_dim), style_of(fields, facts))
    if not fields.has("moe_layers", "interleave_moe_layer_step"):
        fields.assume("interleave_moe_layer_step not given: taken as 1, experts in all layers")
        fields.values = {**fields.values, "interleave_moe_layer_step": 1}
    width = fields.count("intermediate_size")
    fields.values = {**fields.values, "shared_expert_intermediate_size": width}
    dense = feed_forward(
        hidden, fields.count("intermediate_size_mlp", default=16384), path="feed_forward"
    )
    routed = expert_block(fields, replace(facts, experts_use_intermediate=True), hidden)
    sparse = sparse_layers(fields, n_layers)
    layers = [
        join(i, attention, routed if sparse[i] else dense, norms=2 * hidden,
             window=window_of(fields, kind))
        for i, kind in enumerate(layer_kinds(fields, n_layers, facts.window))
    ]  # fmt: skip
    return close(fields, facts, layers, hidden)


def read_mimo(fields: Fields) -> Draft:
    """Read MiMo-V2: windows with sinks and more KV heads, keys wider than values."""
    facts = FAMILIES["mimo_v2_flash"]
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    full = heads_of(fields, hidden, facts.head_dim)
    listed = fields.per_layer(n_layers, "hybrid_layer_pattern")
    if listed is not None:
        kinds = tuple("sliding" if entry else "full" for entry in listed)
    else:
        kinds = layer_kinds(fields, n_layers, "")
    n_heads = fields.optional("swa_num_attention_heads") or full.n_heads
    n_kv = fields.optional("swa_num_key_value_heads")
    if n_kv is None:
        n_kv = 2 * full.n_kv_heads
        fields.assume("swa_num_key_value_heads not given: twice the full layers', as the family")
    near = Heads(
        hidden, n_heads, n_kv, fields.optional("swa_head_dim") or full.head_dim,
        fields.optional("swa_v_head_dim") or full.v_head_dim,
    )  # fmt: skip
    sinks_near = fields.flag("add_swa_attention_sink_bias", default=True)
    sinks_full = fields.flag("add_full_attention_sink_bias", default=False)
    style, sparse = style_of(fields, facts), sparse_layers(fields, n_layers)
    layers = []
    for i, kind in enumerate(kinds):
        heads, sinks = (near, sinks_near) if kind == "sliding" else (full, sinks_full)
        attention = grouped_query(heads, style, small=heads.n_heads if sinks else 0)
        block = transform(fields, facts, hidden, sparse=sparse[i])
        layers.append(join(i, attention, block, norms=2 * hidden, window=window_of(fields, kind)))
    fields.find("attention_chunk_size", "sliding_window_size", "layer_types", "n_shared_experts")
    return close(fields, facts, layers, hidden)


def read_jetmoe(fields: Fields) -> Draft:
    """Read JetMoE: experts in attention too (queries and outputs), keys and values shared."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    n_kv, dim = fields.count("num_key_value_heads"), fields.count("kv_channels")
    top_k, count = fields.count("num_experts_per_tok"), n_experts(fields)
    if not 0 < top_k <= count:
        raise fields.error(f"{top_k} experts per token of {count}")
    width, keys = fields.count("intermediate_size"), n_kv * dim
    heads = Heads(hidden, top_k * n_kv, n_kv, dim, dim)
    whole = grouped_query(heads, AttentionStyle())
    path = "self_attention.experts"
    linears = (
        Linear("self_attention.kv_proj", hidden, 2 * keys, split=Split.KV_HEADS),
        Linear(f"{path}.router.layer", hidden, count, split=Split.REPLICATED, quantisable=False),
        Linear("mlp.router.layer", hidden, count, split=Split.REPLICATED, quantisable=False),
    )
    # one expert of attention and one of the feed-forward are chosen apart, as many of each
    inside = (
        Linear(f"{path}.*.input_linear", hidden, keys),
        Linear(f"{path}.*.output_linear", keys, hidden, split=Split.ROW),
        Linear("mlp.*.gate_proj", hidden, width, fused="gate_up"),
        Linear("mlp.*.up_proj", hidden, width, fused="gate_up"),
        Linear("mlp.*.down_proj", width, hidden, split=Split.ROW),
    )
    fields.assume("experts of attention and of the feed-forward are counted as chosen together")
    part = Part(
        linears, 2 * hidden, whole.attention, experts=Experts(count, top_k, inside)
    )  # the two biases of the expert blocks
    layers = [join(i, part, norms=2 * hidden) for i in range(n_layers)]
    return close(fields, Facts(tied=True), layers, hidden)


def read_falcon(fields: Fields) -> Draft:
    """Read Falcon: one KV head, or several in the newer ones; parallel or in sequence."""
    facts = FAMILIES["falcon"]
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    n_heads = fields.count("num_attention_heads", "n_head")
    newer = fields.flag("new_decoder_architecture", default=False)
    if newer:
        n_kv = fields.optional("num_kv_heads", "n_head_kv") or n_heads
    else:
        n_kv = 1 if fields.flag("multi_query", default=True) else n_heads
        fields.find("num_kv_heads", "n_head_kv")
    if n_heads % n_kv or hidden % n_heads:
        raise fields.error(f"hidden {hidden}, {n_heads} heads, {n_kv} KV heads do not divide")
    parallel = fields.flag("parallel_attn", default=True)
    norms = 2
    if newer:
        norms = fields.count("num_ln_in_parallel_attn", default=2, silent=True)
    elif parallel:
        norms = 1
    bias = fields.flag("bias", default=False)
    dim = hidden // n_heads
    style = AttentionStyle(
        qkv_bias=bias,
        o_bias=bias,
        path=facts.attention_path,
        names=("query", "key", "value", "dense"),
    )
    attention = grouped_query(Heads(hidden, n_heads, n_kv, dim, dim), style)
    width = fields.count("ffn_hidden_size", default=4 * hidden, silent=True)
    block = feed_forward(
        hidden, width, gated=False, bias=bias, path=facts.mlp_path, names=facts.mlp_names
    )
    layers = [join(i, attention, block, norms=norms * 2 * hidden) for i in range(n_layers)]
    return close(fields, facts, layers, hidden)


def read_bigcode(fields: Fields) -> Draft:
    """Read GPT-BigCode (StarCoder): GPT-2 with one KV head."""
    one = fields.flag("multi_query", default=True)
    kv = 1 if one else fields.count("n_head", "num_attention_heads")
    fields.values = {**fields.values, "num_key_value_heads": kv}
    names = ("q_attn", "k_attn", "v_attn", "c_proj") if one else ("", "", "", "c_proj")
    return read_decoder(
        fields,
        replace(FAMILIES["gpt_bigcode"], packed="" if one else "c_attn", attention_names=names),
    )


def read_mpt(fields: Fields) -> Draft:
    """Read MPT and DBRX, whose attention is described in a part of its own."""
    attention = fields.child("attn_config")
    if attention is not None and attention.has("kv_n_heads"):
        fields.values = {**fields.values, "num_key_value_heads": attention.count("kv_n_heads")}
    facts = FAMILIES["mpt"]
    if not fields.has("d_model"):
        raise fields.error("no 'd_model'; the architecture needs it")
    ratio = fields.count("expansion_ratio", default=4)
    width = ratio * fields.count("d_model")
    fields.values = {**fields.values, "intermediate_size": width}
    return read_decoder(fields, facts)


def read_dbrx(fields: Fields) -> Draft:
    """Read DBRX: 16 experts, attention and experts described in parts of their own."""
    attention, block = fields.child("attn_config"), fields.child("ffn_config")
    if attention is None or block is None:
        raise fields.error("no 'attn_config' or 'ffn_config'")
    fields.values = {
        **fields.values,
        "num_key_value_heads": attention.count("kv_n_heads", default=1),
        "intermediate_size": block.count("ffn_hidden_size", default=3584),
        "num_experts": block.count("moe_num_experts", default=4),
        "num_experts_per_tok": block.count("moe_top_k", default=1),
    }
    return read_decoder(fields, replace(FAMILIES["dbrx"], packed=""))


def read_opt(fields: Fields) -> Draft:
    """Read OPT, which may have an embedding narrower than its layers and norms after blocks."""
    bias = fields.flag("enable_bias", default=True)
    before = fields.flag("do_layer_norm_before", default=True)
    removed = fields.flag("_remove_final_layer_norm", default=False)
    facts = replace(
        FAMILIES["opt"], qkv_bias=bias, o_bias=bias, mlp_bias=bias,
        final_norm=before and not removed,
    )  # fmt: skip
    draft = read_decoder(fields, facts)
    narrow = fields.optional("word_embed_proj_dim") or draft.hidden
    if narrow == draft.hidden:
        return draft
    saved = draft.vocab * (draft.hidden - narrow)
    return replace(
        draft,
        embedding=(draft.embedding or 0) - saved,
        small=draft.small + 2 * narrow * draft.hidden,  # into the layers and out of them
        head=output_head(narrow, draft.vocab),
    )


def read_hyperclovax(fields: Fields) -> Draft:
    """Read HyperCLOVA X: norms after the blocks when it says so."""
    after = fields.flag("use_post_norm", default=False)
    return read_decoder(fields, Facts(norms=4 if after else 2))


def read_stablelm(fields: Fields) -> Draft:
    """Read StableLM: one norm a layer where attention and feed-forward run side by side."""
    parallel = fields.flag("use_parallel_residual", default=False)
    return read_decoder(fields, replace(FAMILIES["stablelm"], norms=1 if parallel else 2))


def read_doge(fields: Fields) -> Draft:
    """Read Doge: a learned mask over the values; experts are not modelled."""
    if fields.flag("is_moe", default=False):
        raise fields.error("Doge with experts (a product-key memory) is not modelled")
    fields.values = {**fields.values, "num_experts": None}
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = FAMILIES["doge"]
    heads = heads_of(fields, hidden)
    small = qk_norm(fields, facts, heads) + 2 * hidden + heads.n_kv_heads
    attention = grouped_query(heads, style_of(fields, facts), small=small)
    bias = fields.flag("attention_bias", default=False)
    mask = Linear("self_attn.dt_proj", heads.values, heads.n_kv_heads, bias=bias, quantisable=False)
    attention = replace(attention, linears=(*attention.linears, mask))
    block = transform(fields, facts, hidden, sparse=False)
    fields.find("keep_window_size")
    layers = [join(i, attention, block, norms=2 * hidden) for i in range(n_layers)]
    return close(fields, facts, layers, hidden)


def read_gpt_neox_japanese(fields: Fields) -> Draft:
    """Read GPT-NeoX-Japanese: no biases but one in the last layer."""
    multiple = fields.count("intermediate_multiple_size", default=4)
    hidden = fields.count(*HIDDEN)
    fields.values = {**fields.values, "intermediate_size": multiple * hidden}
    facts = replace(FAMILIES["gpt_neox"], qkv_bias=False, o_bias=False, mlp_bias=False, tied=True)
    draft = read_decoder(fields, facts)
    return replace(draft, small=draft.small + hidden)


def read_mllama(fields: Fields) -> Draft:
    """Read Llama-3.2-Vision's text model: some layers attend to the image instead of the text."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    heads = heads_of(fields, hidden)
    crossed = fields.indices(n_layers, "cross_attention_layers") or frozenset()
    block = feed_forward(hidden, dense_width(fields, hidden))
    own = grouped_query(heads, AttentionStyle())
    other = grouped_query(heads, AttentionStyle(path="cross_attn"), small=2 * heads.head_dim + 2)
    # text tokens add nothing to the cache of a layer that attends to the image
    other = replace(other, attention=None)
    layers = [
        join(i, other if i in crossed else own, block, norms=2 * hidden) for i in range(n_layers)
    ]
    if crossed:
        fields.assume("layers that attend to the image: no image, so no cache and no scores")
    draft = close(fields, Facts(), layers, hidden)
    vocab = fields.count(*VOCAB)
    return replace(draft, embedding=(vocab + 8) * hidden)  # eight further input tokens


def read_laguna(fields: Fields) -> Draft:
    """Read Laguna: a gate on the output by head, or by value where the config says so."""
    name, value = fields.find("gating")
    by_head = value in (None, True, "per-head", "per_head", "headwise")
    if not by_head and value not in (False, "per-element", "per_element", "elementwise"):
        raise fields.error(f"'{name}' is {value!r}; known are true, false, per-head, per-element")
    gate = "head" if by_head else "output"
    return read_decoder(fields, replace(FAMILIES["laguna"], gate=gate, gate_when=True))


def read_qwen1(fields: Fields) -> Draft:
    """Read the first Qwen: its stated width is that of gate and up together."""
    width = fields.count("intermediate_size")
    if width % 2:
        raise fields.error(f"'intermediate_size' is {width}; gate and up together are even")
    fields.values = {**fields.values, "intermediate_size": width // 2}
    facts = Facts(
        qkv_bias=True, o_bias=False, mlp_bias=False, attention_path="attn", packed="c_attn",
        attention_names=("", "", "", "c_proj"), mlp_names=("w2", "w1", "c_proj"),
    )  # fmt: skip
    return read_decoder(fields, facts)
