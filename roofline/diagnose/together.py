"""Together: one device is fine and many are slow.

    T(n) = a / n + b      the part that n devices share, and the part that they do not
    efficiency            T(1) / (n · T(n))

Units    seconds, bytes per second.
Sources  [1] Amdahl 1967, AFIPS 30 (the shared part and the rest).
"""

from itertools import pairwise

import numpy as np

from roofline.diagnose.baseline import BaselineComparison
from roofline.diagnose.fabric import Fabric
from roofline.diagnose.mapping import ring_rate
from roofline.diagnose.symptoms import Scaling, Symptoms
from roofline.diagnose.verdict import Verdict
from roofline.trace.compare import RankComparison
from roofline.trace.intervals import Floats
from roofline.trace.result import DeviceReport
from roofline.units import number, show

BRANCH = "several devices"
_EXPOSED = 0.15
_EFFICIENT = 0.75
_SLOW_HOST_LINK = 0.6
_LINKS = ("NVLink", "p2p", "all_reduce")


def together_verdicts(
    report: DeviceReport | None,
    ranks: RankComparison | None,
    fabric: Fabric | None,
    baseline: BaselineComparison | None,
    symptoms: Symptoms,
) -> list[Verdict]:
    """Walk the questions about several devices."""
    found: list[Verdict] = []
    if ranks is not None and ranks.stragglers:
        found.append(_straggler(ranks))
    if report is not None:
        found += _exposed(report)
    found += _slow_links(fabric, baseline)
    found += _host_link(symptoms)
    if fabric is not None:
        found += _mapping(fabric, symptoms)
        found += _through_host(fabric)
    found += _scaling(symptoms.scaling)
    return found


def _straggler(ranks: RankComparison) -> Verdict:
    worst = max(ranks.ranks, key=lambda row: row.wait_s)
    share = worst.wait_s / worst.window_s
    named = ", ".join(str(rank) for rank in ranks.stragglers)
    return Verdict(
        branch=BRANCH,
        cause="a rank trails",
        statement=ranks.verdict,
        evidence=tuple(
            f"rank {row.rank}: own work {show(row.compute_s, 's')}, waits {show(row.wait_s, 's')} "
            f"in {row.collectives} collectives (trace)"
            for row in ranks.ranks[:8]
        ),
        confidence="high" if ranks.matched else "medium",
        refuted_by=f"moving rank {named} to another device leaves the waiting where it was",
        next_step=(
            f"baseline of the device of rank {named} (clock, temperature, links); then its input "
            "and host"
        ),
        gain=f"up to {number(1 / (1 - share), 3)} ×",
        gain_factor=1 / (1 - share),
    )


def _exposed(report: DeviceReport) -> list[Verdict]:
    summary = report.summary
    share = summary.exposed_communication_s / summary.window_s if summary.window_s else 0.0
    if share < _EXPOSED:
        return []
    hidden = 1 - summary.exposed_communication_s / max(summary.communication_s, 1e-12)
    return [
        Verdict(
            branch=BRANCH,
            cause="communication is not hidden",
            statement=f"{100 * share:.0f} % of the time goes to communication that no kernel hides",
            evidence=(
                f"exposed {show(summary.exposed_communication_s, 's')} of "
                f"{show(summary.communication_s, 's')} communication, {100 * hidden:.0f} % hidden "
                "(trace)",
            ),
            confidence="high",
            refuted_by="the ranks' traces show waiting for one rank inside these collectives",
            next_step=(
                "less tensor parallelism or a faster group (see topology); overlap; fewer, larger "
                "messages; several ranks' traces tell waiting from moving"
            ),
            gain=f"up to {number(1 / (1 - share), 3)} ×",
            gain_factor=1 / (1 - share),
        )
    ]


def _slow_links(fabric: Fabric | None, baseline: BaselineComparison | None) -> list[Verdict]:
    evidence = [f"{fault} (topology)" for fault in fabric.faults] if fabric is not None else []
    share = None
    if fabric is not None:
        lacking = [state.share for state in fabric.health if state.fault]
        share = min(lacking, default=None)
    if baseline is not None:
        bad = [
            finding
            for finding in baseline.findings
            if finding.what in _LINKS and finding.severity in ("fault", "slower")
        ]
        evidence += [f"{finding.node}: {finding.text} (baseline)" for finding in bad[:6]]
        changes = [1 + finding.change for finding in bad if finding.change is not None]
        share = min([*changes, *([share] if share is not None else [])], default=share)
    if not evidence:
        return []
    both = fabric is not None and baseline is not None
    return [
        Verdict(
            branch=BRANCH,
            cause="a slow or missing link",
            statement=f"a link is slow or missing: {evidence[0].rsplit(' (', 1)[0]}",
            evidence=tuple(evidence),
            confidence="high" if both or share is not None else "medium",
            refuted_by="peer-to-peer rates of this pair equal those of the others",
            next_step=(
                "leave this device out of the group (see the mapping), read nvidia-smi nvlink -e "
                "and dmesg, reset or reseat; then a new baseline"
            ),
            gain=(
                f"all-reduce up to {number(1 / share, 3)} ×" if share else "all-reduce at full rate"
            ),
            gain_factor=None,
        )
    ]


def _host_link(symptoms: Symptoms) -> list[Verdict]:
    rate, slot = symptoms.host_to_device_bytes_per_s, symptoms.pcie_bytes_per_s
    if rate is None or slot is None or rate / slot >= _SLOW_HOST_LINK:
        return []
    return [
        Verdict(
            branch=BRANCH,
            cause="NUMA or PCIe",
            statement=(
                f"host copies run at {100 * (rate / slot):.0f} % of the slot: memory of the far "
                "socket, "
                "pageable memory, or fewer lanes"
            ),
            evidence=(f"{show(rate, 'B/s')} of {show(slot, 'B/s')} (symptoms)",),
            confidence="medium",
            refuted_by="the same rate with numactl bound to the GPU's own node and pinned memory",
            next_step=(
                "bind the process (numactl --cpunodebind --membind), pin memory, read lanes and "
                "generation under load"
            ),
            gain=(
                f"host copies {number(slot / rate, 2)} ×: loading and offload; resident decode none"
            ),
        )
    ]


def _mapping(fabric: Fabric, symptoms: Symptoms) -> list[Verdict]:
    tp, given = symptoms.tp, symptoms.rank_devices
    if tp is None or tp < 2 or len(given) < tp or len(given) % tp:
        return []
    if sorted(given) != list(range(fabric.n_gpus)):
        return []
    groups = [given[i : i + tp] for i in range(0, len(given), tp)]
    now = min(ring_rate(group, fabric.rate) for group in groups)
    best = fabric.mapping(tp)
    could = min(best.group_bytes_per_s)
    if could < 1.1 * now:
        return []
    return [
        Verdict(
            branch=BRANCH,
            cause="mapping",
            statement=(
                f"tensor-parallel groups sit across slow links: {show(now, 'B/s')}, and "
                f"{show(could, 'B/s')} is possible"
            ),
            evidence=(
                f"groups now {', '.join(map(str, groups))}; best "
                f"{', '.join(map(str, best.groups))} (topology)",
            ),
            confidence="high",
            refuted_by="all-reduce rates of both groupings are equal",
            next_step=f"start with {best.paste}",
            gain=f"all-reduce up to {number(could / now, 2)} ×",
        )
    ]


def _through_host(fabric: Fabric) -> list[Verdict]:
    if fabric.nccl is None or not fabric.nccl.host_pairs:
        return []
    return [
        Verdict(
            branch=BRANCH,
            cause="collectives go through host memory",
            statement="NCCL moves data through host memory between devices of one node",
            evidence=tuple(f"{note} (NCCL log)" for note in fabric.nccl.notes),
            confidence="high",
            refuted_by="torch.cuda.can_device_access_peer is False for these pairs by design",
            next_step=(
                "unset NCCL_P2P_DISABLE, turn ACS off, allow P2P in the VM; read the log again"
            ),
            gain="all-reduce at the rate of the link instead of host memory",
        )
    ]


def _scaling(points: tuple[Scaling, ...]) -> list[Verdict]:
    times: dict[int, float] = {}
    for point in points:
        if point.step_s is not None:
            times[point.devices] = point.step_s
        elif point.tokens_per_s is not None:
            times[point.devices] = 1 / point.tokens_per_s
    if len(times) < 2:
        return []
    devices = np.array(sorted(times), float)
    took = np.array([times[int(n)] for n in devices])
    first, last = devices[0], devices[-1]
    speedup = float(took[0] / took[-1])
    efficiency = speedup / float(last / first)
    if efficiency >= _EFFICIENT:
        return []
    rest = _unshared(devices, took)
    grows = any(later > earlier for earlier, later in pairwise(took.tolist()))
    ceiling = float(took[0]) / rest if rest > 0 else float("inf")
    evidence = [
        f"{int(n)} devices: {number(float(took[0] / t), 3)} × (efficiency "
        f"{100 * (took[0] / t / (n / first)):.0f} %)"
        for n, t in zip(devices, took, strict=True)
    ]
    evidence.append(
        f"fit T(n) = a/n + b: b is {100 * (rest / float(took[0])):.0f} % of the time on "
        f"{int(first)} "
        "device(s)"
        f" and {100 * (rest / float(took[-1])):.0f} % on {int(last)}"
    )
    why = (
        "time even rises with more devices: communication grows faster than work shrinks"
        if grows
        else "a part does not shrink with devices: kernel starts, launches, and all-reduces"
    )
    return [
        Verdict(
            branch=BRANCH,
            cause="scaling flattens",
            statement=(
                f"{int(last)} devices give {number(speedup, 3)} × of {int(first)}, efficiency "
                f"{100 * efficiency:.0f} %; {why}"
            ),
            evidence=tuple(evidence),
            confidence="high" if len(times) > 2 else "medium",
            refuted_by="a trace of the largest run shows little exposed communication and no gaps",
            next_step=(
                "larger batches per device, replicas instead of tensor parallelism where one "
                "device "
                "holds the model; trace the largest run for exposed communication"
            ),
            gain=(
                f"more devices reach at most {number(ceiling, 3)} × of {int(first)}; "
                f"{int(last / first)} replicas give {int(last / first)} × the throughput"
            ),
            gain_factor=float(last / first) / speedup,
        )
    ]


def _unshared(devices: Floats, took: Floats) -> float:
    """b of the least-squares fit of a/n + b, at least 0."""
    table = np.stack([1 / devices, np.ones_like(devices)], axis=1)
    coefficients, *_ = np.linalg.lstsq(table, took, rcond=None)
    return max(float(coefficients[1]), 0.0)
