"""Under load: fast alone, slow with many requests.

    queueing          TTFT grows with concurrency and TPOT does not
    mixed steps       the slowest gaps between tokens are far above the median one
    saturation        more requests, no more tokens a second
    shape buckets     a step just past a captured batch size jumps

Units    seconds; a concurrency is a number of requests in flight.
"""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from roofline.diagnose.symptoms import LoadPoint, Symptoms
from roofline.diagnose.verdict import Verdict
from roofline.errors import InputError
from roofline.trace.result import DeviceReport
from roofline.units import number, show
from roofline.validation.benchmarks.detection import read_benchmarks
from roofline.validation.benchmarks.record import BenchmarkRun, Summary

BRANCH = "under load"
_UNEVEN = 1.5


def load_points(runs: "Iterable[str | Path | BenchmarkRun]") -> tuple[LoadPoint, ...]:
    """Read result files of serving benchmarks (vLLM, SGLang, AIPerf, GuideLLM, …) by concurrency.

    Raises:
        InputError: a file is missing, of no known tool, or lacks concurrency and times.

    >>> from roofline.validation.benchmarks.record import Summary
    >>> run = BenchmarkRun(tool="x", raw_path="a", concurrency=8, tpot_s=Summary(p50=0.02))
    >>> load_points([run])[0].tpot_s
    0.02
    """
    found = []
    for run in runs:
        for one in [run] if isinstance(run, BenchmarkRun) else read_benchmarks(run):
            found.append(_point(one))
    return tuple(sorted(found, key=lambda point: point.concurrency))


def _point(run: BenchmarkRun) -> LoadPoint:
    times = {
        "tpot_s": _middle(run.tpot_s),
        "ttft_s": _middle(run.ttft_s),
        "itl_median_s": run.itl_s.p50,
        "itl_p99_s": run.itl_s.p99,
        "output_tokens_per_s": run.output_tokens_per_s,
    }
    known = {name: float(value) for name, value in times.items() if value and value > 0}
    if not run.concurrency or not known:
        raise InputError(
            f"{Path(run.raw_path).name}: no concurrency with times; run the benchmark with a cap "
            "on the requests in flight (vLLM: --max-concurrency)"
        )
    return LoadPoint(concurrency=float(run.concurrency), **known)


def _middle(summary: Summary) -> float | None:
    return summary.p50 if summary.p50 is not None else summary.mean


def load_verdicts(points: tuple[LoadPoint, ...], symptoms: Symptoms) -> list[Verdict]:
    """Judge a series over load, and step times over batch sizes."""
    found: list[Verdict] = []
    ordered = tuple(sorted(points, key=lambda point: point.concurrency))
    if ordered:
        found += _mixed(ordered)
        found += _preempted(ordered)
    if len(ordered) > 1:
        found += _queueing(ordered)
        found += _saturated(ordered)
    found += _buckets(symptoms)
    return found


def _queueing(points: tuple[LoadPoint, ...]) -> list[Verdict]:
    first, last = points[0], points[-1]
    if not (first.ttft_s and last.ttft_s and first.tpot_s and last.tpot_s):
        return []
    ttft, tpot = last.ttft_s / first.ttft_s, last.tpot_s / first.tpot_s
    if ttft < 3 or ttft < 2 * tpot:
        return []
    return [
        Verdict(
            branch=BRANCH,
            cause="queueing",
            statement=(
                f"requests wait before they start: TTFT grows {number(ttft, 2)} ×, TPOT "
                f"{number(tpot, 2)} ×"
            ),
            evidence=tuple(
                f"concurrency {point.concurrency:g}: TTFT {show(point.ttft_s, 's')}, TPOT "
                f"{show(point.tpot_s, 's')} (benchmark)"
                for point in points[:8]
            ),
            confidence="high",
            refuted_by="the engine's log shows no waiting requests at the highest load",
            next_step=(
                "more sequences at once (max_num_seqs, KV memory), more prefill chunks a step, or "
                "another replica; roofline plan sizes it"
            ),
            gain=f"TTFT of {show(first.ttft_s, 's')} again",
        )
    ]


def _mixed(points: tuple[LoadPoint, ...]) -> list[Verdict]:
    rows = [point for point in points if point.itl_p99_s and point.itl_median_s]
    if not rows:
        return []
    worst = max(rows, key=lambda point: (point.itl_p99_s or 0) / (point.itl_median_s or 1))
    ratio = (worst.itl_p99_s or 0.0) / (worst.itl_median_s or 1.0)
    if ratio < 3:
        return []
    return [
        Verdict(
            branch=BRANCH,
            cause="prefill mixed into decode",
            statement=(
                f"some tokens wait {number(ratio, 2)} × as long as the median one: steps that "
                "carry "
                "a prompt hold up decode"
            ),
            evidence=(
                f"concurrency {worst.concurrency:g}: gap between tokens "
                f"{show(worst.itl_median_s, 's')}"
                f" median, {show(worst.itl_p99_s, 's')} at the 99th percentile (benchmark)",
            ),
            confidence="medium",
            refuted_by="the slow gaps stay with prompts of one token",
            next_step="smaller prefill chunks, or prefill and decode on different devices",
            gain=f"99th percentile towards {show(worst.itl_median_s, 's')}",
        )
    ]


def _preempted(points: tuple[LoadPoint, ...]) -> list[Verdict]:
    hit = [point for point in points if point.preemptions]
    if not hit:
        return []
    worst = max(hit, key=lambda point: point.preemptions or 0)
    return [
        Verdict(
            branch=BRANCH,
            cause="KV memory runs out",
            statement=(
                f"{worst.preemptions:g} sequences were thrown out and computed again at "
                "concurrency "
                f"{worst.concurrency:g}"
            ),
            evidence=(f"{worst.preemptions:g} preemptions (engine's log)",),
            confidence="high",
            refuted_by="KV usage in the log stays below 90 %",
            next_step="cap the running sequences, KV in 8 bit, or a larger memory fraction",
            gain="no work is done twice",
        )
    ]


def _saturated(points: tuple[LoadPoint, ...]) -> list[Verdict]:
    rows = [point for point in points if point.output_tokens_per_s]
    for earlier, later in pairwise(rows):
        more = later.concurrency / earlier.concurrency
        gained = (later.output_tokens_per_s or 0.0) / (earlier.output_tokens_per_s or 1.0)
        if more >= 1.5 and gained < 1.1:
            return [
                Verdict(
                    branch=BRANCH,
                    cause="saturation",
                    statement=(
                        f"from concurrency {earlier.concurrency:g} on more requests bring no more "
                        "tokens"
                    ),
                    evidence=(
                        f"{number(more, 2)} × the requests, {number(gained, 3)} × the tokens a "
                        "second"
                        " (benchmark)",
                    ),
                    confidence="high",
                    refuted_by="a higher max_num_seqs or batch token budget raises the rate",
                    next_step=(
                        f"stay at {earlier.concurrency:g} a replica and add replicas; check that "
                        "no "
                        "cap of the engine binds first"
                    ),
                    gain="latency falls at the same throughput",
                )
            ]
    return []


def _buckets(symptoms: Symptoms) -> list[Verdict]:
    points = sorted(symptoms.batches, key=lambda point: point.batch)
    captured = sorted(symptoms.captured_batches)
    for earlier, later in pairwise(points):
        jump = later.step_s / earlier.step_s
        if jump < 1.25 or later.batch > 2 * earlier.batch:
            continue
        past = bool(captured) and later.batch > captured[-1] >= earlier.batch
        crossed = [size for size in captured if earlier.batch <= size < later.batch]
        cause = "falls back to eager" if past else "shape buckets"
        return [
            Verdict(
                branch=BRANCH,
                cause=cause,
                statement=(
                    f"the step jumps {number(jump, 3)} × between batch {earlier.batch} and "
                    f"{later.batch}"
                    + (
                        f": past the largest captured graph ({captured[-1]}) it runs eagerly"
                        if past
                        else ": it is padded to the next captured size"
                        if crossed
                        else ""
                    )
                ),
                evidence=(
                    f"batch {earlier.batch}: {show(earlier.step_s, 's')}, batch {later.batch}: "
                    f"{show(later.step_s, 's')}; captured {captured or 'not given'}",
                ),
                confidence="high" if past or crossed else "low",
                refuted_by="a graph captured at that batch takes as long",
                next_step=(
                    "capture larger graphs (vLLM: cudagraph_capture_sizes)"
                    if past
                    else "capture sizes nearer to the batches that occur"
                ),
                gain=f"up to {number(jump, 3)} × at this batch",
                gain_factor=jump,
            )
        ]
    return []


def uneven_steps(report: DeviceReport) -> list[Verdict]:
    """Steps of one trace that differ much: shapes change, prompts mix in, or graphs are missed."""
    steps = report.summary.steps_s
    if len(steps) < 3:
        return []
    ordered = sorted(steps)
    middle, longest = ordered[len(ordered) // 2], ordered[-1]
    if longest < _UNEVEN * middle:
        return []
    return [
        Verdict(
            branch=BRANCH,
            cause="steps differ",
            statement=f"the longest step takes {number(longest / middle, 2)} × the median one",
            evidence=(
                f"{len(steps)} steps, median {show(middle, 's')}, longest {show(longest, 's')} "
                "(trace)",
            ),
            confidence="low",
            refuted_by="the same spread with one prompt and a fixed batch",
            next_step=(
                "look at what the longest step launched: a prompt, an uncaptured shape, a "
                "recompilation"
            ),
            gain=f"the median step: {number(longest / middle, 2)} × for the slowest",
        )
    ]
