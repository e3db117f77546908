"""Recommendations: what to take and why, in words with their numbers.

Units    as shown: USD, hours, seconds.
"""

import math
from collections.abc import Sequence

from roofline.planning.candidate import Excluded
from roofline.planning.option import Option
from roofline.planning.split import Split
from roofline.serving.traffic import Slo
from roofline.units import number, show


def recommend(
    options: Sequence[Option],
    fastest: Option | None,
    excluded: Sequence[Excluded],
    slo: Slo,
    ends: tuple[int | None, int | None] = (None, None),
    splits: Sequence[Split] = (),
) -> tuple[str, ...]:
    """Say which option to take, what it rests on, and what the others would change."""
    if not options:
        return (
            "nothing that was tried meets the target",
            *(f"{one}" for one in list(excluded)[:8]),
        )
    best = options[0]
    lines = [f"take {_named(best)}: {_cost(best)}"]
    lines.append(
        f"one replica carries {number(best.capacity_per_s)} requests/s, then {best.limited_by} "
        f"is the limit; at {number(best.requests_per_s)} requests/s P{slo.percentile:g} "
        + " and ".join(_targets(best, slo))
    )
    lines.append(_interval(best, ends))
    lines += _alternatives(best)
    if best.spare_replicas:
        lines.append(f"{best.spare_replicas} of the {counted(best.replicas, 'replica')} may fail")
    for other in options[1:4]:
        lines.append(f"next: {_named(other)}: {_cost(other)}{_against(best, other)}")
    if fastest is not None and fastest.tokens_per_s_per_user and best.tokens_per_s_per_user:
        share = fastest.tokens_per_s_per_user / best.tokens_per_s_per_user - 1
        if share > 0.05:
            lines.append(
                f"fastest for a user: {_named(fastest)} run at its knee, "
                f"{fastest.tokens_per_s_per_user:,.0f} tokens/s, {share:.0%} more"
                f"{_against(best, fastest)}"
            )
    for split in splits:
        whole = next((one for one in options if one.accelerator == split.accelerator), None)
        if whole is not None:
            lines.append(_apart(split, whole))
    if not best.simulated:
        lines.append("closed form only: simulate before you buy")
    return tuple(lines)


def counted(number_of: int, thing: str) -> str:
    """Count things in words.

    >>> counted(1, "replica"), counted(1200, "replica")
    ('1 replica', '1,200 replicas')
    """
    return f"{number_of:,} {thing}{'' if number_of == 1 else 's'}"


def _named(option: Option) -> str:
    device = option.candidate.deployment.accelerator
    deployment = option.candidate.deployment
    return (
        f"{option.plan} of {device.name} ({option.counted}, "
        f"{deployment.weights_dtype} on {deployment.engine.name})"
    )


def _cost(option: Option) -> str:
    hours = f"{number(option.gpu_hours_per_month)} GPU-hours a month"
    money = option.money
    if money is None:
        return f"{hours}; no price is known"
    return (
        f"{number(money.usd_per_hour)} USD/h, {number(money.usd_per_month)} USD and {hours}; "
        f"{number(money.full_load.all_on_output_usd)} USD per million output tokens at full load, "
        f"{number(money.at_utilisation.all_on_output_usd)} at this load"
    )


def _alternatives(best: Option) -> list[str]:
    """What an API or a purchase would be instead."""
    money, lines = best.money, []
    if money is None:
        return []
    share = money.api_break_even_share
    if share is not None:
        lines.append(
            f"the API is cheaper below {share:.0%} of full load; this is {best.utilisation:.0%}"
            if share <= 1
            else f"the API is cheaper at any load: at full load this costs {share:.2g} × its price"
        )
    months = money.buy_after_months
    if months is not None and math.isfinite(months):
        lines.append(f"buying instead of renting pays after {months:.0f} months of use")
    elif months is not None:
        lines.append("buying never pays against this rent")
    return lines


def _apart(split: Split, whole: Option) -> str:
    fewer = whole.accelerators - split.accelerators
    verdict = (
        f"{counted(fewer, 'accelerator')} fewer" if fewer > 0
        else f"{counted(-fewer, 'accelerator')} more" if fewer < 0
        else "as many accelerators"
    )  # fmt: skip
    return f"prefill and decode apart on {split.accelerator}: {split.plan}, {verdict}"


def _interval(best: Option, ends: tuple[int | None, int | None]) -> str:
    fast, slow = ends
    terms = best.candidate.deployment.terms
    why = "measured machine" if terms.measured else "machine not measured"
    if slow is None:
        return (
            f"at the slow end of the estimate's interval ({why}) this deployment misses the "
            "target: measure one replica before you buy"
        )
    few = best.replicas if fast is None else fast
    if few == slow:
        return f"so it is at both ends of the estimate's interval ({why})"
    return f"over the estimate's interval ({why}) that is {few:,} to {counted(slow, 'replica')}"


def _against(best: Option, other: Option) -> str:
    if best.money is None or other.money is None:
        return ""
    more = other.money.usd_per_hour / best.money.usd_per_hour - 1
    return f"; {more:+.0%} in cost"


def _targets(option: Option, slo: Slo) -> list[str]:
    words = []
    for metric, name in (("ttft_s", "TTFT"), ("tpot_s", "TPOT"), ("e2e_s", "end to end")):
        target, reached = getattr(slo, metric), option.latencies_s.get(metric)
        if reached is not None:
            limit = "" if target is None else f" (target {show(target, 's')})"
            words.append(f"{name} is {show(reached, 's')}{limit}")
    return words
