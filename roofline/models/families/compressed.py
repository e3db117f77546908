"""Compressed: DeepSeek-V4's attention over a window and compressed entries, mixed hidden streams.

A layer keeps the last ``sliding_window`` keys (which are the values too) and one compressed entry
per ``ratio`` tokens; layers with a small ratio choose among these by an indexer, which compresses
keys of its own. Hidden states are several streams that every block mixes (hyper-connections).

Limits   The hash-routed first layers choose experts by token id: they cost the same.
Sources  DeepSeek-AI 2026, DeepSeek-V4 (config and reference implementation); Xie et al. 2025,
         arXiv:2512.24880 (manifold-constrained hyper-connections); facts.py.
"""

from dataclasses import replace

from roofline.models.architecture import GroupedQuery, Indexer, Linear, Split
from roofline.models.draft import Draft
from roofline.models.families.decoder import HEADS, HIDDEN, LAYERS, close
from roofline.models.families.facts import Facts
from roofline.models.families.prediction import prediction_layers
from roofline.models.families.sparse import expert_block
from roofline.models.fields import Fields
from roofline.models.parts import Part, Window, join

FACTS = Facts(
    expert_path="ffn.experts", expert_names=("w1", "w3", "w2"), router="ffn.gate",
    shared_path="ffn.shared_experts", attention_path="attn",
)  # fmt: skip
WORDS = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128,
         "sliding_attention": 0}  # fmt: skip


def ratios(fields: Fields, n_layers: int) -> tuple[int, ...]:
    """Read each layer's compression; 0: a window only."""
    listed = fields.per_layer(n_layers, "compress_ratios")
    if listed is not None:
        fields.find("layer_types", "compress_rates")
        return tuple(fields.whole("compress_ratios", entry, least=0) for entry in listed)
    words = fields.per_layer(n_layers, "layer_types")
    if words is None:
        raise fields.error("no 'compress_ratios' or 'layer_types'")
    rates = fields.child("compress_rates")
    known = dict(WORDS)
    if rates is not None:
        known |= {word: rates.count(word) for word in WORDS if word in rates.values}
    for word in words:
        if word not in known:
            raise fields.error(f"'layer_types' has {word!r}; known are {', '.join(known)}")
    return tuple(known[word] for word in words)


def read_deepseek_v4(fields: Fields) -> Draft:
    """Read DeepSeek-V4."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    compressions = ratios(fields, n_layers)
    window = fields.count("sliding_window", default=128)
    streams = fields.count("hc_mult", default=4)
    mixers = 2 * _mixer(hidden, streams)  # around attention and around the experts
    routed = expert_block(fields, FACTS, hidden)
    layers = []
    for i, ratio in enumerate(compressions):
        attention = _attention(fields, hidden, ratio)
        view = Window(window, compression=max(ratio, 1))
        layers.append(join(i, attention, routed, norms=2 * hidden + mixers, window=view))
    draft = close(fields, FACTS, layers, hidden)
    last = streams * streams * hidden + streams + 1  # streams into one, after the last layer
    fields.find("num_hash_layers", "index_topk")
    return replace(
        draft,
        small=draft.small + last,
        prediction=prediction_layers(fields, layers, hidden),
    )


def _mixer(hidden: int, streams: int) -> int:
    """Values of one mixing of the streams: a small matrix, its bias, three scales."""
    outputs = (2 + streams) * streams
    return outputs * streams * hidden + outputs + 3


def _attention(fields: Fields, hidden: int, ratio: int) -> Part:
    n_heads, dim = fields.count(*HEADS), fields.count("head_dim")
    if fields.count("num_key_value_heads", default=1) != 1:
        raise fields.error("compressed attention with more than one KV head is not modelled")
    q_rank, o_rank = fields.count("q_lora_rank"), fields.count("o_lora_rank")
    groups = fields.count("o_groups", default=8)
    if n_heads * dim % groups:
        raise fields.error(f"{n_heads} heads of {dim} do not divide into {groups} output groups")
    path = "attn"
    linears = [
        Linear(f"{path}.wq_a", hidden, q_rank, split=Split.REPLICATED, fused="qkv_a"),
        Linear(f"{path}.wkv", hidden, dim, split=Split.REPLICATED, fused="qkv_a"),
        Linear(f"{path}.wq_b", q_rank, n_heads * dim),
        # each group of heads has its own matrix: together n_heads × dim / groups wide inside
        Linear(f"{path}.wo_a", n_heads * dim // groups, groups * o_rank),
        Linear(f"{path}.wo_b", groups * o_rank, hidden, split=Split.ROW),
    ]
    small = n_heads + q_rank + dim  # sinks, norms
    part = Part(tuple(linears), small, GroupedQuery(1, dim, n_heads, one_cache=True))
    if not ratio:
        return part
    overlap = 2 if ratio == min(WORDS["compressed_sparse_attention"], ratio) else 1
    return _compressor(fields, part, hidden, ratio, overlap, dim, q_rank)


def _compressor(
    fields: Fields, part: Part, hidden: int, ratio: int, overlap: int, dim: int, q_rank: int
) -> Part:
    """Add the compressor (keys and gates, twice where entries overlap) and the indexer."""
    path = "attn.compressor"
    linears = [
        *part.linears,
        Linear(f"{path}.wkv", hidden, overlap * dim, split=Split.REPLICATED, quantisable=False),
        Linear(f"{path}.wgate", hidden, overlap * dim, split=Split.REPLICATED, quantisable=False),
    ]
    small = part.small + ratio * overlap * dim + dim
    if overlap == 1:
        return replace(part, linears=tuple(linears), small=small)
    width, n_heads = fields.count("index_head_dim"), fields.count("index_n_heads")
    top_k = fields.count("index_topk", default=512)
    path = "attn.indexer"
    linears += [
        Linear(f"{path}.wq_b", q_rank, n_heads * width, split=Split.REPLICATED),
        Linear(f"{path}.weights_proj", hidden, n_heads, split=Split.REPLICATED, quantisable=False),
        Linear(
            f"{path}.compressor.wkv", hidden, overlap * width, split=Split.REPLICATED,
            quantisable=False,
        ),
        Linear(
            f"{path}.compressor.wgate", hidden, overlap * width, split=Split.REPLICATED,
            quantisable=False,
        ),
    ]  # fmt: skip
    small += ratio * overlap * width + width
    indexer = Indexer(n_heads=n_heads, head_dim=width, top_k=top_k)
    return replace(part, linears=tuple(linears), small=small, indexer=indexer)
