"""Operators: FLOPs and bytes of everything that one step of a model does.

A step is any mixture of sequences that decode one token and prompts that are prefilled; both pass
through the same matrices together and through attention apart. The operators are those that engines
run: matrices that share an input run as one matmul (q, k, v; gate, up), routed experts as one
grouped matmul.

Shapes   Every field of ``Step`` is a number or an array; arrays broadcast, and the fields of each
         operator have the shape that its own inputs broadcast to (a matmul does not depend on the
         context, so its FLOPs do not take the context's axis).
Units    FLOP (a multiply-add is two) and bytes of all calls of an operator in one step.
Limits   Compulsory traffic stands apart: weights and cache must move in any engine,
         ``activation_bytes`` move between kernels and are no part of a bound.
Sources  [1] Williams, Waterman, Patterson 2009, Roofline, CACM 52(4): bytes that must move.
         [2] Dao 2023, FlashAttention-2, arXiv:2307.08691: causal FLOPs, no score matrix.
         [3] DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2 and appendix C: latent attention
             expanded in prefill, with its projections absorbed in decode.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from roofline.dtypes import Dtype
from roofline.models.architecture import (
    Architecture,
    GroupedQuery,
    Latent,
    LayerGroup,
    Linear,
)
from roofline.units import Numeric
from roofline.work.kv_cache import (
    causal_pairs,
    entries_read,
    indexer_entries,
    indexer_key_bytes,
    indexer_pairs,
    values_per_token,
)
from roofline.work.weights import (
    chosen_format,
    distinct_experts,
    expert_bytes,
    least_experts,
    linear_bytes,
    linear_dtype,
)

MULTIPLY_ADD_FLOP = 2
ACTIVATION_BYTES = 2
"""Activations between kernels are 16 bit."""


class Kind(StrEnum):
    """What an operator is, as far as its time is concerned."""

    EMBEDDING = "embedding"
    MATMUL = "matmul"
    EXPERTS = "experts"
    DECODE_ATTENTION = "decode attention"
    PREFILL_ATTENTION = "prefill attention"
    INDEXER = "indexer"
    RECURRENT = "recurrent"
    LM_HEAD = "lm_head"


@dataclass(frozen=True)
class Step:
    """One forward pass.

    Args:
        decode_sequences: sequences that make one token each.
        context_tokens: tokens that each of them sees, the one being made included.
        prefill_sequences: prompts (or chunks of prompts) in the pass.
        prefill_tokens: new tokens of each.
        cached_tokens: tokens of each that were prefilled before.
    """

    decode_sequences: Numeric = 0.0
    context_tokens: Numeric = 0.0
    prefill_sequences: Numeric = 0.0
    prefill_tokens: Numeric = 0.0
    cached_tokens: Numeric = 0.0

    @property
    def rows(self) -> Numeric:
        """Tokens that pass through the matrices."""
        return self.decode_sequences + np.multiply(self.prefill_sequences, self.prefill_tokens)

    @property
    def logit_rows(self) -> Numeric:
        """Tokens that pass through lm_head: one a sequence."""
        return np.add(self.decode_sequences, self.prefill_sequences)


@dataclass(frozen=True)
class Formats:
    """Storage formats of a run.

    Args:
        weights: format of the blocks' linear layers; None: the checkpoint's own layout.
        kv: format of the KV cache.
    """

    weights: Dtype | None
    kv: Dtype


@dataclass(frozen=True)
class Operator:
    """All calls of one kind of operator in a step.

    Args:
        name: matrix or function, such as ``qkv`` or ``attention``.
        kind: what its time depends on.
        calls: how many kernels it is.
        storage: format of its weights or cache, which decides what it may compute in.
        flop: FLOPs of all calls.
        weight_bytes: bytes of weights that the calls are expected to read.
        least_weight_bytes: bytes of weights that no schedule avoids (fewer experts).
        cache_bytes: bytes of cache and state read and written.
        activation_bytes: bytes of inputs and outputs.
        rows: rows of each matmul, or sequences of each attention.
        layers_from: layer group that it belongs to, -1 outside the layers.
    """

    name: str
    kind: Kind
    calls: float
    storage: Dtype
    flop: Numeric
    weight_bytes: Numeric = 0.0
    least_weight_bytes: Numeric = 0.0
    cache_bytes: Numeric = 0.0
    activation_bytes: Numeric = 0.0
    rows: Numeric = 0.0
    layers_from: int = -1

    @property
    def least_bytes(self) -> Numeric:
        """Bytes that must move whatever the engine does."""
        return self.least_weight_bytes + self.cache_bytes

    @property
    def expected_bytes(self) -> Numeric:
        """Bytes that an engine is expected to move, activations included."""
        return self.weight_bytes + self.cache_bytes + self.activation_bytes


def step_operators(arch: Architecture, step: Step, formats: Formats) -> list[Operator]:
    """List the operators of one step.

    Args:
        arch: the model, or one rank's share of it (timing/parallel.py).
        step: what is decoded and prefilled.
        formats: storage of weights and cache.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> formats = Formats(weights=None, kv=Dtype.BF16)
    >>> step = Step(decode_sequences=1.0, context_tokens=2176.0)
    >>> float(sum(operator.least_bytes for operator in step_operators(LLAMA_3_8B, step, formats)))
    15295070208.0
    """
    formats = Formats(chosen_format(arch, formats.weights), formats.kv)
    operators = [_embedding(arch, step)]
    for position, group in enumerate(arch.layers):
        operators += _matmuls(arch, group, position, step, formats)
        operators += _attention(group, position, step, formats)
        operators += _recurrent(arch, group, position, step)
        operators += _experts(arch, group, position, step, formats)
    return [*operators, *_lm_head(arch, step, formats)]


def _embedding(arch: Architecture, step: Step) -> Operator:
    row_bytes = arch.hidden_size * arch.dtype.bytes_per_value
    read = step.rows * row_bytes
    small = arch.small_parameters * arch.dtype.bytes_per_value
    return Operator(
        "embedding rows and final norm",
        Kind.EMBEDDING,
        calls=1,
        storage=arch.dtype,
        flop=0.0,
        weight_bytes=read + small,
        least_weight_bytes=read + small,
        activation_bytes=read,
        rows=step.rows,
    )


def fused_matmuls(linears: tuple[Linear, ...]) -> Iterator[tuple[str, tuple[Linear, ...]]]:
    """Gather the matrices that engines run as one matmul, in the order of the first of each."""
    groups: dict[str, list[Linear]] = {}
    for linear in linears:
        if linear.calls > 0:
            key = f"{linear.fused}:{linear.n_in}" if linear.fused else linear.name
            groups.setdefault(key, []).append(linear)
    for members in groups.values():
        first = members[0]
        yield (first.fused or first.name.rsplit(".", 1)[-1], tuple(members))


def _matmuls(
    arch: Architecture, group: LayerGroup, position: int, step: Step, formats: Formats
) -> Iterator[Operator]:
    small = group.small_parameters * arch.dtype.bytes_per_value * group.n_layers
    for name, members in fused_matmuls(group.linears):
        values = sum(linear.values * linear.calls for linear in members)
        stored = sum(linear_bytes(linear, arch, formats.weights) for linear in members)
        stored = stored * group.n_layers + small  # norms go with the layer's first matmul
        small = 0.0
        width = members[0].n_in + sum(linear.n_out for linear in members)
        yield Operator(
            name,
            Kind.MATMUL,
            calls=group.n_layers,
            storage=linear_dtype(members[0], arch, formats.weights),
            flop=MULTIPLY_ADD_FLOP * values * group.n_layers * step.rows,
            weight_bytes=stored,
            least_weight_bytes=stored,
            activation_bytes=step.rows * width * ACTIVATION_BYTES * group.n_layers,
            rows=step.rows,
            layers_from=position,
        )


def flop_per_pair(attention: GroupedQuery | Latent, *, absorbed: bool) -> float:
    """FLOPs of one (query, entry) pair over all heads of a layer [2, 3].

    >>> flop_per_pair(GroupedQuery(n_kv_heads=8, head_dim=128, n_heads=32), absorbed=False)
    16384
    >>> flop_per_pair(Latent(512, 64, n_heads=128, nope_dim=128, v_head_dim=128), absorbed=True)
    278528
    """
    match attention:
        case GroupedQuery():
            width = attention.head_dim + attention.value_dim
            return MULTIPLY_ADD_FLOP * attention.query_heads * width
        case Latent() if absorbed:
            width = attention.kv_rank + attention.rope_dim + attention.kv_rank
            return MULTIPLY_ADD_FLOP * attention.n_heads * width
        case Latent():
            width = attention.nope_dim + attention.rope_dim + attention.v_head_dim
            return MULTIPLY_ADD_FLOP * attention.n_heads * width


def _query_and_output_values(attention: GroupedQuery | Latent) -> float:
    match attention:
        case GroupedQuery():
            return attention.query_heads * (attention.head_dim + attention.value_dim)
        case Latent():
            return attention.n_heads * (2 * attention.kv_rank + attention.rope_dim)


def _attention(
    group: LayerGroup, position: int, step: Step, formats: Formats
) -> Iterator[Operator]:
    if group.attention is None:
        return
    layers = group.n_layers
    entry_bytes = values_per_token(group.attention) * formats.kv.bytes_per_value
    in_out = _query_and_output_values(group.attention) * ACTIVATION_BYTES * layers
    if np.any(np.asarray(step.decode_sequences) > 0):
        read = np.multiply(step.decode_sequences, entries_read(group, step.context_tokens))
        yield Operator(
            "attention",
            Kind.DECODE_ATTENTION,
            calls=layers,
            storage=formats.kv,
            flop=layers * flop_per_pair(group.attention, absorbed=True) * read,
            cache_bytes=layers * entry_bytes * read,
            activation_bytes=np.multiply(step.decode_sequences, in_out),
            rows=step.decode_sequences,
            layers_from=position,
        )
    if np.any(np.asarray(step.prefill_sequences) > 0):
        pairs = np.multiply(
            step.prefill_sequences, causal_pairs(group, step.prefill_tokens, step.cached_tokens)
        )
        tokens = np.multiply(step.prefill_sequences, step.prefill_tokens)
        stored = 0.0 if group.shares_kv else tokens
        again = np.multiply(step.prefill_sequences, np.minimum(step.cached_tokens, _sight(group)))
        yield Operator(
            "attention",
            Kind.PREFILL_ATTENTION,
            calls=layers,
            storage=formats.kv,
            flop=layers * flop_per_pair(group.attention, absorbed=False) * pairs,
            cache_bytes=layers * entry_bytes * (stored + again),
            activation_bytes=np.multiply(tokens, in_out),
            rows=tokens,
            layers_from=position,
        )
    yield from _indexer(group, position, step)


def _sight(group: LayerGroup) -> float:
    return np.inf if group.window is None else float(group.window)


def _indexer(group: LayerGroup, position: int, step: Step) -> Iterator[Operator]:
    if group.indexer is None or not group.indexer.scores:
        return
    per_pair = MULTIPLY_ADD_FLOP * group.indexer.n_heads * group.indexer.head_dim
    decode = np.multiply(step.decode_sequences, indexer_entries(group, step.context_tokens))
    prefill = np.multiply(
        step.prefill_sequences, indexer_pairs(group, step.prefill_tokens, step.cached_tokens)
    )
    written = np.multiply(step.prefill_sequences, step.prefill_tokens) / group.compression
    key_bytes = indexer_key_bytes(group.indexer)
    yield Operator(
        "indexer",
        Kind.INDEXER,
        calls=group.n_layers,
        storage=group.indexer.key_dtype or Dtype.FP8,
        flop=group.n_layers * per_pair * (decode + prefill),
        cache_bytes=group.n_layers * key_bytes * (decode + written),
        rows=step.rows,
        layers_from=position,
    )


def _recurrent(
    arch: Architecture, group: LayerGroup, position: int, step: Step
) -> Iterator[Operator]:
    if group.recurrent is None:
        return
    state = group.recurrent
    per_sequence = (
        state.state_values * (state.state_dtype or Dtype.FP32).bytes_per_value
        + state.conv_values * arch.dtype.bytes_per_value
    )
    # a decoding sequence reads and writes its state; a prompt writes it once at its end
    moved = np.add(np.multiply(step.decode_sequences, 2), step.prefill_sequences)
    yield Operator(
        state.kind,
        Kind.RECURRENT,
        calls=group.n_layers,
        storage=arch.dtype,
        flop=group.n_layers * state.flop_per_token * step.rows,
        cache_bytes=group.n_layers * per_sequence * moved,
        rows=step.rows,
        layers_from=position,
    )


def _experts(
    arch: Architecture, group: LayerGroup, position: int, step: Step, formats: Formats
) -> Iterator[Operator]:
    experts = group.experts
    if experts is None:
        return
    per_expert = expert_bytes(experts, arch, formats.weights) * group.n_layers
    rows = step.rows * experts.n_sources
    share = experts.n_experts / experts.routed
    picks = rows * experts.mean_active * share
    values = sum(linear.values for linear in experts.linears)
    width = sum(linear.n_in + linear.n_out for linear in experts.linears)
    yield Operator(
        "experts",
        Kind.EXPERTS,
        calls=group.n_layers * len(list(fused_matmuls(experts.linears))),
        storage=linear_dtype(experts.linears[0], arch, formats.weights),
        flop=MULTIPLY_ADD_FLOP * values * group.n_layers * picks,
        weight_bytes=per_expert * distinct_experts(experts, step.rows),
        least_weight_bytes=per_expert * least_experts(experts, rows),
        activation_bytes=picks * width * ACTIVATION_BYTES * group.n_layers,
        rows=picks,
        layers_from=position,
    )


def _lm_head(arch: Architecture, step: Step, formats: Formats) -> Iterator[Operator]:
    if arch.lm_head is None:
        return
    stored = linear_bytes(arch.lm_head, arch, formats.weights)
    width = arch.lm_head.n_in + arch.lm_head.n_out
    yield Operator(
        "lm_head",
        Kind.LM_HEAD,
        calls=1,
        storage=linear_dtype(arch.lm_head, arch, formats.weights),
        flop=MULTIPLY_ADD_FLOP * arch.lm_head.values * step.logit_rows,
        weight_bytes=stored,
        least_weight_bytes=stored,
        activation_bytes=step.logit_rows * width * ACTIVATION_BYTES,
        rows=step.logit_rows,
    )
