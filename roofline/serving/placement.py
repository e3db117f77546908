"""Placement: a model on accelerators under an engine, everything but how much is asked of it.

Units    bytes on one rank; tokens of one sequence.
Limits   The fullest rank of the fullest pipeline stage stands for all.
Sources  [1] llama.cpp, llama-context and llama-kv-cache (2025): cells are padded to 256, a window's
             cache holds the window and one step; the token embedding stays in host memory.
         [2] vLLM, platforms/cuda.py (2025): block size 64 where FlashMLA runs.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

from roofline.dtypes import Dtype
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture, Latent, LayerGroup
from roofline.serving.engines import Engine
from roofline.serving.extras import NO_EXTRAS, Extras
from roofline.serving.memory_rules import LARGE_CARD_BYTES, MemoryRule, find_rule
from roofline.serving.pages import PageGroups, page_groups
from roofline.timing.parallel import Parallel, fullest_stage, shard
from roofline.work.gguf_mix import mix_bytes, mix_names, table_bytes
from roofline.work.kv_cache import cache_bytes, state_bytes
from roofline.work.weights import stored_bytes

IDEAL = Engine("ideal")
ONE = Parallel()

LATENT_PAGE_TOKENS = 64
"""vLLM takes pages of 64 tokens for latent attention [2]."""

GGML_CONTEXT_MULTIPLE = 256
"""llama.cpp rounds the length of its cache up to a multiple of this [1]."""


@dataclass(frozen=True)
class Placement:
    """A model on accelerators under an engine: everything but how much is asked of it.

    Args:
        arch: the model.
        accelerator: each of the accelerators.
        parallel: how the model is divided.
        weights: storage format of the blocks' linear layers; None: the checkpoint's own.
        kv: format of the cache; None: what the checkpoint asks for, or the model's own type.
        engine: what runs it.
        extras: what is held besides the text model.

    Raises:
        InputError: the plan does not divide the model.
    """

    arch: Architecture
    accelerator: Accelerator
    parallel: Parallel = ONE
    weights: Dtype | None = None
    kv: Dtype | None = None
    engine: Engine = IDEAL
    extras: Extras = NO_EXTRAS

    @cached_property
    def rule(self) -> MemoryRule:
        """The engine's rule."""
        return find_rule(self.engine)

    @cached_property
    def rank(self) -> Architecture:
        """What the fullest rank of the fullest stage holds."""
        rank = fullest_stage(shard(self.arch, self.parallel), self.parallel.pp)
        if not self.extras.prediction_layers:
            return rank
        return replace(rank, layers=rank.layers + rank.prediction_layers, prediction_layers=())

    @cached_property
    def kv_format(self) -> Dtype:
        """Format of the cache."""
        return self.kv or self.arch.kv_dtype or self.arch.dtype

    @cached_property
    def usable(self) -> tuple[float, str | None]:
        """Usable bytes, and the line for ``assumptions`` where a rule gave them."""
        return self.accelerator.usable_memory()

    @cached_property
    def large_card(self) -> bool:
        """Whether an engine takes its larger defaults here."""
        return self.usable[0] >= LARGE_CARD_BYTES and not self.accelerator.id.startswith("a100")

    @cached_property
    def fraction(self) -> float:
        """The fraction that the rule uses."""
        return self.engine.memory_fraction or self.rule.fraction(self.parallel.tp)

    @cached_property
    def page_tokens(self) -> int:
        """Tokens of a page."""
        if self.engine.page_tokens is not None:
            return self.engine.page_tokens
        latent = any(isinstance(group.attention, Latent) for group in self.arch.layers)
        if latent and self.engine.name == "vllm":
            return LATENT_PAGE_TOKENS
        return self.rule.page_tokens

    @cached_property
    def groups(self) -> PageGroups | None:
        """How vLLM's pool is divided, where the layers keep different things."""
        if self.engine.name != "vllm":
            return None
        return page_groups(self.rank, self.kv_format, self.page_tokens)

    @cached_property
    def weights_bytes(self) -> float:
        """The fullest rank's weights."""
        if self.engine.name != "llama.cpp":
            return stored_bytes(self.rank, self.weights)
        table = self.rank.embedding_parameters * self.arch.dtype.bytes_per_value
        held = stored_bytes(self.rank, self.weights)
        if self.gguf_mix is not None:
            table = table_bytes(self.rank, self.gguf_mix)
            held = mix_bytes(self.rank, self.gguf_mix)
        # tokens are looked up on the host
        return held if self.arch.tied else max(held - table, 0.0)

    @cached_property
    def gguf_mix(self) -> str | None:
        """The mix of block types that llama.cpp's files of this format have; None: no GGUF file."""
        if self.engine.name != "llama.cpp" or self.weights is None:
            return None
        return self.weights.name if self.weights.name in mix_names() else None

    def sequence_bytes(self, context_tokens: float) -> float:
        """Bytes of cache and state that one sequence takes on the fullest rank."""
        if self.groups is not None:
            return self.groups.request_bytes(context_tokens)
        rank, tokens = self.rank, context_tokens
        if self.engine.name == "llama.cpp":
            tokens = rounded_up(self.engine.max_context_tokens or context_tokens)
            rank = _with_step_in_window(rank, self.chunk_tokens(tokens))
        held = cache_bytes(rank, tokens, self.kv_format, page_tokens=self.page_tokens)
        return float(held) + state_bytes(rank)

    def chunk_tokens(self, context_tokens: float) -> float:
        """Most tokens of one step."""
        if self.engine.chunk_tokens is not None:
            return self.engine.chunk_tokens
        if self.rule.chunk_tokens is None:
            return max(self.engine.max_context_tokens or context_tokens, 2048)
        return self.rule.chunk_tokens[self.large_card]

    def sequences(self) -> int:
        """Most sequences of one step."""
        return self.engine.max_sequences or self.rule.sequences[self.large_card]


def rounded_up(tokens: float) -> float:
    """Round a context up to whole cells of llama.cpp's cache [1]."""
    return math.ceil(tokens / GGML_CONTEXT_MULTIPLE) * GGML_CONTEXT_MULTIPLE


def _with_step_in_window(arch: Architecture, step_tokens: float) -> Architecture:
    """A window's cache in llama.cpp also takes the tokens of the step that is being written."""

    def wider(group: LayerGroup) -> LayerGroup:
        if group.window is None:
            return group
        return replace(group, window=int(rounded_up(group.window + step_tokens)))

    return replace(arch, layers=tuple(wider(group) for group in arch.layers))
