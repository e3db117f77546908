"""Layer parts: the widths that a layer's kernels work on, read from its matrices.

Shapes   Widths are values a token, on one tensor-parallel rank where ``tp`` is given.
Limits   Norms are inferred from a layer's small values; feed-forward blocks from the matrices that
         end a block and those that stand before them under the same name.
Sources  [1] DeepSeek-AI 2024, arXiv:2405.04434, section 2.1 (latent attention trains expanded).
"""

from dataclasses import dataclass

from roofline.models.architecture import (
    Architecture,
    GroupedQuery,
    Latent,
    LayerGroup,
    Linear,
    Split,
)

LAYER_NORM_TYPES = frozenset(
    {
        "bloom", "cohere", "cohere2", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "gptj",
        "megatron-gpt", "mpt", "olmo", "opt", "persimmon", "phi", "stablelm", "starcoder2",
    }
)  # fmt: skip
"""Families whose norms are LayerNorm, one fused kernel in PyTorch."""


def is_output(linear: Linear) -> bool:
    """Whether a matrix ends a block: its input is what the block's last kernel made."""
    return linear.split is Split.ROW


def belongs_to_attention(linear: Linear) -> bool:
    """Whether a matrix belongs to the block that mixes tokens."""
    return any(word in linear.name for word in ("attn", "attention", "mixer", "mamba"))


@dataclass(frozen=True)
class FeedForward:
    """Width of a dense feed-forward block and how many halves its first matrix gives."""

    width: int
    halves: int


def feed_forwards(linears: tuple[Linear, ...]) -> tuple[FeedForward, ...]:
    """Find the feed-forward blocks among a layer's matrices, shared experts included.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> feed_forwards(LLAMA_3_8B.layers[0].linears)
    (FeedForward(width=14336, halves=2),)
    """
    found = []
    for linear in linears:
        if not is_output(linear) or belongs_to_attention(linear):
            continue
        prefix = linear.name.rpartition(".")[0]
        into = sum(
            other.n_out
            for other in linears
            if other is not linear
            and not is_output(other)
            and other.name.rpartition(".")[0] == prefix
            and other.n_out % linear.n_in == 0
        )
        found.append(FeedForward(linear.n_in, max(1, round(into / linear.n_in))))
    return tuple(found)


@dataclass(frozen=True)
class AttentionWidths:
    """Values of queries, keys, values and output of one token, and the heads."""

    queries: float
    keys: float
    values: float
    outputs: float
    heads: float


def attention_widths(group: LayerGroup, tp: int = 1) -> AttentionWidths:
    """Widths on one tensor-parallel rank; latent attention trains expanded.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> attention_widths(LLAMA_3_8B.layers[0], tp=8)
    AttentionWidths(queries=512.0, keys=128.0, values=128.0, outputs=512.0, heads=4.0)
    """
    match group.attention:
        case GroupedQuery() as a:
            kv_heads = max(a.n_kv_heads / tp, 1.0)
            heads = a.query_heads / tp
            return AttentionWidths(
                heads * a.head_dim, kv_heads * a.head_dim, kv_heads * a.value_dim,
                heads * a.value_dim, heads,
            )  # fmt: skip
        case Latent() as a:
            heads = a.n_heads / tp
            head = heads * (a.nope_dim + a.rope_dim)
            return AttentionWidths(head, head, heads * a.v_head_dim, heads * a.v_head_dim, heads)
        case None:
            return AttentionWidths(0.0, 0.0, 0.0, 0.0, 0.0)


def norm_widths(
    arch: Architecture, group: LayerGroup
) -> tuple[int, tuple[tuple[float, float], ...]]:
    """How many norms of the full width a layer has, and (width, rows a token) of its inner ones.

    Inferred from the layer's small values: 2·hidden is two norms, 2·head_dim more is a norm on each
    query and key head, the widths of queries and keys more are norms on those.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> norm_widths(LLAMA_3_8B, LLAMA_3_8B.layers[0])
    (2, ())
    """
    widths = attention_widths(group)
    if arch.model_type in LAYER_NORM_TYPES:
        return 2, ()
    extra = group.small_parameters - 2 * arch.hidden_size
    match group.attention:
        case GroupedQuery(head_dim=dim):
            per_head = ((widths.queries, widths.heads), (widths.keys, widths.keys / dim))
            if extra in (2 * dim, 2 * dim + 2 * arch.hidden_size):
                return (2 if extra == 2 * dim else 4), per_head
            if extra == widths.queries + widths.keys:
                return 2, ((widths.queries, 1.0), (widths.keys, 1.0))
        case Latent(kv_rank=rank):
            query_rank = max(extra - rank, 0)
            return 2, tuple((float(w), 1.0) for w in (rank, query_rank) if w)
        case None:
            pass
    return (4 if extra >= 2 * arch.hidden_size else 2), ()
