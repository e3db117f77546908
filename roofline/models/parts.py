"""Parts: the blocks that layers are made of, each a list of matrices and a count of small values.

A reader puts a layer together from parts: one that mixes tokens (attention, a state-space block),
one that transforms each token (dense or experts), and norms.

Shapes   See ``Linear``: n_in × n_out.
Limits   Counts only: rotary embeddings, activations and scaling constants hold no values.
Sources  [1] Shazeer 2020, arXiv:2002.05202 (gated feed-forward).
"""

from dataclasses import dataclass, replace

from roofline.models.architecture import (
    Attention,
    Experts,
    Indexer,
    LayerGroup,
    Linear,
    Recurrent,
    Split,
)


@dataclass(frozen=True)
class Part:
    """A block of a layer: matrices, small values, and what it keeps of the past."""

    linears: tuple[Linear, ...] = ()
    small: int = 0
    attention: Attention | None = None
    recurrent: Recurrent | None = None
    indexer: Indexer | None = None
    experts: Experts | None = None
    shares_kv: bool = False

    def with_small(self, values: int) -> "Part":
        """The same part with further small values."""
        return replace(self, small=self.small + values)


@dataclass(frozen=True)
class Window:
    """What attention sees: the last ``tokens`` (None: all), a fixed chunk, compressed entries."""

    tokens: int | None = None
    chunked: bool = False
    compression: int = 1


EVERYTHING = Window()


def join(position: int, *parts: Part, norms: int = 0, window: Window = EVERYTHING) -> LayerGroup:
    """Put one layer together.

    >>> join(0, feed_forward(4, 8), norms=8).parameters_per_layer
    104
    """

    return LayerGroup(
        n_layers=1,
        attention=next((part.attention for part in parts if part.attention), None),
        window=window.tokens,
        chunked=window.chunked,
        compression=window.compression,
        recurrent=next((part.recurrent for part in parts if part.recurrent), None),
        indexer=next((part.indexer for part in parts if part.indexer), None),
        shares_kv=any(part.shares_kv for part in parts),
        linears=tuple(linear for part in parts for linear in part.linears),
        experts=next((part.experts for part in parts if part.experts), None),
        small_parameters=norms + sum(part.small for part in parts),
        layers=(position,),
    )


def merge(layers: list[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Group layers that are alike, in the order of their first layer."""
    groups: dict[LayerGroup, list[int]] = {}
    for layer in layers:
        groups.setdefault(replace(layer, layers=()), []).extend(layer.layers)
    return tuple(
        replace(kind, n_layers=len(positions), layers=tuple(positions))
        for kind, positions in groups.items()
    )


GATED = ("gate_proj", "up_proj", "down_proj")


def feed_forward(
    hidden: int,
    width: int,
    *,
    gated: bool = True,
    bias: bool = False,
    path: str = "mlp",
    names: tuple[str, str, str] = GATED,
    packed: str = "",
    small: int = 0,
    calls: float = 1.0,
) -> Part:
    """Build a dense feed-forward block, gated [1] or not; width 0: nothing.

    ``packed``: checkpoints hold gate and up as one matrix of this name.

    >>> feed_forward(2048, 5632).linears[0].n_out
    5632
    """
    if width == 0:
        return Part()
    gate, up, down = (f"{path}.{name}" for name in names)
    if gated and packed:
        up, both = f"{path}.{packed}", 2 * width
    else:
        both = width
    linears = [Linear(up, hidden, both, bias, fused="gate_up" if gated else "", calls=calls)]
    if gated and not packed:
        linears.insert(0, Linear(gate, hidden, width, bias, fused="gate_up", calls=calls))
    linears.append(Linear(down, width, hidden, bias, Split.ROW, calls=calls))
    return Part(tuple(linears), small)


@dataclass(frozen=True)
class ExpertShape:
    """The dimensions of routed experts; ``latent`` > 0: experts work on a narrower vector."""

    hidden: int
    n_experts: int
    n_active: int
    width: int
    n_identity: int = 0
    latent: int = 0


def experts(
    shape: ExpertShape,
    *,
    gated: bool = True,
    bias: bool = False,
    router_bias: bool = False,
    path: str = "mlp.experts",
    router: str = "mlp.gate",
    names: tuple[str, str, str] = GATED,
) -> Part:
    """Build routed experts with their router.

    >>> part = experts(ExpertShape(hidden=4096, n_experts=8, n_active=2, width=14336))
    >>> part.experts.n_active, part.linears[0].n_out
    (2, 8)
    """
    choices = shape.n_experts + shape.n_identity
    block = feed_forward(
        shape.latent or shape.hidden,
        shape.width,
        gated=gated,
        bias=bias,
        path=f"{path}.*",
        names=names,
    )
    gate = Linear(router, shape.hidden, choices, router_bias, Split.REPLICATED, quantisable=False)
    routed = Experts(
        n_experts=shape.n_experts,
        n_active=shape.n_active,
        linears=block.linears,
        n_identity=shape.n_identity,
    )
    return Part((gate,), experts=routed)
