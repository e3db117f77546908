"""Engines: what a name such as "vllm" stands for, with the settings that decide memory and steps.

An engine is a name, a version and the settings that a user gave; what was left out is the engine's
own default, which the budget fills in and names. The rules themselves are in ``memory_rules``.

Units    tokens, sequences; ``memory_fraction`` is a share, of what the engine's rule says.
Limits   Settings that move neither memory nor step time are not here.
Sources  [1] vLLM, engine arguments, docs.vllm.ai (2026).
         [2] SGLang, server arguments, docs.sglang.ai (2026).
         [3] TensorRT-LLM, KvCacheConfig, nvidia.github.io/TensorRT-LLM (2026).
"""

import re
from dataclasses import dataclass

import numpy as np

from roofline.errors import InputError, unknown_name
from roofline.units import whole

ENGINE_NAMES = (
    "ideal", "plain", "vllm", "sglang", "tensorrt-llm", "transformers", "llama.cpp", "gpt-fast",
    "cuda-graph",
)  # fmt: skip
"""Engines that are modelled: "ideal" is none, "plain" a PyTorch program of weights and cache."""

WITH_FRACTION = ("vllm", "sglang", "tensorrt-llm")
"""Engines that take a fraction of the memory; each means another memory by it."""

_ALIASES = {
    "none": "ideal", "trtllm": "tensorrt-llm", "trt-llm": "tensorrt-llm",
    "tensorrt_llm": "tensorrt-llm", "tensorrtllm": "tensorrt-llm", "hf": "transformers",
    "huggingface": "transformers", "llamacpp": "llama.cpp", "llama-cpp": "llama.cpp",
    "llama_cpp": "llama.cpp", "ollama": "llama.cpp", "gptfast": "gpt-fast", "gpt_fast": "gpt-fast",
    "cuda_graph": "cuda-graph", "cudagraph": "cuda-graph",
}  # fmt: skip


@dataclass(frozen=True)
class Engine:
    """One engine with its settings; None is the engine's own default.

    Args:
        name: one of ``ENGINE_NAMES`` (usual spellings are understood).
        version: such as "0.19" or "0.11.2"; None: the newest that has measured constants.
        memory_fraction: ``gpu_memory_utilization``, ``mem_fraction_static`` or
            ``free_gpu_memory_fraction``: above 0, at most 1.
        chunk_tokens: most tokens of one step (``max_num_batched_tokens``, ``n_ubatch``).
        max_sequences: most sequences in one step (``max_num_seqs``).
        page_tokens: tokens of one KV page.
        max_context_tokens: longest context that it is started for (``max_model_len``, ``n_ctx``).
        cuda_graphs: whether steps are replayed as graphs.
        speculative_tokens: draft tokens per step and sequence; 0: none.

    Raises:
        UnknownNameError: no such engine.
        InputError: a setting that cannot be.

    >>> Engine("trtllm").name, Engine("vllm", version="0.11.2").release
    ('tensorrt-llm', (0, 11, 2))
    >>> Engine("vllm", memory_fraction=90)
    Traceback (most recent call last):
    ...
    roofline.errors.InputError: memory_fraction is a share above 0 and at most 1; got 90
    """

    name: str
    version: str | None = None
    memory_fraction: float | None = None
    chunk_tokens: int | None = None
    max_sequences: int | None = None
    page_tokens: int | None = None
    max_context_tokens: int | None = None
    cuda_graphs: bool | None = None
    speculative_tokens: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _known_name(self.name))
        if self.version is not None:
            _release(self.version)
        object.__setattr__(self, "memory_fraction", _fraction(self.memory_fraction))
        if self.memory_fraction is not None and self.name not in WITH_FRACTION:
            raise InputError(f"{self.name} takes no memory fraction; {', '.join(WITH_FRACTION)} do")
        for field in ("chunk_tokens", "max_sequences", "page_tokens", "max_context_tokens"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, whole(field, getattr(self, field)))
        if self.cuda_graphs is not None and not isinstance(self.cuda_graphs, bool):
            raise InputError(f"cuda_graphs is true or false, got {self.cuda_graphs!r}")
        drafted = whole("speculative_tokens", self.speculative_tokens, least=0)
        object.__setattr__(self, "speculative_tokens", drafted)

    @property
    def release(self) -> tuple[int, ...] | None:
        """The version as numbers that compare; None: not stated."""
        return None if self.version is None else _release(self.version)


def find_engine(engine: "str | Engine") -> Engine:
    """Find the engine that a name stands for; an ``Engine`` comes back as it is.

    Raises:
        UnknownNameError: no such engine; the message has the nearest names.

    >>> find_engine("vLLM").name
    'vllm'
    >>> find_engine("vlm")
    Traceback (most recent call last):
    ...
    roofline.errors.UnknownNameError: no engine 'vlm'; did you mean vllm?
    """
    return engine if isinstance(engine, Engine) else Engine(engine)


def _known_name(name: object) -> str:
    if not isinstance(name, str):
        raise InputError(f"an engine is named by text such as 'vllm', got {name!r}")
    key = name.strip().lower()
    key = _ALIASES.get(key, key)
    if key not in ENGINE_NAMES:
        raise unknown_name("engine", name, ENGINE_NAMES)
    return key


def _release(version: object) -> tuple[int, ...]:
    # a number cannot say 0.20, which it writes 0.2
    text = version.strip() if isinstance(version, str) else ""
    match = re.match(r"[vb]?(\d{1,9}(?:\.\d{1,9}){0,3})", text)
    if match is None:
        raise InputError(f"an engine version is text like '0.19' or '0.11.2', got {version!r}")
    return tuple(int(part) for part in match[1].split("."))


def _fraction(given: object) -> float | None:
    if given is None:
        return None
    number = isinstance(given, int | float | np.integer | np.floating)
    if number and not isinstance(given, bool):
        share = float(given)  # type: ignore[arg-type]
        if 0 < share <= 1:
            return share
    raise InputError(f"memory_fraction is a share above 0 and at most 1; got {given!r}")
