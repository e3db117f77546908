"""Sharding: how a model is divided over accelerators, and what one rank then holds.

``shard`` turns an architecture into the architecture of one tensor-parallel rank, so that all that
counts FLOPs and bytes counts a rank by the same functions. Pipeline stages divide layers
(``fullest_stage``); data-parallel replicas are copies.

Shapes   Column-split matrices lose outputs, row-split ones inputs; KV heads are divided and, past
         their number, copied; the latent of MLA, routers and down-projections to a latent are whole
         on every rank; the vocabulary is padded to a multiple of 64 and of tp.
Limits   accelerators = tp · pp · dp; ``ep`` partitions the experts over tp · dp.
Sources  [1] Shoeybi et al. 2019, Megatron-LM, arXiv:1909.08053, section 3.
         [2] DeepSeek-AI 2024, arXiv:2412.19437, section 3.4 (experts over many ranks beside
             data-parallel attention).
"""

import math
from dataclasses import dataclass, replace

from roofline.errors import InputError
from roofline.models.architecture import (
    Architecture,
    Experts,
    GroupedQuery,
    Indexer,
    Latent,
    LayerGroup,
    Linear,
    Recurrent,
    Split,
)
from roofline.units import whole

VOCABULARY_MULTIPLE = 64
"""Engines pad the vocabulary to a multiple of this before they divide it."""

MOST_RANKS = 65_536
"""Largest degree of any kind of parallelism that is taken at its word."""


@dataclass(frozen=True)
class Parallel:
    """A plan for several accelerators.

    Args:
        tp: tensor-parallel ranks of a replica's stage.
        pp: pipeline stages of a replica.
        dp: replicas, each with its own batch.
        ep: expert-parallel ranks; partitions tp · dp.

    Raises:
        InputError: a degree below 1, or ep that does not fit tp · dp.

    >>> Parallel(tp=8, dp=2).accelerators
    16
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "dp", "ep"):
            object.__setattr__(self, name, whole(name, getattr(self, name), most=MOST_RANKS))
        ranks = self.tp * self.dp
        if ranks % self.ep or (self.ep % self.tp and self.tp % self.ep):
            raise InputError(
                f"ep={self.ep} does not partition tp · dp = {self.tp} · {self.dp} = {ranks}; "
                f"use 1, a divisor of tp, or a multiple of tp up to {ranks}"
            )

    @property
    def accelerators(self) -> int:
        """Accelerators in all: tp · pp · dp."""
        return self.tp * self.pp * self.dp

    def __str__(self) -> str:
        parts = [f"{name.upper()}{getattr(self, name)}" for name in ("tp", "pp", "dp", "ep")]
        return " ".join(part for part in parts if not part.endswith("P1")) or "one accelerator"


def shard(arch: Architecture, parallel: Parallel) -> Architecture:
    """Give one rank's share of every layer; pipeline stages are ``fullest_stage``'s.

    Raises:
        InputError: tp or ep does not divide what it has to; the message has what works.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> shard(LLAMA_3_8B, Parallel(tp=16)).layers[0].attention.n_kv_heads  # 8 heads, copied
    1
    """
    if parallel.tp == 1 and parallel.ep == 1:
        return arch
    check_divisible(arch, parallel)
    tp = parallel.tp
    head = arch.lm_head
    vocab = padded_vocabulary(arch.vocab_size, tp) // tp
    embedding = arch.embedding_parameters
    if tp > 1 and arch.vocab_size:
        table = arch.vocab_size * arch.hidden_size
        if embedding >= table:
            embedding = embedding - table + vocab * arch.hidden_size
        head = None if head is None else replace(head, n_out=vocab)
    return replace(
        arch,
        layers=tuple(_shard_group(group, parallel) for group in arch.layers),
        prediction_layers=tuple(_shard_group(g, parallel) for g in arch.prediction_layers),
        embedding_parameters=embedding,
        lm_head=head,
    )


def padded_vocabulary(vocab_size: int, tp: int) -> int:
    """Pad a vocabulary so that tp ranks can divide it: the next multiple of lcm(64, tp).

    >>> padded_vocabulary(151_552, 6), padded_vocabulary(129_280, 24), padded_vocabulary(32_001, 1)
    (151680, 129408, 32001)
    """
    if tp == 1:
        return vocab_size
    multiple = math.lcm(VOCABULARY_MULTIPLE, tp)
    return math.ceil(vocab_size / multiple) * multiple


def check_divisible(arch: Architecture, parallel: Parallel) -> None:
    """Refuse a tp or ep that does not divide heads, widths or experts, with what does."""
    tp = parallel.tp
    if not _tp_works(arch, parallel.tp, parallel):
        works = [n for n in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 64)
                 if _tp_works(arch, n, Parallel(tp=n))]  # fmt: skip
        reason = _tp_reason(arch, tp, parallel)
        raise InputError(
            f"tp={tp} does not divide {reason} of {arch.name}; "
            f"these do: {', '.join(map(str, works))}"
        )
    for group in arch.layers:
        if group.experts is not None and group.experts.n_experts % parallel.ep:
            raise InputError(
                f"ep={parallel.ep} does not divide the {group.experts.n_experts} experts "
                f"of {arch.name}"
            )
    if parallel.ep > 1 and all(group.experts is None for group in arch.layers):
        raise InputError(f"ep={parallel.ep} needs experts, and {arch.name} has none; use ep=1")
    if parallel.pp > arch.n_layers:
        raise InputError(f"pp={parallel.pp} is more than the {arch.n_layers} layers of {arch.name}")


def _tp_works(arch: Architecture, tp: int, parallel: Parallel) -> bool:
    return _tp_reason(arch, tp, parallel) is None


def _tp_reason(arch: Architecture, tp: int, parallel: Parallel) -> str | None:
    for group in arch.layers:
        heads = group.query_heads
        if heads and heads % tp:
            return f"the {heads} query heads"
        kv_heads = _kv_heads(group)
        if kv_heads and kv_heads % tp and tp % kv_heads:  # engines divide or copy, never both
            return f"the {kv_heads} KV heads"
        for linear in group.linears:
            width = {Split.COLUMN: linear.n_out, Split.ROW: linear.n_in}.get(linear.split)
            if width is not None and width % tp:
                return f"the width {width} of {linear.name}"
        if group.experts is not None:
            degree = expert_tensor_parallel(parallel)
            for linear in group.experts.linears:
                width = {Split.COLUMN: linear.n_out, Split.ROW: linear.n_in}.get(linear.split)
                if width is not None and width % degree:
                    return f"the width {width} of an expert's {linear.name}"
    return None


def _kv_heads(group: LayerGroup) -> int:
    match group.attention:
        case GroupedQuery():
            return group.attention.n_kv_heads
        case _:
            return 0


def expert_tensor_parallel(parallel: Parallel) -> int:
    """Ranks over which each expert's matrices are divided: tp, less what ep takes of it.

    >>> expert_tensor_parallel(Parallel(tp=8, ep=4)), expert_tensor_parallel(Parallel(dp=8, ep=8))
    (2, 1)
    """
    return max(parallel.tp // parallel.ep, 1)


def _shard_group(group: LayerGroup, parallel: Parallel) -> LayerGroup:
    tp = parallel.tp
    kv_copies = _kv_share(group, tp)
    return replace(
        group,
        attention=_shard_attention(group.attention, tp),
        recurrent=_shard_recurrent(group.recurrent, tp),
        indexer=_shard_indexer(group.indexer),
        linears=tuple(_shard_linear(linear, tp, kv_copies) for linear in group.linears),
        experts=_shard_experts(group.experts, parallel),
    )


def _shard_attention(
    attention: GroupedQuery | Latent | None, tp: int
) -> GroupedQuery | Latent | None:
    match attention:
        case GroupedQuery():
            return replace(
                attention,
                n_heads=attention.query_heads // tp,
                n_kv_heads=math.ceil(attention.n_kv_heads / tp),
                v_head_dim=attention.value_dim,
            )
        case Latent():
            return replace(attention, n_heads=attention.n_heads // tp)
        case None:
            return None


def _shard_recurrent(recurrent: Recurrent | None, tp: int) -> Recurrent | None:
    if recurrent is None or not recurrent.n_heads:
        return recurrent
    share = math.ceil(recurrent.n_heads / tp) / recurrent.n_heads
    return replace(
        recurrent,
        state_values=math.ceil(recurrent.state_values * share),
        conv_values=math.ceil(recurrent.conv_values * share),
        flop_per_token=recurrent.flop_per_token * share,
        n_heads=math.ceil(recurrent.n_heads / tp),
    )


def _shard_indexer(indexer: Indexer | None) -> Indexer | None:
    return indexer  # every rank selects for all heads, so each holds the whole indexer


def _kv_share(group: LayerGroup, tp: int) -> float:
    match group.attention:
        case GroupedQuery():
            heads = group.attention.n_kv_heads
            return math.ceil(heads / tp) / heads
        case _:
            return 1 / tp


def _shard_linear(linear: Linear, tp: int, kv_share: float) -> Linear:
    match linear.split:
        case Split.COLUMN:
            return replace(linear, n_out=linear.n_out // tp)
        case Split.ROW:
            return replace(linear, n_in=linear.n_in // tp)
        case Split.KV_HEADS:
            return replace(linear, n_out=round(linear.n_out * kv_share))
        case Split.REPLICATED:
            return linear


def _shard_experts(experts: Experts | None, parallel: Parallel) -> Experts | None:
    if experts is None:
        return None
    degree = expert_tensor_parallel(parallel)
    return replace(
        experts,
        n_experts=experts.n_experts // parallel.ep,
        n_routed=experts.routed,
        n_sources=max(parallel.ep // parallel.tp, 1),
        linears=tuple(_shard_linear(linear, degree, 1 / degree) for linear in experts.linears),
    )


def fullest_stage(arch: Architecture, pp: int) -> Architecture:
    """Give the pipeline stage that holds most: layers in order, the first stages one longer.

    The embedding counts on the first stage and lm_head on the last; the fullest of all is returned.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> fullest_stage(LLAMA_3_8B, 4).n_layers
    8
    """
    if pp == 1:
        return arch
    order = _layers_in_order(arch)
    share, longer = divmod(len(order), pp)
    stages = []
    start = 0
    for stage in range(pp):
        count = share + (1 if stage < longer else 0)
        chosen = order[start : start + count]
        start += count
        first, last = stage == 0, stage == pp - 1
        keep_table = first or (last and arch.tied)
        stages.append(
            replace(
                arch,
                layers=_regroup(arch, chosen),
                embedding_parameters=arch.embedding_parameters if keep_table else 0,
                lm_head=arch.lm_head if last else None,
                small_parameters=arch.small_parameters if last else 0,
                prediction_layers=arch.prediction_layers if last else (),
            )
        )
    return max(stages, key=lambda stage: stage.parameters)


def _layers_in_order(arch: Architecture) -> list[int]:
    """Index of the group of each layer, in the order of the model."""
    known = all(len(group.layers) == group.n_layers for group in arch.layers)
    if not known:
        return [i for i, group in enumerate(arch.layers) for _ in range(group.n_layers)]
    placed = [(layer, i) for i, group in enumerate(arch.layers) for layer in group.layers]
    return [i for _, i in sorted(placed)]


def _regroup(arch: Architecture, chosen: list[int]) -> tuple[LayerGroup, ...]:
    return tuple(
        replace(group, n_layers=chosen.count(i), layers=())
        for i, group in enumerate(arch.layers)
        if i in chosen
    )
