"""Memory rules: what each engine, version by version, keeps of an accelerator's memory.

    total      pool = fraction × usable − weights − activation peak − non-torch     (vLLM)
    available  pool = fraction × (usable − start-up) − weights                      (SGLang)
    free       pool = fraction × (usable − weights − activation peak − context)     (TensorRT-LLM)
    all        pool = usable − weights − what the framework holds                   (the others)

Each constant stands beside where it was read, and the range of versions for which it was.

Units    bytes; ``logits_bytes`` are bytes that start-up holds per sequence and vocabulary entry.
Limits   Constants of one vendor's cards (NVIDIA); on others they are the nearest thing there is.
Sources  [1] llm-d-planner, docs/empirical-vllm-memory-results.md (H100, vLLM 0.11, 8 models)
             and its pull request 205 (H100, vLLM 0.19, 24 models), 2026.
         [2] vLLM pull request 2031 (2023-12): non-torch memory enters the profile.
         [3] vLLM start-up logs, 2024-11 … 2025-03: issues 10517, 13061, pull request 10511, and
             issue 11251; 0.6.4 subtracts what is not torch's twice (21.22 − 14.99 − 2.64 − 2 × 0.35
             is the 2.89 GiB it logs).
         [4] vLLM, engine/arg_utils.py: defaults by memory and name of the card (PR 17885).
         [5] vLLM start-up messages since 0.21 (2026-05): graphs are estimated inside the fraction;
             CacheConfig of 0.25: default 0.92.
         [6] aisimulate pull request 263 (2026-09): SGLang's static pool; start-up comes off before
             the fraction is taken, activations live outside it.
         [7] SGLang start-up logs: 78.43 GiB of an H100's 79.19 left at TP1 (2026-02), 22.93 of an
             RTX 3090's 23.69 at TP2 (2026-04), 137.3 of an H200's 139.8 at TP8 (PR 11716).
         [8] TensorRT-LLM documentation, Memory usage, and KvCacheConfig (2026).
         [9] llama.cpp start-up logs: pull request 6122, issue 9229 (compute buffers), 2024.
        [10] Qwen, Speed Benchmark (2024-11, 2025-05): peak memory of transformers runs.
"""

from dataclasses import dataclass
from typing import Literal

from roofline.serving.engines import Engine
from roofline.units import GB, GIB

LARGE_CARD_BYTES = 70 * GIB
"""From here on, and unless it is an A100, vLLM takes its larger defaults [4]."""

Basis = Literal["total", "available", "free", "all"]


@dataclass(frozen=True)
class Part:
    """One part of the overhead: what it is, its bytes, and where that was read."""

    name: str
    bytes: float
    source: str


@dataclass(frozen=True)
class MemoryRule:
    """How one engine, in a range of versions, divides an accelerator's memory.

    Args:
        engine: its name.
        versions: the range in words.
        since: first release of the range; empty: from the beginning.
        basis: what the fraction is a fraction of; see the module's table.
        fractions: default fraction from this many tensor-parallel ranks on, fewest ranks first.
        logits_bytes: bytes per profiled sequence and vocabulary entry, the sampler's warm-up.
        activation_base_bytes: activation that does not follow the vocabulary.
        activation_floor_bytes: least activation peak seen.
        non_torch_bytes: what the driver and communication hold, from this many ranks on.
        graph_bytes: captured graphs on a small and on a large card.
        graphs_inside: whether graphs come out of the fraction.
        sequences: most sequences of a step by default, small and large card.
        chunk_tokens: most tokens of a step by default, small and large card; None: the whole
            context at once.
        page_tokens: tokens of a KV page by default.
        rotary_table: whether a cosine and sine table for the whole context is held.
        source: where this was read; the module's list has the addresses.
    """

    engine: str
    versions: str
    basis: Basis
    source: str
    since: tuple[int, ...] = ()
    fractions: tuple[tuple[int, float], ...] = ((1, 1.0),)
    logits_bytes: float = 0.0
    activation_base_bytes: float = 0.0
    activation_floor_bytes: float = 0.0
    non_torch_bytes: tuple[tuple[int, float], ...] = ((1, 0.0),)
    graph_bytes: tuple[float, float] = (0.0, 0.0)
    graphs_inside: bool = False
    sequences: tuple[int, int] = (256, 256)
    chunk_tokens: tuple[int, int] | None = (2048, 2048)
    page_tokens: int = 1
    rotary_table: bool = False

    def fraction(self, tp: int) -> float:
        """Default fraction at this many tensor-parallel ranks."""
        return _from(self.fractions, tp)

    def non_torch(self, ranks: int) -> float:
        """Bytes beside the framework's allocator at this many communicating ranks."""
        return _from(self.non_torch_bytes, ranks)


def _from(steps: tuple[tuple[int, float], ...], ranks: int) -> float:
    return next(value for least, value in reversed(steps) if ranks >= least or least == 1)


SORT_BYTES = 37.7
"""Bytes per logit of the sampler that sorted, to 0.16: three rows of [1], H100, 1,024 sequences:
(7.38 − 4.76) GiB ÷ (201,088 − 128,256) ÷ 1,024; [3] has the same at 256."""

TRITON_BYTES = 13.99
"""Bytes per logit since 0.17: 1.334 × 10⁻⁵ GiB a vocabulary entry at 1,024 sequences [1]."""

LLM_D = "llm-d-planner, vLLM memory results on H100 (2026)"
FRAMEWORK = "a framework's usual share; peaks: Qwen, Speed Benchmark (2024-11)"

_VLLM = (
    MemoryRule(
        "vllm", "up to 0.2.5", "total", "vLLM pull request 2031 (2023-12)",
        fractions=((1, 0.9),), logits_bytes=SORT_BYTES, activation_base_bytes=0.1 * GIB,
        chunk_tokens=None, page_tokens=16, rotary_table=True,
    ),
    MemoryRule(
        "vllm", "0.2.6 to 0.6.3", "total", "vLLM start-up logs, 2024-11 to 2025-03",
        since=(0, 2, 6), fractions=((1, 0.9),), logits_bytes=SORT_BYTES,
        activation_base_bytes=0.1 * GIB,
        non_torch_bytes=((1, 0.35 * GIB),), graph_bytes=(0.5 * GIB, 0.5 * GIB),
        chunk_tokens=None, page_tokens=16, rotary_table=True,
    ),
    MemoryRule(
        "vllm", "0.6.4", "total", "vLLM issue 10517 (2024-11)", since=(0, 6, 4),
        fractions=((1, 0.9),), logits_bytes=SORT_BYTES, activation_base_bytes=0.1 * GIB,
        non_torch_bytes=((1, 2 * 0.35 * GIB),), graph_bytes=(0.5 * GIB, 0.5 * GIB),
        chunk_tokens=None, page_tokens=16, rotary_table=True,
    ),
    MemoryRule(
        "vllm", "0.6.5 to 0.7", "total", "vLLM start-up logs, 2024-12 to 2025-03",
        since=(0, 6, 5), fractions=((1, 0.9),), logits_bytes=SORT_BYTES,
        activation_base_bytes=0.1 * GIB, non_torch_bytes=((1, 0.25 * GIB),),
        graph_bytes=(0.5 * GIB, 0.5 * GIB), chunk_tokens=None, page_tokens=16, rotary_table=True,
    ),
    MemoryRule(
        "vllm", "0.8 to 0.16", "total", LLM_D, since=(0, 8),
        fractions=((1, 0.9),), logits_bytes=SORT_BYTES, activation_base_bytes=0.146 * GIB,
        non_torch_bytes=((1, 0.13 * GIB), (2, 0.55 * GIB), (4, 2.1 * GIB)),
        graph_bytes=(0.2 * GIB, 0.4 * GIB), sequences=(256, 1024), chunk_tokens=(2048, 8192),
        page_tokens=16, rotary_table=True,
    ),
    MemoryRule(
        "vllm", "0.17", "total", LLM_D, since=(0, 17),
        fractions=((1, 0.9),), logits_bytes=TRITON_BYTES, activation_base_bytes=0.347 * GIB,
        activation_floor_bytes=0.75 * GIB,
        non_torch_bytes=((1, 0.13 * GIB), (2, 2.1 * GIB)),
        graph_bytes=(0.3 * GIB, 1.2 * GIB), sequences=(256, 1024), chunk_tokens=(2048, 8192),
        page_tokens=16, rotary_table=True,
    ),
    MemoryRule(
        "vllm", "0.18 to 0.20", "total", LLM_D, since=(0, 18),
        fractions=((1, 0.9),), logits_bytes=TRITON_BYTES, activation_base_bytes=0.347 * GIB,
        activation_floor_bytes=0.75 * GIB,
        non_torch_bytes=((1, 0.25 * GIB), (2, 2.1 * GIB)),
        graph_bytes=(0.3 * GIB, 1.2 * GIB), sequences=(256, 1024), chunk_tokens=(2048, 8192),
        page_tokens=16, rotary_table=True,
    ),
    MemoryRule(
        "vllm", "0.21 and later", "total", f"{LLM_D}; its start-up messages", since=(0, 21),
        fractions=((1, 0.92),), logits_bytes=TRITON_BYTES, activation_base_bytes=0.347 * GIB,
        activation_floor_bytes=0.75 * GIB,
        non_torch_bytes=((1, 0.25 * GIB), (2, 2.1 * GIB)),
        graph_bytes=(0.3 * GIB, 1.2 * GIB), graphs_inside=True,
        sequences=(256, 1024), chunk_tokens=(2048, 8192), page_tokens=16, rotary_table=True,
    ),
)  # fmt: skip

_OTHERS = (
    MemoryRule(
        "sglang", "0.4 to 0.5", "available", "SGLang start-up logs (2025-10 to 2026-04)",
        fractions=((1, 0.88), (2, 0.87), (4, 0.85), (8, 0.81), (16, 0.79)),
        non_torch_bytes=((1, 0.76 * GIB), (4, 2.1 * GIB), (8, 2.5 * GIB)),
        chunk_tokens=(2048, 8192), rotary_table=True,
    ),
    MemoryRule(
        "tensorrt-llm", "0.8 to 1.2", "free", "TensorRT-LLM documentation, Memory usage (2026)",
        fractions=((1, 0.9),), non_torch_bytes=((1, 0.5 * GIB), (2, 2.1 * GIB)),
        sequences=(2048, 2048), chunk_tokens=(8192, 8192), page_tokens=32,
    ),
    MemoryRule(
        "llama.cpp", "since b2400 (2024-03)", "all", "llama.cpp start-up logs (2024)",
        non_torch_bytes=((1, 0.3 * GIB),), sequences=(1, 1), chunk_tokens=(512, 512),
    ),
    MemoryRule(
        "transformers", "4.45 to 5", "all", FRAMEWORK,
        non_torch_bytes=((1, 0.5 * GB),), chunk_tokens=None,
    ),
    MemoryRule(
        "gpt-fast", "2024", "all", FRAMEWORK, non_torch_bytes=((1, 0.5 * GB),),
               chunk_tokens=None),
    MemoryRule("cuda-graph", "2026", "all", "measured: buffers beside weights and cache",
               non_torch_bytes=((1, 1.1 * GB),), chunk_tokens=None),
    MemoryRule(
        "plain", "any", "all", FRAMEWORK,
        non_torch_bytes=((1, 1.5 * GB),), chunk_tokens=None,
    ),
    MemoryRule("ideal", "any", "all", "no engine: weights and cache and no more",
               chunk_tokens=None),
)  # fmt: skip

TRANSFORMERS_FRAMEWORK_BYTES = 1.5 * GB
"""What a transformers process holds at least beside weights and cache: the driver's context, cuBLAS
workspaces and the allocator's rest; prompts whose activations need more take more."""

VLLM_DEFAULT_RELEASE = (0, 19)
"""Without a version: the newest whose start-up memory was measured model by model [1]."""


def find_rule(engine: Engine) -> MemoryRule:
    """Find the rule of an engine and its version.

    >>> find_rule(Engine("vllm", version="0.11.2")).versions, find_rule(Engine("vllm")).versions
    ('0.8 to 0.16', '0.18 to 0.20')
    """
    if engine.name != "vllm":
        return next(rule for rule in _OTHERS if rule.engine == engine.name)
    release = engine.release or VLLM_DEFAULT_RELEASE
    return next(rule for rule in reversed(_VLLM) if release >= rule.since)
