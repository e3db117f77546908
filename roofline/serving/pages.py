"""Pages of mixed models: how vLLM divides its pool when layers keep different things.

All pages of a pool are of one size. Layers of one kind (full attention, one window, fixed state)
are put into groups of equally many layers; a request takes at least one page of every group. Fixed
state sets the size of a page, and with it how many tokens an attention page holds: thousands, so
that a prompt of twelve tokens takes as much as one of several thousand.

    layers of a group = fewest layers of a kind (the most, when that is under 1.25 × the fewest)
    blocks            = pool / (bytes of a layer's page × layers of a group)

Units    bytes on one rank; tokens of one sequence.
Limits   vLLM 0.10 and later; without prefix caching of states (one page of state per sequence).
Sources  [1] vLLM, v1/core/kv_cache_utils.py and design document "Hybrid KV cache manager" (2025).
         [2] vLLM issues 54458 (2026) and 51041 (2026): pages per request; the logged token count.
"""

import math
from dataclasses import dataclass

from roofline.dtypes import Dtype
from roofline.models.architecture import Architecture, LayerGroup
from roofline.work.kv_cache import values_per_token

UNEVEN = 1.25
"""Kinds whose layer counts differ by less are padded to the largest [1]."""


@dataclass(frozen=True)
class PageKind:
    """Layers that keep the same thing.

    Args:
        n_layers: how many.
        page_tokens: tokens that one page of one layer holds; 0: a page is one sequence's state.
        window: tokens after which old pages are freed; None: never.
    """

    n_layers: int
    page_tokens: int
    window: int | None = None


@dataclass(frozen=True)
class PageGroups:
    """How a pool is divided.

    Args:
        page_bytes: bytes of one layer's page.
        group_layers: layers of a group.
        kinds: what the layers keep.
    """

    page_bytes: float
    group_layers: int
    kinds: tuple[PageKind, ...]

    @property
    def block_bytes(self) -> float:
        """Bytes of one block: a page of every layer of a group."""
        return self.page_bytes * self.group_layers

    @property
    def n_groups(self) -> int:
        """Groups of all kinds; a request takes at least one block of each."""
        return sum(math.ceil(kind.n_layers / self.group_layers) for kind in self.kinds)

    def blocks(self, pool_bytes: float) -> int:
        """Whole blocks in a pool."""
        return max(int(pool_bytes // self.block_bytes), 0)

    def blocks_per_request(
        self, context_tokens: float, *, chunk_tokens: int | None = None, state_pages: int = 1
    ) -> int:
        """Blocks that one request takes at a context.

        Args:
            context_tokens: tokens of the request so far.
            chunk_tokens: tokens that a step adds, to count as start-up does: a window's pages are
                freed after a step only, and one more is set aside; None: what decoding holds.
            state_pages: pages of state per sequence; start-up counts two where states of prefixes
                are kept.
        """
        total = 0
        for kind in self.kinds:
            pages = state_pages
            if kind.page_tokens:
                pages = math.ceil(context_tokens / kind.page_tokens)
                if kind.window is not None:
                    seen = min(kind.window - 1 + (chunk_tokens or 1), context_tokens)
                    windowed = math.ceil(seen / kind.page_tokens) + 1
                    pages = min(pages, windowed) if chunk_tokens is None else windowed
            total += pages * math.ceil(kind.n_layers / self.group_layers)
        return total

    def request_bytes(self, context_tokens: float) -> float:
        """Bytes of the pool that one request takes at a context.

        >>> groups = PageGroups(16 * 4096, 8, (PageKind(8, 16), PageKind(24, 0)))
        >>> [groups.request_bytes(tokens) / groups.block_bytes for tokens in (12, 33)]
        [4.0, 6.0]
        """
        return self.blocks_per_request(context_tokens) * self.block_bytes


def _state_bytes(group: LayerGroup, arch: Architecture) -> float:
    if group.recurrent is None:
        return 0.0
    state = group.recurrent.state_dtype or Dtype.FP32
    return (
        group.recurrent.state_values * state.bytes_per_value
        + group.recurrent.conv_values * arch.dtype.bytes_per_value
    )


def _token_bytes(group: LayerGroup, kv: Dtype) -> float:
    return (
        0.0 if group.attention is None else values_per_token(group.attention) * kv.bytes_per_value
    )


def page_groups(arch: Architecture, kv: Dtype, page_tokens: int = 16) -> PageGroups | None:
    """Divide a model's layers into page groups; None where all layers keep the same kind of thing.

    Args:
        arch: the model, or one rank's share of it.
        kv: format of the cache.
        page_tokens: the least tokens of an attention page, and what its size is a multiple of.
    """
    caching = [
        group for group in arch.layers if group.attention is not None and not group.shares_kv
    ]
    states = [group for group in arch.layers if group.recurrent is not None]
    windows = {group.window for group in caching}
    if (not states and len(windows) < 2) or any(group.compression > 1 for group in caching):
        return None
    state = max((_state_bytes(group, arch) for group in states), default=0.0)
    largest = max((_token_bytes(group, kv) for group in caching), default=0.0)
    page = state
    if largest:
        least = page_tokens * largest
        page = math.ceil(max(state, least) / least) * least
    if page <= 0:
        return None
    kinds: dict[tuple[int, int | None], int] = {}
    for group in caching:
        tokens = int(page / _token_bytes(group, kv))
        key = (tokens, group.window)
        kinds[key] = kinds.get(key, 0) + group.n_layers
    if states:
        kinds[(0, None)] = sum(group.n_layers for group in states)
    fewest, most = min(kinds.values()), max(kinds.values())
    return PageGroups(
        page_bytes=page,
        group_layers=most if most < fewest * UNEVEN else fewest,
        kinds=tuple(PageKind(count, tokens, window) for (tokens, window), count in kinds.items()),
    )


def concurrency(
    groups: PageGroups,
    blocks: int,
    context_tokens: float,
    *,
    chunk_tokens: int | None = None,
    state_pages: int = 1,
) -> float:
    """Requests of a context that a pool of blocks holds, as vLLM's log reports it.

    A Qwen3.5 pool of 1,487 blocks, 784 tokens each, 16 attention and 48 state layers:

    >>> groups = PageGroups(784 * 4096, 16, (PageKind(16, 784), PageKind(48, 0)))
    >>> round(concurrency(groups, 1487, 32_768), 2)
    33.04
    """
    per_request = groups.blocks_per_request(
        context_tokens, chunk_tokens=chunk_tokens, state_pages=state_pages
    )
    return blocks / per_request


def logged_pool_bytes(groups: PageGroups, tokens: int) -> float:
    """Bytes of the pool whose log says so many tokens: the inverse of ``logged_tokens``.

    >>> groups = PageGroups(784 * 4096, 16, (PageKind(16, 784), PageKind(48, 0)))
    >>> logged_pool_bytes(groups, 290_864) / groups.block_bytes
    1484.0
    """
    page = min((kind.page_tokens for kind in groups.kinds if kind.page_tokens), default=1)
    return tokens / page * groups.n_groups * groups.block_bytes


def logged_tokens(groups: PageGroups, blocks: int) -> int:
    """Tokens that vLLM's log called "GPU KV cache size" before it was derived from concurrency [2].

    It divides by the number of groups and counts attention pages: not how many tokens fit.

    >>> groups = PageGroups(784 * 4096, 16, (PageKind(16, 784), PageKind(48, 0)))
    >>> logged_tokens(groups, 1487)
    290864
    """
    tokens = min((kind.page_tokens for kind in groups.kinds if kind.page_tokens), default=0)
    return blocks // groups.n_groups * tokens
