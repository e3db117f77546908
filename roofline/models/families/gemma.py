"""Gemma: Gemma-3n and Gemma-4: shared caches, per-layer embeddings, heads that differ by layer.

Limits   The per-layer embedding table is looked up, not multiplied: it counts as embedding.
Sources  See facts.py.
"""

from dataclasses import replace

from roofline.models.architecture import Linear, Split
from roofline.models.attention_parts import AttentionStyle, Heads, grouped_query
from roofline.models.draft import Draft
from roofline.models.families.decoder import HIDDEN, LAYERS, VOCAB, close, heads_of
from roofline.models.families.facts import Facts
from roofline.models.families.sparse import DENSE_WIDTH, expert_block, n_experts
from roofline.models.families.windows import layer_kinds, window_of
from roofline.models.fields import Fields
from roofline.models.parts import Part, feed_forward, join

GEMMA3N = Facts(tied=True, head_dim=256, window="gemma3n")
GEMMA4 = Facts(
    tied=True, head_dim=256, window="gemma4", expert_path="experts", router="router.proj"
)


def shared_layers(fields: Fields, n_layers: int) -> int:
    """Read how many of the last layers reuse an earlier layer's cache.

    Raises:
        SpecError: no layer is left that keeps one.
    """
    count = fields.count("num_kv_shared_layers", default=0, least=0, silent=True)
    if count >= n_layers:
        raise fields.error(f"{count} of {n_layers} layers share a cache: none keeps one")
    return count


def per_layer_input(fields: Fields, n_layers: int, hidden: int) -> tuple[Part, int, int]:
    """Build the inputs that each layer gets beside the hidden state.

    Returns the block of one layer, the values of their embedding table, and other values once.
    """
    width = fields.count("hidden_size_per_layer_input", default=256, least=0)
    if width == 0:
        return Part(), 0, 0
    rows = fields.count("vocab_size_per_layer_input", default=262144)
    linears = (
        Linear("per_layer_input_gate", hidden, width, split=Split.REPLICATED),
        Linear("per_layer_projection", width, hidden, split=Split.REPLICATED),
    )
    once = hidden * n_layers * width + width  # projection of the embedding, its norm
    return Part(linears, hidden), rows * n_layers * width, once


def read_gemma3n(fields: Fields) -> Draft:
    """Read Gemma-3n: several hidden streams (AltUp), a low-rank path (LAuReL), shared caches."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    heads = heads_of(fields, hidden, 256)
    kinds = layer_kinds(fields, n_layers, GEMMA3N.window)
    widths = fields.counts_per_layer(n_layers, *DENSE_WIDTH)
    shared = shared_layers(fields, n_layers)
    streams = fields.count("altup_num_inputs", default=4)
    rank = fields.count("laurel_rank", default=64)
    extra, table, once = per_layer_input(fields, n_layers, hidden)
    laurel = Part(
        (
            Linear("laurel.linear_left", hidden, rank, split=Split.REPLICATED),
            Linear("laurel.linear_right", rank, hidden, split=Split.REPLICATED),
        ),
        hidden,
    )
    altup = Part(
        (
            Linear(
                "altup.modality_router", hidden, streams, split=Split.REPLICATED, quantisable=False
            ),
        ),
        2 * hidden + streams * streams + streams**3,  # scale, norm, correction, prediction
    )
    layers = []
    for i, kind in enumerate(kinds):
        keeps = i < n_layers - shared
        small = heads.head_dim * (2 if keeps else 1)
        attention = grouped_query(heads, AttentionStyle(has_kv=keeps), small=small)
        block = feed_forward(hidden, widths[i])
        layers.append(
            join(i, attention, block, laurel, altup, extra, norms=4 * hidden,
                 window=window_of(fields, kind))
        )  # fmt: skip
    draft = close(fields, GEMMA3N, layers, hidden)
    streams_once = 2 * (streams - 1) * hidden * hidden  # into the streams and out of them
    return replace(
        draft, embedding=draft.vocab * hidden + table, small=draft.small + once + streams_once
    )


def read_gemma4(fields: Fields) -> Draft:
    """Read Gemma-4: wider heads in full layers, experts beside a dense block, shared caches."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    local = heads_of(fields, hidden, 256)
    same = fields.flag("attention_k_eq_v", default=False)
    kinds = layer_kinds(fields, n_layers, GEMMA4.window)
    global_kv = fields.optional("num_global_key_value_heads") if same else None
    given = _per_layer_dims(fields, n_layers, kinds, local.head_dim)
    width, shared = fields.count(*DENSE_WIDTH), shared_layers(fields, n_layers)
    wide = 2 if fields.flag("use_double_wide_mlp", default=False) else 1
    extra, table, once = (
        per_layer_input(fields, n_layers, hidden)
        if fields.has("hidden_size_per_layer_input", "vocab_size_per_layer_input")
        else (Part(), 0, 0)
    )
    routed = _experts(fields, hidden)
    bias = fields.flag("attention_bias", default=False)
    layers = []
    for i, kind in enumerate(kinds):
        heads, keeps = local, i < n_layers - shared
        if kind == "full":
            kv_heads = global_kv or local.n_kv_heads
            heads = Heads(hidden, local.n_heads, kv_heads, given[i], given[i])
        elif given[i] != local.head_dim:
            heads = Heads(hidden, local.n_heads, local.n_kv_heads, given[i], given[i])
        style = AttentionStyle(
            qkv_bias=bias, o_bias=bias, has_kv=keeps, has_value=not (same and kind == "full")
        )
        small = heads.head_dim * (2 if keeps else 1)
        attention = grouped_query(heads, style, small=small)
        block = feed_forward(hidden, width if keeps else width * wide)
        layers.append(
            join(i, attention, block, routed, extra, norms=4 * hidden,
                 window=window_of(fields, kind))
        )  # fmt: skip
    draft = close(fields, GEMMA4, layers, hidden)
    vocab = fields.count(*VOCAB)
    return replace(draft, embedding=vocab * hidden + table, small=draft.small + once)


def _per_layer_dims(
    fields: Fields, n_layers: int, kinds: tuple[str, ...], local: int
) -> tuple[int, ...]:
    """Read each layer's head width: by layer, or ``global_head_dim`` in full layers."""
    listed = fields.child("per_layer_config")
    wide = fields.optional("global_head_dim")
    if wide is None and listed is None:
        fields.assume("global_head_dim not given: taken as 512, as the family")
        wide = 512
    dims = [(wide or local) if kind == "full" else local for kind in kinds]
    if listed is not None:
        for key in listed.values:
            entry = listed.child(key)
            if entry is None or not str(key).isdigit() or int(key) >= n_layers:
                raise fields.error(f"'per_layer_config' has layer {key!r} of {n_layers}")
            dims[int(key)] = entry.optional("head_dim") or dims[int(key)]
            unread = set(entry.values) - {"head_dim"}
            if unread:
                raise fields.error(f"'per_layer_config' has {sorted(unread)[0]!r}: not modelled")
    return tuple(dims)


def _experts(fields: Fields, hidden: int) -> Part:
    """Build the experts beside the dense block: three norms more, scales of router and experts."""
    if not fields.flag("enable_moe_block", default=False) or not n_experts(fields):
        fields.find("num_experts", "top_k_experts", "moe_intermediate_size")
        return Part()
    part = expert_block(fields, GEMMA4, hidden)
    return part.with_small(3 * hidden + hidden + n_experts(fields))
