"""Decoder: the pattern that most families share, driven by field names and a table of facts.

Per layer: norms, grouped-query attention, a feed-forward that is dense or routed experts. What the
config says is read under the names that families use; what only the code says is in ``facts.py``.

Limits   One shape of attention per kind of layer; one shape of experts in all layers with them.
Sources  See facts.py.
"""

from dataclasses import replace

from roofline.models.architecture import LayerGroup
from roofline.models.attention_parts import AttentionStyle, Heads, grouped_query
from roofline.models.draft import Draft, output_head
from roofline.models.families.facts import Choice, Facts
from roofline.models.families.prediction import prediction_layers
from roofline.models.families.sparse import dense_width, expert_block, n_experts, sparse_layers
from roofline.models.families.windows import layer_kinds, window_of
from roofline.models.fields import Fields
from roofline.models.parts import Part, feed_forward, join

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
HIDDEN = ("hidden_size", "d_model", "n_embd", "n_embed", "model_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads",
         "decoder_attention_heads")  # fmt: skip
KV_HEADS = ("num_key_value_heads", "n_kv_heads", "kv_n_heads", "multi_query_group_num",
            "num_query_groups")  # fmt: skip
HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels", "dim_head")
VOCAB = ("vocab_size", "padded_vocab_size")


def choose(fields: Fields, choice: Choice) -> bool:
    """Settle a yes or no that the family or the config decides."""
    return choice if isinstance(choice, bool) else fields.flag(choice[0], default=choice[1])


def tied(fields: Fields, default: bool) -> bool:
    """Read whether lm_head is the embedding; the family's default is said when it is used."""
    name, _ = fields.find("tie_word_embeddings")
    if not name:
        fields.assume(
            f"tie_word_embeddings not given: taken as {str(default).lower()}, as the family"
        )
        return default
    return fields.flag("tie_word_embeddings", default=default)


def heads_of(fields: Fields, hidden: int, head_dim: int | None = None) -> Heads:
    """Read the dimensions of grouped-query attention.

    Raises:
        SpecError: heads that KV heads do not divide, or a width that heads do not divide.
    """
    n_heads = fields.count(*HEADS)
    n_kv_heads = fields.optional(*KV_HEADS)
    if n_kv_heads is None:
        n_kv_heads = n_heads
        if "num_key_value_heads" not in fields.values:
            fields.assume("num_key_value_heads not given: as many as query heads")
    if n_heads % n_kv_heads:
        raise fields.error(f"{n_heads} query heads on {n_kv_heads} KV heads: not a whole number")
    dim = fields.optional(*HEAD_DIM)
    if dim is None:
        dim = head_dim
        if dim is None:
            if hidden // n_heads == 0:
                raise fields.error(f"hidden size {hidden} on {n_heads} heads: no width is left")
            if hidden % n_heads:
                fields.assume(
                    f"head_dim not given and hidden size {hidden} no multiple of {n_heads} heads:"
                    f" taken as {hidden // n_heads}"
                )
            dim = hidden // n_heads
        else:
            fields.assume(f"head_dim not given: taken as {dim}, as the family")
    return Heads(hidden, n_heads, n_kv_heads, dim, fields.optional("v_head_dim") or dim)


def style_of(fields: Fields, facts: Facts) -> AttentionStyle:
    """Read biases and gate of attention."""
    gate = facts.gate if choose(fields, facts.gate_when) else ""
    return AttentionStyle(
        qkv_bias=choose(fields, facts.qkv_bias),
        o_bias=choose(fields, facts.o_bias),
        gate=gate,
        path=facts.attention_path,
        names=facts.attention_names,
        packed=facts.packed,
        gate_name=facts.gate_name,
    )


def qk_norm(fields: Fields, facts: Facts, heads: Heads) -> int:
    """Count the values of the norms on queries and keys."""
    if not facts.qk_norm or not choose(fields, facts.qk_norm_when):
        return 0
    width = 2 * heads.head_dim if facts.qk_norm == "head" else heads.queries + heads.keys
    return width * facts.qk_norm_values


def read_decoder(fields: Fields, facts: Facts) -> Draft:
    """Read a decoder of the shared pattern.

    Raises:
        SpecError: a field is missing or cannot be.
    """
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    heads = heads_of(fields, hidden, facts.head_dim)
    per_layer_heads = fields.per_layer(n_layers, "num_attention_heads_per_layer")
    kinds = layer_kinds(fields, n_layers, facts.window)
    sparse = sparse_layers(fields, n_layers) if n_experts(fields) else (False,) * n_layers
    style, norms = style_of(fields, facts), facts.norms * facts.norm_values * hidden
    layers: list[LayerGroup] = []
    for i, kind in enumerate(kinds):
        if per_layer_heads is not None:
            count = fields.whole("num_attention_heads_per_layer", per_layer_heads[i])
            heads = Heads(hidden, count, heads.n_kv_heads, heads.head_dim, heads.v_head_dim)
        small = qk_norm(fields, facts, heads)
        if facts.sinks == "all" or (facts.sinks == "sliding" and kind == "sliding"):
            small += heads.n_heads
        small += facts.layer_small + facts.head_small * heads.n_heads
        small += facts.hidden_small * hidden + facts.head_dim_small * heads.head_dim
        small += facts.query_small * heads.queries
        attention = grouped_query(heads, style, small=small)
        block = transform(fields, facts, hidden, sparse=sparse[i])
        layers.append(join(i, attention, block, norms=norms, window=window_of(fields, kind)))
    draft = close(fields, facts, layers, hidden)
    return replace(draft, prediction=prediction_layers(fields, layers, hidden))


def transform(fields: Fields, facts: Facts, hidden: int, *, sparse: bool) -> Part:
    """Build one layer's feed-forward, dense or experts."""
    if fields.partial:
        return Part()
    if sparse:
        return expert_block(fields, facts, hidden, gated=facts.gated)
    four_times = facts.norm_values == 2 and not facts.gated
    if facts.dense_key and fields.has(facts.dense_key):
        width = fields.count(facts.dense_key)
    else:
        width = dense_width(fields, hidden, four_times=four_times)
    return feed_forward(
        hidden, width, gated=facts.gated, bias=choose(fields, facts.mlp_bias),
        path=facts.mlp_path, names=facts.mlp_names,
        packed=facts.mlp_packed, small=facts.ffn_small * width,
    )  # fmt: skip


def close(fields: Fields, facts: Facts, layers: list[LayerGroup], hidden: int) -> Draft:
    """Put embeddings, final norm and head around the layers."""
    vocab = 0 if fields.partial else fields.count(*VOCAB)
    norm = facts.norm_values * hidden
    small = facts.embedding_norms * norm + (norm if facts.final_norm else 0)
    positions = 0
    if facts.positions:
        rows = fields.count(facts.positions, "n_positions", "max_position_embeddings")
        positions = (rows + facts.position_offset) * hidden
    if facts.extra_vocab:
        positions += fields.count(facts.extra_vocab, default=0, least=0, silent=True) * hidden
    head = output_head(hidden, vocab, bias=choose(fields, facts.head_bias))
    is_tied = tied(fields, facts.tied)
    if is_tied and head.bias:
        small += vocab  # a tied head's bias is its own
    return Draft(
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        tied=is_tied,
        small=small,
        embedding=vocab * hidden + positions,
        head=head,
    )
