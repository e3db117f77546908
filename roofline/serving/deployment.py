"""Deployment: a model on accelerators under an engine, ready to be timed.

Resolves names once (formats, engine, terms, links) and then times any step, by the same functions
for one number and for arrays: predict, sweep, plan and the simulation all stand on it.

Units    seconds, bytes, FLOP of the fullest rank.
Limits   One data-parallel replica; replicas only multiply throughput.
Sources  Definitions of bound and estimate: ``timing.steps`` and ``timing.estimate``.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roofline.calibration.lookup import Terms, find_terms
from roofline.dtypes import FP8_DS_MLA, Dtype, find_dtype
from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture, Latent, LayerGroup
from roofline.serving.engines import Engine, find_engine
from roofline.serving.replica_links import ReplicaLinks, replica_links
from roofline.timing.estimate import StepEstimate, estimate_step
from roofline.timing.interval import Interval, around
from roofline.timing.parallel import Parallel, check_divisible, shard
from roofline.timing.roofs import Roofs, compute_type, datasheet_roofs
from roofline.timing.steps import Bound, operator_compute, operators_bound
from roofline.timing.terms import Spread
from roofline.units import Numeric
from roofline.work.operators import Formats, Operator, Step, step_operators
from roofline.work.weights import chosen_format, own_format

if TYPE_CHECKING:
    from roofline.hardware.measurement import Measurement

WHOLE_MODEL_FORMATS = ("fp32", "bf16", "fp16")
"""Formats that, asked for, are the model's own type too: embeddings and norms with the rest."""


@dataclass(frozen=True)
class Deployment:
    """A model on accelerators under an engine.

    Args:
        arch: the whole model.
        accelerator: each of the accelerators.
        parallel: the plan.
        formats: storage of weights and cache.
        engine: what runs it.
        terms: what an estimate takes.
        links: what its ranks speak over.
        compute: compute type of the blocks' matmuls that was asked for; None: the fastest.
        assumptions: defaults and inferences made on the way, in words.
    """

    arch: Architecture
    accelerator: Accelerator
    parallel: Parallel
    formats: Formats
    engine: Engine
    terms: Terms
    links: ReplicaLinks
    compute: str | None
    assumptions: tuple[str, ...]

    @cached_property
    def rank(self) -> Architecture:
        """One rank's share of the model, all layers."""
        return shard(self.arch, self.parallel)

    @cached_property
    def _run_rank(self) -> Architecture:
        """One rank's share as the engine runs it: the minimal decoder keeps lm_head whole."""
        if self.engine.name == "cuda-graph" and self.parallel.tp > 1:
            return replace(self.rank, lm_head=self.arch.lm_head)
        return self.rank

    @cached_property
    def roofs(self) -> Roofs:
        """Datasheet roofs, which bounds use."""
        return datasheet_roofs(self.accelerator)

    @property
    def weights_dtype(self) -> Dtype:
        """Format of the blocks' matrices."""
        return self.formats.weights or own_format(self.arch)

    @property
    def compute_used(self) -> str:
        """Compute type of the blocks' matmuls."""
        return compute_type(self.weights_dtype, self.accelerator, asked=self.compute)

    def timed(self, step: Step, *, long_phase: bool) -> "TimedStep":
        """Bound and estimate of a step; ``long_phase`` where steps like it follow for seconds."""
        operators = step_operators(self.rank, step, self.formats)
        kinds = operator_compute(operators, self.accelerator, self.compute)
        return TimedStep(
            operators=operators,
            compute_types=kinds,
            bound=self._bound(operators, kinds, step),
            middle=self._middle(operators, kinds, step, long_phase=long_phase),
            spread=self.spread(long_phase=long_phase),
        )

    def operators(self, step: Step) -> tuple[list[Operator], list[str]]:
        """Operators of one rank in a step, and the compute type of each."""
        operators = step_operators(self.rank, step, self.formats)
        return operators, operator_compute(operators, self.accelerator, self.compute)

    def bound(self, step: Step) -> Bound:
        """The least time of a step."""
        return self._bound(*self.operators(step), step)

    def middle(self, step: Step, *, long_phase: bool) -> StepEstimate:
        """The middle of a step's estimate, part by part."""
        return self._middle(*self.operators(step), step, long_phase=long_phase)

    def spread(self, *, long_phase: bool) -> Spread:
        """How far measurements lie from the middle."""
        engine = self.terms.engine
        return engine.spread_prefill if long_phase else engine.spread_decode

    def decode_s(self, batch: Numeric, context_tokens: Numeric) -> Interval:
        """Estimate of a decode step of ``batch`` sequences at a context."""
        step = Step(decode_sequences=batch, context_tokens=context_tokens)
        return self.timed(step, long_phase=False).estimate_s

    def prefill_s(
        self, sequences: Numeric, prompt_tokens: Numeric, cached_tokens: Numeric = 0.0
    ) -> Interval:
        """Estimate of a step that prefills prompts."""
        step = Step(
            prefill_sequences=sequences, prefill_tokens=prompt_tokens, cached_tokens=cached_tokens
        )
        return self.timed(step, long_phase=True).estimate_s

    def mixed_s(self, step: Step) -> Numeric:
        """Middle estimate of any mixture of decode and prefill."""
        long_phase = bool(np.any(np.asarray(step.prefill_sequences) > 0))
        return self.middle(step, long_phase=long_phase).seconds

    def _bound(self, operators: list[Operator], kinds: list[str], step: Step) -> Bound:
        return operators_bound(
            self.rank,
            operators,
            kinds,
            step,
            self.roofs,
            parallel=self.parallel,
            link_bytes_per_s=self.links.tensor_bytes_per_s,
            stage_bytes_per_s=self.links.stage_bytes_per_s,
        )

    def _middle(
        self, operators: list[Operator], kinds: list[str], step: Step, *, long_phase: bool
    ) -> StepEstimate:
        rank = self._run_rank
        if rank is not self.rank:
            operators = step_operators(rank, step, self.formats)
            kinds = operator_compute(operators, self.accelerator, self.compute)
        return estimate_step(
            rank,
            operators,
            kinds,
            step,
            device=self.terms.device,
            engine=self.terms.engine,
            parallel=self.parallel,
            long_phase=long_phase,
        )


@dataclass(frozen=True)
class TimedStep:
    """A step with its operators, its bound and its estimate."""

    operators: list[Operator]
    compute_types: list[str]
    bound: Bound
    middle: StepEstimate
    spread: Spread

    @property
    def estimate_s(self) -> Interval:
        """The interval around the middle, never below the bound."""
        return around(self.middle.seconds, self.spread, self.bound.seconds)


def deploy(
    arch: Architecture,
    accelerator: Accelerator,
    *,
    parallel: Parallel | None = None,
    weights: str | Dtype | None = None,
    kv: str | Dtype | None = None,
    engine: str | Engine = "ideal",
    machine: "str | Path | Measurement | None" = None,
    compute: str | None = None,
    network: str | None = None,
) -> Deployment:
    """Resolve names into a deployment.

    Args:
        arch, accelerator: the model and the device.
        parallel: the plan; None: one accelerator.
        weights: storage format of the blocks' matrices; None: the checkpoint's own.
        kv: format of the cache; None: what the checkpoint asks for, or the model's own type.
        engine: name or settings.
        machine: a measured record that replaces the datasheet's roofs in estimates.
        compute: compute type of the blocks' matmuls; None: the fastest that the format admits.
        network: link between nodes, by its name in gpu_specs/links.

    Raises:
        RooflineError: an unknown name, a plan that does not divide, a type the device lacks.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> deployment = deploy(LLAMA_3_8B, load_accelerator("h200-sxm-141gb"))
    >>> round(float(deployment.bound(Step(1.0, 2176.0)).seconds) * 1e3, 2)
    3.19
    """
    plan = Parallel() if parallel is None else parallel
    if not isinstance(plan, Parallel):
        raise InputError(f"parallel is a plan such as Parallel(tp=2), got {plan!r}")
    check_divisible(arch, plan)
    words = list(arch.assumptions)
    accelerator = _with_roofs(accelerator, machine, words)
    asked = None if weights is None else find_dtype(weights)
    if asked is not None and asked.name in WHOLE_MODEL_FORMATS:
        arch = replace(arch, dtype=asked)
    arch = _with_compute(arch, asked, accelerator, words)
    chosen = chosen_format(arch, asked)
    if asked is None:
        words.append(f"weights as the checkpoint has them: {own_format(arch)}")
    cache = find_dtype(kv) if kv is not None else (arch.kv_dtype or arch.dtype)
    if cache == FP8_DS_MLA and not all(_packs(group) for group in arch.layers):
        raise InputError(
            f"KV format {cache} packs a latent of 512 and 64 values; {arch.name} caches other "
            "things; use fp8"
        )
    if kv is None:
        whose = "the checkpoint's" if arch.kv_dtype else "the model's own type"
        words.append(f"KV cache in {cache}, {whose}")
    chosen_engine = find_engine(engine)
    bits = (chosen or own_format(arch)).bits
    terms = find_terms(
        accelerator,
        chosen_engine.name,
        machine,
        weights_bits=bits,
        version=chosen_engine.version,
        experts=arch.has_experts,
    )
    words += terms.assumptions
    links = replica_links(accelerator, plan, network)
    words += links.assumptions
    curve = terms.device.all_reduce
    if curve is not None and curve.curve and plan.tp not in (1, curve.curve_ranks):
        words.append(
            f"all-reduce measured over {curve.curve_ranks} ranks: for {plan.tp} its start is taken "
            "to grow with their logarithm and its volume as a ring's; no row of this machine "
            "judges that"
        )
    deployment = Deployment(
        arch=arch,
        accelerator=accelerator,
        parallel=plan,
        formats=Formats(chosen, cache),
        engine=chosen_engine,
        terms=replace(terms, device=links.reached(terms.device)),
        links=links,
        compute=compute,
        assumptions=(),
    )
    used = deployment.compute_used
    if compute is None and used != deployment.weights_dtype.name:
        words.append(f"{deployment.weights_dtype} weights compute in {used} on {accelerator.id}")
    special = accelerator.peak_assumption(used)
    if special:
        words.append(special)
    return replace(deployment, assumptions=tuple(words))


def _packs(group: LayerGroup) -> bool:
    """Whether a layer caches nothing, or the latent that fp8_ds_mla packs into 656 bytes."""
    return group.attention is None or (
        isinstance(group.attention, Latent)
        and (group.attention.kv_rank, group.attention.rope_dim) == (512, 64)
    )


def _with_roofs(
    accelerator: Accelerator, machine: "str | Path | Measurement | None", words: list[str]
) -> Accelerator:
    """Give a CPU, which has no datasheet, the roofs of its record; say that they are measured."""
    if accelerator.kind == "cpu" and not accelerator.is_measured and machine is not None:
        from roofline.hardware.measured import measured_accelerator
        from roofline.hardware.measurement import load_measurement

        record = load_measurement(machine)
        if record.device.kind != "cpu":
            raise InputError(
                f"the record is of {record.device.name}, not of a CPU; give a record of this "
                f"machine (roofline measure) or the id of that device"
            )
        accelerator = measured_accelerator(record)
    if accelerator.is_measured:
        words.append(
            f"{accelerator.id} has no datasheet: its roofs are measured (as of "
            f"{accelerator.as_of}), so what is called bound is a measured roof, not a limit"
        )
    return accelerator


def _with_compute(
    arch: Architecture, asked: Dtype | None, accelerator: Accelerator, words: list[str]
) -> Architecture:
    """Let what no format covers run in the 16-bit type that the device has.

    A model whose blocks are in its own 16-bit type is left alone: such a device refuses it.
    """
    if (asked or own_format(arch)) == arch.dtype or arch.dtype.name not in ("bf16", "fp16"):
        return arch
    other = Dtype.FP16 if arch.dtype == Dtype.BF16 else Dtype.BF16
    types = accelerator.compute_types
    if arch.dtype.name not in types and other.name in types:
        words.append(f"{accelerator.id} has no {arch.dtype}: 16-bit parts run in {other}")
        return replace(arch, dtype=other)
    return arch
