"""Under load: fast alone, slow with many requests.

    queueing          TTFT grows with concurrency and TPOT does not
    mixed steps       the slowest gaps between tokens are far above the median one
    saturation        more requests, no more tokens a second
    shape buckets     a step just past a captured batch size jumps

Units    seconds; a concurrency is a number of requests in flight.
Sources  [1] vLLM and SGLang serving benchmarks, keys of their result files (milliseconds there).
"""

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from roofline.diagnose.symptoms import LoadPoint, Symptoms
from roofline.diagnose.verdict import Verdict
from roofline.errors import InputError
from roofline.units import MIB, number, parse, show

BRANCH = "under load"
_LARGEST = 256 * MIB
_KEYS = {
    "tpot_s": "median_tpot_ms", "ttft_s": "median_ttft_ms", "itl_p99_s": "p99_itl_ms",
    "itl_median_s": "median_itl_ms",
}  # fmt: skip


def load_points(files: "Iterable[str | Path | Mapping[str, Any]]") -> tuple[LoadPoint, ...]:
    """Read result files of ``vllm bench serve`` or SGLang's ``bench_serving`` by concurrency.

    Raises:
        InputError: a file is missing, no JSON, or lacks concurrency and times.

    >>> load_points([{"max_concurrency": 8, "median_tpot_ms": 20.0}])[0].tpot_s
    0.02
    """
    found = []
    for file in files:
        for entry in [file] if isinstance(file, Mapping) else _entries(Path(file)):
            found.append(_point(entry, "benchmark" if isinstance(file, Mapping) else str(file)))
    return tuple(sorted(found, key=lambda point: point.concurrency))


def _entries(path: Path) -> list[Mapping[str, Any]]:
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path.name}: larger than {_LARGEST // MIB} MiB; no benchmark result")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text in UTF-8"
        raise InputError(f"{path}: {reason}; give a result file of a serving benchmark") from None
    try:
        whole = json.loads(text)
        entries = whole if isinstance(whole, list) else [whole]
    except ValueError:
        try:
            entries = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise InputError(f"{path.name}: neither JSON nor JSON Lines; is it cut?") from None
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path.name}: no result object in it")
    return entries


def _point(entry: Mapping[str, Any], name: str) -> LoadPoint:
    concurrency = _positive(entry.get("max_concurrency")) or _positive(entry.get("concurrency"))
    values: dict[str, float] = {}
    for ours, theirs in _KEYS.items():
        given = _positive(entry.get(theirs))
        if given is not None:
            values[ours] = parse(f"{given} ms", "s")
    rate = _positive(entry.get("output_throughput"))
    if concurrency is None or not (values or rate):
        raise InputError(
            f"{Path(name).name}: no max_concurrency with {', '.join(_KEYS.values())}; run the "
            "benchmark with --max-concurrency and --save-result"
        )
    if rate is not None:
        values["output_tokens_per_s"] = rate
    return LoadPoint(concurrency=concurrency, **values)


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < 1e12 else None


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
