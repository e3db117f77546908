"""Alternatives: what would fit, when what was asked for does not.

Units    bytes, tokens.
Limits   A format is a change of storage; what it does to a model's answers is not judged here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from roofline.dtypes import Dtype, find_dtype
from roofline.errors import RooflineError
from roofline.models.architecture import Architecture
from roofline.serving.budget import budget
from roofline.serving.inverse import max_context_tokens
from roofline.serving.memory import Memory
from roofline.serving.placement import Placement

TRIED_FORMATS = ("fp8", "q8_0", "int8", "q6_k", "q5_k", "int4", "q4_k", "nvfp4", "mxfp4", "nf4")
"""Storage formats that are tried, whatever runs them."""

GGUF_ENGINE = "llama.cpp"


@dataclass(frozen=True)
class FormatThatFits:
    """A storage format with which a batch fits.

    Args:
        weights: the format of the blocks' linear layers.
        memory: what one accelerator then holds.
        max_context_tokens: longest context at that batch; None: memory does not limit it.
    """

    weights: Dtype
    memory: Memory
    max_context_tokens: int | None


def formats_that_fit(
    placement: Placement, batch: int = 1, context_tokens: float = 1
) -> tuple[FormatThatFits, ...]:
    """List the formats with which a batch at a context fits, largest first.

    GGUF types are tried under llama.cpp and where no engine is assumed, the others elsewhere.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> found = formats_that_fit(Placement(LLAMA_3_8B, load_accelerator("t4")), 1, 4096)
    >>> found[0].weights.name
    'q8_0'
    """
    found = []
    for name in TRIED_FORMATS:
        dtype = find_dtype(name)
        if not _runs(name, placement.engine.name):
            continue
        tried = replace(placement, weights=dtype)
        memory = budget(tried, batch, context_tokens)
        if memory.fits:
            found.append(FormatThatFits(dtype, memory, max_context_tokens(tried, batch)))
    return tuple(sorted(found, key=lambda entry: -entry.weights.bits))


def _runs(name: str, engine: str) -> bool:
    gguf = name.startswith("q")
    if engine in ("ideal", "plain"):
        return True
    return gguf == (engine == GGUF_ENGINE)


def models_that_fit(
    placement: Placement,
    models: Iterable[Architecture],
    batch: int = 1,
    context_tokens: float = 1,
    *,
    most: int = 5,
) -> tuple[Architecture, ...]:
    """List the largest models, of those given, that fit in the place of this one.

    Each in its checkpoint's own format, or in ``placement.weights``.
    """
    fitting = []
    for arch in models:
        try:
            memory = budget(replace(placement, arch=arch), batch, context_tokens)
        except RooflineError:
            continue  # this plan does not divide that model
        if memory.fits:
            fitting.append(arch)
    return tuple(sorted(fitting, key=lambda arch: -arch.parameters)[:most])
