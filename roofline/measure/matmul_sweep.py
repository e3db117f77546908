"""Matrix products by type: square in a burst and sustained, skinny over batch with cold weights.

Shapes   [m, k] × [k, n]; square m = n = k; skinny: m rows of activations against a weight [n, k].
Units    FLOP (2·m·n·k), seconds.
Limits   A burst starts from an idle board and lasts tens of milliseconds; sustained rows are the
         last third of seconds of load, with clock, power and temperature. tf32 is used only where
         the row says tf32. Random data.
Sources  [1] PyTorch, torch._scaled_mm and torch._int_mm (operand layouts).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any

from roofline.errors import UnsupportedError
from roofline.hardware.measured_rows import VALUE_BYTES, MatmulRow
from roofline.measure.bench import (
    Timing,
    above_hardware,
    operand_sets,
    summarise,
    synchronise,
    time_kernel,
)
from roofline.measure.case import Case, Level
from roofline.measure.device import Target, conditions
from roofline.measure.framework import torch

SKINNY_SHAPES: tuple[tuple[int, int], ...] = (
    (2048, 2048), (4096, 4096), (4096, 6144), (4096, 28672), (14336, 4096), (4096, 128256),
    (5120, 5120), (8192, 8192),
)  # fmt: skip
"""k and n of linears of known models: TinyLlama, Llama-3.1-8B (qkv, gate-up, down, head), ..."""
SKINNY_ROWS: tuple[int, ...] = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    96,
    128,
    192,
    256,
    384,
    512,
    1024,
    2048,
    4096,
)
GPU_TYPES = ("bf16", "fp8", "fp16", "tf32", "int8", "fp32", "fp64")
CPU_TYPES = ("fp32", "bf16", "fp64", "int8")


def matmul_types(target: Target) -> tuple[str, ...]:
    """Types that torch can multiply on this device."""
    if target.torch_device.type != "cuda":
        return CPU_TYPES
    major, minor = (int(part) for part in (target.device.compute_capability or "0.0").split("."))
    types: tuple[str, ...] = GPU_TYPES
    if (major, minor) < (8, 9) and target.device.kind == "cuda":
        types = tuple(name for name in types if name != "fp8")
    if major < 8:
        types = tuple(name for name in types if name not in ("bf16", "tf32"))
    return (*types, "fp4") if major >= 10 else types


def matmul_cases(target: Target, level: Level) -> list[Case]:
    """Bursts first (they want a cool device), then skinny, then sustained."""
    on_gpu = target.torch_device.type == "cuda"
    types = matmul_types(target)
    if on_gpu:
        quick, standard = (8192,), (1024, 4096, 8192)
        sizes = {
            Level.QUICK: quick,
            Level.STANDARD: standard,
            Level.FULL: (256, 512, 1024, 2048, 4096, 8192, 16384),
        }[level]
    else:
        sizes = {
            Level.QUICK: (1024,),
            Level.STANDARD: (256, 1024),
            Level.FULL: (128, 256, 512, 1024, 2048),
        }[level]
    if level is Level.QUICK:
        types = tuple(name for name in types if name in ("bf16", "fp8", "fp32"))
    cases = [
        Case("matmul", f"{name} matmul {n}", 0.5, partial(_square, target, name, n))
        for name in types
        for n in sizes
        if not (on_gpu and name in ("fp32", "fp64") and n > 8192)
    ]
    cases += _skinny_cases(target, level, types)
    loaded = [name for name in ("bf16", "fp8", "fp16") if name in types]
    if level is not Level.FULL:
        loaded = [name for name in loaded if name == "bf16"]
    if on_gpu:
        seconds = {Level.QUICK: 1.5, Level.STANDARD: 3.0, Level.FULL: 5.0}[level]
        cases += [
            Case(
                "matmul",
                f"{name} sustained",
                seconds + 0.5,
                partial(_sustained, target, name, seconds),
            )
            for name in loaded
        ]
    return cases


def _skinny_cases(target: Target, level: Level, types: tuple[str, ...]) -> list[Case]:
    on_gpu = target.torch_device.type == "cuda"
    on_cpu: tuple[tuple[int, int], ...] = ((512, 512), (2048, 2048), (2048, 5632), (2048, 32000))
    shapes = SKINNY_SHAPES if on_gpu else on_cpu
    rows = SKINNY_ROWS
    if level is Level.QUICK:
        shapes, rows = shapes[1:2], (1, 16, 128)
    elif level is Level.STANDARD:
        shapes, rows = shapes[1:4:2], (1, 4, 16, 64, 128, 256, 1024)
    if not on_gpu:
        rows = tuple(m for m in rows if m <= 256)
    wanted = ("bf16", "fp8") if on_gpu else ("fp32", "bf16")
    skinny_types = [name for name in wanted if name in types]
    return [
        Case(
            "matmul",
            f"{name} weights {k}x{n}",
            0.15 * len(rows),
            partial(_skinny, target, name, k, n, rows),
        )
        for name in skinny_types
        for k, n in shapes
    ]


@contextmanager
def precision(compute: str) -> Iterator[None]:
    """Let float32 products use tf32 where that is asked for, and nowhere else."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if compute == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def operands(device: Any, compute: str, m: int, n: int, k: int) -> tuple[Any, Any]:
    """Random operands: activations [m, k] and a weight [n, k] as engines keep it."""
    left = torch.empty(m, k, device=device, dtype=torch.float32)
    right = torch.empty(n, k, device=device, dtype=torch.float32)
    if compute == "int8":
        return (left.uniform_(-127, 127).to(torch.int8), right.uniform_(-127, 127).to(torch.int8))
    left.normal_()
    right.normal_()
    if compute == "fp4":
        return _fp4(left), _fp4(right)
    kinds = {
        "fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32,
        "bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn,
    }  # fmt: skip
    return left.to(kinds[compute]), right.to(kinds[compute])


def _fp4(values: Any) -> Any:
    if not hasattr(torch, "float4_e2m1fn_x2"):
        raise UnsupportedError("this torch has no fp4 type")
    pairs = torch.randint(0, 256, (values.shape[0], values.shape[1] // 2), device=values.device)
    return pairs.to(torch.uint8).view(torch.float4_e2m1fn_x2)


def product(compute: str, left: Any, right: Any) -> Callable[[], Any]:
    """A call that multiplies [m, k] by the transpose of [n, k]."""
    turned = right.t()
    if compute == "int8":
        return lambda: torch._int_mm(left, turned)
    if compute == "fp8":
        one = torch.ones((), device=left.device)
        return lambda: torch._scaled_mm(
            left, turned, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    if compute == "fp4":
        scales = [
            torch.full((side.shape[0] * side.shape[1] * 2 // 16,), 1.0, device=left.device).to(
                torch.float8_e4m3fn
            )
            for side in (left, right)
        ]
        return lambda: torch._scaled_mm(
            left, turned, scale_a=scales[0], scale_b=scales[1], out_dtype=torch.bfloat16
        )
    result = torch.empty(left.shape[0], right.shape[0], device=left.device, dtype=left.dtype)
    return lambda: torch.mm(left, turned, out=result)


def _square(target: Target, compute: str, n: int) -> Iterator[MatmulRow]:
    device = target.torch_device
    sets = operand_sets(VALUE_BYTES[compute] * 2 * n * n, target.cache_bytes)
    calls = [product(compute, *operands(device, compute, n, n, n)) for _ in range(sets)]
    settle = 0.0 if device.type != "cuda" or n < 4096 else (0.25 if n < 16384 else 1.0)
    with precision(compute):
        timing = time_kernel(device, calls, warmup_s=0.01, budget_s=0.03, settle_s=settle)
    yield _row(target, compute, n, n, n, "square", timing)


def _row(
    target: Target, compute: str, m: int, n: int, k: int, shape: str, timing: Timing, **more: Any
) -> MatmulRow:
    row = MatmulRow(compute=compute, m=m, n=n, k=k, shape=shape, **timing.row(), **more)
    flag = above_hardware(row.flop_per_s, target.peak_flop_per_s(compute), compute)
    return row.model_copy(update={"flags": (*row.flags, flag)}) if flag else row


def _skinny(
    target: Target, compute: str, k: int, n: int, rows: tuple[int, ...]
) -> Iterator[MatmulRow]:
    device = target.torch_device
    sets = operand_sets(VALUE_BYTES[compute] * k * n, target.cache_bytes)
    sets = max(1, min(sets, int(0.3 * target.free_bytes() / (4 * k * n))))
    weights = [operands(device, compute, 16, n, k)[1] for _ in range(sets)]
    for m in rows:
        if compute == "fp8" and m < 16:
            continue
        left = operands(device, compute, m, 16, k)[0]
        calls = [product(compute, left, weight) for weight in weights]
        settle = 0.1 if device.type == "cuda" and m >= 1024 else 0.0
        with precision(compute):
            timing = time_kernel(device, calls, warmup_s=0.01, budget_s=0.03, settle_s=settle)
        yield _row(target, compute, m, n, k, "skinny", timing)


def _sustained(target: Target, compute: str, seconds: float) -> Iterator[MatmulRow]:
    """Load for seconds; the rate, clock, power and temperature of the last third."""
    device, n = target.torch_device, 8192
    call = product(compute, *operands(device, compute, n, n, n))
    samples, times, begin_s = [], [], time.perf_counter()
    with torch.inference_mode(), precision(compute):
        call()
        synchronise(device)
        while (elapsed_s := time.perf_counter() - begin_s) < seconds:
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            marks[0].record()
            for _ in range(_PER_READING):
                call()
            marks[1].record()
            state = conditions(target)  # read while the device works
            synchronise(device)
            milliseconds_per_s = 1e3
            if elapsed_s >= seconds * 2 / 3:
                times.append(marks[0].elapsed_time(marks[1]) / milliseconds_per_s / _PER_READING)
                samples.append(state)
    timing = summarise(times, "kernel", _PER_READING)

    def middle(name: str) -> float | None:
        found = [getattr(sample, name) for sample in samples if getattr(sample, name)]
        return float(median(found)) if found else None

    yield _row(
        target, compute, n, n, n, "square", timing, mode="sustained",
        sm_clock_hz=middle("sm_clock_hz"), power_w=middle("power_w"),
        temperature_c=middle("temperature_c"),
    )  # fmt: skip


_PER_READING = 50
