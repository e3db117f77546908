"""Memory budget: how an engine divides one accelerator's memory, and whether a batch fits.

Shapes   Everything is per accelerator: the rank and pipeline stage that holds most.
Units    bytes; ``batch`` is sequences per data-parallel replica.
Limits   Fragmentation and other processes on the card are not counted: leave a margin near the
         largest temporary. Prefixes that sequences share are not subtracted.
Sources  The constants of each engine and version: ``memory_rules``, with their sources.
"""

import math

from roofline.dtypes import Dtype
from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture
from roofline.serving.activation import (
    forward_bytes,
    ggml_buffer_bytes,
    rejection_sampler_bytes,
    sampler_bytes,
)
from roofline.serving.engines import Engine
from roofline.serving.extras import NO_EXTRAS, Extras, extra_parts
from roofline.serving.memory import Memory
from roofline.serving.memory_rules import TRANSFORMERS_FRAMEWORK_BYTES, Part
from roofline.serving.padding import padding_part, rotary_part
from roofline.serving.placement import IDEAL, ONE, Placement, rounded_up
from roofline.timing.parallel import Parallel
from roofline.units import show


def memory_budget(
    arch: Architecture,
    accelerator: Accelerator,
    parallel: Parallel = ONE,
    weights: Dtype | None = None,
    kv: Dtype | None = None,
    engine: Engine = IDEAL,
    *,
    batch: int = 1,
    context_tokens: int = 1,
    prompt_tokens: int | None = None,
    extras: Extras = NO_EXTRAS,
) -> Memory:
    """Budget the memory of one accelerator for a batch of sequences at a context.

    Args:
        arch, accelerator, parallel, weights, kv, engine, extras: as in ``Placement``.
        batch: sequences of one data-parallel replica.
        context_tokens: prompt and output of each sequence.
        prompt_tokens: tokens of each prompt, all in one step where the engine does not chunk;
            None: the whole context.

    Raises:
        InputError: a count that cannot be, or a plan that does not divide the model.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> memory = memory_budget(LLAMA_3_8B, load_accelerator("h100-sxm5-80gb"),
    ...     engine=Engine("vllm"), batch=32, context_tokens=8192)
    >>> memory.fits, memory.kv_pool_bytes / 2**30
    (True, 54.0)
    """
    placement = Placement(arch, accelerator, parallel, weights, kv, engine, extras)
    return budget(placement, batch, context_tokens, prompt_tokens)


def budget(
    placement: Placement, batch: int, context_tokens: float, prompt_tokens: float | None = None
) -> Memory:
    """Budget a placement for a batch at a context; see ``memory_budget``."""
    check_counts(batch, context_tokens, prompt_tokens)
    prompt = context_tokens if prompt_tokens is None else prompt_tokens
    usable, usable_rule = placement.usable
    weights = placement.weights_bytes
    cache = batch * placement.sequence_bytes(context_tokens)
    activation = _activation_bytes(placement, batch, prompt, context_tokens)
    parts = _parts(placement, usable, weights, activation)
    overhead = sum(part.bytes for part in parts)
    room = usable - weights - activation - overhead
    return Memory(
        usable_bytes=usable,
        weights_bytes=weights,
        kv_cache_bytes=cache,
        activation_bytes=activation,
        overhead_bytes=overhead,
        kv_pool_bytes=max(room, 0.0),
        missing_bytes=max(cache - room, 0.0),
        rule=_rule_in_words(placement),
        parts=parts,
        assumptions=tuple(line for line in (usable_rule, *_assumptions(placement, batch)) if line),
    )


def check_counts(batch: float, context_tokens: float, prompt_tokens: float | None = None) -> None:
    """Refuse counts that cannot be.

    Raises:
        InputError: not a number, not finite, or below what makes sense.
    """
    for name, value, least in (
        ("batch", batch, 1),
        ("context_tokens", context_tokens, 0),
        ("prompt_tokens", 0 if prompt_tokens is None else prompt_tokens, 0),
    ):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not least <= value <= 1e15:
            raise InputError(f"{name} is a number of at least {least}, got {value!r}")


def _ranks(parallel: Parallel) -> int:
    """Ranks that keep communication buffers for each other."""
    return max(parallel.tp, parallel.ep, min(parallel.pp, 2))


def _activation_bytes(
    placement: Placement, batch: int, prompt_tokens: float, context_tokens: float
) -> float:
    match placement.engine.name:
        case "ideal" | "plain" | "cuda-graph":
            return 0.0
        case "llama.cpp":
            held = rounded_up(placement.engine.max_context_tokens or context_tokens)
            step = placement.chunk_tokens(held)
            return float(ggml_buffer_bytes(placement.rank, step, held))
        case "transformers" | "gpt-fast":
            residuals = 4 if placement.engine.name == "transformers" else 1
            return float(forward_bytes(placement.rank, batch * prompt_tokens, residuals=residuals))
        case _:
            return _profiled_bytes(placement, context_tokens)


def _profiled_bytes(placement: Placement, context_tokens: float) -> float:
    """The peak of a start-up profile: the forward pass or the sampler, whichever is larger."""
    rule, rank = placement.rule, placement.rank
    chunk = placement.chunk_tokens(context_tokens)
    rows = min(placement.sequences(), chunk)
    vocabulary = placement.arch.vocab_size  # logits are gathered, so tp does not divide them
    draft = placement.engine.speculative_tokens
    sampler = float(sampler_bytes(rows, vocabulary, rule.logits_bytes or 4.0))
    if draft:
        sampler += float(rejection_sampler_bytes(rows, draft, vocabulary))
    peak = max(sampler, float(forward_bytes(rank, chunk)))
    peak = max(peak + rule.activation_base_bytes, rule.activation_floor_bytes)
    return peak / 2 if placement.parallel.pp > 1 else peak  # measured: two stages halve it


def _parts(
    placement: Placement, usable: float, weights: float, activation: float
) -> tuple[Part, ...]:
    """Everything beside weights, cache and activation, and what the fraction leaves alone."""
    rule, parallel = placement.rule, placement.parallel
    parts = [
        part
        for part in (
            padding_part(placement.arch, placement.rank, placement.accelerator, placement.engine),
            rotary_part(placement.arch, rule),
            *extra_parts(placement.rank, placement.arch, placement.extras),
        )
        if part is not None
    ]
    held = sum(part.bytes for part in parts)
    non_torch = rule.non_torch(_ranks(parallel))
    if placement.engine.name in ("transformers", "gpt-fast"):
        non_torch = max(non_torch, TRANSFORMERS_FRAMEWORK_BYTES - activation)
    if non_torch:
        parts.append(Part("driver context and communication", non_torch, rule.source))
    graphs = _graph_bytes(placement)
    match rule.basis:
        case "total":
            outside = (1 - placement.fraction) * usable
            if graphs and rule.graphs_inside:
                parts.append(Part("CUDA graphs", graphs, rule.source))
            elif graphs:
                parts.append(Part("CUDA graphs, outside the fraction", graphs, rule.source))
                outside = max(outside - graphs, 0.0)
            parts.append(Part("left alone by the fraction", outside, rule.source))
        case "available":
            outside = (1 - placement.fraction) * (usable - non_torch)
            parts.append(
                Part("outside the fraction, past activations", max(outside - activation, 0.0),
                     rule.source)
            )  # fmt: skip
        case "free":
            free = max(usable - weights - activation - non_torch - held, 0.0)
            parts.append(Part("kept free", (1 - placement.fraction) * free, rule.source))
        case "all":
            pass
    return tuple(part for part in parts if part.bytes > 0)


def _graph_bytes(placement: Placement) -> float:
    if placement.engine.cuda_graphs is False:
        return 0.0
    return placement.rule.graph_bytes[placement.large_card]


def _rule_in_words(placement: Placement) -> str:
    rule, share = placement.rule, f"{placement.fraction:g}"
    usable = show(placement.usable[0], "GiB", 4)
    match rule.basis:
        case "total":
            graphs = " − graphs" if rule.graphs_inside else ""
            arithmetic = (
                f"pool = {share} × {usable} of the total − weights − activation peak − "
                f"non-torch{graphs}"
            )
        case "available":
            arithmetic = (
                f"pool = {share} × what start-up leaves of {usable} − weights; "
                f"activations and graphs live outside the fraction"
            )
        case "free":
            arithmetic = f"pool = {share} × what is free of {usable} after loading"
        case "all":
            arithmetic = f"pool = {usable} − weights − what the framework holds"
    return f"{rule.engine} ({rule.versions}): {arithmetic}"


def _assumptions(placement: Placement, batch: int) -> list[str]:
    lines = []
    engine, rule = placement.engine, placement.rule
    if engine.name == "ideal":
        lines.append("no engine assumed: nothing is budgeted beside weights and cache")
    if engine.memory_fraction is None and rule.basis != "all":
        lines.append(f"memory fraction {placement.fraction:g} is the default of {rule.engine}")
    if engine.version is None and engine.name == "vllm":
        lines.append(
            f"vLLM {rule.versions}: the newest whose start-up memory was measured model by model; "
            "0.21 and later default to 0.92 and count CUDA graphs inside"
        )
    if engine.version is not None and engine.name != "vllm":
        lines.append(f"{engine.name} {engine.version}: the rule of {rule.versions} is used")
    if engine.max_sequences is None and rule.logits_bytes:
        lines.append(f"start-up profiles {placement.sequences()} sequences, the default here")
    if rule.basis != "all" and batch > placement.sequences():
        lines.append(
            f"a batch of {batch:,} is more than the {placement.sequences():,} sequences of a step "
            f"of {rule.engine}; the rest waits"
        )
    if placement.gguf_mix is not None:
        lines.append(
            f"GGUF file of the mix {placement.gguf_mix}: output matrix and token table quantised "
            "too, the table kept in host memory"
        )
    if placement.kv is None:
        why = "the checkpoint's" if placement.arch.kv_dtype else "the model's own type"
        lines.append(f"KV cache in {placement.kv_format}, {why}")
    if placement.accelerator.vendor.upper() != "NVIDIA" and rule.basis != "all":
        lines.append(
            f"{rule.engine}'s overheads were measured on NVIDIA cards and used for "
            f"{placement.accelerator.name} as they are"
        )
    return lines
