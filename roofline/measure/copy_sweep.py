"""Moving memory by size: kernels that copy, read, write and add, and the copy engine apart.

``copy`` is an elementwise kernel (a sign change: one read, one write), ``read`` a sum, ``write`` a
fill with a value that is not zero, ``add`` c = a + b, ``triad`` c = a + s·b. ``copy_engine`` is a
memory copy node of a graph: large ones leave the kernels and run on the copy engine, at 2.77
against 4.2 TB/s on an H200, which a test of the memory's bandwidth must not take for it.

Shapes   One buffer has ``buffer_bytes``; 32-bit floats, random.
Units    Bytes; moved = read + written.
Limits   Buffers are not rotated here: small ones show the caches' steps, and are flagged.
Sources  [1] McCalpin, STREAM (what copy, add and triad count).
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from roofline.hardware.measured_rows import CopyRow
from roofline.measure.bench import above_hardware, time_kernel
from roofline.measure.case import Case, Level
from roofline.measure.device import Target
from roofline.measure.framework import torch
from roofline.units import GIB, KIB, MIB

FLOAT_BYTES = 4
BUFFERS_MOVED = {"copy": 2, "read": 1, "write": 1, "add": 3, "triad": 3, "copy_engine": 2}
_CACHE_SHARE = 3.0  # a footprint below this many caches is not a rate of the memory


def copy_cases(target: Target, level: Level) -> list[Case]:
    """The sizes of a sweep, small ones last, as far as three buffers fit."""
    on_gpu = target.torch_device.type == "cuda"
    if on_gpu:
        all_sizes = {
            Level.QUICK: (4 * MIB, 64 * MIB, 2 * GIB),
            Level.STANDARD: tuple(64 * KIB * 4**step for step in range(9)),
            Level.FULL: tuple(64 * KIB * 2**step for step in range(18)),
        }[level]
    else:
        all_sizes = {
            Level.QUICK: (256 * KIB, 8 * MIB, 256 * MIB),
            Level.STANDARD: tuple(16 * KIB * 4**step for step in range(8)),
            Level.FULL: tuple(16 * KIB * 2**step for step in range(16)),
        }[level]
    fits = [size for size in all_sizes if 3 * size <= 0.7 * target.free_bytes()]
    pool = _Pool(target.torch_device)
    return [
        Case(
            "copy",
            f"copy {size} bytes",
            0.8,
            partial(_measure, target, pool, size, size == min(fits)),
        )
        for size in sorted(fits, reverse=True)
    ]


class _Pool:
    """Three random buffers, made once at the largest size and sliced."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._buffers: list[Any] = []

    def slices(self, values: int) -> list[Any]:
        if not self._buffers or self._buffers[0].numel() < values:
            self._buffers = []
            for _ in range(3):
                buffer = torch.empty(values, dtype=torch.float32, device=self._device)
                self._buffers.append(buffer.uniform_(-1, 1))
        return [buffer[:values] for buffer in self._buffers]

    def release(self) -> None:
        self._buffers = []


def _measure(target: Target, pool: _Pool, size: int, last: bool) -> Iterator[CopyRow]:
    device = target.torch_device
    first, second, third = pool.slices(size // FLOAT_BYTES)
    total = torch.empty((), dtype=torch.float32, device=device)
    launches: dict[str, Callable[[], Any]] = {
        "copy": lambda: torch.neg(first, out=third),
        "read": lambda: torch.sum(first, dim=0, out=total),
        "write": lambda: third.fill_(1.25),
        "add": lambda: torch.add(first, second, out=third),
        "triad": lambda: torch.add(first, second, alpha=0.5, out=third),
    }
    if device.type == "cuda":
        launches["copy_engine"] = lambda: third.copy_(first)
    for op, launch in launches.items():
        timing = time_kernel(device, [launch])
        moved = BUFFERS_MOVED[op] * size
        cached = moved < _CACHE_SHARE * target.cache_bytes
        flag = (
            "fits the cache: not a rate of the memory"
            if cached
            else above_hardware(moved / timing.median_s, target.peak_bytes_per_s(), "memory")
        )
        yield CopyRow(op=op, buffer_bytes=size, moved_bytes=moved, **timing.flagged(flag).row())
    if last:
        pool.release()
