"""The shape of the measured decoder: what it takes from an architecture, and what it cannot run.

Shapes   Plain widths and counts; ``sharded`` gives what one rank of tensor parallelism holds.
Limits   Grouped-query attention over the whole context and a gated feed-forward, dense or of routed
         experts, alike in every layer. Biases, query and key norms, sinks and shared experts are
         left out; what an architecture has of these is named in ``left_out``.
"""

import math
from dataclasses import dataclass, replace

from roofline.errors import InputError, UnsupportedError
from roofline.models.architecture import Architecture, GroupedQuery, LayerGroup


@dataclass(frozen=True)
class DecoderShape:
    """Widths of the measured decoder.

    Args:
        name: the architecture's.
        n_layers, hidden, vocab: of the model.
        n_heads, n_kv_heads, head_dim: of attention (of one rank after ``sharded``).
        intermediate: width of the feed-forward, or of one expert.
        n_experts, n_active: routed experts, 0 in a dense model.
        left_out: parts of the architecture that this decoder does not have.
    """

    name: str
    n_layers: int
    hidden: int
    vocab: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    intermediate: int
    n_experts: int = 0
    n_active: int = 0
    left_out: tuple[str, ...] = ()

    @property
    def group(self) -> int:
        """Query heads of one KV head."""
        return self.n_heads // self.n_kv_heads

    @property
    def block_parameters(self) -> int:
        """Values of one layer's matrices and its two norms."""
        attention = self.hidden * self.head_dim * (2 * self.n_heads + 2 * self.n_kv_heads)
        gated = 3 * self.hidden * self.intermediate  # gate, up and down
        router = self.hidden * self.n_experts
        return attention + gated * max(self.n_experts, 1) + router + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """Values of the whole decoder: embedding and lm_head apart, no weight in the last norm."""
        return self.n_layers * self.block_parameters + 2 * self.vocab * self.hidden

    @property
    def active_block_parameters(self) -> int:
        """Values of one layer that one token passes through."""
        idle = 3 * self.hidden * self.intermediate * max(self.n_experts - self.n_active, 0)
        return self.block_parameters - idle

    def block_bytes(self, tokens: float, value_bytes: float) -> float:
        """Bytes of all layers' matrices that ``tokens`` tokens read: every matrix once.

            experts read = E · (1 − (1 − k/E)^N), expected under even routing

        >>> dense = DecoderShape("x", 1, 64, 100, 8, 2, 8, 128)
        >>> dense.block_bytes(1, 2.0) == dense.block_bytes(64, 2.0)
        True
        """
        one = 3.0 * self.hidden * self.intermediate
        rest = self.block_parameters - one * max(self.n_experts, 1)
        read = 1.0
        if self.n_experts:
            read = self.n_experts * (1 - (1 - self.n_active / self.n_experts) ** tokens)
        return self.n_layers * (rest + one * read) * value_bytes

    def least_work(
        self, phase: str, batch: int, tokens: int, weight_bytes: float, value_bytes: float
    ) -> tuple[float, float]:
        """FLOP and bytes of a step: 2 FLOP a weight and token, attention; weights and cache once.

        >>> flop, size = DecoderShape("x", 1, 64, 100, 8, 2, 8, 128).least_work(
        ...     "decode", 1, 10, 2.0, 2.0)
        >>> flop / (2 * (34944 - 128 + 6400) + 4 * 8 * 8 * 10)
        1.0
        """
        rows = batch if phase == "decode" else batch * tokens
        pairs = batch * (tokens if phase == "decode" else tokens**2 / 2)
        matrices = self.n_layers * (self.active_block_parameters - 2 * self.hidden)
        head = self.vocab * self.hidden
        attention = 4.0 * self.n_layers * self.n_heads * self.head_dim * pairs
        flop = 2.0 * (matrices * rows + head * batch) + attention
        size = self.block_bytes(rows, weight_bytes) + head * value_bytes
        return flop, size + self.kv_bytes(batch, tokens, value_bytes)

    def kv_bytes(self, batch: int, tokens: int, value_bytes: float = 2.0) -> float:
        """Keys and values of all layers."""
        return 2.0 * self.n_layers * batch * tokens * self.n_kv_heads * self.head_dim * value_bytes

    def sharded(self, ranks: int) -> "DecoderShape":
        """What one rank holds: heads and feed-forward divided, KV heads copied past their number.

        Raises:
            InputError: the ranks do not divide heads and feed-forward.

        >>> shape = DecoderShape("x", 2, 64, 100, 8, 2, 8, 128)
        >>> shape.sharded(4).n_heads, shape.sharded(4).n_kv_heads, shape.sharded(4).intermediate
        (2, 1, 32)
        """
        if isinstance(ranks, bool) or ranks < 1:
            raise InputError(f"tensor parallelism needs at least one rank, got {ranks}")
        if self.n_heads % ranks or self.intermediate % ranks:
            raise InputError(
                f"{ranks} ranks do not divide {self.n_heads} heads and a feed-forward of "
                f"{self.intermediate}"
            )
        kv_heads = max(1, math.ceil(self.n_kv_heads / ranks))
        heads = self.n_heads // ranks
        if heads % kv_heads:
            raise InputError(f"{heads} query heads a rank do not share {kv_heads} KV heads")
        return replace(
            self, n_heads=heads, n_kv_heads=kv_heads, intermediate=self.intermediate // ranks
        )


def decoder_shape(architecture: Architecture) -> DecoderShape:
    """Take the decoder's shape from an architecture.

    Raises:
        UnsupportedError: its layers differ, or are of a kind that this decoder has not.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> decoder_shape(LLAMA_3_8B).parameters  # 8,030,261,248 without the last norm's 4,096 weights
    8030257152
    """
    shapes = {_layer(architecture, group) for group in architecture.layers}
    if len(shapes) != 1:
        raise UnsupportedError(
            f"{architecture.name}: the measured decoder runs models whose layers are alike"
        )
    heads, kv_heads, head_dim, intermediate, n_experts, n_active = shapes.pop()
    return DecoderShape(
        name=architecture.name,
        n_layers=architecture.n_layers,
        hidden=architecture.hidden_size,
        vocab=architecture.vocab_size,
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=intermediate,
        n_experts=n_experts,
        n_active=n_active,
        left_out=_left_out(architecture),
    )


def _layer(architecture: Architecture, group: LayerGroup) -> tuple[int, int, int, int, int, int]:
    attention = group.attention
    if not isinstance(attention, GroupedQuery) or group.recurrent or group.indexer:
        raise UnsupportedError(
            f"{architecture.name}: the measured decoder has grouped-query attention only, no "
            "latent, linear or sparse attention and no state-space layers"
        )
    if attention.value_dim != attention.head_dim or attention.one_cache:
        raise UnsupportedError(f"{architecture.name}: keys and values of different widths")
    if group.experts is None:
        up = [linear.n_out for linear in group.linears if linear.fused == "gate_up"]
        if len(up) != 2 or up[0] != up[1]:
            raise UnsupportedError(f"{architecture.name}: the feed-forward is not gated")
        n_experts = n_active = 0
    else:
        up = [linear.n_out for linear in group.experts.linears if linear.fused == "gate_up"]
        if not up or any(linear.fused == "gate_up" for linear in group.linears):
            raise UnsupportedError(
                f"{architecture.name}: shared experts, or experts without a gate"
            )
        n_experts, n_active = group.experts.n_experts, group.experts.n_active
    return (
        attention.query_heads,
        attention.n_kv_heads,
        attention.head_dim,
        up[0],
        n_experts,
        n_active,
    )


def _left_out(architecture: Architecture) -> tuple[str, ...]:
    found = []
    groups = architecture.layers
    if architecture.tied:
        found.append("the tie of lm_head to the embedding")
    if any(linear.bias for group in groups for linear in group.linears):
        found.append("biases")
    if any(group.window or group.chunked for group in groups):
        found.append("windows: attention reads the whole context")
    if any(group.small_parameters != 2 * architecture.hidden_size for group in groups):
        found.append("small parameters besides two norms a layer (query and key norms, sinks)")
    return tuple(found)
