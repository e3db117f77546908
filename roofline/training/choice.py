"""Choice: the plans that fit a cluster, the best of them, and what to use for what.

Every way of dividing the accelerators (tensor, pipeline, data), ZeRO stage, recomputation and
micro-batch is laid over the model; those that fit are ranked by the middle of their estimate. Those
that do not are kept with the reason.

Shapes   A candidate a plan; the ranking is by tokens per second, then by memory left.
Units    Tokens per second, bytes.
Limits   Degrees divide the accelerators; tensor parallelism stays inside a node; context and expert
         parallelism, interleaving and offloading are tried only when asked for.
Sources  [1] Narayanan et al. 2021, arXiv:2104.04473, section 3: tp inside a node, pp across.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roofline.errors import InputError, RooflineError, unknown_name
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture
from roofline.timing.terms import DeviceTerms
from roofline.training.estimate import StepEstimate, training_step
from roofline.training.memory import TrainingMemory, training_memory
from roofline.training.network import cluster_network
from roofline.training.plan import TrainingPlan
from roofline.units import show

SCENARIOS = ("pre-training", "fine-tuning", "lora")
MICRO_BATCHES = (1, 2, 4, 8, 16)
MOST_CANDIDATES = 20_000
"""Plans that are laid out at most: more than any cluster of a few thousand accelerators has."""


@dataclass(frozen=True)
class Candidate:
    """A plan with its memory and, where it fits, its estimate."""

    plan: TrainingPlan
    memory: TrainingMemory
    usable_bytes: float
    step: StepEstimate | None

    @property
    def fits(self) -> bool:
        """Whether one accelerator holds its part."""
        return self.memory.needed_bytes <= self.usable_bytes

    @property
    def words(self) -> str:
        """The plan in words."""
        return plan_words(self.plan)


@dataclass(frozen=True)
class Choice:
    """Plans that fit, best first, and the nearest miss of those that do not."""

    ranked: tuple[Candidate, ...]
    tried: int
    nearest_miss: Candidate | None

    @property
    def best(self) -> Candidate | None:
        """The fastest plan that fits; None: none does."""
        return self.ranked[0] if self.ranked else None


def plan_words(plan: TrainingPlan) -> str:
    """Say a plan in a line.

    >>> plan_words(TrainingPlan(dp=8, zero_stage=3, recompute="full", micro_batch=4))
    'full, amp, DP8, ZeRO-3, full recomputation, micro-batch 4'
    """
    parts = [plan.method if plan.adapters else f"{plan.method}, {plan.precision}"]
    parts += [
        f"{name.upper()}{getattr(plan, name)}"
        for name in ("tp", "pp", "cp", "dp", "ep")
        if getattr(plan, name) > 1
    ]
    if plan.sequence_parallel:
        parts.append("sequence-parallel")
    if plan.zero_stage:
        parts.append(f"ZeRO-{plan.zero_stage}")
    if plan.recompute != "none":
        parts.append(f"{plan.recompute} recomputation")
    if plan.offload:
        parts.append(f"{' and '.join(plan.offload)} offloaded")
    batch = f"micro-batch {plan.micro_batch}"
    if plan.micro_batches > 1:
        batch += f" × {plan.micro_batches}"
    return ", ".join([*parts, batch])


def _degrees(count: int) -> list[int]:
    return [degree for degree in range(1, count + 1) if count % degree == 0]


def candidates(
    arch: Architecture, base: TrainingPlan, accelerators: int, node: int, global_batch: int
) -> Iterator[TrainingPlan]:
    """Lay out every plan for so many accelerators and so large a batch [1]."""
    framework = base.framework if accelerators == 1 else "megatron"
    precision = base.precision
    if framework == "megatron" and precision == "amp":
        precision = "mixed"
    for tp in _degrees(accelerators):
        if tp > node:
            break
        for pp in _degrees(accelerators // tp):
            dp = accelerators // tp // pp
            if pp > arch.n_layers or global_batch % dp:
                continue
            for micro_batch in MICRO_BATCHES:
                if (global_batch // dp) % micro_batch:
                    continue
                micro_batches = global_batch // dp // micro_batch
                if pp > 1 and micro_batches < pp:
                    continue
                for stage in (0, 1, 2, 3) if dp > 1 else (0,):
                    if pp > 1 and stage > 1:
                        continue  # sharded gradients defeat accumulation over a pipeline
                    for recompute in ("none", "full"):
                        try:
                            yield base.with_(
                                framework=framework, precision=precision, tp=tp, pp=pp, dp=dp,
                                micro_batch=micro_batch, micro_batches=micro_batches,
                                zero_stage=stage, recompute=recompute, interleave=1,
                                sequence_parallel=tp > 1,
                            )  # fmt: skip
                        except RooflineError:
                            continue


def choose(
    arch: Architecture,
    accelerator: Accelerator,
    device: DeviceTerms,
    *,
    accelerators: int,
    global_batch: int,
    base: TrainingPlan | None = None,
    network: str | None = None,
) -> Choice:
    """Find the best plan for a cluster.

    Args:
        arch: the model.
        accelerator: the device.
        device: what it reaches.
        accelerators: how many there are.
        global_batch: sequences of a step.
        base: what is trained and how (method, precision, optimiser, sequence length).
        network: link between nodes.

    Raises:
        InputError: no plan can be laid over the model at all.

    >>> from roofline.calibration.typical import typical_terms
    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> h100 = load_accelerator("h100-sxm5-80gb")
    >>> found = choose(LLAMA_3_8B, h100, typical_terms(h100), accelerators=1, global_batch=1)
    >>> found.best is None, found.nearest_miss.memory.peak_bytes > 80e9
    (True, True)
    """
    for name, value in (("accelerators", accelerators), ("global_batch", global_batch)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**20:
            raise InputError(f"{name} is a whole number from 1 to 1,048,576, got {value!r}")
    base = base or TrainingPlan()
    usable, _ = accelerator.usable_memory()
    node = accelerator.link.domain or 8
    fitting: list[Candidate] = []
    miss: Candidate | None = None
    tried = 0
    for plan in candidates(arch, base, accelerators, node, global_batch):
        if tried >= MOST_CANDIDATES:
            break
        try:
            memory = training_memory(arch, plan, compute_capability=accelerator.compute_capability)
        except InputError:
            continue
        tried += 1
        candidate = Candidate(plan, memory, usable, None)
        if not candidate.fits:
            if miss is None or memory.needed_bytes < miss.memory.needed_bytes:
                miss = candidate
            continue
        links, _ = cluster_network(accelerator, device, plan, network)
        step = training_step(arch, plan, accelerator, device, links)
        fitting.append(Candidate(plan, memory, usable, step))
    if not tried:
        raise InputError(
            f"{accelerators} accelerators and a batch of {global_batch} sequences cannot be "
            f"divided over {arch.name}; try a batch that the accelerators divide"
        )
    fitting.sort(key=_rank)
    return Choice(tuple(fitting), tried, miss)


def _rank(candidate: Candidate) -> tuple[float, float]:
    rate = candidate.step.tokens_per_s.mid if candidate.step is not None else 0.0
    return -float(rate), candidate.memory.needed_bytes


@dataclass(frozen=True)
class Advice:
    """A recommendation: a plan where there is one, and why, in words."""

    scenario: str
    candidate: Candidate | None
    lines: tuple[str, ...]


def recommend(
    arch: Architecture,
    accelerator: Accelerator,
    device: DeviceTerms,
    scenario: str,
    *,
    accelerators: int = 1,
    global_batch: int = 8,
    sequence_tokens: int = 2048,
    network: str | None = None,
) -> Advice:
    """Recommend how to train for a purpose: pre-training, fine-tuning, or LoRA.

    Raises:
        UnknownNameError: no such scenario.

    >>> from roofline.calibration.typical import typical_terms
    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> card = load_accelerator("rtx-4090")
    >>> recommend(LLAMA_3_8B, card, typical_terms(card), "lora").candidate.plan.method
    'lora'
    """
    if scenario not in SCENARIOS:
        raise unknown_name("scenario", str(scenario), SCENARIOS)
    tried: list[str] = []
    for base in _ways(scenario, accelerators, sequence_tokens):
        found = choose(
            arch, accelerator, device, accelerators=accelerators, global_batch=global_batch,
            base=base, network=network,
        )  # fmt: skip
        if found.best is not None and found.best.step is not None:
            best = found.best
            rate = found.best.step.tokens_per_s.mid
            lines = [
                f"{scenario} on {accelerators} × {accelerator.name}: {best.words}",
                f"{show(best.memory.needed_bytes, 'GiB')} of {show(best.usable_bytes, 'GiB')} "
                f"needed, about {rate:,.0f} tokens/s; best of {len(found.ranked)} plans that fit",
            ]
            return Advice(scenario, best, (*lines, *tried))
        miss = found.nearest_miss
        if miss is not None:
            tried.append(
                f"{miss.words} needs {show(miss.memory.needed_bytes, 'GiB')}, "
                f"{show(miss.usable_bytes, 'GiB')} are usable"
            )
    more = "more accelerators, or lora" if scenario != "lora" else "a larger card, or more of them"
    return Advice(scenario, None, (f"{scenario}: nothing fits; use {more}", *tried))


def _ways(scenario: str, accelerators: int, sequence_tokens: int) -> Sequence[TrainingPlan]:
    """What to try for a purpose, the most faithful first."""
    base = TrainingPlan(sequence_tokens=sequence_tokens)
    if scenario == "pre-training":
        return (base.with_(precision="mixed", framework="megatron"),)
    if scenario == "fine-tuning":
        return (
            base.with_(precision="amp" if accelerators == 1 else "mixed"),
            base.with_(precision="bf16"),
            base.with_(precision="bf16", optimiser="adam8bit"),
        )
    return (
        base.with_(method="lora", precision="bf16"),
        base.with_(method="qlora", precision="bf16", optimiser="adam8bit"),
    )
