"""``train``: memory, step time, utilisation, days and cost of a training run.

The verb composes the training room with machine terms, links and prices; all arithmetic is there.
"""

from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from roofline.api.training_result import Run, Training
from roofline.calibration.lookup import find_terms
from roofline.errors import InputError, MissingDataError, unknown_name
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.hardware.measurement import Measurement
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.timing.parallel import Parallel
from roofline.timing.terms import DeviceTerms
from roofline.training.estimate import StepEstimate, training_step
from roofline.training.flop import rule_of_thumb_flop
from roofline.training.memory import training_memory
from roofline.training.network import cluster_network
from roofline.training.parameters import trainable_share
from roofline.training.plan import TrainingPlan, check_plan
from roofline.units import SECONDS_PER_HOUR

Mode = Literal["amp", "bf16", "mixed", "fp32", "lora", "qlora"]
MODES = ("amp", "bf16", "mixed", "fp32", "lora", "qlora")
VERIFIED_FAMILIES = frozenset(
    {
        "gemma", "gemma3_text", "granite", "llama", "megatron-gpt", "mistral", "olmo2", "qwen2",
        "qwen3", "smollm3", "starcoder2",
    }
)  # fmt: skip
"""Families whose saved activations were compared with what PyTorch saves."""


def train(
    model: str | Path | dict[str, Any] | Architecture,
    accelerator: str | Path | Accelerator,
    *,
    mode: Mode | None = None,
    plan: TrainingPlan | None = None,
    parallel: Parallel | None = None,
    recompute: bool | str | None = None,
    global_batch: int | None = None,
    tokens: float | None = None,
    network: str | None = None,
    usd_per_hour: float | None = None,
    machine: str | Path | Measurement | None = None,
    **changes: Any,
) -> Training:
    """Predict memory, step time, utilisation, days and cost of training a model.

    Args:
        model: catalogue name, path to config.json or its folder, dict, or Architecture.
        accelerator: spec id, path to a YAML file, or Accelerator.
        mode: shorthand for what is trained in which types: amp, bf16, mixed, fp32, lora, qlora;
            amp (mixed on several accelerators) when left out.
        plan: a whole ``TrainingPlan``; the other arguments change it.
        parallel: tp, pp, dp, ep by the name that ``predict`` has for them.
        recompute: full recomputation or none, or one of none, selective, full.
        global_batch: sequences of a step; sets the number of micro-batches.
        tokens: tokens of the whole run, for days, energy and cost.
        network: link between nodes, by name.
        usd_per_hour: price of one accelerator-hour.
        machine: measured record whose terms the estimate takes.
        **changes: fields of ``TrainingPlan`` (``sequence_tokens``, ``micro_batch``, ``tp``, ``dp``,
            ``zero_stage``, ``optimiser``, ``lora_rank``, ...).

    Raises:
        RooflineError: an unknown name, a value that cannot be, a type that the device lacks.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> t = train(LLAMA_3_8B, "h200-sxm-141gb", mode="lora", recompute=True, micro_batch=4)
    >>> t.fits, round(t.peak_bytes / 1e9), t.step.bound.limited_by
    (True, 32, 'compute')
    """
    arch, device_spec = load_model(model), load_accelerator(accelerator)
    words: list[str] = []
    made = _plan(mode, plan, parallel, recompute, global_batch, changes, words)
    check_plan(arch, made)
    terms = find_terms(device_spec, "ideal", machine)
    # the estimate's own interval replaces what that engine claims of inference
    words += [line for line in terms.assumptions if not line.startswith("no engine assumed")]
    return _training(arch, device_spec, made, terms.device, network, tokens, usd_per_hour, words)


def training_plan(mode: str | None, changes: dict[str, Any]) -> TrainingPlan:
    """Make a plan from a mode and settings, as ``train`` does.

    Raises:
        UnknownNameError: no such mode or setting.

    >>> training_plan("lora", {"sequence_tokens": 512}).method
    'lora'
    """
    return _plan(mode, None, None, None, None, changes, [])


def _plan(
    mode: str | None,
    plan: TrainingPlan | None,
    parallel: Parallel | None,
    recompute: bool | str | None,
    global_batch: int | None,
    changes: dict[str, Any],
    words: list[str],
) -> TrainingPlan:
    known = TrainingPlan.__dataclass_fields__
    for name in changes:
        if name not in known:
            raise unknown_name("training setting", name, known)
    settings = dict(changes)
    if parallel is not None:
        for name in ("tp", "pp", "dp", "ep"):
            settings.setdefault(name, getattr(parallel, name))
    if recompute is not None:
        if isinstance(recompute, bool):
            recompute = "full" if recompute else "none"
        settings["recompute"] = recompute
    made = replace(plan or TrainingPlan(), **settings)
    alone = made.tp == made.pp == made.cp == 1
    if plan is None and "framework" not in settings and not alone:
        made = made.with_(framework="megatron")
    if mode is None and plan is None and "precision" not in settings and not made.adapters:
        mode = "amp" if made.framework == "transformers" else "mixed"
        words.append(f"mode {mode}: the default")
    if mode is not None:
        if mode not in MODES:
            raise unknown_name("training mode", str(mode), MODES)
        if mode in ("lora", "qlora"):
            made = made.with_(method=mode, precision="bf16")
        else:
            made = made.with_(precision=mode)
    if global_batch is not None:
        share = made.micro_batch * made.dp
        if isinstance(global_batch, bool) or not isinstance(global_batch, int) or global_batch < 1:
            raise InputError(f"global_batch is a whole number of at least 1, got {global_batch!r}")
        if global_batch % share:
            raise InputError(
                f"global_batch = {global_batch} is no multiple of micro_batch × dp = {share}"
            )
        made = made.with_(micro_batches=global_batch // share)
    return made


def _training(
    arch: Architecture,
    accelerator: Accelerator,
    plan: TrainingPlan,
    device: DeviceTerms,
    network: str | None,
    tokens: float | None,
    usd_per_hour: float | None,
    words: list[str],
) -> Training:
    links, said = cluster_network(accelerator, device, plan, network)
    memory = training_memory(arch, plan, compute_capability=accelerator.compute_capability)
    usable, rule = accelerator.usable_memory()
    if plan.precision == "bf16" and not plan.adapters:
        accelerator.peak_flop_per_s("bf16")  # parameters in bf16 need a device that has it
    step = training_step(arch, plan, accelerator, device, links)
    words += said
    if step.compute == "fp16":
        words.append(f"{accelerator.id} has no bf16: it computes in fp16 with a scaled loss")
    if rule is not None:
        words.append(rule)
    words += _said(arch, plan)
    trained = trainable_share(arch, plan.with_(tp=1, pp=1, ep=1, interleave=1))
    return Training(
        arch=arch,
        accelerator=accelerator,
        plan=plan,
        memory=memory,
        usable_bytes=usable,
        step=step,
        run=_run(arch, accelerator, plan, step, tokens, usd_per_hour),
        trainable=trained.base + trained.adapters,
        assumptions=tuple(dict.fromkeys((*words, *arch.assumptions))),
    )


def _said(arch: Architecture, plan: TrainingPlan) -> list[str]:
    words = [f"kernels and saved tensors of {plan.framework}"]
    if plan.framework == "transformers":
        words.append("attention is fused (SDPA), the optimiser fused, gradients freed after a step")
        words.append("eager kernels start at the pace of one measured host; others are up to 4 ×")
    if arch.model_type and arch.model_type not in VERIFIED_FAMILIES:
        words.append(
            f"saved activations of {arch.model_type} follow the common decoder's pattern; they "
            "were not compared with the framework"
        )
    if arch.has_experts:
        words.append("tokens are routed evenly over the experts")
    if any(group.recurrent is not None for group in arch.layers):
        words.append("recurrent layers keep inputs and outputs of their matrices: an estimate")
    if plan.method == "qlora":
        words.append("frozen matrices in nf4 with double quantisation, 4.127 bit a value")
    if not plan.overlap and plan.shards > 1:
        words.append("the gradient exchange is not hidden behind the backward pass")
    outside = "0.25 GiB" if plan.accelerators == 1 else "2.1 GiB"
    words.append(f"{outside} lie outside the allocator (context, communication buffers)")
    return words


def _run(
    arch: Architecture,
    accelerator: Accelerator,
    plan: TrainingPlan,
    step: StepEstimate,
    tokens: float | None,
    usd_per_hour: float | None,
) -> Run | None:
    for name, value in (("tokens", tokens), ("usd_per_hour", usd_per_hour)):
        if value is not None and (isinstance(value, bool) or not isfinite(value) or value <= 0):
            raise InputError(f"{name} must be a number above 0, got {value!r}")
    if tokens is None:
        if usd_per_hour is not None:
            raise MissingDataError("a cost needs the tokens of the run: give tokens=")
        return None
    steps = tokens / plan.tokens_per_step
    seconds = step.step_s.scaled(steps)
    tdp = accelerator.power.tdp_w
    energy = None if tdp is None else seconds.scaled(plan.accelerators * tdp)
    usd = None
    if usd_per_hour is not None:
        usd = seconds.scaled(plan.accelerators * usd_per_hour / SECONDS_PER_HOUR)
    return Run(
        tokens=float(tokens),
        steps=steps,
        seconds=seconds,
        energy_j=energy,
        usd=usd,
        model_flop=step.model_flop * steps,
        rule_of_thumb_flop=rule_of_thumb_flop(arch.parameters, tokens),
    )
