"""Padding and tables: bytes that an engine holds with the weights and no checkpoint has.

Units    bytes on one rank.
Sources  [1] vLLM issue 23278 (2025-08): gpt-oss-120b takes 65.965 GiB loaded for Marlin kernels;
             experts padded to hidden 3,072 and intermediate 2,944 are that to 0.1 %.
         [2] vLLM issue 33155 (2026-01): 64.38 GiB loaded for Triton kernels on an H100; one side of
             each expert matrix padded from 2,880 to 3,072, scales not, is that to 0.1 %.
         [3] vLLM issue 10517 (2024-11): 14.9888 GiB for 8,030,261,248 values in 16 bit; the
             difference is a table of 131,072 positions × 128 values.
"""

import math

from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import (
    Architecture,
    Experts,
    GroupedQuery,
    Latent,
    LayerGroup,
    Split,
)
from roofline.serving.engines import Engine
from roofline.serving.memory_rules import MemoryRule, Part

MARLIN_HIDDEN, MARLIN_INTERMEDIATE = 256, 128
TRITON_SIDE = 256
MXFP4_VALUE_BYTES = 0.5
TRITON_RELEASE = (0, 12)
"""First release that has the Triton kernels for mxfp4 experts with it."""


def padding_part(
    arch: Architecture, rank: Architecture, accelerator: Accelerator, engine: Engine
) -> Part | None:
    """Count what vLLM pads mxfp4 experts by on cards without 4-bit units."""
    native = "fp4" in accelerator.compute.flop_per_s
    if engine.name != "vllm" or native or accelerator.vendor.upper() != "NVIDIA":
        return None
    hopper = (accelerator.compute_capability or "").startswith("9")
    triton = hopper and (engine.release or TRITON_RELEASE) >= TRITON_RELEASE
    extra = 0.0
    for group in rank.layers:
        if group.experts is not None and _in_mxfp4(group.experts):
            grown = _triton_extra(group.experts) if triton else _marlin_extra(group.experts)
            extra += group.n_layers * group.experts.n_experts * grown
    name = f"padding of mxfp4 experts ({'Triton' if triton else 'Marlin'} kernels)"
    return Part(name, extra, "vLLM issues 23278, 33155") if extra > 0 else None


def _in_mxfp4(experts: Experts) -> bool:
    return all(
        linear.dtype is not None and linear.dtype.name == "mxfp4" for linear in experts.linears
    )


def _up(value: int, multiple: int) -> int:
    return math.ceil(value / multiple) * multiple


def _marlin_extra(experts: Experts) -> float:
    total = 0.0
    for linear in experts.linears:
        down = linear.split is Split.ROW
        hidden, inner = (linear.n_out, linear.n_in) if down else (linear.n_in, linear.n_out)
        halves = 2 if linear.n_out >= 2 * linear.n_in and not down else 1  # gate and up in one
        padded = _up(hidden, MARLIN_HIDDEN) * _up(inner // halves, MARLIN_INTERMEDIATE) * halves
        bits = 8 * MXFP4_VALUE_BYTES if linear.dtype is None else linear.dtype.bits
        total += (padded - linear.values) * bits / 8
    return total


def _triton_extra(experts: Experts) -> float:
    return sum(
        (_up(linear.n_in, TRITON_SIDE) - linear.n_in) * linear.n_out * MXFP4_VALUE_BYTES
        for linear in experts.linears
    )


def rotary_part(arch: Architecture, rule: MemoryRule) -> Part | None:
    """Count the table of cosines and sines for every position that the model was made for [3]."""
    if not rule.rotary_table or not arch.max_context_tokens:
        return None
    width = max((_rotary_width(group) for group in arch.layers), default=0)
    size = arch.max_context_tokens * width * arch.dtype.bytes_per_value
    return Part("rotary table", size, "vLLM issue 10517") if size else None


def _rotary_width(group: LayerGroup) -> int:
    match group.attention:
        case GroupedQuery():
            return group.attention.head_dim
        case Latent():
            return group.attention.rope_dim
        case None:
            return 0
