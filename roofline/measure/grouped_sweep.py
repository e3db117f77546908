"""Grouped matrix products: what the routed experts of a layer take, by experts touched and rows.

Shapes   [rows, k] × [experts, k, n], the rows divided evenly over the experts that are touched.
Units    FLOP (2·rows·n·k), seconds; a row's ``experts`` are those touched, ``m`` all rows.
Limits   Even division: real routing is skewed. bf16, as the minimal decoder runs its experts.
Sources  [1] PyTorch, torch._grouped_mm (operand layouts).
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from roofline.hardware.measured_rows import VALUE_BYTES, MatmulRow
from roofline.measure.bench import operand_sets, time_kernel
from roofline.measure.case import Case, Level
from roofline.measure.decoder import grouped_matmul
from roofline.measure.device import Target
from roofline.measure.framework import torch

GROUPED_SHAPES: tuple[tuple[int, int, int], ...] = (
    (8, 4096, 28672), (8, 14336, 4096), (128, 2048, 1536), (128, 768, 2048), (64, 2048, 2048),
    (32, 2880, 5760),
)  # fmt: skip
"""Experts, k and n: Mixtral-8x7B, Qwen3-30B-A3B, OLMoE and gpt-oss-20b."""
ROWS_PER_EXPERT = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
MOST_BYTES = 12e9
"""Weights that one case holds at most."""


def grouped_cases(target: Target, level: Level) -> list[Case]:
    """Grouped products on a GPU, by share of the experts touched."""
    if target.torch_device.type != "cuda" or level is Level.QUICK:
        return []
    shapes = GROUPED_SHAPES if level is Level.FULL else GROUPED_SHAPES[:3:2]
    return [
        Case(
            "matmul",
            f"bf16 experts {experts}x{k}x{n}",
            2.0,
            partial(_grouped, target, experts, k, n),
        )
        for experts, k, n in shapes
    ]


def _grouped(target: Target, held: int, k: int, n: int) -> Iterator[MatmulRow]:
    device = target.torch_device
    one = VALUE_BYTES["bf16"] * k * n
    sets = operand_sets(one * held, target.cache_bytes)
    sets = max(1, min(sets, int(MOST_BYTES / (one * held))))
    stacks = []
    for _ in range(sets):
        stack = torch.empty(held, k, n, device=device, dtype=torch.bfloat16)
        stacks.append(stack.normal_())
    for touched in sorted({max(held // 16, 1), max(held // 4, 1), held}):
        for per_expert in ROWS_PER_EXPERT:
            rows = touched * per_expert
            if rows > 8192:
                continue
            left = torch.randn(rows, k, device=device, dtype=torch.bfloat16)
            ends = _ends(device, held, touched, per_expert)
            calls = [_call(left, stack, ends) for stack in stacks]
            timing = time_kernel(device, calls, warmup_s=0.01, budget_s=0.02)
            yield MatmulRow(
                compute="bf16", m=rows, n=n, k=k, shape="grouped", experts=touched, **timing.row()
            )


def _ends(device: Any, held: int, touched: int, per_expert: int) -> Any:
    """Where each expert's rows end: the touched ones are spread over those held."""
    counts = torch.zeros(held, dtype=torch.int32)
    counts[torch.linspace(0, held - 1, touched).round().long()] = per_expert
    return counts.cumsum(0).to(torch.int32).to(device)


def _call(left: Any, stack: Any, ends: Any) -> Callable[[], Any]:
    return lambda: grouped_matmul(left, stack, ends)
