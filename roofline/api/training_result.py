"""What ``train`` gives: a plan's memory, step, utilisation and whole run.

Units    Bytes, seconds, tokens per second, joules, USD.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture
from roofline.timing.interval import Interval
from roofline.training.choice import plan_words
from roofline.training.estimate import StepEstimate
from roofline.training.flop import rule_of_thumb_flop
from roofline.training.memory import PART_WORDS, TrainingMemory
from roofline.training.plan import TrainingPlan
from roofline.training.step_time import PHASE_WORDS
from roofline.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from pandas import DataFrame

SECONDS_PER_DAY = 24 * SECONDS_PER_HOUR


@dataclass(frozen=True)
class Run:
    """A whole run over a number of tokens.

    Args:
        tokens: tokens of the run.
        steps: optimiser steps.
        seconds: interval of the time.
        energy_j: energy of the accelerators at their rated power; None: it is not known.
        usd: interval of the cost; None: no price was given.
        model_flop: exact FLOPs; ``rule_of_thumb_flop``: 6 · parameters · tokens.
    """

    tokens: float
    steps: float
    seconds: Interval
    energy_j: Interval | None
    usd: Interval | None
    model_flop: float
    rule_of_thumb_flop: float

    @property
    def days(self) -> Interval:
        """Days of the run."""
        return self.seconds.scaled(1 / SECONDS_PER_DAY)


@dataclass(frozen=True)
class Training:
    """What training this model by this plan takes.

    ``memory`` is what one accelerator holds by moment and part, ``step`` the time with its bound
    and interval, ``run`` the whole run when a number of tokens was given.
    """

    arch: Architecture
    accelerator: Accelerator
    plan: TrainingPlan
    memory: TrainingMemory
    usable_bytes: float
    step: StepEstimate
    run: Run | None
    trainable: float
    assumptions: tuple[str, ...]

    @property
    def peak_bytes(self) -> float:
        """Highest sum of live tensors on one accelerator."""
        return self.memory.peak_bytes

    @property
    def fits(self) -> bool:
        """Whether peak and what lies outside the allocator are in usable memory."""
        return self.memory.needed_bytes <= self.usable_bytes

    @property
    def bound_s(self) -> float:
        """Least time of a step."""
        return self.step.bound.seconds

    @property
    def step_s(self) -> Interval:
        """Estimated time of a step."""
        return self.step.step_s

    @property
    def tokens_per_s(self) -> Interval:
        """Tokens a second over all accelerators."""
        return self.step.tokens_per_s

    @property
    def mfu(self) -> Interval:
        """Model FLOPs utilisation of the datasheet's dense peak."""
        return self.step.mfu

    @property
    def hfu(self) -> Interval:
        """Hardware FLOPs utilisation."""
        return self.step.hfu

    def to_dict(self) -> dict[str, Any]:
        """The result in base units, with the unit in the key."""
        plan = asdict(self.plan)
        plan["offload"] = list(self.plan.offload)
        step, run = self.step, self.run
        return {
            "model": self.arch.name,
            "parameters": self.arch.parameters,
            "trainable_parameters": self.trainable,
            "accelerator": self.accelerator.id,
            "accelerators": self.plan.accelerators,
            "plan": plan,
            "plan_words": plan_words(self.plan),
            "memory": {
                "peak_bytes": self.peak_bytes,
                "peak_moment": self.memory.peak_moment,
                "outside_bytes": self.memory.outside_bytes,
                "host_bytes": self.memory.host_bytes,
                "usable_bytes": self.usable_bytes,
                "fits": self.fits,
                "parts_bytes": self.memory.peak.by_name(),
                "moments_bytes": {name: parts.total for name, parts in self.memory.moments},
            },
            "step": {
                "bound_s": step.bound.seconds,
                "limited_by": step.bound.limited_by,
                "bound_compute_s": step.bound.compute_s,
                "bound_memory_s": step.bound.memory_s,
                "bound_link_s": step.bound.link_s,
                "estimate_s": step.step_s.to_dict(),
                "phases_s": {name: getattr(step.parts, name) for name in PHASE_WORDS},
                "passes_by_kind_s": dict(step.parts.by_kind),
                "gradient_exchange_s": step.parts.data_whole,
                "tokens": step.tokens,
                "tokens_per_s": step.tokens_per_s.to_dict(),
                "model_flop": step.model_flop,
                "hardware_flop": step.hardware_flop,
                "rule_of_thumb_flop": rule_of_thumb_flop(self.arch.parameters, step.tokens),
                "mfu": step.mfu.to_dict(),
                "hfu": step.hfu.to_dict(),
                "compute": step.compute,
            },
            "run": None
            if run is None
            else {
                "tokens": run.tokens,
                "steps": run.steps,
                "seconds": run.seconds.to_dict(),
                "days": run.days.to_dict(),
                "energy_j": None if run.energy_j is None else run.energy_j.to_dict(),
                "cost_usd": None if run.usd is None else run.usd.to_dict(),
                "model_flop": run.model_flop,
                "rule_of_thumb_flop": run.rule_of_thumb_flop,
            },
            "assumptions": list(self.assumptions),
        }

    def to_frame(self) -> "DataFrame":
        """One row a part of memory (bytes at the peak) and a phase of the step (seconds)."""
        import pandas

        rows: list[dict[str, Any]] = [
            {"of": "memory", "part": PART_WORDS[name], "bytes": size, "seconds": None}
            for name, size in self.memory.peak.by_name().items()
        ]
        rows += [
            {
                "of": "step",
                "part": words,
                "bytes": None,
                "seconds": getattr(self.step.parts, name),
            }
            for name, words in PHASE_WORDS.items()
        ]
        return pandas.DataFrame(rows)
