"""Linear: linear attention, short convolutions and recurrent units with attention between.

Sources  See facts.py and state.py.
"""

from dataclasses import replace

from roofline.models.architecture import Linear
from roofline.models.attention_parts import latent
from roofline.models.draft import Draft
from roofline.models.families.decoder import (
    HIDDEN,
    LAYERS,
    close,
    heads_of,
)
from roofline.models.families.facts import Facts
from roofline.models.families.hybrid import assemble, attention_part
from roofline.models.families.latent import latent_shape
from roofline.models.families.prediction import prediction_layers
from roofline.models.families.sparse import dense_width, n_experts
from roofline.models.families.state import (
    kimi_delta,
    lightning,
    rg_lru,
    short_conv,
)
from roofline.models.families.windows import layer_kinds, window_of
from roofline.models.fields import Fields
from roofline.models.parts import Window, feed_forward, join


def read_minimax(fields: Fields) -> Draft:
    """Read MiniMax-01: lightning attention, softmax attention in every eighth layer, experts."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(
        qkv_bias=False, o_bias=False, expert_path="block_sparse_moe.experts",
        expert_names=("w1", "w3", "w2"), router="block_sparse_moe.gate",
        experts_use_intermediate=True,
    )  # fmt: skip
    listed = fields.per_layer(n_layers, "attn_type_list")
    if listed is not None:
        kinds = tuple("full" if entry == 1 else "linear_attention" for entry in listed)
    elif fields.has("layer_types"):
        kinds = layer_kinds(fields, n_layers, "")
    else:
        fields.assume("layer types not given: every second layer is linear, as the family")
        kinds = tuple(("full", "linear_attention")[i % 2] for i in range(n_layers))
    heads = heads_of(fields, hidden)
    attention = attention_part(fields, facts, heads)
    state = lightning(fields, hidden, n_heads=heads.n_heads, head_dim=heads.head_dim)
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: attention if kind == "full" else state
    )
    return close(fields, facts, layers, hidden)


def read_lfm2(fields: Fields, *, adjusts: bool = True) -> Draft:
    """Read LFM2: gated short convolutions, attention in the layers listed."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(
        qk_norm="head", tied=True, attention_names=("q_proj", "k_proj", "v_proj", "out_proj"),
        qkv_bias=False, o_bias=False, mlp_bias=False, mlp_path="feed_forward",
        mlp_names=("w1", "w3", "w2"), expert_path="feed_forward.experts",
        expert_names=("w1", "w3", "w2"), router="feed_forward.gate",
    )  # fmt: skip
    if fields.has("layer_types"):
        kinds = layer_kinds(fields, n_layers, "")
    else:
        chosen = fields.indices(n_layers, "full_attn_idxs")
        if chosen is None:
            raise fields.error("no 'layer_types' or 'full_attn_idxs'")
        kinds = tuple("full" if i in chosen else "conv" for i in range(n_layers))
    if not n_experts(fields) and adjusts:
        fields.values = {**fields.values, "intermediate_size": _lfm2_width(fields, hidden)}
    if fields.flag("use_sandwich_norm", default=False):
        facts = replace(facts, norms=4)
    if fields.flag("use_attention_gate", default=False):
        facts = replace(facts, gate="head", gate_name="g_proj")
    if not adjusts:
        own = ("attention_bias", False)
        facts = replace(facts, qkv_bias=own, o_bias=own)
    attention = attention_part(fields, facts, heads_of(fields, hidden))
    conv = short_conv(fields, hidden)
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: conv if kind == "conv" else attention
    )
    return close(fields, facts, layers, hidden)


def _lfm2_width(fields: Fields, hidden: int) -> int:
    """Two thirds of the stated width, times a factor, up to a multiple: the family's own rule."""
    width = fields.count("block_ff_dim", "intermediate_size")
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return width
    width = int(2 * width / 3)
    width = int(fields.number("block_ffn_dim_multiplier", default=1.0) * width)
    multiple = fields.count("block_multiple_of", default=256)
    return multiple * -(-width // multiple)


def read_recurrent_gemma(fields: Fields) -> Draft:
    """Read RecurrentGemma: two recurrent layers, one with a window, half the stated width."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(
        tied=True, o_bias=True, attention_path="temporal_block", mlp_bias=True,
        mlp_path="mlp_block", head_dim=256,
    )  # fmt: skip
    pattern = fields.items("block_types", "_block_types") or ("recurrent", "recurrent", "attention")
    words = {"recurrent": "recurrent", "attention": "sliding"}
    if any(entry not in words for entry in pattern):
        raise fields.error("'block_types' has other words than recurrent and attention")
    kinds = tuple(words[pattern[i % len(pattern)]] for i in range(n_layers))
    heads = heads_of(fields, hidden, hidden // fields.count("num_attention_heads"))
    attention = attention_part(fields, facts, heads)
    state = rg_lru(fields, hidden, n_heads=heads.n_heads)
    width = dense_width(fields, hidden) // 2
    block = feed_forward(hidden, width, bias=True, path="mlp_block")
    layers = [
        join(i, state if kind == "recurrent" else attention, block, norms=2 * hidden,
             window=Window() if kind == "recurrent" else window_of(fields, kind))
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    return close(fields, facts, layers, hidden)


def read_bailing_hybrid(fields: Fields) -> Draft:
    """Read Ling/Ring hybrids: delta attention with full-rank gates, latent in every n-th layer."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    if fields.has("layer_types"):
        kinds = layer_kinds(fields, n_layers, "")
    else:
        every = fields.count("layer_group_size", default=6)
        kinds = tuple(
            "full" if (i + 1) % every == 0 else "linear_attention" for i in range(n_layers)
        )
    shape = latent_shape(fields, hidden)
    bias = fields.flag("attention_bias", default=False)
    attention = latent(shape, bias=bias, o_bias=bias)
    gate = Linear("self_attn.g_proj", hidden, shape.n_heads)
    attention = replace(attention, linears=(*attention.linears, gate))
    n_heads = fields.optional("linear_num_heads") or shape.n_heads
    dim = fields.optional("linear_head_dim") or shape.v_head_dim
    kernel = fields.count("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    fields.find("linear_conv_kernel_dim", "layer_group_size")
    state = kimi_delta(fields, hidden, n_heads=n_heads, head_dim=dim, kernel=kernel, full_rank="fg")
    layers = assemble(
        fields, Facts(mlp_bias=False), kinds, hidden,
        lambda kind: attention if kind == "full" else state,
    )  # fmt: skip
    draft = close(fields, Facts(), layers, hidden)
    return replace(draft, prediction=prediction_layers(fields, layers, hidden))


def read_kimi_linear(fields: Fields) -> Draft:
    """Read Kimi-Linear: delta attention, latent attention in every fourth layer, experts."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    nested = fields.child("linear_attn_config")
    if nested is not None:
        full = frozenset(i - 1 for i in nested.indices(n_layers, "full_attn_layers") or ())
        kinds = tuple("full" if i in full else "linear_attention" for i in range(n_layers))
        n_heads, dim = nested.count("num_heads"), nested.count("head_dim")
        kernel = nested.count("short_conv_kernel_size", default=4)
        full_rank = "g" if nested.flag("use_full_rank_gate", default=False) else ""
    else:
        kinds = layer_kinds(fields, n_layers, "")
        n_heads, dim = fields.count("linear_num_heads"), fields.count("linear_head_dim")
        kernel = fields.count("linear_conv_kernel_dim", default=4)
        full_rank = ""
    gate = "g_proj" if fields.flag("mla_use_output_gate", default=False) else ""
    bias = fields.flag("attention_bias", default=False)
    attention = latent(latent_shape(fields, hidden), bias=bias, o_bias=bias, gate=gate)
    state = kimi_delta(
        fields, hidden, n_heads=n_heads, head_dim=dim, kernel=kernel, full_rank=full_rank
    )
    facts = Facts(mlp_bias=False, expert_path="block_sparse_moe.experts",
                  router="block_sparse_moe.gate", expert_names=("w1", "w3", "w2"),
                  shared_path="block_sparse_moe.shared_experts")  # fmt: skip
    if fields.has("routed_expert_hidden_size"):
        fields.assume(
            "routed_expert_hidden_size: experts on the narrower vector between projections down "
            "and up; not checked against a published count"
        )
    if fields.has("attn_res_block_size"):
        fields.assume("attn_res_block_size: attention over earlier layers' outputs is not counted")
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: attention if kind == "full" else state
    )
    draft = close(fields, facts, layers, hidden)
    return replace(draft, prediction=prediction_layers(fields, layers, hidden))
