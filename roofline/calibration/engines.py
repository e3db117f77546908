"""Terms of engines: fitted numbers over stated defaults.

    engine        small kernels   launched as
    ideal         none            nothing costs anything to launch
    cuda-graph    decoder         one graph a step
    gpt-fast      compiled        one graph a step
    vllm, sglang, tensorrt-llm    fused, graphs for decode
    llama.cpp     fused           graphs on CUDA
    transformers  eager           kernel by kernel, the host waits for Python

Units    seconds.
Limits   Defaults stand until published rows of the engine replace them; they are first guesses of
         the right order and make a wide interval.
Sources  [1] measurements/calibration/engines.json: fitted on measurements/published.
         [2] measurements/h200-sxm-141gb/*-transformers-eager.json: 77 ms and 924 kernels a step.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from roofline.calibration.kernels import KERNEL_SETS
from roofline.calibration.store import EngineFit, calibration_path, read_calibration
from roofline.timing.terms import EngineTerms, Spread

UNMEASURED = Spread(0.6, 2.0, 0, "no rows of this engine: a guess that is wide on purpose")
IDEAL_SPREAD = Spread(1.0, 1.0, 0, "no engine assumed: no coverage claimed")

_DEFAULTS = {
    "ideal": EngineTerms("ideal", spread_decode=IDEAL_SPREAD, spread_prefill=IDEAL_SPREAD),
    "plain": EngineTerms("plain", spread_decode=IDEAL_SPREAD, spread_prefill=IDEAL_SPREAD),
    "cuda-graph": EngineTerms("cuda-graph", KERNEL_SETS["decoder"], kernels_per_step=6),
    "gpt-fast": EngineTerms("gpt-fast", KERNEL_SETS["compiled"], 8, step_s=2e-4),
    "vllm": EngineTerms(
        "vllm", KERNEL_SETS["fused"], 12, step_s=1.0e-3, sequence_s=8e-6, prefill_step_s=8e-3
    ),
    "sglang": EngineTerms(
        "sglang", KERNEL_SETS["fused"], 12, step_s=6e-4, sequence_s=6e-6, prefill_step_s=8e-3
    ),
    "tensorrt-llm": EngineTerms(
        "tensorrt-llm", KERNEL_SETS["fused"], 12, step_s=5e-4, sequence_s=5e-6, prefill_step_s=8e-3
    ),
    "llama.cpp": EngineTerms("llama.cpp", KERNEL_SETS["fused"], 10, step_s=3e-4),
    "transformers": EngineTerms(
        "transformers", KERNEL_SETS["eager"], 20, step_s=1e-3, eager_kernel_s=2.5e-5
    ),
}  # fmt: skip


def engine_terms(name: str, *, weights_bits: float = 16.0) -> EngineTerms:
    """Give the terms of an engine before any fit.

    Args:
        name: engine.
        weights_bits: bits of the blocks' weights; the minimal decoder casts its inputs below 16.

    >>> engine_terms("ideal").step_s
    0.0
    """
    terms = _DEFAULTS[name]
    if name == "cuda-graph" and weights_bits < 16:
        terms = replace(terms, small_kernels=KERNEL_SETS["decoder fp8"])
    return terms


def engine_fit(name: str) -> EngineFit | None:
    """What published rows say of an engine; None: there are none."""
    path = calibration_path("engines")
    return None if path is None else read_calibration(path).engines.get(name)


def spread_keys(phase: str, device_class: str, *, experts: bool) -> tuple[str, str, str]:
    """Names of the spreads that hold for a step, the narrowest group first.

    >>> spread_keys("decode", "Hopper", experts=True)
    ('decode:Hopper:experts', 'decode:experts', 'decode')
    """
    body = "experts" if experts else "dense"
    return f"{phase}:{device_class}:{body}", f"{phase}:{body}", phase


def apply_fit(
    terms: EngineTerms,
    fit: EngineFit,
    device_class: str,
    *,
    early: bool = False,
    experts: bool = False,
) -> EngineTerms:
    """Put fitted numbers and the spreads of rows of the same kind over an engine's terms."""
    decode, prefill, whole = (
        next(
            (
                fit.spreads[key]
                for key in spread_keys(phase, device_class, experts=experts)
                if key in fit.spreads
            ),
            None,
        )
        for phase in ("decode", "prefill", "whole")
    )
    return replace(
        with_numbers(terms, fit.numbers, device_class, early=early),
        spread_decode=decode or terms.spread_decode,
        spread_prefill=prefill or terms.spread_prefill,
        spread_whole=whole,
    )


EARLY = "early"
"""Suffix of numbers that hold for an engine's early releases."""
FIRST_RELEASE_NOW = {"vllm": (0, 8)}
"""Release from which an engine's scheduler is today's (vLLM's V1); before it: early."""


def is_early(name: str, version: str | None) -> bool:
    """Whether a version of an engine is one of its early releases.

    >>> is_early("vllm", "0.6.3"), is_early("vllm", "0.18.0"), is_early("vllm", None)
    (True, False, False)
    >>> is_early("vllm", "2024")  # a year stands for a release of that year
    True
    """
    if name not in FIRST_RELEASE_NOW or not version:
        return False
    numbers = tuple(int(word) for word in re.findall(r"\d+", version)[:2])
    if not numbers:
        return False
    year = numbers[0] >= 2000
    return numbers[0] <= 2024 if year else numbers < FIRST_RELEASE_NOW[name]


def with_numbers(
    terms: EngineTerms, numbers: Mapping[str, float], device_class: str, *, early: bool = False
) -> EngineTerms:
    """Put fitted numbers over an engine's terms, a class's own before the general ones."""
    chosen = {name: value for name, value in numbers.items() if ":" not in name}
    for suffix in (device_class, *((EARLY,) if early else ())):
        for name, value in numbers.items():
            if name.endswith(f":{suffix}"):
                chosen[name.removesuffix(f":{suffix}")] = value
    return replace(terms, **chosen)  # type: ignore[arg-type]
