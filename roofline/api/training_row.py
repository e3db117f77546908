"""A row of the comparison for training: the best plan of the fewest accelerators that hold it.

Units    base units; tokens trained per second.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from roofline.api.comparison import Row
from roofline.api.serving_row import price_of, with_price
from roofline.api.train_choice import best_training
from roofline.economics.cost import gpu_hours_per_million_tokens, usd_per_million_tokens
from roofline.errors import UnsupportedError
from roofline.hardware.accelerator import Accelerator
from roofline.training.choice import Candidate

if TYPE_CHECKING:
    from roofline.api.compare import Setting

DEFAULT_GLOBAL_BATCH = 64


def training_row(
    setting: "Setting", device: Accelerator, scenario: str
) -> tuple[Row, list[str], list[str]]:
    """Find the best plan on the fewest accelerators, and put a price on it.

    Raises:
        RooflineError: no number of accelerators up to the most holds the training.
    """
    batch = setting.workload.batch or setting.workload.concurrency or DEFAULT_GLOBAL_BATCH
    words = [f"global batch of {batch} sequences of {setting.workload.tokens:,} tokens"]
    if setting.workload.batch is None and setting.workload.concurrency is None:
        words[0] += ": the batch is the default"
    found = _fewest(setting, device, scenario, batch)
    step = found.step
    if step is None:
        raise UnsupportedError(f"no estimate of training on {device.id}")
    count = found.plan.accelerators
    tokens = step.tokens_per_s
    rate = float(tokens.mid)
    effective = step.model_flop / float(step.step_s.mid) / count
    charged, warnings = price_of(setting, device, count)
    tdp = device.power.tdp_w
    row = Row(
        accelerator=device.id,
        name=device.name,
        plan=found.words,
        accelerators=count,
        fits=found.fits,
        tokens_per_s=tokens,
        bound_tokens_per_s=step.tokens / step.bound.seconds,
        limited_by=step.bound.limited_by,
        compute=step.compute,
        peak_flop_per_s=step.peak_flop_per_s,
        bytes_per_s=device.memory_bandwidth(),
        effective_flop_per_s=effective,
        gpu_hours_per_million_tokens=float(gpu_hours_per_million_tokens(count, rate)),
        power_w=None if tdp is None else tdp * count,
        tokens_per_joule=None if tdp is None else rate / (tdp * count),
    )
    if charged is not None:
        row = with_price(row, charged)
        cost = float(usd_per_million_tokens(charged.usd_per_hour, rate))
        row = replace(row, usd_per_million_tokens=cost)
        words += charged.assumptions
    return row, words, warnings


def _fewest(setting: "Setting", device: Accelerator, scenario: str, batch: int) -> Candidate:
    count = 1
    while count <= setting.most:
        if batch % count == 0 or count <= batch:
            choice = best_training(
                setting.arch,
                device,
                accelerators=count,
                global_batch=batch,
                mode="lora" if scenario == "fine-tuning" else None,
                machine=setting.machine.get(device.id),
                sequence_tokens=setting.workload.tokens,
            )
            if choice.best is not None:
                return choice.best
        count *= 2
    raise UnsupportedError(
        f"{scenario} of {setting.arch.name} does not fit up to {setting.most} {device.id}"
    )
