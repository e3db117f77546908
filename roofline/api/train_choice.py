"""``best_training`` and ``cheapest_training``: which plan on which accelerators.

Both lay every plan over the model and keep those that fit; the first ranks by time on a given
cluster, the second by the cost of a whole run over accelerators, counts and prices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from roofline.api.train import Mode, training_plan
from roofline.calibration.lookup import find_terms
from roofline.economics.prices import price_table
from roofline.errors import InputError, MissingDataError, RooflineError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.hardware.measurement import Measurement
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.timing.interval import Interval
from roofline.training.choice import Advice, Candidate, Choice, choose, recommend
from roofline.units import SECONDS_PER_HOUR

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class PricedPlan:
    """The fastest plan of one accelerator and count, with the cost of the run.

    Args:
        accelerator: spec id.
        accelerators: how many.
        candidate: the plan.
        seconds, usd: intervals of the whole run.
        basis: whose price it is, and of when.
    """

    accelerator: str
    accelerators: int
    candidate: Candidate
    seconds: Interval
    usd: Interval
    basis: str


@dataclass(frozen=True)
class PricedChoice:
    """Plans by the cost of a run, the least first; what was left out, with the reason."""

    ranked: tuple[PricedPlan, ...]
    excluded: tuple[tuple[str, str], ...]

    @property
    def best(self) -> PricedPlan | None:
        """The cheapest; None: nothing fits."""
        return self.ranked[0] if self.ranked else None


def best_training(
    model: str | Path | dict[str, Any] | Architecture,
    accelerator: str | Path | Accelerator,
    *,
    accelerators: int,
    global_batch: int,
    mode: Mode | None = None,
    network: str | None = None,
    machine: str | Path | Measurement | None = None,
    **changes: Any,
) -> Choice:
    """Find the plans that fit a cluster, the fastest first.

    Args:
        model, accelerator, mode, network, machine: as ``train`` takes them.
        accelerators: how many there are.
        global_batch: sequences of a step.
        **changes: fields of ``TrainingPlan`` that every plan keeps.

    Raises:
        RooflineError: an unknown name, or a batch that cannot be divided.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> found = best_training(LLAMA_3_8B, "h100-sxm5-80gb", accelerators=8, global_batch=64)
    >>> found.best.fits
    True
    """
    arch, spec = load_model(model), load_accelerator(accelerator)
    base = training_plan(mode, changes)
    device = find_terms(spec, "ideal", machine).device
    return choose(
        arch,
        spec,
        device,
        accelerators=accelerators,
        global_batch=global_batch,
        base=base,
        network=network,
    )


def cheapest_training(
    model: str | Path | dict[str, Any] | Architecture,
    accelerators: Sequence[str],
    *,
    tokens: float,
    global_batch: int,
    prices: Mapping[str, float] | None = None,
    mode: Mode | None = None,
    counts: Sequence[int] = COUNTS,
    deadline_s: float | None = None,
    network: str | None = None,
    **changes: Any,
) -> PricedChoice:
    """Find the cheapest way to train a model on so many tokens.

        cost = accelerators × USD an hour × tokens / (tokens per second)

    Args:
        model, mode, network: as ``train`` takes them.
        accelerators: spec ids to look at.
        tokens: tokens of the run.
        global_batch: sequences of a step.
        prices: USD an accelerator-hour by spec id; None: the price table's on-demand offers.
        counts: numbers of accelerators to look at.
        deadline_s: runs that take longer (by the middle of their estimate) are left out.
        **changes: fields of ``TrainingPlan`` that every plan keeps.

    Raises:
        InputError: no accelerators, or numbers that cannot be.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> found = cheapest_training(
    ...     LLAMA_3_8B, ["h100-sxm5-80gb", "a100-sxm4-80gb"], tokens=1e9, global_batch=64,
    ...     prices={"h100-sxm5-80gb": 2.5, "a100-sxm4-80gb": 1.5}, counts=(1, 8))
    >>> found.best.accelerator, [name for name, _ in found.excluded]
    ('h100-sxm5-80gb', ['1 × h100-sxm5-80gb', '1 × a100-sxm4-80gb'])
    """
    for name, value in (("tokens", tokens), ("deadline_s", deadline_s)):
        if value is not None and (isinstance(value, bool) or not isfinite(value) or value <= 0):
            raise InputError(f"{name} must be a number above 0, got {value!r}")
    if not accelerators:
        raise InputError("give the accelerators to look at, such as ['h100-sxm5-80gb']")
    arch = load_model(model)
    table = price_table(prices)
    base = training_plan(mode, changes)
    ranked: list[PricedPlan] = []
    excluded: list[tuple[str, str]] = []
    for name in accelerators:
        spec = load_accelerator(name)
        device = find_terms(spec, "ideal", None).device
        for count in counts:
            label = f"{count} × {spec.id}"
            try:
                quote = table.quote(spec.id, count)
                found = choose(
                    arch, spec, device, accelerators=count, global_batch=global_batch, base=base,
                    network=network,
                )  # fmt: skip
            except MissingDataError as error:
                excluded.append((spec.id, str(error)))
                break
            except RooflineError as error:
                excluded.append((label, str(error)))
                continue
            best = found.best
            if best is None or best.step is None:
                excluded.append((label, "no plan fits"))
                continue
            seconds = best.step.tokens_per_s.inverted(float(tokens))
            if deadline_s is not None and seconds.mid > deadline_s:
                excluded.append((label, "takes longer than the deadline"))
                continue
            usd = seconds.scaled(quote.usd_per_hour / SECONDS_PER_HOUR)
            ranked.append(PricedPlan(spec.id, count, best, seconds, usd, str(quote.price)))
    ranked.sort(key=lambda plan: float(plan.usd.mid))
    return PricedChoice(tuple(ranked), tuple(excluded))


def training_advice(
    model: str | Path | dict[str, Any] | Architecture,
    accelerator: str | Path | Accelerator,
    scenario: str,
    *,
    accelerators: int = 1,
    global_batch: int = 8,
    sequence_tokens: int = 2048,
    network: str | None = None,
    machine: str | Path | Measurement | None = None,
) -> Advice:
    """Recommend how to train for a purpose: pre-training, fine-tuning, or lora.

    Raises:
        UnknownNameError: no such scenario, model or accelerator.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> training_advice(LLAMA_3_8B, "rtx-4090", "fine-tuning").lines[0]
    'fine-tuning: nothing fits; use more accelerators, or lora'
    """
    arch, spec = load_model(model), load_accelerator(accelerator)
    device = find_terms(spec, "ideal", machine).device
    return recommend(
        arch,
        spec,
        device,
        scenario,
        accelerators=accelerators,
        global_batch=global_batch,
        sequence_tokens=sequence_tokens,
        network=network,
    )
