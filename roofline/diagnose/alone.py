"""Alone: why a step is slow on one device.

    waiting for the host    gaps before late launches ÷ window
    memory                  Σ bytes / (kernel time · B), or DCGM's DRAM_ACTIVE
    tensor cores            Σ FLOP/P / kernel time, or DCGM's PIPE_TENSOR_ACTIVE
    gain                    window ÷ what would remain

Limits   Bytes and FLOP are inferred from the shapes in the trace, of the calls that have them;
         the evidence says which share of the kernel time that is. Register spills are in no torch
         trace: ncu shows them as local memory.
"""

from dataclasses import dataclass

from roofline.diagnose.symptoms import Symptoms
from roofline.diagnose.verdict import Verdict
from roofline.trace.rates import KernelRow, Roofs
from roofline.trace.result import DeviceReport
from roofline.units import number, show

BRANCH = "alone on one device"
_WAITS = 0.5
_SYNC = 0.05
_NEAR_ROOF = 0.6
_FAR_FROM_ROOF = 0.35
_BUSY = 0.5
_MANY_REGISTERS = 128
_LOW_OCCUPANCY_PERCENT = 25.0
_SMALL_KERNELS = ("elementwise", "norm", "copy", "rotary", "KV append", "softmax", "quantise")


@dataclass(frozen=True)
class Activity:
    """How near the roofs the kernels run, and how that is known."""

    memory: float | None
    tensor: float | None
    origin: str


def activity_of(
    report: DeviceReport | None, symptoms: Symptoms, roofs: Roofs | None
) -> Activity | None:
    """Shares of the memory and compute roofs: from counters where given, else from the trace."""
    counters = symptoms.counters
    if counters is not None and (counters.dram_active or counters.tensor_active) is not None:
        return Activity(counters.dram_active, counters.tensor_active, "DCGM counters")
    if report is None or roofs is None or not report.summary.busy_s:
        return None
    busy_s = report.summary.busy_s
    counted_s = sum(row.counted_s for row in report.kernels)
    moved = sum(row.bytes for row in report.kernels)
    memory = moved / (busy_s * roofs.bytes_per_s) if roofs.bytes_per_s else None
    tensor = 0.0
    for row in report.kernels:
        peak = roofs.compute(row.compute or "")
        if row.flop and peak:
            tensor += row.flop / peak
    origin = (
        f"inferred from bytes and FLOP over kernel time, {100 * (counted_s / busy_s):.0f} % of it "
        "with known "
        f"shapes; {roofs.origin}"
    )
    return Activity(memory, tensor / busy_s, origin)


def alone_verdicts(
    report: DeviceReport | None, symptoms: Symptoms, roofs: Roofs | None
) -> list[Verdict]:
    """Walk the questions about one device."""
    found: list[Verdict] = []
    activity = activity_of(report, symptoms, roofs)
    if report is not None:
        found += _waiting(report)
        found += _synchronising(report)
        found += _kernels(report, activity)
        found += _small_kernels(report)
        found += _fallback(report)
    elif activity is not None:
        found += _roofs_only(activity)
    return found


def _waiting(report: DeviceReport) -> list[Verdict]:
    summary = report.summary
    share = summary.waiting_share("launch", "host synchronisation")
    if summary.idle_s is None or share < _WAITS or not summary.busy_s:
        return []
    factor = summary.window_s / summary.busy_s
    evidence = [
        f"the device is busy {100 * summary.busy_share:.1f} % of {show(summary.window_s, 's')} "
        "(trace)",
        f"gaps before late launches take {100 * share:.1f} % (trace)",
    ]
    if summary.kernels_per_step is not None and summary.launch.host_s_per_kernel is not None:
        evidence.append(
            f"{number(summary.kernels_per_step, 4)} kernels a step, "
            f"{show(summary.launch.host_s_per_kernel, 's')} of host time for each (trace)"
        )
    if summary.launch.median_s is not None:
        evidence.append(
            f"a launch call itself takes {show(summary.launch.median_s, 's')}: most of the host "
            "time is above it (trace)"
        )
    late = summary.gaps.by_operator()
    step = (
        "replay the step as one CUDA graph, or torch.compile(mode='reduce-overhead'), or an engine "
        "that does; then trace again"
    )
    if late:
        name, (count, spent) = next(iter(late.items()))
        part = spent / (share * summary.window_s)
        evidence.append(
            f"{100 * part:.0f} % of the waiting is before what {name} launches ({count} calls)"
        )
        if part > 0.3:
            step = f"look at {name} first (another backend or a fixed shape); then {step}"
    return [
        Verdict(
            branch=BRANCH,
            cause="waits for the host",
            statement=(
                f"a faster GPU will not help: it waits for the host {100 * share:.0f} % of the time"
            ),
            evidence=tuple(evidence),
            confidence="high",
            refuted_by=(
                "the step takes as long when the same kernels are replayed as one graph, or on a "
                "slower GPU it takes longer"
            ),
            next_step=step,
            gain=(
                f"up to {number(factor, 2)} × (the kernels alone take {show(summary.busy_s, 's')})"
            ),
            gain_factor=factor,
        )
    ]


def _synchronising(report: DeviceReport) -> list[Verdict]:
    summary = report.summary
    share = summary.waiting_share("host synchronisation")
    callers = summary.gaps.by_caller()
    if share < _SYNC or not callers:
        return []
    name, (count, spent) = next(iter(callers.items()))
    return [
        Verdict(
            branch=BRANCH,
            cause="synchronises with the host",
            statement=(
                f"the host stops for the device in {name}, and the device then waits "
                f"{100 * share:.0f} % "
                "of the time"
            ),
            evidence=(
                f"{count} times {name}, {show(spent, 's')} of idle device after it (trace)",
                f"host synchronisations take {100 * share:.1f} % of the window (trace)",
            ),
            confidence="high",
            refuted_by="the gaps stay when the call is removed or made asynchronous",
            next_step=(
                "keep the value on the device: no .item(), .cpu(), nonzero() or print of a tensor "
                "in the step; sample on the device"
            ),
            gain=f"up to {number(1 / (1 - share), 3)} ×",
            gain_factor=1 / (1 - share),
        )
    ]


def _kernels(report: DeviceReport, activity: Activity | None) -> list[Verdict]:
    if activity is None or report.summary.idle_s is None:
        return []
    if report.summary.busy_share < _BUSY:
        return []
    found = _roofs_only(activity)
    if found or activity.memory is None or activity.tensor is None:
        return found
    if max(activity.memory, activity.tensor) < _FAR_FROM_ROOF:
        found.append(_neither(report, activity))
    return found


def _roofs_only(activity: Activity) -> list[Verdict]:
    memory, tensor = activity.memory, activity.tensor
    if memory is not None and memory >= _NEAR_ROOF:
        idle = f", tensor cores {100 * tensor:.0f} % busy" if tensor is not None else ""
        return [
            Verdict(
                branch=BRANCH,
                cause="memory bandwidth",
                statement=(
                    f"DRAM runs at {100 * memory:.0f} % of its roof{idle}: more TFLOP/s will not "
                    "help"
                ),
                evidence=(f"memory {100 * memory:.0f} %{idle} ({activity.origin})",),
                confidence="high" if activity.origin.startswith("DCGM") else "medium",
                refuted_by="a lower SM clock makes the step slower in proportion",
                next_step=(
                    "fewer bytes: weights or KV in 8 or 4 bit, a larger batch for the same "
                    "weights, "
                    "or a device with more bandwidth"
                ),
                gain=f"as it is at most {number(1 / memory, 3)} ×; half the bytes up to 2 ×",
                gain_factor=1 / memory,
            )
        ]
    if tensor is not None and tensor >= _NEAR_ROOF:
        return [
            Verdict(
                branch=BRANCH,
                cause="compute",
                statement=(
                    f"tensor cores run at {100 * tensor:.0f} % of their roof: the device is used "
                    "well"
                ),
                evidence=(f"tensor {100 * tensor:.0f} % ({activity.origin})",),
                confidence="high" if activity.origin.startswith("DCGM") else "medium",
                refuted_by="a lower memory clock makes the step slower in proportion",
                next_step="fewer FLOP or a faster type (fp8 where the model stands it)",
                gain=f"as it is at most {number(1 / tensor, 3)} ×",
                gain_factor=1 / tensor,
            )
        ]
    return []


def _neither(report: DeviceReport, activity: Activity) -> Verdict:
    summary = report.summary
    top = [row for row in report.kernels if row.share >= 0.1][:3] or list(report.kernels[:1])
    evidence = [
        f"memory {100 * (activity.memory or 0):.0f} %, tensor cores "
        f"{100 * (activity.tensor or 0):.0f} % of their "
        "roofs "
        f"({activity.origin})",
        f"the device is busy {100 * summary.busy_share:.0f} % (trace)",
    ]
    evidence += [_describe(row) for row in top]
    crowded = any(
        (row.registers or 0) >= _MANY_REGISTERS
        and (row.occupancy_percent or 100.0) < _LOW_OCCUPANCY_PERCENT
        for row in top
    )
    return Verdict(
        branch=BRANCH,
        cause="registers and occupancy" if crowded else "kernels far from both roofs",
        statement=(
            "the kernels keep the device busy and reach neither roof"
            + (": few warps fit beside so many registers" if crowded else "")
        ),
        evidence=tuple(evidence),
        confidence="medium" if crowded else "low",
        refuted_by="ncu shows the top kernels above 60 % of memory or tensor throughput",
        next_step=(
            "profile the top kernel with ncu (occupancy limiter, local memory for spills, grid "
            "against the number of SMs); try other shapes or another library"
        ),
        gain=f"up to {number(1 / max(activity.memory or 0, activity.tensor or 0, 0.05), 2)} ×",
        gain_factor=1 / max(activity.memory or 0, activity.tensor or 0, 0.05),
    )


def _describe(row: KernelRow) -> str:
    parts = [f"{row.name[:60]} takes {100 * row.share:.0f} %"]
    if row.percent_of_roof is not None:
        parts.append(f"{row.percent_of_roof:.0f} % of its roof")
    if row.registers is not None:
        parts.append(f"{row.registers} registers a thread")
    if row.occupancy_percent is not None:
        parts.append(f"occupancy {row.occupancy_percent:.0f} %")
    return ", ".join(parts) + " (trace)"


def _small_kernels(report: DeviceReport) -> list[Verdict]:
    summary = report.summary
    total = sum(summary.part_s.values())
    if not total or summary.busy_share < _BUSY:
        return []
    small = sum(summary.part_s.get(part, 0.0) for part in _SMALL_KERNELS)
    share = small / total
    if share < 0.35:
        return []
    count = sum(summary.part_kernels.get(part, 0) for part in _SMALL_KERNELS)
    factor = 1 / (1 - share * 0.75)
    return [
        Verdict(
            branch=BRANCH,
            cause="many small kernels",
            statement=(
                f"small kernels between the matrix products take {100 * share:.0f} % of the time"
            ),
            evidence=(
                f"{count:,} kernels of norm, elementwise, copies and the like: "
                f"{show(small, 's')} of {show(total, 's')} (trace)",
            ),
            confidence="medium",
            refuted_by="torch.compile leaves their time as it is",
            next_step=(
                "fuse them: torch.compile, or an engine with fused norm, rotary and activation"
            ),
            gain=f"about {number(factor, 3)} × if three quarters of their time go",
            gain_factor=factor,
        )
    ]


def _fallback(report: DeviceReport) -> list[Verdict]:
    calls = report.summary.math_attention_calls
    if not calls:
        return []
    return [
        Verdict(
            branch=BRANCH,
            cause="attention falls back",
            statement="attention runs as separate products and softmax: no fused kernel took it",
            evidence=(f"{calls:,} calls of _scaled_dot_product_attention_math (trace)",),
            confidence="high",
            refuted_by="the trace has a flash, memory-efficient or cuDNN kernel for each layer",
            next_step=(
                "find what no fused kernel takes (a mask tensor, fp32, an odd head size): "
                "torch.nn.attention.sdpa_kernel with one backend says why"
            ),
            gain="the score matrix is no longer written and read: most in long prompts",
        )
    ]
