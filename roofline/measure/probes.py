"""Probes: the short kernels that tell whether a device is healthy.

    copy, add         memory: what a copy kernel and a sum of two arrays move
    matmul            square, 8192³ in bf16: a burst, and two seconds under load with the clock
    attention         causal prefill through torch's attention
    norm              RMS norm of a large activation
    kv_read           decode attention over a long cache: keys and values read once
    launch            host time of one small kernel

Units    bytes, FLOP, seconds.
Limits   Sizes shrink on a CPU, so that the same probes run in seconds there.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from roofline.hardware.node_record import DeviceHealth, Probe
from roofline.measure.bench import Timing, summarise, synchronise, time_kernel, time_wall
from roofline.measure.framework import functional, torch

_GPU = {"copy": 2**30, "n": 8192, "heads": 32, "tokens": 4096, "cache": 16384, "batch": 16}
_CPU = {"copy": 2**24, "n": 256, "heads": 4, "tokens": 128, "cache": 256, "batch": 2}
_HEAD_DIM = 128
_QUERY_GROUP = 4
_LOAD_S = 2.0
_CAUSAL_HALF = 2


def sizes(device: Any) -> dict[str, int]:
    """Problem sizes for a device."""
    return _GPU if device.type == "cuda" else _CPU


def _probe(name: str, index: int, unit: Any, work: float, timing: Timing, **more: Any) -> Probe:
    return Probe(
        name=name,
        device=index,
        unit=unit,
        work=float(work),
        median_s=timing.median_s,
        spread=timing.spread,
        times_s=timing.times_s[:10],
        flags=timing.flags,
        **more,
    )


def memory_probes(device: Any, index: int) -> Iterator[Probe]:
    """Copy and add of buffers far larger than the cache."""
    size = sizes(device)["copy"]
    values = size // 2
    source = torch.randn(values, device=device, dtype=torch.bfloat16)
    target, other = torch.empty_like(source), torch.empty_like(source)
    # an elementwise kernel: a plain copy may be sent to the copy engine
    timing = time_kernel(device, [lambda: torch.mul(source, 1.5, out=target)])
    yield _probe("copy", index, "B/s", 2 * size, timing, size_bytes=size)
    timing = time_kernel(device, [lambda: torch.add(source, target, out=other)])
    yield _probe("add", index, "B/s", 3 * size, timing, size_bytes=size)


def compute_probes(
    device: Any, index: int, under_load: Callable[[], DeviceHealth | None]
) -> Iterator[Probe]:
    """Matmul (burst and under load), attention, norm and the read of a KV cache."""
    size = sizes(device)
    n, dtype = size["n"], torch.bfloat16
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    timing = time_kernel(device, [lambda: torch.mm(a, b, out=out)], settle_s=0.2)
    yield _probe("matmul", index, "FLOP/s", 2.0 * n**3, timing)
    yield _sustained(device, index, lambda: torch.mm(a, b, out=out), 2.0 * n**3, under_load)
    heads, tokens = size["heads"], size["tokens"]
    q, k, v = (
        torch.randn(1, heads, tokens, _HEAD_DIM, device=device, dtype=dtype) for _ in range(3)
    )
    flop = 4.0 * heads * _HEAD_DIM * tokens**2 / _CAUSAL_HALF
    call = functional.scaled_dot_product_attention
    timing = time_kernel(device, [lambda: call(q, k, v, is_causal=True)])
    yield _probe("attention", index, "FLOP/s", flop, timing)
    x = torch.randn(n, n, device=device, dtype=dtype)
    weight = torch.ones(n, device=device, dtype=dtype)
    timing = time_kernel(device, [lambda: functional.rms_norm(x, (n,), weight, 1e-5)])
    yield _probe("norm", index, "B/s", 2.0 * x.numel() * x.element_size(), timing)
    batch, cache = size["batch"], size["cache"]
    kv_heads = max(heads // _QUERY_GROUP, 1)
    # query groups as query length, so that grouped KV is read once
    grouped = torch.randn(batch, kv_heads, _QUERY_GROUP, _HEAD_DIM, device=device, dtype=dtype)
    keys, values = (
        torch.randn(batch, kv_heads, cache, _HEAD_DIM, device=device, dtype=dtype) for _ in range(2)
    )
    timing = time_kernel(device, [lambda: call(grouped, keys, values)])
    read = 2.0 * keys.numel() * keys.element_size()
    yield _probe("kv_read", index, "B/s", read, timing)


def _sustained(
    device: Any,
    index: int,
    call: Callable[[], Any],
    flop: float,
    under_load: Callable[[], DeviceHealth | None],
) -> Probe:
    """Seconds of load: the rate, and the state of the device in the middle of it."""
    load_s = _LOAD_S if device.type == "cuda" else 0.02
    call()
    synchronise(device)
    begin = time.perf_counter()
    call()
    synchronise(device)
    one_s = max(time.perf_counter() - begin, 1e-6)
    batch = max(1, math.ceil(0.05 / one_s)) if device.type == "cuda" else 1
    times: list[float] = []
    state: DeviceHealth | None = None
    begin = time.perf_counter()
    while time.perf_counter() - begin < load_s:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        if state is None and time.perf_counter() - begin > load_s / 2:
            for _ in range(4 * batch):  # keeps the device loaded while its state is read
                call()
            state = under_load()
            synchronise(device)
            continue
        synchronise(device)
        times.append((time.perf_counter() - start) / batch)
    late = sorted(times[len(times) // 2 :]) or [one_s]
    median_s = late[len(late) // 2]
    return Probe(
        name="matmul under load",
        device=index,
        unit="FLOP/s",
        work=flop,
        median_s=max(median_s, 1e-9),
        spread=(late[-1] - late[0]) / max(median_s, 1e-9),
        sm_clock_hz=state.sm_clock_hz if state else None,
        memory_clock_hz=state.memory_clock_hz if state else None,
        power_w=state.power_w if state else None,
        temperature_c=state.temperature_c if state else None,
        throttle=state.throttle if state else (),
    )


def launch_probe(device: Any, index: int) -> Probe:
    """Host time of one small kernel, launched one after the other."""
    x = torch.zeros(1024, device=device)
    calls = 200
    timing = time_wall(device, lambda: x.add_(1.0), calls_per_run=calls)
    return _probe("launch", index, "s", 1.0, timing)


def host_probes(device: Any, index: int) -> Iterator[Probe]:
    """Copies between pinned host memory and the device, both ways."""
    if device.type != "cuda":
        return
    size = 2**28
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    here = torch.empty(size, dtype=torch.uint8, device=device)
    for name, target, source in (
        ("host_to_device", here, host),
        ("device_to_host", host, here),
    ):
        timing = time_wall(device, lambda t=target, s=source: t.copy_(s, non_blocking=True))  # type: ignore[misc]
        yield _probe(name, index, "B/s", size, timing, size_bytes=size)


def peer_probes(count: int) -> Iterator[Probe]:
    """Copies from every device to every other, one pair at a time."""
    size = 2**28
    for source in range(count):
        for target in range(count):
            if source == target:
                continue
            a = torch.empty(size, dtype=torch.uint8, device=f"cuda:{source}")
            b = torch.empty(size, dtype=torch.uint8, device=f"cuda:{target}")
            timing = _time_pair(source, target, lambda a=a, b=b: b.copy_(a))  # type: ignore[misc]
            yield _probe("p2p", source, "B/s", size, timing, peer=target, size_bytes=size)


def _time_pair(source: int, target: int, call: Callable[[], Any]) -> Timing:
    times, calls = [], 5
    for run in range(9):
        for device in (source, target):
            torch.cuda.synchronize(device)
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        for device in (source, target):
            torch.cuda.synchronize(device)
        if run:
            times.append((time.perf_counter() - begin) / calls)
    return summarise(times, "wall", calls)


def all_reduce_probes(count: int) -> Iterator[Probe]:
    """All-reduce over all devices of this process; the rate is nccl-tests' bus bandwidth."""
    if count < 2:
        return
    factor = 2 * (count - 1) / count
    for size in (2**20, 2**26, 2**29):
        tensors = [
            torch.zeros(size // 2, dtype=torch.bfloat16, device=f"cuda:{rank}")
            for rank in range(count)
        ]
        times, calls = [], 5
        for run in range(9):
            for rank in range(count):
                torch.cuda.synchronize(rank)
            begin = time.perf_counter()
            for _ in range(calls):
                torch.cuda.nccl.all_reduce(tensors)
            for rank in range(count):
                torch.cuda.synchronize(rank)
            if run:
                times.append((time.perf_counter() - begin) / calls)
        timing = summarise(times, "wall", calls)
        yield Probe(
            name="all_reduce",
            ranks=count,
            size_bytes=size,
            unit="B/s",
            work=factor * size,
            median_s=timing.median_s,
            spread=timing.spread,
            times_s=timing.times_s[:10],
            flags=timing.flags,
        )
