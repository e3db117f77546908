"""Tree: walk all questions with what there is, and say what could not be asked.

    memory            an allocation that failed
    node health       the node's own faults, changes and outliers
    one device        waiting, roofs, occupancy, precision
    several devices   ranks, links, NUMA, mapping, scaling
    under load        queueing, mixed steps, saturation, shape buckets

Units    seconds, bytes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roofline.api.prediction import Prediction
from roofline.diagnose.alone import alone_verdicts
from roofline.diagnose.baseline import BaselineComparison, compare_baselines
from roofline.diagnose.device_symptoms import symptom_verdicts
from roofline.diagnose.fabric import Fabric
from roofline.diagnose.fabric_reader import read_fabric
from roofline.diagnose.memory import memory_verdicts
from roofline.diagnose.record_check import record_verdicts
from roofline.diagnose.symptoms import Symptoms, read_symptoms
from roofline.diagnose.together import together_verdicts
from roofline.diagnose.under_load import load_points, load_verdicts, uneven_steps
from roofline.diagnose.verdict import Diagnosis, Verdict, ordered
from roofline.errors import InputError
from roofline.hardware.measurement import Measurement
from roofline.hardware.node_record import NodeRecord
from roofline.trace.compare import RankComparison, compare_ranks
from roofline.trace.events import Trace
from roofline.trace.rates import Roofs, datasheet_roofs, roofs_of
from roofline.trace.result import TraceSummary, summarise
from roofline.units import number, show
from roofline.validation.benchmarks.record import BenchmarkRun

TraceLike = str | Path | Trace | TraceSummary
_ABOVE = 1.2


def diagnose(
    *,
    prediction: Prediction | None = None,
    machine: "str | Measurement | None" = None,
    accelerator: str | None = None,
    trace: "TraceLike | Sequence[TraceLike] | None" = None,
    benchmark: "str | Path | BenchmarkRun | Sequence[str | Path | BenchmarkRun]" = (),
    baseline: "str | Path | NodeRecord | None" = None,
    earlier: "str | Path | NodeRecord | None" = None,
    fleet: "Sequence[str | Path | NodeRecord]" = (),
    topology: "str | Path | Fabric | None" = None,
    symptoms: "str | Path | Mapping[str, Any] | Symptoms | Sequence[Any] | None" = None,
) -> Diagnosis:
    """Find out why a run is slow, from what there is.

    Args:
        prediction: what ``predict`` says of the same run.
        machine: a measured record; its roofs judge the kernels.
        accelerator: a spec whose datasheet roofs are used where there is no record.
        trace: one trace, or one of each rank.
        benchmark: result files of a serving benchmark, one or several loads.
        baseline: the node's record; ``earlier`` and ``fleet`` are compared with it.
        topology: what nvidia-smi, NCCL or ibstat print.
        symptoms: numbers in a mapping, a file, a DCGM text or an out-of-memory message.

    Raises:
        InputError: a file that is not what it should be.
        UnknownNameError: no such machine or accelerator.

    >>> answer = diagnose(symptoms={"scaling": [{"devices": 1, "step_s": 0.00606},
    ...                                         {"devices": 2, "step_s": 0.00500}]})
    >>> answer.verdicts[0].cause
    'scaling flattens'
    """
    if baseline is None and (earlier is not None or fleet):
        raise InputError("earlier and fleet are compared with the node's record; give baseline too")
    seen = merged_symptoms(symptoms)
    roofs = _roofs(machine, accelerator)
    summaries = _summaries(trace, roofs)
    report = summaries[0].only if summaries else None
    ranks = compare_ranks(summaries) if len(summaries) > 1 else None
    fabric = topology if isinstance(topology, Fabric) else _fabric(topology, accelerator)
    compared = None
    if baseline is not None:
        compared = compare_baselines(baseline, earlier=earlier, fleet=fleet)
    points = (*seen.load, *load_points(_listed(benchmark)))
    verdicts = memory_verdicts(seen)
    if compared is not None:
        verdicts += _health(compared)
    verdicts += alone_verdicts(report, seen, roofs)
    verdicts += symptom_verdicts(report, seen, roofs)
    if machine is not None:
        verdicts += record_verdicts(machine, accelerator)
    verdicts += together_verdicts(report, ranks, fabric, compared, seen)
    verdicts += load_verdicts(points, seen)
    if report is not None:
        verdicts += uneven_steps(report)
    notes = _against_prediction(prediction, summaries, seen)
    inputs, checked, lacking = _coverage(
        seen,
        summaries,
        ranks,
        compared,
        fabric,
        points,
        roofs,
        prediction,
        machine is not None,
        bool(notes),
    )
    return Diagnosis(
        verdicts=ordered(verdicts),
        checked=checked,
        not_checked=lacking,
        inputs=inputs,
        assumptions=tuple(
            dict.fromkeys([line for summary in summaries for line in summary.assumptions])
        )
        + notes,
        warnings=tuple(dict.fromkeys(line for summary in summaries for line in summary.warnings)),
    )


def _listed(
    benchmark: "str | Path | BenchmarkRun | Sequence[str | Path | BenchmarkRun]",
) -> list[str | Path | BenchmarkRun]:
    if isinstance(benchmark, (str, Path, BenchmarkRun)):
        return [benchmark]
    return list(benchmark)


def merged_symptoms(given: Any) -> Symptoms:
    """Symptoms of one source or of several, put together."""
    if given is None:
        return Symptoms()
    sources = list(given) if isinstance(given, (list, tuple)) else [given]
    fields: dict[str, Any] = {}
    for source in sources:
        one = read_symptoms(source)
        fields |= {name: getattr(one, name) for name in one.model_fields_set}
    return Symptoms(**fields)


def _roofs(machine: "str | Measurement | None", accelerator: str | None) -> Roofs | None:
    if machine is not None:
        return roofs_of(machine)
    return datasheet_roofs(accelerator) if accelerator is not None else None


def _summaries(
    trace: "TraceLike | Sequence[TraceLike] | None", roofs: Roofs | None
) -> list[TraceSummary]:
    if trace is None:
        return []
    traces = [trace] if isinstance(trace, (str, Path, Trace, TraceSummary)) else list(trace)
    return [
        given if isinstance(given, TraceSummary) else summarise(given, roofs=roofs)
        for given in traces
    ]


def _fabric(topology: "str | Path | None", accelerator: str | None) -> Fabric | None:
    return None if topology is None else read_fabric(topology, accelerator=accelerator)


def _health(compared: BaselineComparison) -> list[Verdict]:
    bad = [f for f in compared.findings if f.severity in ("fault", "slower")]
    other = [f for f in bad if f.what not in ("NVLink", "p2p", "all_reduce")]
    if not other:
        return []
    first = other[0]
    changes = [abs(f.change) for f in other if f.change is not None and f.what != "clock"]
    worst = max(changes, default=None)
    return [
        Verdict(
            branch="node health",
            cause=f"sick node: {first.what}",
            statement=compared.verdict,
            evidence=tuple(f"{f.text} (baseline, against {f.against})" for f in other[:8]),
            confidence="high" if first.severity == "fault" or len(other) > 1 else "medium",
            refuted_by="the probe repeated alone on the node gives the reference's value",
            next_step=first.next_step,
            gain=(
                f"up to {number(1 / (1 - worst), 3)} × where it binds"
                if worst is not None and worst < 1
                else "the node's own rate again"
            ),
        )
    ]


def _against_prediction(
    prediction: Prediction | None, summaries: list[TraceSummary], seen: Symptoms
) -> tuple[str, ...]:
    measured = seen.step_s
    if measured is None and summaries and summaries[0].only is not None:
        measured = summaries[0].only.summary.step_s
    bound, estimate = seen.bound_s, seen.estimate_s
    if prediction is not None:
        bound = float(prediction.decode.bound_s)
        estimate = float(prediction.decode.estimate_s.mid)
    if measured is None or (bound is None and estimate is None):
        return ()
    lines = []
    if bound is not None:
        lines.append(
            f"a step takes {show(measured, 's')}, {number(measured / bound, 3)} × the bound of "
            f"{show(bound, 's')}"
        )
        if measured < bound:
            lines.append("the measured step is below the bound: another model, batch or device ran")
    if estimate is not None:
        verdict = "slower than" if measured > _ABOVE * estimate else "as"
        lines.append(f"{verdict} the estimate of {show(estimate, 's')}")
    return tuple(lines)


def _coverage(
    seen: Symptoms,
    summaries: list[TraceSummary],
    ranks: RankComparison | None,
    compared: BaselineComparison | None,
    fabric: Fabric | None,
    points: Sequence[Any],
    roofs: Roofs | None,
    prediction: Prediction | None,
    judged: bool,
    against_bound: bool,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What was given, which questions that answers, and what the others need."""
    one_device = bool(summaries) or seen.counters is not None
    questions = [
        ("an allocation that failed", seen.out_of_memory is not None, "the out-of-memory message"),
        ("health of the node", compared is not None, "roofline baseline run"),
        ("waiting, launches, synchronisation", bool(summaries), "a torch.profiler trace"),
        (
            "DRAM and tensor cores against their roofs",
            one_device and (roofs is not None or seen.counters is not None),
            "a trace with a measured machine, or DCGM counters",
        ),
        ("the device's own rates", judged, "a measured machine"),
        ("ranks that trail", ranks is not None, "one trace per rank"),
        ("links and mapping", fabric is not None, "nvidia-smi topo -m and nvlink -s"),
        ("scaling", bool(seen.scaling), "step times at several device counts"),
        ("behaviour under load", len(points) > 1, "benchmark results at two loads or more"),
        ("shape buckets", bool(seen.batches), "step times at several batch sizes"),
        ("distance from the bound", against_bound, "a prediction and a measured step"),
    ]
    inputs = [f"trace {Path(summary.source).name}" for summary in summaries]
    inputs += [f"baseline of {', '.join(compared.nodes)}"] if compared else []
    inputs += ["topology"] if fabric else []
    inputs += [f"roofs {roofs.origin}"] if roofs else []
    inputs += ["prediction"] if prediction else []
    inputs += (
        [f"symptoms {', '.join(sorted(seen.model_fields_set))}"] if seen.model_fields_set else []
    )
    return (
        tuple(inputs),
        tuple(name for name, asked, _ in questions if asked),
        tuple(f"{name}: needs {what}" for name, asked, what in questions if not asked),
    )
