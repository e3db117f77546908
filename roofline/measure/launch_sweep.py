"""What starting things costs: kernels in a graph and eager, and each operator on the host.

An eager step is made of the framework's own cost per operator, so each row here is one layer of it:
a Python call, an operator with a ready output, the same through autograd's dispatch, a linear as a
function and as a module, a norm, attention. Host costs are enqueued without waiting, so that they
are the host's alone as long as the device keeps up.

Units    Seconds per item.
Limits   Tiny operands: the device does next to nothing.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from roofline.hardware.measured_rows import LaunchRow
from roofline.measure.bench import summarise, synchronise, time_kernel, time_wall
from roofline.measure.case import Case, Level
from roofline.measure.device import Target
from roofline.measure.framework import functional, torch

_WIDTH = 64


def launch_cases(target: Target, level: Level) -> list[Case]:
    """Kernel starts, and what each kind of operator costs on the host."""
    repeats = {Level.QUICK: 200, Level.STANDARD: 500, Level.FULL: 1000}[level]
    cases = [Case("launch", "host cost per operator", 1.0, partial(_operators, target, repeats))]
    if target.torch_device.type == "cuda":
        cases.insert(0, Case("launch", "kernel launches", 0.6, partial(_kernels, target)))
    return cases


def _kernels(target: Target) -> Iterator[LaunchRow]:
    device = target.torch_device
    one = torch.ones(1, device=device)

    def tiny() -> None:
        one.add_(1.0)

    in_graph = time_kernel(device, [tiny], run_s=4e-3)
    yield LaunchRow(what="kernel", mode="graph", **in_graph.row())
    eager = time_kernel(device, [tiny], run_s=4e-3, use_graph=False)
    yield LaunchRow(what="kernel", mode="eager", **eager.row())
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        tiny()
    yield LaunchRow(what="graph_replay", mode="graph", **time_wall(device, graph.replay).row())
    gaps = []
    milliseconds_per_s = 1e3
    for _ in range(50):
        first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        second.record()
        synchronise(device)
        gaps.append(max(first.elapsed_time(second) / milliseconds_per_s, 1e-9))
    yield LaunchRow(what="event_gap", mode="eager", **summarise(gaps, "kernel").row())
    wait = time_wall(device, lambda: None)
    yield LaunchRow(what="synchronise", mode="eager", **wait.row())


def _operators(target: Target, repeats: int) -> Iterator[LaunchRow]:
    device = target.torch_device
    on_gpu = device.type == "cuda"
    dtype = torch.bfloat16 if on_gpu else torch.float32
    row = torch.randn(1, _WIDTH, device=device, dtype=dtype)
    weight = torch.randn(_WIDTH, _WIDTH, device=device, dtype=dtype)
    ready = torch.empty_like(row)
    module = torch.nn.Linear(_WIDTH, _WIDTH, bias=False, device=device, dtype=dtype)
    heads = torch.randn(1, 2, 1, _WIDTH // 2, device=device, dtype=dtype)
    cache = torch.randn(1, 2, 16, _WIDTH // 2, device=device, dtype=dtype)

    def python_call() -> None:
        return None

    without_gradient: dict[str, Callable[[], Any]] = {
        "python_call": python_call,
        "add_out": lambda: torch.add(row, row, out=ready),
        "add": lambda: row + row,
        "view": lambda: row.view(_WIDTH),
        "silu": lambda: functional.silu(row),
        "cat": lambda: torch.cat((row, row), dim=-1),
        "rms_norm": lambda: functional.rms_norm(row, (_WIDTH,)),
        "linear": lambda: functional.linear(row, weight),
        "linear_module": lambda: module(row),
        "attention": lambda: functional.scaled_dot_product_attention(heads, cache, cache),
    }
    for name, call in without_gradient.items():
        with torch.inference_mode():
            yield _host_cost(device, f"host_{name}", call, repeats)
    # outside inference mode: what autograd's dispatch adds to an operator
    yield _host_cost(device, "host_add_autograd", lambda: row + row, repeats)
    yield _host_cost(device, "host_linear_module_autograd", lambda: module(row), repeats)


def _host_cost(device: Any, what: str, call: Callable[[], Any], repeats: int) -> LaunchRow:
    times = []
    for _ in range(3):
        call()
    for _ in range(12):
        synchronise(device)
        begin = time.perf_counter()
        for _ in range(repeats // 10):
            call()
        times.append((time.perf_counter() - begin) / (repeats // 10))
    synchronise(device)
    # the first runs fill the device's queue and the allocator's pools
    return LaunchRow(what=what, mode="eager", **summarise(times[2:], "wall").row())
