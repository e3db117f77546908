"""Zamba: Mamba layers, between them a few attention blocks whose weights are used again and again.

Limits   The shared block's matrices stand in the first layer that uses it, with as many calls as
         there are uses; the layers after it hold its cache and no matrices of it.
Sources  Glorioso et al. 2024, arXiv:2405.16712 (Zamba), arXiv:2411.15242 (Zamba2); facts.py.
"""

from dataclasses import replace

from roofline.models.architecture import Linear, Recurrent, Split
from roofline.models.attention_parts import AttentionStyle, Heads, grouped_query
from roofline.models.draft import Draft
from roofline.models.families.decoder import HIDDEN, LAYERS, close
from roofline.models.families.facts import Facts
from roofline.models.families.state import SELECTIVE_FLOP, mamba2, state_dtype
from roofline.models.fields import Fields
from roofline.models.parts import Part, feed_forward, join


def _hybrid(fields: Fields, n_layers: int) -> tuple[int, ...]:
    """Find the layers with the shared attention block."""
    listed = fields.per_layer(n_layers, "layers_block_type", "layer_types")
    if listed is not None:
        fields.find("hybrid_layer_ids", "attn_layer_period", "attn_layer_offset")
        return tuple(i for i, kind in enumerate(listed) if kind == "hybrid")
    chosen = fields.indices(n_layers, "hybrid_layer_ids")
    if chosen is not None:
        return tuple(sorted(chosen))
    period = fields.count("attn_layer_period", default=6)
    offset = fields.count("attn_layer_offset", default=4, least=0)
    return tuple(
        i for i in range(n_layers) if i == 2 or (i > 2 and i % period == (offset + 3) % period)
    )


def _called(part: Part, times: int) -> Part:
    return replace(
        part, linears=tuple(replace(linear, calls=float(times)) for linear in part.linears)
    )


def _shared_attention(fields: Fields, hidden: int, path: str) -> Part:
    """Build attention over the hidden state and the embedding side by side (twice the width)."""
    n_heads = fields.count("num_attention_heads")
    n_kv = fields.optional("num_key_value_heads") or n_heads
    wide = fields.optional("attention_hidden_size") or 2 * hidden
    dim = fields.optional("attention_head_dim") or wide // n_heads
    part = grouped_query(
        Heads(wide, n_heads, n_kv, dim, dim), AttentionStyle(path=f"{path}.self_attn")
    )
    out = replace(part.linears[-1], n_out=hidden)
    return replace(part, linears=(*part.linears[:-1], out), small=wide + hidden)  # two norms


def read_zamba(fields: Fields) -> Draft:
    """Read Zamba: one shared block, Mamba in several heads."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    path = "shared_transf"
    attention = _shared_attention(fields, hidden, path)
    width = fields.count("intermediate_size")
    dense = feed_forward(hidden, width, path=f"{path}.feed_forward")
    joint = Part((Linear("linear", hidden, hidden, split=Split.REPLICATED),))
    return _read(fields, hidden, n_layers, [(attention, dense)], joint, _mamba(fields, hidden))


def _mamba(fields: Fields, hidden: int) -> Part:
    inner = fields.count("mamba_expand", default=2) * hidden
    n_heads = fields.count("n_mamba_heads", default=2)
    state, kernel = (
        fields.count("mamba_d_state", default=16),
        fields.count("mamba_d_conv", default=4),
    )
    name, given = fields.find("mamba_dt_rank")
    rank = fields.whole(name, given) if name and given != "auto" else -(-hidden // 16)
    bias = fields.flag("mamba_proj_bias", default=False)
    conv_bias = fields.flag("mamba_conv_bias", default=True)
    if inner % n_heads:
        raise fields.error(f"{inner} channels on {n_heads} heads: not a whole number")
    wide = inner // n_heads
    linears = (
        Linear("mamba.in_proj", hidden, 2 * inner, bias),
        Linear("mamba.out_proj", inner, hidden, bias, Split.ROW),
    )
    # x and dt projections of every head, too small for formats
    projections = n_heads * ((rank + 2 * state) * wide + wide * rank + wide)
    small = projections + inner * state + inner + inner * (kernel + conv_bias)
    flop = SELECTIVE_FLOP * inner * state + 2 * kernel * inner + 2 * projections
    recurrent = Recurrent(
        "mamba", inner * state, inner * (kernel - 1), flop, state_dtype(fields), n_heads
    )
    return Part(linears, small, recurrent=recurrent)


def read_zamba2(fields: Fields) -> Draft:
    """Read Zamba2: one or several shared blocks with adapters by use, Mamba-2."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    if fields.flag("use_shared_attention_adapter", default=False):
        raise fields.error("'use_shared_attention_adapter' is not modelled")
    bias = fields.flag("add_bias_linear", default=False)
    blocks = fields.count("num_mem_blocks", default=1)
    path, width = "shared_transformer", fields.count("intermediate_size")
    rank = fields.count("adapter_rank", default=128)
    attention = _shared_attention(fields, hidden, path)
    block = (
        Linear(f"{path}.feed_forward.gate_up_proj", hidden, 2 * width, bias, fused="gate_up"),
        Linear(f"{path}.feed_forward.down_proj", width, hidden, bias, Split.ROW),
    )
    joint = Part(
        (
            Linear("linear", hidden, hidden, split=Split.REPLICATED),
            Linear("adapter.0", hidden, rank, split=Split.REPLICATED),
            Linear("adapter.1", rank, 2 * width, split=Split.COLUMN),
        )
    )
    inner = fields.count("mamba_expand", default=2) * hidden
    n_heads = fields.count("n_mamba_heads", default=8)
    fields.values = {**fields.values, "use_conv_bias": True}  # the family's code has no choice
    state = mamba2(fields, hidden, path="mamba", inner=inner, n_heads=n_heads)
    fields.find("mamba_headdim")
    return _read(fields, hidden, n_layers, [(attention, Part(block))] * blocks, joint, state)


def _read(
    fields: Fields,
    hidden: int,
    n_layers: int,
    shared: list[tuple[Part, Part]],
    joint: Part,
    state: Part,
) -> Draft:
    uses = _hybrid(fields, n_layers)
    layers = []
    for i in range(n_layers):
        if i not in uses:
            layers.append(join(i, state, norms=hidden))
            continue
        turn = uses.index(i)
        attention, dense = shared[turn % len(shared)]
        times = len(uses[turn % len(shared) :: len(shared)])
        if turn < len(shared):
            parts = [_called(attention, times), _called(dense, times)]
        else:
            parts = [Part(attention=attention.attention)]
        layers.append(join(i, *parts, joint, state, norms=hidden))
    if uses:
        fields.assume(
            f"{len(shared)} attention block(s) shared by {len(uses)} layers: counted once"
        )
    return close(fields, Facts(tied=True), layers, hidden)
