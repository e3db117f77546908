"""Attention parts: the matrices of grouped-query and latent attention.

Shapes   See ``Linear``: n_in × n_out; grouped-query [1], latent [2].
Limits   As parts.py.
Sources  [1] Ainslie et al. 2023, arXiv:2305.13245. [2] DeepSeek-AI 2024, arXiv:2405.04434, 2.1.
"""

from dataclasses import dataclass

from roofline.models.architecture import GroupedQuery, Latent, Linear, Split
from roofline.models.parts import Part


@dataclass(frozen=True)
class Heads:
    """The dimensions of grouped-query attention."""

    hidden: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    v_head_dim: int

    @property
    def queries(self) -> int:
        """Width of all queries."""
        return self.n_heads * self.head_dim

    @property
    def keys(self) -> int:
        """Width of all keys."""
        return self.n_kv_heads * self.head_dim

    @property
    def values(self) -> int:
        """Width of all values."""
        return self.n_kv_heads * self.v_head_dim

    @property
    def outputs(self) -> int:
        """Width of what all query heads give."""
        return self.n_heads * self.v_head_dim


@dataclass(frozen=True)
class AttentionStyle:
    """What families add to grouped-query attention.

    Args:
        qkv_bias, o_bias: whether the projections have biases.
        gate: a gate on the output: ``query`` doubles q_proj, ``output`` is a matrix as wide as the
            output, ``head`` a matrix of one value a head.
        has_kv: False: keys and values come from an earlier layer.
        has_value: False: values are the keys (one matrix for both).
        path, names: how checkpoints name the block and its q, k, v, o.
        packed: checkpoints hold q, k, v as one matrix of this name.
    """

    qkv_bias: bool = False
    k_bias: bool | None = None
    o_bias: bool = False
    gate: str = ""
    has_kv: bool = True
    has_value: bool = True
    path: str = "self_attn"
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj")
    packed: str = ""
    gate_name: str = "gate_proj"


def grouped_query(heads: Heads, style: AttentionStyle, *, small: int = 0) -> Part:
    """Build grouped-query attention [1]: q, k, v, o.

    >>> heads = Heads(hidden=2048, n_heads=32, n_kv_heads=4, head_dim=64, v_head_dim=64)
    >>> sum(linear.parameters for linear in grouped_query(heads, AttentionStyle()).linears)
    9437184
    """
    path, (q, k, v, o) = style.path, style.names
    k_bias = style.qkv_bias if style.k_bias is None else style.k_bias
    q_width = heads.queries * (2 if style.gate == "query" else 1)
    if style.packed:
        width = q_width + heads.keys + heads.values
        packed = f"{path}.{style.packed}"
        linears = [Linear(packed, heads.hidden, width, bias=style.qkv_bias, fused="qkv")]
    else:
        linears = [Linear(f"{path}.{q}", heads.hidden, q_width, bias=style.qkv_bias, fused="qkv")]
        if style.has_kv:
            linears.append(
                Linear(f"{path}.{k}", heads.hidden, heads.keys, k_bias, Split.KV_HEADS, fused="qkv")
            )
        if style.has_kv and style.has_value:
            linears.append(
                Linear(
                    f"{path}.{v}",
                    heads.hidden,
                    heads.values,
                    style.qkv_bias,
                    Split.KV_HEADS,
                    fused="qkv",
                )
            )
    if style.gate in ("output", "head"):
        width = heads.outputs if style.gate == "output" else heads.n_heads
        linears.append(Linear(f"{path}.{style.gate_name}", heads.hidden, width, fused="qkv"))
    linears.append(Linear(f"{path}.{o}", heads.outputs, heads.hidden, style.o_bias, Split.ROW))
    attention = GroupedQuery(
        n_kv_heads=heads.n_kv_heads,
        head_dim=heads.head_dim,
        n_heads=heads.n_heads,
        v_head_dim=None if heads.v_head_dim == heads.head_dim else heads.v_head_dim,
    )
    return Part(tuple(linears), small, attention=attention, shares_kv=not style.has_kv)


@dataclass(frozen=True)
class LatentShape:
    """The dimensions of latent attention [2]; q_rank 0: queries are made directly."""

    hidden: int
    n_heads: int
    q_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_head_dim: int


def latent(
    shape: LatentShape,
    *,
    bias: bool = False,
    o_bias: bool = False,
    path: str = "self_attn",
    gate: str = "",
) -> Part:
    """Build multi-head latent attention [2]: down to the latent vectors, up to the heads.

    >>> shape = LatentShape(7168, 128, 1536, 512, 128, 64, 128)
    >>> sum(linear.parameters for linear in latent(shape).linears)
    187105280
    """
    head = shape.nope_dim + shape.rope_dim
    down = shape.kv_rank + shape.rope_dim
    small = shape.kv_rank  # norm of the latent
    if shape.q_rank:
        small += shape.q_rank  # norm of the query's latent
        linears = [
            Linear(
                f"{path}.q_a_proj",
                shape.hidden,
                shape.q_rank,
                bias,
                Split.REPLICATED,
                fused="qkv_a",
            ),
            Linear(f"{path}.q_b_proj", shape.q_rank, shape.n_heads * head),
        ]
    else:
        linears = [Linear(f"{path}.q_proj", shape.hidden, shape.n_heads * head)]
    linears += [
        Linear(
            f"{path}.kv_a_proj_with_mqa",
            shape.hidden,
            down,
            bias,
            Split.REPLICATED,
            fused="qkv_a" if shape.q_rank else "",
        ),
        Linear(
            f"{path}.kv_b_proj", shape.kv_rank, shape.n_heads * (shape.nope_dim + shape.v_head_dim)
        ),
    ]
    if gate:
        linears.append(Linear(f"{path}.{gate}", shape.hidden, shape.n_heads * shape.v_head_dim))
    linears.append(
        Linear(f"{path}.o_proj", shape.n_heads * shape.v_head_dim, shape.hidden, o_bias, Split.ROW)
    )
    attention = Latent(
        kv_rank=shape.kv_rank,
        rope_dim=shape.rope_dim,
        n_heads=shape.n_heads,
        nope_dim=shape.nope_dim,
        v_head_dim=shape.v_head_dim,
    )
    return Part(tuple(linears), small, attention=attention)
