"""A plan on one page, in Markdown or HTML, to hand to a manager.

Limits   No number is made here: the page shows what the plan holds.
"""

import html
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from roofline.errors import InputError
from roofline.files import write_text
from roofline.report.answer import Table
from roofline.units import number, show

if TYPE_CHECKING:
    from roofline.api.plan_result import Plan
    from roofline.planning.option import Option

SUFFIXES = (".md", ".html")
_HEAD = (
    "accelerator", "deployment", "accelerators", "USD/h", "USD/month", "GPU-hours/month",
    "USD per M output tokens, full load", "at this load", "TTFT", "TPOT", "power",
)  # fmt: skip
_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1f24}table{border-collapse:collapse;width:100%;font-size:13px}"
    "th,td{border-bottom:1px solid #d0d7de;padding:.3rem .45rem;text-align:left}"
    "code{background:#f3f4f6;padding:.1rem .3rem;word-break:break-all}img{max-width:100%}"
    "@media print{body{margin:0}}"
)


def checked_suffix(path: Path) -> None:
    """Refuse a file name that says no format of a page.

    Raises:
        InputError: a suffix that is not of ``SUFFIXES``.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path.name}: a report is written as {', '.join(SUFFIXES)}")


def write_report(plan: "Plan", path: Path) -> Path:
    """Write the page, whole or not at all; HTML holds the Pareto figure.

    Raises:
        InputError: another suffix, or a folder that cannot be written.
    """
    checked_suffix(path)
    text = markdown_report(plan) if path.suffix.lower() == ".md" else html_report(plan)
    return write_text(path, text)


def question(plan: "Plan") -> list[str]:
    """The load and the targets in words."""
    traffic, slo = plan.traffic, plan.slo
    lines = [
        f"{number(traffic.peak_per_s)} requests/s at peak ({number(traffic.mean_per_s)} on "
        f"average), prompts of {number(traffic.mean_prompt_tokens)} and answers of "
        f"{number(traffic.mean_output_tokens)} tokens"
    ]
    targets = [
        f"{name} of {show(value, 's')}"
        for name, value in (
            ("TTFT", slo.ttft_s), ("TPOT", slo.tpot_s), ("whole requests", slo.e2e_s),
        )
        if value is not None
    ]  # fmt: skip
    if targets:
        lines.append(f"targets, for {slo.percentile:g} % of requests: {', '.join(targets)}")
    if slo.spare_replicas:
        lines.append(f"with {slo.spare_replicas} spare replicas")
    return lines


def _cells(option: "Option") -> tuple[str, ...]:
    money, power = option.money, option.power
    prices = ("–",) * 4
    if money is not None:
        prices = (
            number(money.usd_per_hour),
            number(money.usd_per_month),
            number(money.full_load.all_on_output_usd),
            number(money.at_utilisation.all_on_output_usd),
        )
    return (
        option.accelerator,
        option.plan,
        f"{option.accelerators:,}",
        prices[0],
        prices[1],
        number(option.gpu_hours_per_month),
        prices[2],
        prices[3],
        show(option.latencies_s.get("ttft_s"), "s"),
        show(option.latencies_s.get("tpot_s"), "s"),
        "–" if power is None else show(power.total_w, "W"),
    )


def deployments(plan: "Plan") -> Table:
    """The options as a table, cheapest first, as the page has it."""
    return Table("Deployments, cheapest first", _HEAD, [_cells(one) for one in plan.options])


def markdown_report(plan: "Plan") -> str:
    """The page in Markdown."""
    lines = [f"# Serving {plan.model}", "", *(f"- {line}" for line in question(plan)), ""]
    lines += ["## Recommendation", "", *(f"- {line}" for line in plan.recommendation), ""]
    if plan.options:
        lines += ["## Deployments", "", "| " + " | ".join(_HEAD) + " |", "|---" * len(_HEAD) + "|"]
        lines += ["| " + " | ".join(_cells(option)) + " |" for option in plan.options]
        lines += ["", "Start a replica with:", "", f"    {plan.options[0].launch}", ""]
    if plan.excluded:
        lines += ["## Out, and why", "", *(f"- {one}" for one in plan.excluded), ""]
    lines += ["## What this rests on", "", *(f"- {line}" for line in plan.assumptions)]
    lines += [f"- **doubt:** {line}" for line in plan.warnings]
    return "\n".join(lines) + "\n"


def html_report(plan: "Plan") -> str:
    """The page in HTML, with the Pareto figure inside; nothing is loaded from elsewhere."""
    from roofline.report.plan_figures import pareto_figure

    def listed(lines: list[str]) -> str:
        return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"

    def row(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    title = f"Serving {html.escape(plan.model)}"
    parts = [f"<h1>{title}</h1>", listed(question(plan))]
    parts += ["<h2>Recommendation</h2>", listed(list(plan.recommendation))]
    if plan.options:
        body = "".join(row(_cells(option), "td") for option in plan.options)
        parts += ["<h2>Deployments</h2>", f"<table>{row(_HEAD, 'th')}{body}</table>"]
        launch = html.escape(plan.options[0].launch)
        parts.append(f"<p>Start a replica with: <code>{launch}</code></p>")
    if plan.points:
        image = BytesIO()
        pareto_figure(plan).savefig(image, format="png", dpi=110)
        encoded = b64encode(image.getvalue()).decode()
        alt = "Pareto front: speed of one user against throughput of one accelerator"
        parts.append(f'<img alt="{alt}" src="data:image/png;base64,{encoded}">')
    if plan.excluded:
        parts += ["<h2>Out, and why</h2>", listed([str(one) for one in plan.excluded])]
    doubts = [f"doubt: {line}" for line in plan.warnings]
    parts += ["<h2>What this rests on</h2>", listed([*plan.assumptions, *doubts])]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )
