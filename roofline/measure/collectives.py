"""Collectives by size over any number of ranks, eager and in a captured graph.

An eager row is one call at a time on the host's clock: at small sizes that is the host, not the
link (two NVLinked H200s: 50 µs against 10). A graph row is many calls captured in one graph between
two events: what a captured decode step pays.

Shapes   ``size`` is nccl-tests': the gathered buffer of all-gather, the input of reduce-scatter and
         all-to-all, what each rank sends in send_recv (a ring).
Units    Bytes, seconds; algorithm bandwidth = size / time; bus bandwidth as nccl-tests defines it.
Limits   Every rank makes the same calls the same number of times; times are those of rank 0.
Sources  [1] NVIDIA nccl-tests, doc/PERFORMANCE.md.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from roofline.errors import InputError
from roofline.hardware.measured_rows import CollectiveRow, bus_factor
from roofline.hardware.measurement import Measurement, save_measurement
from roofline.measure.bench import Timing, above_hardware, summarise, synchronise
from roofline.measure.device import Target, find_target
from roofline.measure.framework import distributed, torch
from roofline.measure.ranks import Ranks, joined
from roofline.measure.session import new_record
from roofline.units import KIB, MIB

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
_LARGE = 32 * MIB
_CALLS_IN_GRAPH = 20


def collective_sizes(largest: int, *, smallest: int = KIB, step: int = 2) -> tuple[int, ...]:
    """Sizes of a sweep, each ``step`` times the one before.

    Raises:
        InputError: the largest is below the smallest.

    >>> collective_sizes(8192)
    (1024, 2048, 4096, 8192)
    """
    if largest < smallest:
        raise InputError(f"the largest size must be at least {smallest} bytes, got {largest}")
    sizes = [smallest]
    while sizes[-1] * step <= largest:
        sizes.append(sizes[-1] * step)
    return tuple(sizes)


def collective_call(op: str, size: int, ranks: Ranks, dtype: Any) -> tuple[Callable[[], Any], int]:
    """A call that does one collective on random data, and its size in whole values."""
    one = torch.empty((), dtype=dtype).element_size()
    part = max(1, size // one // ranks.count)
    count = part * ranks.count
    whole = torch.empty(count, dtype=torch.float32, device=ranks.device).normal_().to(dtype)
    group = ranks.group
    if op == "all_reduce":
        return lambda: distributed.all_reduce(whole, group=group), count * one
    if op == "all_gather":
        own = whole[:part].clone()
        return lambda: distributed.all_gather_into_tensor(whole, own, group=group), count * one
    if op == "reduce_scatter":
        own = whole[:part].clone()
        # renamed in one release
        name = "reduce_scatter_single"
        scatter = getattr(distributed, name, None) or distributed.reduce_scatter_tensor
        return lambda: scatter(own, whole, group=group), count * one
    received = torch.empty_like(whole)
    if op == "all_to_all":
        return lambda: distributed.all_to_all_single(received, whole, group=group), count * one
    onward, back = (ranks.rank + 1) % ranks.count, (ranks.rank - 1) % ranks.count

    def ring() -> None:
        both = [
            distributed.P2POp(distributed.isend, whole, onward, group),
            distributed.P2POp(distributed.irecv, received, back, group),
        ]
        for request in distributed.batch_isend_irecv(both):
            request.wait()

    return ring, count * one


def collective_rows(
    target: Target, ranks: Ranks, sizes: Iterable[int], ops: Iterable[str] = OPS
) -> Iterable[CollectiveRow]:
    """Time each collective at each size, eager and (on GPUs) in a graph."""
    on_gpu = ranks.device.type == "cuda"
    dtype = torch.bfloat16 if on_gpu else torch.float32
    peak = None if target.spec is None else target.spec.link.bytes_per_s
    for op in ops:
        for asked in sizes:
            call, size = collective_call(op, asked, ranks, dtype)
            modes = {"eager": _eager(ranks, call, size)}
            if on_gpu:
                modes["graph"] = _graph(ranks, call, size)
            for mode, timing in modes.items():
                rate = size / timing.median_s
                bus = rate * bus_factor(op, ranks.count)
                yield CollectiveRow(
                    op=op, n_ranks=ranks.count, bytes=size, mode=mode,
                    dtype="bf16" if on_gpu else "fp32",
                    redop="sum" if op in ("all_reduce", "reduce_scatter") else "none",
                    alg_bytes_per_s=float(f"{rate:.6g}"), bus_bytes_per_s=float(f"{bus:.6g}"),
                    **timing.flagged(above_hardware(bus, peak, "link")).row(),
                )  # fmt: skip


def _eager(ranks: Ranks, call: Callable[[], Any], size: int) -> Timing:
    for _ in range(3):
        call()
    times = []
    for _ in range(20 if size < _LARGE else 8):
        ranks.barrier()
        synchronise(ranks.device)
        begin = time.perf_counter()
        call()
        synchronise(ranks.device)
        times.append(time.perf_counter() - begin)
    return summarise(times, "wall")


def _graph(ranks: Ranks, call: Callable[[], Any], size: int) -> Timing:
    calls = _CALLS_IN_GRAPH if size < _LARGE else 3
    synchronise(ranks.device)
    graph = torch.cuda.CUDAGraph()
    # NCCL's watchdog queries events from its own thread while this one captures
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(calls):
            call()
    for _ in range(3):
        graph.replay()
    times = []
    milliseconds_per_s = 1e3
    for _ in range(10):
        ranks.barrier()
        synchronise(ranks.device)
        first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()  # the ranks arrive together at the second replay, which is timed
        first.record()
        graph.replay()
        second.record()
        synchronise(ranks.device)
        times.append(first.elapsed_time(second) / milliseconds_per_s / calls)
    return summarise(times, "kernel", calls)


def measure_collectives(
    *,
    largest: int = 2**30,
    ops: Iterable[str] = OPS,
    device: str = "",
    folder: Path | None = None,
    step: int = 2,
) -> Measurement | None:
    """Sweep the collectives on the ranks of this run; rank 0 writes and gives the record.

    Raises:
        InputError: a single rank, a collective that is not one, or no size.
    """
    ops = tuple(ops)
    if unknown := [op for op in ops if op not in OPS]:
        raise InputError(f"no collective {unknown[0]!r}; there are {', '.join(OPS)}")
    sizes = collective_sizes(largest, step=step)
    with joined(device) as ranks:
        if ranks.count < 2:
            raise InputError(
                "collectives need 2 ranks or more; run: torchrun --nproc-per-node N "
                "-m roofline.measure collectives"
            )
        target = find_target(str(ranks.device))
        rows = tuple(collective_rows(target, ranks, sizes, ops))
        if not ranks.is_first:
            return None
        shown = replace(target, device=target.device.model_copy(update={"count": ranks.count}))
        record = new_record(shown, "collectives", "roofline measure collectives").model_copy(
            update={
                "collective_rows": rows, "complete_sections": ("collective",), "finished": True,
            }
        )  # fmt: skip
        print(nccl_table(rows))
        if folder is not None:
            name = f"{record.date:%Y-%m-%dT%H%M%SZ}-collectives-x{ranks.count}.json"
            save_measurement(record, folder, name)
        return record


def nccl_table(rows: Iterable[CollectiveRow]) -> str:
    """Rows with the columns of nccl-tests: sizes in bytes, times in µs, bandwidths in GB/s.

    >>> print(nccl_table([CollectiveRow(op="all_reduce", n_ranks=2, bytes=1024, mode="graph",
    ...     median_s=1e-5, alg_bytes_per_s=1.024e8, bus_bytes_per_s=1.024e8)]))
    # op  ranks  mode  size  count  type  redop  root  time  algbw  busbw
    all_reduce  2  graph  1024  512  bf16  sum  -1  10.0  0.10  0.10
    """
    lines = ["# op  ranks  mode  size  count  type  redop  root  time  algbw  busbw"]
    for row in rows:
        count = row.bytes // (2 if row.dtype in ("bf16", "fp16") else 4)
        lines.append(
            f"{row.op}  {row.n_ranks}  {row.mode}  {row.bytes}  {count}  {row.dtype}  {row.redop}"
            f"  -1  {row.median_s / 1e-6:.1f}  {row.alg_bytes_per_s / 1e9:.2f}"
            f"  {row.bus_bytes_per_s / 1e9:.2f}"
        )
    return "\n".join(lines)
