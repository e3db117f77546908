"""predict: what a model can and will do on an accelerator, from names to numbers.

A static batch: all prompts prefill together, TTFT is that step, and

    TPOT = mean decode step over the output        total = TTFT + (output − 1) · TPOT
    output tokens per second = batch · output / total   (× dp replicas, × pp stages in flight)

Units    Base units; every time is a bound (a number) or an estimate (an interval).
Limits   Queueing and mixed steps are ``plan``'s.
Sources  ``timing.steps`` (bound), ``timing.estimate`` (estimate), ``serving.budget`` (memory).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline.api.prediction import BoundTimes, Cost, Prediction
from roofline.api.step_time import step_time
from roofline.dtypes import Dtype
from roofline.economics.cost import gpu_hours_per_million_tokens, usd_per_million_tokens
from roofline.errors import InputError, SpecError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.models.architecture import Architecture
from roofline.models.checkpoint import checkpoint_at
from roofline.models.config import load_model
from roofline.serving.budget import memory_budget
from roofline.serving.deployment import Deployment, deploy
from roofline.serving.engines import Engine
from roofline.serving.lengths import checked
from roofline.serving.memory import Memory
from roofline.timing.interval import Interval, whole_request
from roofline.timing.parallel import Parallel
from roofline.units import MOST_COUNTED, whole
from roofline.work.operators import Step
from roofline.work.weights import stored_bytes

if TYPE_CHECKING:
    from roofline.hardware.measurement import Measurement

DEFAULT_PROMPT_TOKENS = 2048
DEFAULT_OUTPUT_TOKENS = 256
LARGEST_COUNT = MOST_COUNTED
OUTPUT_POINTS = 65
"""Contexts over which a decode step is averaged when the output is longer than this."""


def predict(
    model: str | Path | dict[str, Any] | Architecture,
    accelerator: str | Path | Accelerator,
    *,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
    batch: int = 1,
    parallel: Parallel | None = None,
    weights: str | Dtype | None = None,
    kv: str | Dtype | None = None,
    engine: str | Engine = "ideal",
    machine: "str | Path | Measurement | None" = None,
    compute: str | None = None,
    network: str | None = None,
    usd_per_hour: float | None = None,
) -> Prediction:
    """Predict bounds, estimates, memory and cost of a static batch.

    Args:
        model: catalogue name, path to config.json or its folder, dict, or Architecture.
        accelerator: spec id, path to a YAML file, or Accelerator.
        prompt_tokens, output_tokens: of each sequence; 2,048 and 256 when left out, and said so.
        batch: sequences per data-parallel replica.
        parallel: plan over several accelerators.
        weights, kv: storage formats; the checkpoint's own when left out.
        engine: name or ``Engine``; "ideal" assumes none.
        machine: measured record whose roofs replace the datasheet's in estimates.
        compute: compute type of the blocks' matmuls; the fastest that the format admits.
        network: link between nodes.
        usd_per_hour: price of one accelerator, for ``cost``.

    Raises:
        RooflineError: an unknown name, a value that cannot be, a type that the device lacks.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> p = predict(LLAMA_3_8B, "h200-sxm-141gb", prompt_tokens=2048, output_tokens=256, batch=32)
    >>> round(p.decode.bound_s * 1e3, 2), p.decode.limited_by, p.fits
    (5.03, 'memory', True)
    """
    words: list[str] = []
    if prompt_tokens is None:
        prompt_tokens = DEFAULT_PROMPT_TOKENS
        words.append(f"prompt of {prompt_tokens:,} tokens: the default")
    if output_tokens is None:
        output_tokens = DEFAULT_OUTPUT_TOKENS
        words.append(f"output of {output_tokens:,} tokens: the default")
    prompt_tokens = whole("prompt_tokens", prompt_tokens)
    output_tokens = whole("output_tokens", output_tokens)
    batch = whole("batch", batch)
    if usd_per_hour is not None:
        usd_per_hour = checked("usd_per_hour", usd_per_hour)
        if usd_per_hour <= 0:
            raise InputError(f"usd_per_hour must be above 0, got {usd_per_hour:g}")
    deployment = deploy(
        load_model(model),
        load_accelerator(accelerator),
        parallel=parallel,
        weights=weights,
        kv=kv,
        engine=engine,
        machine=machine,
        compute=compute,
        network=network,
    )
    words += deployment.assumptions
    words += _weight_files_in_words(model, deployment.arch)
    started = deployment.engine.max_context_tokens
    if started is not None and prompt_tokens + output_tokens > started:
        raise InputError(
            f"prompt and output are {prompt_tokens + output_tokens:,} tokens, more than the "
            f"max_context_tokens={started:,} that {deployment.engine.name} is started for"
        )
    longest = deployment.arch.max_context_tokens
    if longest is not None and prompt_tokens + output_tokens > longest:
        words.append(
            f"prompt and output are {prompt_tokens + output_tokens:,} tokens, "
            f"the model was made for {longest:,}"
        )
    return _predict(deployment, prompt_tokens, output_tokens, batch, usd_per_hour, words)


def _predict(
    deployment: Deployment,
    prompt_tokens: int,
    output_tokens: int,
    batch: int,
    usd_per_hour: float | None,
    words: list[str],
) -> Prediction:
    prefill = step_time(
        deployment,
        Step(prefill_sequences=float(batch), prefill_tokens=float(prompt_tokens)),
        long_phase=True,
    )
    middle = prompt_tokens + output_tokens / 2
    decode = step_time(
        deployment, Step(decode_sequences=float(batch), context_tokens=middle), long_phase=False
    )
    bound_tpot, tpot = _mean_decode(deployment, prompt_tokens, output_tokens, batch)
    ttft = prefill.estimate_s
    steps = output_tokens - 1
    bound_total = prefill.bound_s + steps * (bound_tpot or 0.0)
    spread = deployment.terms.engine.spread_whole
    total = ttft if tpot is None else whole_request(ttft, tpot.scaled(steps), spread, bound_total)
    parallel = deployment.parallel
    in_flight = float(batch * output_tokens * parallel.dp * parallel.pp)
    rate = total.inverted(in_flight)
    memory = memory_budget(
        deployment.arch,
        deployment.accelerator,
        parallel,
        deployment.formats.weights,
        deployment.formats.kv,
        deployment.engine,
        batch=batch,
        context_tokens=prompt_tokens + output_tokens,
        prompt_tokens=prompt_tokens,
    )
    if parallel.pp > 1:
        words = [*words, _stages_in_words(parallel.pp, batch, memory)]
    assumptions = tuple(dict.fromkeys((*words, *memory.assumptions, f"memory: {memory.rule}")))
    return Prediction(
        deployment=deployment,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        batch=batch,
        prefill=prefill,
        decode=decode,
        bound=BoundTimes(prefill.bound_s, bound_tpot, bound_total, in_flight / bound_total),
        ttft_s=ttft,
        tpot_s=tpot,
        total_s=total,
        output_tokens_per_s=rate,
        memory=memory,
        cost=_cost(rate, parallel.accelerators, usd_per_hour),
        assumptions=assumptions,
    )


def _weight_files_in_words(model: object, arch: Architecture) -> list[str]:
    """Say what weight files beside a config hold, to the byte."""
    try:
        files = checkpoint_at(model)
    except SpecError as error:
        return [f"weight files are not counted: {error}"]
    if files is None:
        return []
    said = ", ".join(f"{kind} {size:,}" for kind, size in files.by_dtype.items())
    return [
        f"weight files hold {files.total_bytes:,} bytes ({said}), all that is in them; the text "
        f"model of the config is {stored_bytes(arch, None):,.0f}"
    ]


def _stages_in_words(stages: int, batch: int, memory: Memory) -> str:
    """Say what throughput assumes of the pipeline, and whether memory holds it."""
    room = memory.kv_pool_bytes
    holds = "fit" if stages * memory.kv_cache_bytes <= room else "do not fit"
    return (
        f"tokens per second assume {stages} micro-batches of {batch:,} in flight, one in each "
        f"stage; memory counts one, and the caches of all {stages} {holds}"
    )


def _mean_decode(
    deployment: Deployment, prompt_tokens: int, output_tokens: int, batch: int
) -> tuple[float | None, Interval | None]:
    """Average a decode step over the contexts of an output; None for one output token."""
    if output_tokens == 1:
        return None, None
    first, last = prompt_tokens + 1, prompt_tokens + output_tokens - 1
    points = min(output_tokens - 1, OUTPUT_POINTS)
    contexts = np.linspace(first, last, points)
    step = Step(decode_sequences=float(batch), context_tokens=contexts)
    timed = deployment.timed(step, long_phase=False)
    bound = np.mean(np.broadcast_to(timed.bound.seconds, contexts.shape))
    ends = _ends(timed.estimate_s)
    return float(bound), Interval(*(float(np.mean(end)) for end in ends))


def _ends(interval: Interval) -> tuple[Any, Any, Any]:
    return interval.low, interval.mid, interval.high


def _cost(rate: Interval, accelerators: int, usd_per_hour: float | None) -> Cost:
    # few tokens per second cost most: low and high change places
    ends = np.array([rate.high, rate.mid, rate.low], dtype=float)
    hours = gpu_hours_per_million_tokens(accelerators, ends)
    if usd_per_hour is None:
        return Cost(_interval(hours), None, None)
    usd = usd_per_million_tokens(usd_per_hour * accelerators, ends)
    return Cost(_interval(hours), usd_per_hour, _interval(usd))


def _interval(ends: Any) -> Interval:
    low, mid, high = (float(end) for end in ends)
    return Interval(low, mid, high)
