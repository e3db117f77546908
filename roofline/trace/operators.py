"""Operators: FLOP and bytes of one traced operator call, from the shapes that the profiler wrote.

    matrix product   FLOP = 2 · batch · m · k · n    bytes = (m·k + k·n + m·n) values
    attention        FLOP = 4 · heads · pairs · dim  bytes = q, k, v once and the output once
    elementwise      bytes = every input once and the output once

Units    FLOP and bytes of one call.
Limits   Bytes are the least that memory must move: what a kernel reads twice is not counted, what
         stays in L2 is. Attention whose mask the trace does not tell has no count.
"""

import math
from typing import Any, NamedTuple

from roofline.trace.events import Shapes


class Demand(NamedTuple):
    """What one call must do, and the type that it computes in."""

    flop: float
    bytes: float
    compute: str


_TYPES = {
    "c10::bfloat16": ("bf16", 2), "c10::half": ("fp16", 2), "float": ("fp32", 4),
    "double": ("fp64", 8), "c10::float8_e4m3fn": ("fp8", 1), "c10::float8_e5m2": ("fp8", 1),
    "c10::float8_e4m3fnuz": ("fp8", 1), "c10::float8_e5m2fnuz": ("fp8", 1),
    "signed char": ("int8", 1), "unsigned char": ("uint8", 1), "int": ("int32", 4),
    "long int": ("int64", 8), "long": ("int64", 8), "bool": ("bool", 1),
    "c10::float4_e2m1fn_x2": ("fp4", 1), "short": ("int16", 2),
}  # fmt: skip

# position of the left matrix among the inputs
_PRODUCTS = {
    "aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::_scaled_mm": 0,
    "aten::_int_mm": 0, "aten::_addmm_activation": 1,
}  # fmt: skip
# sequence axis of [batch, heads, sequence, dim] inputs, and the input that says "causal"
_ATTENTION = {
    "aten::_cudnn_attention_forward": (2, 10), "aten::_scaled_dot_product_cudnn_attention": (2, 6),
    "aten::_flash_attention_forward": (1, 8), "aten::_efficient_attention_forward": (1, None),
    "aten::_scaled_dot_product_flash_attention": (2, 4),
    "aten::_scaled_dot_product_efficient_attention": (2, 6),
    "aten::scaled_dot_product_attention": (2, 5), "flash_attn::_flash_attn_forward": (1, 5),
}  # fmt: skip
_ELEMENTWISE = frozenset({
    "aten::mul", "aten::add", "aten::sub", "aten::div", "aten::silu", "aten::gelu", "aten::neg",
    "aten::copy_", "aten::sigmoid", "aten::relu", "aten::mul_", "aten::add_", "aten::cat",
})  # fmt: skip
HAS_MODEL = frozenset({*_PRODUCTS, *_ATTENTION, *_ELEMENTWISE})
_FLOP_PER_MULTIPLY_ADD = 2


def demand(call: Shapes) -> Demand | None:
    """FLOP and bytes of one call; None when its shapes do not tell.

    >>> two = ("c10::BFloat16", "c10::BFloat16")
    >>> demand(Shapes("aten::mm", ([1, 2048], [2048, 256]), two, ()))
    Demand(flop=1048576.0, bytes=1053184.0, compute='bf16')
    """
    try:
        if call.operator in _PRODUCTS:
            return _product(call, _PRODUCTS[call.operator])
        if call.operator in _ATTENTION:
            return _attention(call)
        if call.operator in _ELEMENTWISE:
            return _elementwise(call)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError):
        return None
    return None


def _type(call: Shapes, position: int) -> tuple[str, int]:
    return _TYPES[call.types[position].lower()]


def _product(call: Shapes, left: int) -> Demand | None:
    a, b = call.dims[left], call.dims[left + 1]
    if len(a) not in (2, 3) or len(a) != len(b) or a[-1] != b[-2]:
        return None
    batch = a[0] if len(a) == 3 else 1
    m, k, n = a[-2], a[-1], b[-1]
    compute, size = _type(call, left)
    _, weight_size = _type(call, left + 1)
    output_size = max(size, 2)  # products of 8-bit types leave in 16 bit
    moved = m * k * size + k * n * weight_size + m * n * output_size
    return Demand(float(_FLOP_PER_MULTIPLY_ADD * batch * m * k * n), float(batch * moved), compute)


def _attention(call: Shapes) -> Demand | None:
    axis, causal_input = _ATTENTION[call.operator]
    q, k, v = call.dims[0], call.dims[1], call.dims[2]
    if len(q) != 4 or len(k) != 4 or len(v) != 4:
        return None
    queries, cached = q[axis], k[axis]
    heads = q[3 - axis]
    pairs = float(queries * cached)
    if queries > 1:
        if causal_input is None or causal_input >= len(call.inputs):
            return None
        says = call.inputs[causal_input]
        if says not in ("True", "False"):
            return None
        if says == "True" and queries == cached:
            pairs = queries * (queries + 1) / 2
    compute, size = _type(call, 0)
    flop = _FLOP_PER_MULTIPLY_ADD * q[0] * heads * pairs * (q[3] + v[3])
    values = math.prod(q) + math.prod(k) + math.prod(v) + q[0] * heads * queries * v[3]
    return Demand(float(flop), float(values * size), compute)


def _elementwise(call: Shapes) -> Demand | None:
    compute, size = _type(call, 0) if call.dims[0] and not _nested(call.dims[0]) else ("", 0)
    if call.operator == "aten::cat":
        parts: list[Any] = call.dims[0]
        if not _nested(parts):
            return None
        kind = call.types[0].lower()
        compute, size = next(
            ((name, width) for key, (name, width) in _TYPES.items() if key in kind), ("bf16", 2)
        )
        return Demand(0.0, 2.0 * sum(math.prod(part) for part in parts) * size, compute)
    if not size:
        return None
    if call.operator == "aten::copy_":
        _, source_size = _type(call, 1)
        count = math.prod(call.dims[0])
        return Demand(0.0, float(count * (size + source_size)), compute)
    inputs = [
        math.prod(dims) * _type(call, i)[1]
        for i, dims in enumerate(call.dims)
        if dims and not _nested(dims) and call.types[i].lower() in _TYPES
    ]
    output = max(math.prod(dims) for dims in call.dims if dims and not _nested(dims)) * size
    return Demand(0.0, float(sum(inputs) + output), compute)


def _nested(dims: Any) -> bool:
    return bool(dims) and isinstance(dims[0], list)
