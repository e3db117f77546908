"""Copies between host and device memory, pinned and pageable, in both directions.

Units    Bytes; seconds of the host's clock around a synchronised copy.
Limits   One device at a time; a first copy that sets things up is warmed away.
"""

from collections.abc import Iterator
from functools import partial

from roofline.hardware.measured_rows import HostLinkRow
from roofline.measure.bench import above_hardware, time_wall
from roofline.measure.case import Case, Level
from roofline.measure.device import Target
from roofline.measure.framework import torch
from roofline.units import GIB, MIB


def host_link_cases(target: Target, level: Level) -> list[Case]:
    """Sizes of host copies; none on a device that is the host."""
    if target.torch_device.type != "cuda":
        return []
    sizes = {
        Level.QUICK: (64 * MIB,),
        Level.STANDARD: (MIB, 64 * MIB, GIB // 4),
        Level.FULL: (64 * 2**10, MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB),
    }[level]
    return [
        Case("host_link", f"host copies {size} bytes", 0.5, partial(_measure, target, size))
        for size in sizes
    ]


def _measure(target: Target, size: int) -> Iterator[HostLinkRow]:
    device = target.torch_device
    there = torch.empty(size, dtype=torch.uint8, device=device).random_()
    peak = None if target.spec is None else target.spec.pcie.bytes_per_s
    for pinned in (True, False):
        here = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        here.copy_(there)
        calls = {
            "host_to_device": partial(there.copy_, here, non_blocking=pinned),
            "device_to_host": partial(here.copy_, there, non_blocking=pinned),
        }
        for direction, call in calls.items():
            timing = time_wall(device, call, warmup_s=0.02, budget_s=0.1, min_runs=5)
            flag = above_hardware(size / timing.median_s, peak, "PCIe")
            yield HostLinkRow(
                direction=direction, pinned=pinned, bytes=size, **timing.flagged(flag).row()
            )
