"""Device symptoms: what counters, two devices, or a change of format say without a trace.

Sources  [1] NVIDIA, nvidia-smi manual: utilisation is the share of time with one or more kernels,
             whatever part of the device they use.
"""

from roofline.diagnose.alone import BRANCH
from roofline.diagnose.symptoms import Change, Counters, DeviceStep, Symptoms
from roofline.diagnose.verdict import Verdict
from roofline.errors import RooflineError
from roofline.hardware.accelerator import load_accelerator
from roofline.trace.rates import Roofs
from roofline.trace.result import DeviceReport
from roofline.units import number, show

_FULL = 0.95
_HALF_IDLE = 0.65
_AT_LIMIT = 0.96
_SLOWED = 0.85


def symptom_verdicts(
    report: DeviceReport | None, symptoms: Symptoms, roofs: Roofs | None
) -> list[Verdict]:
    """Judge the symptoms of one device."""
    found: list[Verdict] = []
    if symptoms.counters is not None:
        found += _half_idle(symptoms.counters, report)
        found += _power(symptoms.counters)
    found += _no_faster(symptoms.devices, report)
    if symptoms.change is not None:
        found += _saved_no_time(symptoms.change, report, roofs)
    return found


def _half_idle(counters: Counters, report: DeviceReport | None) -> list[Verdict]:
    if counters.utilisation is None or counters.utilisation < _FULL:
        return []
    used, origin = counters.sm_active, "SM_ACTIVE of DCGM"
    if used is None and report is not None and report.summary.idle_s is not None:
        used, origin = report.summary.busy_share, "busy share of the trace"
    if used is None or used >= _HALF_IDLE:
        return []
    evidence = [
        f"utilisation {100 * counters.utilisation:.0f} % (nvidia-smi), {100 * used:.0f} % really "
        f"used ({origin})"
    ]
    for name, value in (
        ("tensor cores", counters.tensor_active), ("DRAM", counters.dram_active),
        ("warps", counters.sm_occupancy),
    ):  # fmt: skip
        if value is not None:
            evidence.append(f"{name} {100 * value:.0f} % (DCGM)")
    if counters.power_w and counters.power_limit_w:
        evidence.append(
            f"power {show(counters.power_w, 'W')} of {show(counters.power_limit_w, 'W')}"
        )
    return [
        Verdict(
            branch=BRANCH,
            cause="utilisation is no measure of work",
            statement=(
                f"utilisation of {100 * counters.utilisation:.0f} % only says that some kernel "
                "ran: "
                f"{100 * (1 - used):.0f} % of the device is idle"
            ),
            evidence=tuple(evidence),
            confidence="high" if counters.sm_active is not None else "medium",
            refuted_by="SM_ACTIVE above 0.9 over the same minute",
            next_step=(
                "larger batches, or kernels with more blocks than SMs; a trace shows whether it is "
                "gaps or small grids"
            ),
            gain=f"up to {number(1 / max(used, 0.01), 2)} ×",
            gain_factor=1 / max(used, 0.01),
        )
    ]


def _power(counters: Counters) -> list[Verdict]:
    clock, top = counters.sm_clock_hz, counters.max_sm_clock_hz
    power, limit = counters.power_w, counters.power_limit_w
    if not (clock and top and power and limit):
        return []
    if clock / top > _SLOWED or power / limit < _AT_LIMIT:
        return []
    share = clock / top
    return [
        Verdict(
            branch=BRANCH,
            cause="power limit",
            statement=(
                f"the power limit holds the SM clock at {100 * share:.0f} %: compute slows by "
                "that, memory "
                "bandwidth does not"
            ),
            evidence=(
                f"{show(power, 'W')} of {show(limit, 'W')}, SM clock {show(clock, 'Hz')} of "
                f"{show(top, 'Hz')} (counters)",
            ),
            confidence="high",
            refuted_by="the clock stays low when the power limit is raised",
            next_step=(
                "expect sustained, not burst, matmul rates; raise the limit (nvidia-smi -pl) where "
                "cooling lets you; scale only the compute roof by the clock"
            ),
            gain=f"up to {number(1 / share, 3)} × in prefill, nothing in decode",
            gain_factor=1 / share,
        )
    ]


def _no_faster(devices: tuple[DeviceStep, ...], report: DeviceReport | None) -> list[Verdict]:
    if len(devices) < 2:
        return []
    specs = []
    for entry in devices:
        try:
            specs.append((entry, load_accelerator(entry.accelerator)))
        except RooflineError:
            return []
    known = [(entry, spec.memory.bytes_per_s) for entry, spec in specs if spec.memory.bytes_per_s]
    if len(known) < 2:
        return []
    known.sort(key=lambda item: item[1] or 0.0)
    (small, slow_rate), (big, fast_rate) = known[0], known[-1]
    if slow_rate is None or fast_rate is None:
        return []
    wider = fast_rate / slow_rate
    faster = small.step_s / big.step_s
    if wider < 1.25 or faster > 1 + 0.25 * (wider - 1):
        return []
    waits = None
    if report is not None and report.summary.idle_s is not None:
        waits = report.summary.waiting_share("launch", "host synchronisation")
    evidence = [
        f"{small.accelerator} {show(small.step_s, 's')}, {big.accelerator} {show(big.step_s, 's')} "
        "a step",
        f"memory {number(wider, 3)} × as fast (datasheets), the step {number(faster, 3)} ×",
    ]
    if waits is not None:
        evidence.append(f"the trace waits for the host {100 * waits:.0f} % of the time")
    sure = waits is not None and waits > 0.5
    return [
        Verdict(
            branch=BRANCH,
            cause="a floor that the device does not set",
            statement=(
                "the step is no faster on the larger device: what takes the time is not on it"
                + (
                    f"; it waits for the host {100 * (waits or 0):.0f} % of the time"
                    if sure
                    else ""
                )
            ),
            evidence=tuple(evidence),
            confidence="high" if sure else "medium",
            refuted_by="a CUDA graph of the step is no faster than the eager step",
            next_step=(
                "replay the step as a CUDA graph, raise the batch, or keep the smaller device: it "
                "costs less for the same speed"
            ),
            gain=f"the larger device could reach {number(wider, 3)} × of the smaller one",
            gain_factor=wider,
        )
    ]


def _saved_no_time(
    change: Change, report: DeviceReport | None, roofs: Roofs | None
) -> list[Verdict]:
    before, after = change.before_weights_bytes, change.after_weights_bytes
    speedup = change.before_step_s / change.after_step_s
    if before is None or after is None or after > 0.8 * before or speedup > 1.25:
        return []
    evidence = [
        f"weights {show(before, 'B')} → {show(after, 'B')}",
        f"step {show(change.before_step_s, 's')} → {show(change.after_step_s, 's')}, "
        f"{number(speedup, 3)} ×",
    ]
    saved = before - after
    bandwidth = roofs.bytes_per_s if roofs is not None else None
    if bandwidth:
        evidence.append(
            f"reading {show(saved, 'B')} less saves {show(saved / bandwidth, 's')} at best "
            f"({roofs.origin if roofs else ''})"
        )
    kv = change.kv_bytes_read
    if kv is not None:
        share = before / (before + kv)
        ideal = (before + kv) / (after + kv)
        evidence.append(
            f"weights are {100 * share:.0f} % of the bytes that a step reads, KV the rest: "
            f"{number(ideal, 3)}"
            " × is all that fewer weight bytes can give"
        )
        if ideal < 1.25:
            return [
                Verdict(
                    branch=BRANCH,
                    cause="the step reads KV, not weights",
                    statement=(
                        f"{change.what} saved {show(saved, 'B')} and no time: weights are "
                        f"{100 * share:.0f} % "
                        "of what a step reads"
                    ),
                    evidence=tuple(evidence),
                    confidence="high",
                    refuted_by="at batch 1 and a short context the step is no faster either",
                    next_step=(
                        "put the KV cache in 8 bit; use the saved memory for a larger batch, which "
                        "is what it gains"
                    ),
                    gain=f"KV in 8 bit up to {number((after + kv) / (after + kv / 2), 3)} ×",
                    gain_factor=(after + kv) / (after + kv / 2),
                )
            ]
    if report is not None:
        evidence.append(
            f"{100 * report.precision.low_share:.0f} % of the matrix time ran in 8 bit or less, "
            f"{report.precision.casts:,} casts took {show(report.precision.cast_s, 's')} (trace)"
        )
    waits = report.summary.waiting_share("launch") if report is not None else 0.0
    if waits > 0.5:
        cause, why = (
            "waits for the host",
            f"the device waits for the host {100 * waits:.0f} % of the time",
        )
    elif report is not None and report.precision.low_share < 0.5:
        cause, why = "products stay in 16 bit", "most matrix products still run in 16 bit"
    else:
        cause, why = "casts or fixed time eat the gain", "kernel starts, casts or launches remain"
    return [
        Verdict(
            branch=BRANCH,
            cause=cause,
            statement=f"{change.what} saved {show(saved, 'B')} of memory and no time: {why}",
            evidence=tuple(evidence),
            confidence="high"
            if report is not None and cause != "casts or fixed time eat the gain"
            else "medium",
            refuted_by="a trace shows the products in 8 bit and the device busy",
            next_step="trace one step: share of products in 8 bit, casts, busy share",
            gain=f"up to {number(before / after, 3)} × where weights are all that a step reads",
            gain_factor=before / after,
        )
    ]
