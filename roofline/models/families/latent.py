"""Latent: families with multi-head latent attention, with or without an indexer.

Limits   Router biases are buffers of the checkpoint, not parameters, and are left out.
Sources  DeepSeek-AI 2024, arXiv:2405.04434 (V2), arXiv:2412.19437 (V3, section 2.2: prediction
         layers); DeepSeek-V3.2 (indexer); facts.py.
"""

from dataclasses import replace

from roofline.errors import UnsupportedError
from roofline.models.architecture import Indexer, Linear, Split
from roofline.models.attention_parts import LatentShape, latent
from roofline.models.draft import Draft
from roofline.models.families.decoder import HEADS, HIDDEN, LAYERS, choose, close, transform
from roofline.models.families.facts import Facts
from roofline.models.families.prediction import prediction_layers
from roofline.models.families.sparse import n_experts, sparse_layers
from roofline.models.fields import Fields, show
from roofline.models.parts import Part, feed_forward, join

DEEPSEEK = Facts()


def latent_shape(fields: Fields, hidden: int) -> LatentShape:
    """Read the dimensions of latent attention."""
    return LatentShape(
        hidden=hidden,
        n_heads=fields.count(*HEADS),
        q_rank=fields.optional("q_lora_rank") or 0,
        kv_rank=fields.count("kv_lora_rank"),
        nope_dim=fields.count("qk_nope_head_dim"),
        rope_dim=fields.count("qk_rope_head_dim"),
        v_head_dim=fields.count("v_head_dim"),
    )


def index_part(fields: Fields, shape: LatentShape, *, scores: bool = True) -> Part:
    """Build the indexer: queries from the query's latent, one key and one weight a head [V3.2]."""
    dim = fields.count("index_head_dim")
    n_heads = fields.count("index_n_heads", default=64)
    top_k = fields.count("index_topk", default=2048)
    indexer = Indexer(n_heads=n_heads, head_dim=dim, top_k=top_k, scores=scores)
    if not scores:
        return Part(indexer=indexer)
    path = "self_attn.indexer"
    linears = (
        Linear(f"{path}.wq_b", shape.q_rank or shape.hidden, n_heads * dim, split=Split.REPLICATED),
        Linear(f"{path}.wk", shape.hidden, dim, split=Split.REPLICATED),
        Linear(
            f"{path}.weights_proj", shape.hidden, n_heads, split=Split.REPLICATED, quantisable=False
        ),
    )
    return Part(linears, 2 * dim, indexer=indexer)  # norm of the key, with bias


def scoring_layers(fields: Fields, n_layers: int) -> tuple[bool, ...]:
    """Say which layers hold their own indexer; the others take over an earlier layer's choice."""
    listed = fields.per_layer(n_layers, "indexer_types")
    if listed is not None:
        for entry in listed:
            if entry not in ("full", "shared"):
                raise fields.error(f"'indexer_types' has {entry!r}; known are full and shared")
        return tuple(entry == "full" for entry in listed)
    every = fields.optional("index_topk_freq") or 1
    offset = fields.count("index_skip_topk_offset", default=1, least=0, silent=True)
    if fields.has("index_topk_pattern"):
        raise fields.error("'index_topk_pattern' without 'indexer_types' is not modelled")
    return tuple(i < offset or (i - offset + 1) % every == 0 for i in range(n_layers))


def read_latent(fields: Fields, facts: Facts = DEEPSEEK) -> Draft:
    """Read a decoder with latent attention in all layers.

    Raises:
        SpecError: a field is missing or cannot be.
    """
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    shape = latent_shape(fields, hidden)
    sparse = sparse_layers(fields, n_layers) if n_experts(fields) else (False,) * n_layers
    attention = latent(
        shape, bias=choose(fields, facts.qkv_bias), o_bias=choose(fields, facts.o_bias)
    )
    indexed = fields.has("index_head_dim")
    _check_types(fields, n_layers)
    scores = scoring_layers(fields, n_layers) if indexed else (False,) * n_layers
    layers = []
    for i in range(n_layers):
        parts = [attention]
        if indexed:
            parts.append(index_part(fields, shape, scores=scores[i]))
        norms = (facts.norms + (facts.sparse_norms if sparse[i] else 0)) * hidden
        parts.append(transform(fields, facts, hidden, sparse=sparse[i]))
        layers.append(join(i, *parts, norms=norms))
    draft = close(fields, facts, layers, hidden)
    return replace(draft, prediction=prediction_layers(fields, layers, hidden))


def _check_types(fields: Fields, n_layers: int) -> None:
    """Refuse layers of another kind than latent attention over all or the indexer's choice."""
    known = ("full_attention", "indexed_attention", "deepseek_sparse_attention")
    for entry in fields.per_layer(n_layers, "layer_types") or ():
        if entry not in known:
            raise UnsupportedError(
                f"{fields.where}: latent attention with layer type {show(entry)} is not modelled; "
                f"known are {', '.join(known)}"
            )


def read_longcat(fields: Fields) -> Draft:
    """Read LongCat-Flash: two attentions and two feed-forwards a layer, experts beside them.

    A layer is two blocks of attention and dense feed-forward; the experts, some of which compute
    nothing, hang on the first.
    """
    n_layers, hidden = fields.layers("num_layers", *LAYERS), fields.count(*HIDDEN)
    shape = latent_shape(fields, hidden)
    width = fields.count("ffn_hidden_size", "intermediate_size")
    facts = Facts(router="mlp.router.classifier", shared_path="mlp.shared")
    routed = transform(fields, facts, hidden, sparse=True)
    layers = []
    for i in range(n_layers):
        for half in (0, 1):
            attention = latent(shape, path=f"self_attn.{half}")
            dense = feed_forward(hidden, width, path=f"mlps.{half}")
            parts = (attention, dense, routed) if half == 0 else (attention, dense)
            layers.append(join(2 * i + half, *parts, norms=2 * hidden))
    fields.assume(f"{n_layers} layers of two blocks each are shown as {2 * n_layers} layers")
    return close(fields, facts, layers, hidden)
