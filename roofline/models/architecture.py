"""Architecture: what a language model is made of, as frozen data.

A model is a list of layer groups; the layers of one group are alike. Each layer says what its
attention caches and scores (``attention``), what state it keeps besides (``recurrent``), and lists
every matrix (``linears``, ``experts``) by the name that checkpoints give it. All later arithmetic
(parameters, FLOPs, bytes, sharding) is a sum over this data, so a new family is a new reader, never
a new formula.

Shapes   A ``Linear`` maps [.., n_in] to [.., n_out] and holds n_in × n_out values (+ n_out biases).
Units    Counts of values; widths in values; windows and ranks in tokens and values.
Limits   The text model as it predicts the next token; encoders, vision and audio towers and
         multi-token-prediction layers are kept apart and count only when asked for.
Sources  [1] Vaswani et al. 2017, arXiv:1706.03762. [2] Ainslie et al. 2023, arXiv:2305.13245 (GQA).
         [3] DeepSeek-AI 2024, arXiv:2405.04434 (MLA, section 2.1; shared experts, section 2.2).
         [4] DeepSeek-AI 2025, DeepSeek-V3.2 (sparse attention's indexer).
         [5] Dao & Gu 2024, arXiv:2405.21060 (Mamba-2); Yang et al. 2024, arXiv:2412.06464
             (gated delta networks).
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from roofline.dtypes import Dtype


class Split(StrEnum):
    """How tensor parallelism divides a matrix over the ranks of a group."""

    COLUMN = "column"  # outputs divided: query heads, gate and up
    ROW = "row"  # inputs divided, an all-reduce follows: output and down projections
    KV_HEADS = "kv_heads"  # outputs divided by KV head, copied past n_kv_heads
    REPLICATED = "replicated"  # whole on each rank: routers, latent down-projections


@dataclass(frozen=True)
class Linear:
    """One matrix of a layer.

    Args:
        name: path inside the layer as checkpoints have it, such as ``self_attn.q_proj``.
        n_in, n_out: width of input and output.
        bias: whether n_out biases belong to it (kept in 16 bit).
        split: how tensor parallelism divides it.
        fused: matrices with the same word run as one matmul in engines (``qkv``, ``gate_up``);
            empty: alone.
        dtype: storage format in this checkpoint; None: the model's own 16- or 32-bit type, or what
            the caller asks for.
        quantisable: False for what formats leave alone (routers, lm_head, small state matrices).
        calls: how often a token passes through it, 0 for a matrix held and not used to decode text.
    """

    name: str
    n_in: int
    n_out: int
    bias: bool = False
    split: Split = Split.COLUMN
    fused: str = ""
    dtype: Dtype | None = None
    quantisable: bool = True
    calls: float = 1.0

    @property
    def values(self) -> int:
        """Values of the matrix, without biases."""
        return self.n_in * self.n_out

    @property
    def parameters(self) -> int:
        """Values with biases."""
        return self.values + (self.n_out if self.bias else 0)


@dataclass(frozen=True)
class Experts:
    """Routed experts of one layer [3]; shared experts and the router are linears of the layer.

    Args:
        n_experts: experts held (on one rank after sharding).
        n_active: distinct experts that a token passes through, of ``n_routed``.
        linears: the matrices of one expert.
        n_routed: experts that the router chooses from, without identity experts; None: n_experts.
        n_identity: choices of the router that compute nothing (LongCat's zero experts); the
            ``n_active`` picks then fall on both kinds alike.
        expert_biases: further values per expert that are no matrix.
        n_sources: data-parallel replicas whose tokens these experts serve (after sharding).
    """

    n_experts: int
    n_active: int
    linears: tuple[Linear, ...]
    n_routed: int | None = None
    n_identity: int = 0
    expert_biases: int = 0
    n_sources: int = 1

    @property
    def routed(self) -> int:
        """Experts that compute something and that the router chooses from, on all ranks."""
        return self.n_experts if self.n_routed is None else self.n_routed

    @property
    def mean_active(self) -> float:
        """Computing experts that a token passes through on average."""
        return self.n_active * self.routed / (self.routed + self.n_identity)


@dataclass(frozen=True)
class GroupedQuery:
    """Grouped-query attention [2]; n_heads = n_kv_heads is multi-head, n_kv_heads = 1 multi-query.

    Args:
        n_kv_heads: heads of keys and values; they are what is cached.
        head_dim: width of a key (and query).
        n_heads: query heads; None: as many as KV heads.
        v_head_dim: width of a value; None: head_dim.
        one_cache: keys and values are one cached vector (DeepSeek-V4): values are not cached.
    """

    n_kv_heads: int
    head_dim: int
    n_heads: int | None = None
    v_head_dim: int | None = None
    one_cache: bool = False

    @property
    def query_heads(self) -> int:
        """Query heads."""
        return self.n_kv_heads if self.n_heads is None else self.n_heads

    @property
    def value_dim(self) -> int:
        """Width of one head's value."""
        return self.head_dim if self.v_head_dim is None else self.v_head_dim


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention [3]: one vector per token, from which keys and values are made.

    Args:
        kv_rank: width of the shared latent vector.
        rope_dim: width of the shared rotary key beside it.
        n_heads: query heads.
        nope_dim: width of a head's key made from the latent.
        v_head_dim: width of a head's value.
    """

    kv_rank: int
    rope_dim: int
    n_heads: int = 1
    nope_dim: int = 0
    v_head_dim: int = 0


Attention = GroupedQuery | Latent


@dataclass(frozen=True)
class Indexer:
    """Sparse attention's selector [4]: scores every cached token, attention then reads the best.

    Args:
        n_heads, head_dim: its query heads and width; one key of ``head_dim`` is cached per token.
        top_k: tokens (or compressed entries) that attention reads at most.
        key_dtype: storage of its keys, scales included; None: 8 bit with a 32-bit scale per key.
        scores: False in a layer that takes over the choice of an earlier one (GLM-5's shared
            indices): it holds and scores no keys of its own.
    """

    n_heads: int
    head_dim: int
    top_k: int
    key_dtype: Dtype | None = None
    scores: bool = True


@dataclass(frozen=True)
class Recurrent:
    """Fixed state of a linear-attention, state-space or convolution layer [5].

    Args:
        kind: ``mamba``, ``mamba2``, ``gated_delta``, ``kda``, ``rg_lru``, ``short_conv``, ...
        state_values: values of recurrent state that one sequence keeps per layer.
        conv_values: values of convolution history that one sequence keeps per layer.
        flop_per_token: FLOPs of the state update and read-out for one token, matrices not included.
        state_dtype: storage of the state; None: fp32.
        n_heads: heads that tensor parallelism divides; 0: replicated.
    """

    kind: str
    state_values: int
    conv_values: int
    flop_per_token: float
    state_dtype: Dtype | None = None
    n_heads: int = 0


@dataclass(frozen=True)
class LayerGroup:
    """Layers that are alike.

    Args:
        n_layers: how many.
        attention: what scores and caches; None: no attention in these layers.
        window: tokens of the past that attention sees, itself included; None: all.
        chunked: the window is a fixed chunk (Llama-4): a token sees its own chunk's past only.
        compression: tokens that one cached entry beyond the window stands for (DeepSeek-V4's
            compressed attention); 1: every token is cached as it is. With compression the cache
            holds the last ``window`` tokens and tokens / compression entries besides.
        recurrent: fixed state kept besides or instead of a cache.
        indexer: sparse attention's selector.
        shares_kv: reads an earlier layer's cache and stores none.
        linears: every dense matrix of one layer, router and shared experts included.
        experts: routed experts.
        small_parameters: values of one layer that are in no matrix: norms, sinks, convolutions,
            scalars.
        layers: positions in the model, first is 0; empty: not known.
    """

    n_layers: int
    attention: Attention | None = None
    window: int | None = None
    chunked: bool = False
    compression: int = 1
    recurrent: Recurrent | None = None
    indexer: Indexer | None = None
    shares_kv: bool = False
    linears: tuple[Linear, ...] = ()
    experts: Experts | None = None
    small_parameters: int = 0
    layers: tuple[int, ...] = ()

    @property
    def query_heads(self) -> int:
        """Query heads of one layer; 0 without attention."""
        match self.attention:
            case GroupedQuery():
                return self.attention.query_heads
            case Latent():
                return self.attention.n_heads
            case None:
                return 0

    @property
    def matrices_per_layer(self) -> int:
        """Dense matrices of one layer that a token passes through: 7 in a Llama layer."""
        return sum(1 for linear in self.linears if linear.calls > 0)

    @property
    def parameters_per_layer(self) -> int:
        """Values of one layer."""
        dense = sum(linear.parameters for linear in self.linears) + self.small_parameters
        if self.experts is None:
            return dense
        expert = sum(linear.parameters for linear in self.experts.linears)
        return dense + self.experts.n_experts * (expert + self.experts.expert_biases)

    @property
    def active_parameters_per_layer(self) -> float:
        """Values of one layer that one token passes through."""
        if self.experts is None:
            return self.parameters_per_layer
        expert = sum(linear.parameters for linear in self.experts.linears)
        idle = self.experts.n_experts - self.experts.mean_active
        return self.parameters_per_layer - idle * (expert + self.experts.expert_biases)


@dataclass(frozen=True)
class Tower:
    """A part beside the text model: a vision or audio encoder with its projector."""

    name: str
    parameters: int


@dataclass(frozen=True)
class Architecture:
    """A model, ready to be counted.

    Args:
        name: short name.
        layers: the layer groups, in the order of their first layer.
        source: where the description comes from.
        model_type: the config's ``model_type``.
        hidden_size: width between layers.
        vocab_size: entries of the vocabulary, as the matrices have them.
        embedding_parameters: values of the input embedding (and of learned positions).
        lm_head: the output projection; its ``parameters`` count only when not ``tied``.
        tied: lm_head is the input embedding.
        small_parameters: values outside layers and embeddings: final norm.
        dtype: the model's own type, of everything that no format covers.
        kv_dtype: format of the KV cache that the checkpoint asks for; None: ``dtype``.
        quantisation: the checkpoint's format in words; empty: none.
        max_context_tokens: longest context that the model was made for; None: not stated.
        prediction_layers: multi-token-prediction layers, held only for speculative decoding.
        towers: encoders beside the text model.
        router_biases: values that checkpoints hold beside the parameters, to balance experts.
        assumptions: every default and inference that the reader made, in words.

    >>> LLAMA_3_8B.parameters
    8030261248
    >>> LLAMA_3_8B.n_layers, LLAMA_3_8B.linear_calls_per_step
    (32, 225)
    """

    name: str
    layers: tuple[LayerGroup, ...]
    source: str
    model_type: str = ""
    hidden_size: int = 0
    vocab_size: int = 0
    embedding_parameters: int = 0
    lm_head: Linear | None = None
    tied: bool = False
    small_parameters: int = 0
    dtype: Dtype = field(default_factory=lambda: Dtype.BF16)
    kv_dtype: Dtype | None = None
    quantisation: str = ""
    max_context_tokens: int | None = None
    prediction_layers: tuple[LayerGroup, ...] = ()
    towers: tuple[Tower, ...] = ()
    router_biases: int = 0
    assumptions: tuple[str, ...] = ()

    @property
    def n_layers(self) -> int:
        """Layers of the text model."""
        return sum(group.n_layers for group in self.layers)

    @property
    def parameters(self) -> int:
        """Exact number of values of the text model, without prediction layers and towers."""
        body = sum(group.n_layers * group.parameters_per_layer for group in self.layers)
        head = 0 if self.lm_head is None or self.tied else self.lm_head.parameters
        return body + head + self.embedding_parameters + self.small_parameters

    @property
    def has_experts(self) -> bool:
        """Whether a layer routes its tokens to experts."""
        return any(group.experts is not None for group in self.layers)

    @property
    def active_parameters(self) -> int:
        """Values that one token passes through, embedding table and lm_head included once each.

        The embedding table is counted whole, as model cards do.
        """
        idle = sum(
            group.n_layers * (group.parameters_per_layer - group.active_parameters_per_layer)
            for group in self.layers
        )
        return round(self.parameters - idle)

    @property
    def linear_calls_per_step(self) -> int:
        """Matrix products with dense weights in one step, lm_head included, experts not.

        TinyLlama: 7 × 22 + 1 = 155, what a trace shows as ``aten::linear``.
        """
        calls = sum(group.n_layers * group.matrices_per_layer for group in self.layers)
        return calls + (1 if self.lm_head is not None else 0)

    def renamed(self, name: str) -> "Architecture":
        """The same model under another name."""
        return replace(self, name=name)


def dense_decoder(
    name: str,
    *,
    n_layers: int,
    hidden: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    intermediate: int,
    vocab: int,
    tied: bool = False,
    source: str,
) -> Architecture:
    """Build the plain gated, bias-free decoder that Llama made common.

    >>> dense_decoder("tinyllama", n_layers=22, hidden=2048, n_heads=32, n_kv_heads=4, head_dim=64,
    ...     intermediate=5632, vocab=32000, source="TinyLlama-1.1B config.json").parameters
    1100048384
    """
    queries, keys = n_heads * head_dim, n_kv_heads * head_dim
    linears = (
        Linear("self_attn.q_proj", hidden, queries, fused="qkv"),
        Linear("self_attn.k_proj", hidden, keys, split=Split.KV_HEADS, fused="qkv"),
        Linear("self_attn.v_proj", hidden, keys, split=Split.KV_HEADS, fused="qkv"),
        Linear("self_attn.o_proj", queries, hidden, split=Split.ROW),
        Linear("mlp.gate_proj", hidden, intermediate, fused="gate_up"),
        Linear("mlp.up_proj", hidden, intermediate, fused="gate_up"),
        Linear("mlp.down_proj", intermediate, hidden, split=Split.ROW),
    )
    group = LayerGroup(
        n_layers=n_layers,
        attention=GroupedQuery(n_kv_heads=n_kv_heads, head_dim=head_dim, n_heads=n_heads),
        linears=linears,
        small_parameters=2 * hidden,  # a norm before attention, one before the feed-forward
        layers=tuple(range(n_layers)),
    )
    return Architecture(
        name=name,
        layers=(group,),
        source=source,
        model_type="llama",
        hidden_size=hidden,
        vocab_size=vocab,
        embedding_parameters=vocab * hidden,
        lm_head=Linear("lm_head", hidden, vocab, quantisable=False),
        tied=tied,
        small_parameters=hidden,
    )


LLAMA_3_8B = dense_decoder(
    "llama-3-8b",
    n_layers=32,
    hidden=4096,
    n_heads=32,
    n_kv_heads=8,
    head_dim=128,
    intermediate=14336,
    vocab=128256,
    source="Llama Team 2024, arXiv:2407.21783, table 3; vocabulary 128,256 from the model's config",
)
"""Llama-3-8B, the running example of the docstrings."""
