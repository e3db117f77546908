"""Measured beside predicted: a user's benchmark run and what roofline says of it.

The batch is the running one, by Little's law, never the nominal concurrency: requests that wait
or prefill are in flight and not decoding.

    TPOT     decode step of the running batch at mid-output context, with its share of prefill
    TTFT     prefill of one prompt alone; what a run measures besides is waiting
    e2e      TTFT + (output − 1) · TPOT
    tok/s    running batch / TPOT

Units    seconds, tokens per second.
Limits   One replica, or several that share the requests evenly; means, no percentiles.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline.errors import InputError, MissingDataError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.hardware.measurement import Measurement
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.serving.deployment import Deployment, deploy
from roofline.serving.engines import Engine
from roofline.timing.interval import Interval, whole_request
from roofline.timing.parallel import Parallel
from roofline.validation.benchmarks.detection import read_benchmarks
from roofline.validation.benchmarks.record import BenchmarkRun
from roofline.validation.estimates import prefill_share
from roofline.work.operators import Step

if TYPE_CHECKING:
    import pandas


_OWN_TOOLS = ("vllm", "sglang")
"""Engines that come with a benchmark of their own, whose name begins so."""


@dataclass(frozen=True)
class Quantity:
    """One figure of a run beside its bound and estimate.

    Args:
        name: ``ttft_s``, ``tpot_s``, ``e2e_s`` or ``output_tokens_per_s``.
        measured: the run's mean, or its median where no mean is stated.
        bound: least time, or most tokens per second.
        estimate: low, middle and high.
    """

    name: str
    measured: float
    bound: float
    estimate: Interval

    @property
    def over_estimate(self) -> float:
        """Measured over the middle of the estimate."""
        return self.measured / float(self.estimate.mid)

    @property
    def inside(self) -> bool:
        """Whether the measurement lies in the interval."""
        return bool(self.estimate.low <= self.measured <= self.estimate.high)


@dataclass(frozen=True)
class Beside:
    """One run and what was predicted of it.

    Args:
        run: as measured.
        batch: sequences decoded together on each replica.
        quantities: what both sides state.
        assumptions: every inference that was made.
    """

    run: BenchmarkRun
    deployment: Deployment
    batch: float
    quantities: tuple[Quantity, ...]
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything in base units."""
        return {
            "run": self.run.to_dict(),
            "running_batch_per_replica": self.batch,
            "quantities": [
                {"name": q.name, "measured": q.measured, "bound": q.bound,
                 "estimate": q.estimate.to_dict(), "measured_over_estimate": q.over_estimate,
                 "inside": q.inside}
                for q in self.quantities
            ],
            "assumptions": list(self.assumptions),
        }  # fmt: skip


def beside(
    path: str | Path,
    accelerator: str | Path | Accelerator,
    *,
    model: str | Path | dict[str, Any] | Architecture | None = None,
    parallel: Parallel | None = None,
    weights: str | None = None,
    kv: str | None = None,
    engine: str | Engine | None = None,
    machine: str | Path | Measurement | None = None,
    prompt_tokens: float | None = None,
    output_tokens: float | None = None,
    batch: float | None = None,
) -> tuple[Beside, ...]:
    """Read a benchmark file and set every run beside its prediction.

    Args:
        path: file of vLLM, SGLang, AIPerf, GenAI-Perf, GuideLLM or inference-perf.
        accelerator: what the server ran on; no tool states it.
        model: where the file does not state it, or states a name that is not known.
        parallel: how the server was spread.
        weights, kv: formats; the checkpoint's own when left out.
        engine: what served; no tool states it for sure. None: "vllm" for vLLM's own tools.
        machine: measured record whose terms replace the class's.
        prompt_tokens, output_tokens, batch: where the file lacks them.

    Raises:
        InputError: the file is of no supported tool, or lacks what a prediction needs.
    """
    runs = read_benchmarks(path)
    return tuple(
        run_beside(
            run, accelerator, model=model, parallel=parallel, weights=weights, kv=kv,
            engine=engine, machine=machine, prompt_tokens=prompt_tokens,
            output_tokens=output_tokens, batch=batch,
        )
        for run in runs
    )  # fmt: skip


def run_beside(
    run: BenchmarkRun,
    accelerator: str | Path | Accelerator,
    *,
    model: str | Path | dict[str, Any] | Architecture | None = None,
    parallel: Parallel | None = None,
    weights: str | None = None,
    kv: str | None = None,
    engine: str | Engine | None = None,
    machine: str | Path | Measurement | None = None,
    prompt_tokens: float | None = None,
    output_tokens: float | None = None,
    batch: float | None = None,
) -> Beside:
    """Set one run beside its prediction; arguments as ``beside``'s."""
    words = list(run.assumptions)
    if model is None:
        if not run.model_id:
            raise MissingDataError(f"{run.raw_path} does not state the model; give model=")
        model = run.model_id
    if engine is None:
        engine = next((name for name in _OWN_TOOLS if run.tool.startswith(name)), "ideal")
        words.append(f"engine {engine}: assumed, {run.tool} does not state what served")
    deployment = deploy(
        load_model(model), load_accelerator(accelerator), parallel=parallel, weights=weights,
        kv=kv, engine=engine, machine=machine,
    )  # fmt: skip
    run = replace(
        run,
        prompt_tokens=prompt_tokens or run.prompt_tokens,
        output_tokens=output_tokens or run.output_tokens,
        n_gpus=deployment.parallel.accelerators,
    )
    if run.prompt_tokens is None or run.output_tokens is None:
        raise MissingDataError(
            f"{run.raw_path} does not state the lengths; give prompt_tokens= and output_tokens="
        )
    _check("prompt_tokens", run.prompt_tokens, 0, run.raw_path)
    _check("output_tokens", run.output_tokens, 1, run.raw_path)
    if run.speculative:
        words.append(f"{run.speculative}: not modelled, the prediction is of one token a step")
    whole = _batch(run, batch, words)
    _check("batch", whole, 0, run.raw_path)
    together = whole / deployment.parallel.dp
    quantities = _quantities(run, deployment, max(together, 1.0))
    if not quantities:
        raise InputError(f"{run.raw_path} states no TTFT, TPOT, latency or output rate")
    return Beside(run, deployment, together, quantities, (*words, *deployment.assumptions))


LARGEST_COUNT = 1e9
"""Tokens or sequences past which a file is wrong, whatever it says."""


def _check(name: str, value: float, least: float, path: str) -> None:
    if not least <= value <= LARGEST_COUNT:
        raise InputError(f"{path}: {name} of {value:g} is not from {least:g} to {LARGEST_COUNT:g}")


def _batch(run: BenchmarkRun, given: float | None, words: list[str]) -> float:
    if given is not None:
        return given
    running = run.running_batch
    if running is not None:
        cap = f" of at most {run.concurrency:.4g} in flight" if run.concurrency else ""
        words.append(f"{running:.4g} sequences decode together{cap}, by Little's law")
        return running
    if run.concurrency is not None:
        words.append(f"batch {run.concurrency:.4g}: the cap; the file has no TPOT to do better")
        return run.concurrency
    words.append("batch 1: the file states neither a cap nor a rate of requests with TPOT")
    return 1.0


def _quantities(run: BenchmarkRun, deployment: Deployment, batch: float) -> tuple[Quantity, ...]:
    prompt, output = run.prompt_tokens or 0.0, run.output_tokens or 0.0
    context = prompt + output / 2
    whole = run.tool == "vllm latency"  # a static batch: all prompts prefill together
    sequences = batch if whole else 1.0
    prefill = deployment.prefill_s(sequences, prompt)
    prefill_bound = _seconds(deployment, Step(prefill_sequences=sequences, prefill_tokens=prompt))
    decode = deployment.decode_s(batch, context)
    if not whole and batch > 1:
        arrays = [np.array([value]) for value in (batch, context, prompt, output)]
        decode = decode.scaled(float(prefill_share(deployment, *arrays)[0]))
    decode_bound = _seconds(deployment, Step(batch, context))
    steps = max(output - 1, 0.0)
    total_bound = prefill_bound + steps * decode_bound
    spread = deployment.terms.engine.spread_whole
    total = whole_request(prefill, decode.scaled(steps), spread, total_bound)
    replicas = deployment.parallel.dp
    found: Sequence[tuple[str, float | None, float, Interval]] = (
        ("ttft_s", run.ttft_s.typical, prefill_bound, prefill),
        ("tpot_s", run.tpot_s.typical, decode_bound, decode),
        ("e2e_s", run.e2e_s.typical, total_bound, total),
        ("output_tokens_per_s", run.output_tokens_per_s, replicas * batch / decode_bound,
         decode.inverted(replicas * batch)),
    )  # fmt: skip
    return tuple(
        Quantity(name, measured, bound, estimate)
        for name, measured, bound, estimate in found
        if measured is not None and measured > 0
    )


def _seconds(deployment: Deployment, step: Step) -> float:
    return float(np.asarray(deployment.bound(step).seconds))


def beside_frame(found: Sequence[Beside]) -> "pandas.DataFrame":
    """One row per run and quantity."""
    import pandas

    return pandas.DataFrame(
        [
            {"run": each.run.raw_path, "tool": each.run.tool, "batch": each.batch,
             "quantity": q.name, "measured": q.measured, "bound": q.bound, "low": q.estimate.low,
             "mid": q.estimate.mid, "high": q.estimate.high, "ratio": q.over_estimate}
            for each in found
            for q in each.quantities
        ]
    )  # fmt: skip
