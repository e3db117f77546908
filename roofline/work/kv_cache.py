"""KV cache: the bytes that the keys and values of past tokens take, and the tokens a query sees.

Shapes   ``tokens`` is a number or an array of any shape; the result has that shape. For one
         token, one layer caches
             grouped-query   a key and a value   [2, n_kv_heads, head_dim]
             latent (MLA)    one shared vector   [kv_rank + rope_dim]
         and, where it selects sparsely, an indexer's key [head_dim].
Units    bytes, on all accelerators together; ``tokens`` counts one sequence, prompt and output.
Limits   No sharding (timing/parallel.py: past n_kv_heads, tensor parallelism copies heads) and no
         sharing of prefixes between sequences.
Sources  [1] Ainslie et al. 2023, GQA, arXiv:2305.13245, section 2.2.
         [2] DeepSeek-AI 2024, DeepSeek-V2, arXiv:2405.04434, section 2.1.
         [3] Kwon et al. 2023, PagedAttention, arXiv:2309.06180, section 4.
         [4] DeepSeek-AI 2025, DeepSeek-V3.2: the indexer's keys, 128 fp8 values and a 32-bit scale.
"""

import numpy as np

from roofline.dtypes import Dtype
from roofline.errors import InputError
from roofline.models.architecture import (
    Architecture,
    Attention,
    GroupedQuery,
    Indexer,
    Latent,
    LayerGroup,
)
from roofline.units import Numeric

INDEXER_SCALE_BYTES = 4
"""A 32-bit scale goes with each 8-bit indexer key [4]."""


def values_per_token(attention: Attention) -> int:
    """Count the values that one layer caches for one token [1, 2]."""
    match attention:
        case GroupedQuery(one_cache=True):
            return attention.n_kv_heads * attention.head_dim  # key and value are one vector
        case GroupedQuery():
            return attention.n_kv_heads * (attention.head_dim + attention.value_dim)
        case Latent():
            return attention.kv_rank + attention.rope_dim  # keys and values come from this vector


def indexer_key_bytes(indexer: Indexer | None) -> float:
    """Bytes of the key that an indexer caches per token (or compressed entry) and layer [4]."""
    if indexer is None or not indexer.scores:
        return 0.0
    if indexer.key_dtype is None:
        return indexer.head_dim + INDEXER_SCALE_BYTES
    return indexer.head_dim * indexer.key_dtype.bytes_per_value


def caches(group: LayerGroup) -> bool:
    """Whether the layers of a group keep a cache that grows with the tokens."""
    return group.attention is not None and not group.shares_kv


def entries_held(group: LayerGroup, tokens: Numeric, page_tokens: int = 1) -> Numeric:
    """Count the entries that one layer holds after ``tokens`` tokens, whole pages [3].

    entries = ⌈min(tokens, window) / page⌉ × page  (+ tokens / compression where it compresses)

    >>> from roofline.models.architecture import GroupedQuery, LayerGroup
    >>> group = LayerGroup(1, GroupedQuery(n_kv_heads=1, head_dim=4), window=128)
    >>> entries_held(group, np.array([10, 1000]), page_tokens=16)
    array([ 16., 128.])
    """
    kept = np.minimum(tokens, group.window or np.inf)
    held: Numeric = np.ceil(kept / page_tokens) * page_tokens
    if group.compression > 1:
        held = held + np.floor(np.asarray(tokens) / group.compression)
    return held


def entries_read(group: LayerGroup, context_tokens: Numeric) -> Numeric:
    """Count the cached entries that one query reads when it and its past are ``context_tokens``.

    A window or chunk caps them, sparse attention reads its best ``top_k``; layers that share an
    earlier layer's cache read it again.

    >>> from roofline.models.architecture import GroupedQuery, LayerGroup
    >>> group = LayerGroup(1, GroupedQuery(n_kv_heads=1, head_dim=4), window=8, chunked=True)
    >>> entries_read(group, np.array([3.0, 8.0, 9.0]))  # the ninth token opens a chunk
    array([3., 8., 1.])
    """
    context = np.asarray(context_tokens, dtype=float)
    if group.window is None:
        near: Numeric = context
    elif group.chunked:
        # mid-output contexts may be halves: the token that is being made counts whole
        near = np.where(context > 0, np.mod(np.ceil(context) - 1, group.window) + 1, 0.0)
    else:
        near = np.minimum(context, group.window)
    if group.compression > 1:
        far: Numeric = np.floor(context / group.compression)
        return near + (far if group.indexer is None else np.minimum(far, group.indexer.top_k))
    return near if group.indexer is None else np.minimum(near, group.indexer.top_k)


def indexer_entries(group: LayerGroup, context_tokens: Numeric) -> Numeric:
    """Count the indexer keys that one query of a sparse layer scores: all of them."""
    if group.indexer is None or not group.indexer.scores:
        return np.zeros_like(np.asarray(context_tokens, dtype=float))
    return np.floor(np.asarray(context_tokens, dtype=float) / group.compression)


def bytes_per_token(arch: Architecture, dtype: Dtype) -> float:
    """Bytes that one more token adds, as long as no window is full.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> bytes_per_token(LLAMA_3_8B, Dtype.BF16)  # 2 × 8 heads × 128 × 32 layers × 2 bytes
    131072.0
    """
    return _added_bytes(arch, dtype, windows=True)


def marginal_bytes_per_token(arch: Architecture, dtype: Dtype) -> float:
    """Bytes that one more token adds once every window is full.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> marginal_bytes_per_token(LLAMA_3_8B, Dtype.BF16)  # no windows: the same
    131072.0
    """
    return _added_bytes(arch, dtype, windows=False)


def _added_bytes(arch: Architecture, dtype: Dtype, *, windows: bool) -> float:
    total = 0.0
    for group in arch.layers:
        if group.attention is None or group.shares_kv:
            continue
        near = 1.0 if windows or group.window is None else 0.0
        far = 1 / group.compression if group.compression > 1 else 0.0
        values = values_per_token(group.attention) * (near + far)
        keys = indexer_key_bytes(group.indexer) / group.compression
        total += group.n_layers * (values * dtype.bytes_per_value + keys)
    return total


def cache_bytes(
    arch: Architecture, tokens: Numeric, dtype: Dtype, *, page_tokens: int = 1
) -> Numeric:
    """Bytes of cache that one sequence holds, without fixed state (``state_bytes``).

        bytes = Σ_layers  values_per_token × ⌈min(tokens, window) / page⌉ × page × bytes_per_value

    Args:
        arch: the model.
        tokens: tokens cached so far, at least 0.
        dtype: number format of the cached values.
        page_tokens: tokens per page; a page once begun is held whole [3].

    Returns:
        Bytes, in the shape of ``tokens``.

    Raises:
        InputError: ``tokens`` is negative, or ``page_tokens`` is below 1.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> cache_bytes(LLAMA_3_8B, np.array([1, 16, 17]), Dtype.BF16, page_tokens=16) / 131072
    array([16., 16., 32.])
    """
    if np.any(np.asarray(tokens) < 0) or page_tokens < 1:
        raise InputError(f"need tokens >= 0 and page_tokens >= 1, got {tokens} and {page_tokens}")
    total: Numeric = np.zeros_like(np.asarray(tokens, dtype=float))
    for group in arch.layers:
        if group.attention is None or group.shares_kv:
            continue
        values = values_per_token(group.attention) * entries_held(group, tokens, page_tokens)
        total = total + group.n_layers * values * dtype.bytes_per_value
        key = indexer_key_bytes(group.indexer)
        if key:
            keys = np.ceil(np.asarray(tokens) / group.compression / page_tokens) * page_tokens
            total = total + group.n_layers * key * keys
    return total if np.ndim(total) else float(total)


def state_bytes(arch: Architecture) -> float:
    """Bytes of fixed state that one sequence holds however long it is.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> state_bytes(LLAMA_3_8B)
    0.0
    """
    total = 0.0
    for group in arch.layers:
        if group.recurrent is not None:
            state = group.recurrent.state_dtype or Dtype.FP32
            total += group.n_layers * (
                group.recurrent.state_values * state.bytes_per_value
                + group.recurrent.conv_values * arch.dtype.bytes_per_value
            )
    return total


def causal_pairs(group: LayerGroup, new_tokens: Numeric, cached_tokens: Numeric = 0.0) -> Numeric:
    """Count the (query, entry) pairs of ``new_tokens`` after ``cached_tokens``.

        pairs = C·c + C(C + 1)/2, capped by window, chunk or selection; chunks add up to the whole

    >>> from roofline.models.architecture import GroupedQuery, LayerGroup
    >>> group = LayerGroup(1, GroupedQuery(n_kv_heads=1, head_dim=4))
    >>> float(causal_pairs(group, 4.0)), float(causal_pairs(group, 2.0, 2.0))
    (10.0, 7.0)
    """
    cached = np.asarray(cached_tokens, dtype=float)
    return _pairs_up_to(group, cached + new_tokens) - _pairs_up_to(group, cached)


def _pairs_up_to(group: LayerGroup, tokens: Numeric) -> Numeric:
    count = np.asarray(tokens, dtype=float)
    if group.compression > 1:
        cap = np.inf if group.indexer is None else float(group.indexer.top_k)
        near = _capped(count, group.window)
        return near + _compressed(count, group.compression, cap)
    if group.window is not None and group.chunked:
        rest = np.mod(count, group.window)
        full = (count - rest) / group.window
        pairs: Numeric = full * _triangle(group.window) + _triangle(rest)
        return pairs
    if group.indexer is not None:
        cap = min(group.indexer.top_k, group.window or group.indexer.top_k)
        return _capped(count, cap)
    return _capped(count, group.window)


def indexer_pairs(group: LayerGroup, new_tokens: Numeric, cached_tokens: Numeric = 0.0) -> Numeric:
    """Count the pairs that the indexer of a sparse layer scores."""
    cached = np.asarray(cached_tokens, dtype=float)
    if group.indexer is None or not group.indexer.scores:
        return np.zeros_like(cached + new_tokens)
    upper = _compressed(cached + new_tokens, group.compression, np.inf)
    return upper - _compressed(cached, group.compression, np.inf)


def _triangle(count: Numeric) -> Numeric:
    pairs: Numeric = count * (count + 1) / 2
    return pairs


def _capped(count: Numeric, window: float | None) -> Numeric:
    if window is None:
        return _triangle(count)
    full = np.minimum(count, window)
    return _triangle(full) + (count - full) * window


def _compressed(count: Numeric, ratio: int, cap: float) -> Numeric:
    """Sum of min(⌊i / ratio⌋, cap) for i = 1 … count."""
    growing = np.minimum(count, cap * ratio)
    whole = np.floor(growing / ratio)
    rest = growing - whole * ratio
    grown: Numeric = ratio * whole * (whole - 1) / 2 + whole * (rest + 1)
    if np.isfinite(cap):
        grown = grown + (count - growing) * cap
    return grown
