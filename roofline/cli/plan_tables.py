"""Tables of a plan, for readers and for CSV."""

from typing import TYPE_CHECKING, Any

from roofline.cli.output import Table
from roofline.units import KILO

if TYPE_CHECKING:
    from roofline.api.plan_result import Plan
    from roofline.planning.option import Option


def options_table(found: "Plan") -> Table:
    """What options cost, and how fast they are, for readers."""
    name = f"P{found.slo.percentile:g}"
    columns = (
        "accelerator", "plan", "of them", "USD/h", "USD/M out", "at this load", f"{name} TTFT",
        f"{name} TPOT", "load", "limit",
    )  # fmt: skip
    return Table("Deployments, cheapest first", columns, [_row(one) for one in found.options])


def _row(option: "Option") -> tuple[Any, ...]:
    from roofline.units import show

    money, at = option.money, option.latencies_s
    return (
        option.accelerator + ("" if option.simulated else " (closed form)"),
        option.plan,
        option.accelerators,
        _usd(None if money is None else money.usd_per_hour),
        _usd(None if money is None else money.full_load.all_on_output_usd),
        _usd(None if money is None else money.at_utilisation.all_on_output_usd),
        show(at.get("ttft_s"), "s"),
        show(at.get("tpot_s"), "s"),
        f"{option.utilisation:.0%}",
        option.limited_by,
    )


def more_table(found: "Plan") -> Table:
    """Months, speed and power of the options, for readers."""
    columns = (
        "accelerator", "USD/month", "GPU-h/month", "USD/M in", "USD/M out", "tok/s/user",
        "tok/s/GPU", "kW", "racks", "tok/J", "weights",
    )  # fmt: skip
    rows = [_more(option) for option in found.options]
    return Table(
        "The same: a month, input and output priced by their time, speed, power", columns, rows
    )


def _more(option: "Option") -> tuple[Any, ...]:
    from roofline.units import number

    money, power, user = option.money, option.power, option.tokens_per_s_per_user
    return (
        option.accelerator,
        _usd(None if money is None else money.usd_per_month),
        number(option.gpu_hours_per_month),
        _usd(None if money is None else money.full_load.input_usd),
        _usd(None if money is None else money.full_load.output_usd),
        "–" if user is None else number(user),
        number(option.tokens_per_s_per_accelerator),
        "–" if power is None else number(power.total_w / KILO),
        "–" if power is None or power.racks is None else power.racks,
        "–" if power is None or power.tokens_per_joule is None else number(power.tokens_per_joule),
        str(option.candidate.deployment.weights_dtype),
    )


def _usd(value: float | None) -> str:
    from roofline.units import number

    return "–" if value is None else number(value)


def split_table(found: "Plan") -> Table:
    """Prefill and decode apart, for readers."""
    from roofline.units import show

    columns = ("accelerator", "pools", "of them", "USD/h", "P95 TTFT", "P95 TPOT", "transfer")
    rows = [
        (
            split.accelerator,
            split.plan,
            split.accelerators,
            _usd(split.usd_per_hour),
            show(split.latencies_s.get("p95_ttft_s"), "s"),
            show(split.latencies_s.get("p95_tpot_s"), "s"),
            show(split.transfer_s, "s"),
        )
        for split in found.splits
    ]
    return Table("Prefill and decode apart", columns, rows)


def full_table(found: "Plan") -> Table:
    """Every number of the options in base units, for CSV."""
    rows = []
    for option in found.options:
        row = option.to_dict()
        power = row.pop("power") or {}
        rows.append(row | {f"power_{key}": value for key, value in power.items()})
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return Table("", columns, [[row.get(key) for key in columns] for row in rows])
