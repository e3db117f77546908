"""``roofline plan``: how many of which accelerator carry a load within targets, and the cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit, figure_path
from roofline.cli.plan_tables import full_table, more_table, options_table, split_table

if TYPE_CHECKING:
    from roofline.api.plan_result import Plan
    from roofline.serving.lengths import LogNormal


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("plan")(plan_command)


def plan_command(
    model: Annotated[str, typer.Argument(help="Catalogue name, config.json or its folder.")],
    accelerators: Annotated[
        list[str] | None, typer.Argument(help="Spec ids or YAML files; all when left out.")
    ] = None,
    requests_per_s: Annotated[float | None, typer.Option(help="Mean request rate.")] = None,
    users: Annotated[float | None, typer.Option(help="Active users, instead of a rate.")] = None,
    requests_per_user_per_s: Annotated[
        float | None, typer.Option(help="How often each user asks.")
    ] = None,
    prompt_tokens: Annotated[int | None, typer.Option(min=1, help="Mean prompt.")] = None,
    output_tokens: Annotated[int | None, typer.Option(min=1, help="Mean answer.")] = None,
    prompt_variation: Annotated[
        float | None, typer.Option(min=0, help="Makes prompts log-normal: deviation / mean.")
    ] = None,
    output_variation: Annotated[
        float | None, typer.Option(min=0, help="Makes answers log-normal: deviation / mean.")
    ] = None,
    lengths: Annotated[
        Path | None, typer.Option(help="CSV or JSON lines of (prompt, output) tokens.")
    ] = None,
    prefix_share: Annotated[float, typer.Option(help="Share of prompts found cached.")] = 0.0,
    peak_factor: Annotated[float, typer.Option(help="Peak rate over mean rate.")] = 1.0,
    growth: Annotated[float, typer.Option(help="Load added: 0.3 is 30 % more.")] = 0.0,
    ttft_s: Annotated[str | None, typer.Option(help="Target, such as 1 or 800ms.")] = None,
    tpot_s: Annotated[str | None, typer.Option(help="Target, such as 0.04 or 40ms.")] = None,
    e2e_s: Annotated[str | None, typer.Option(help="Target for whole requests.")] = None,
    percentile: Annotated[float, typer.Option(help="Of requests within the targets.")] = 95.0,
    spare_replicas: Annotated[int, typer.Option(min=0, help="Replicas that may fail.")] = 0,
    headroom: Annotated[float, typer.Option(help="Share of capacity left unused.")] = 0.0,
    exclude: Annotated[list[str] | None, typer.Option(help="Spec id to leave out.")] = None,
    own: Annotated[
        list[str] | None, typer.Option(help="ID=COUNT of accelerators that you have.")
    ] = None,
    weights: Annotated[list[str] | None, typer.Option(help="Formats to try.")] = None,
    kv: Annotated[list[str] | None, typer.Option(help="KV formats to try.")] = None,
    engine: Annotated[list[str] | None, typer.Option(help="Engines to try; vllm.")] = None,
    tp: Annotated[list[int] | None, typer.Option(min=1, help="Degrees to try.")] = None,
    pp: Annotated[list[int] | None, typer.Option(min=1, help="Degrees to try.")] = None,
    ep: Annotated[list[int] | None, typer.Option(min=1, help="Degrees to try.")] = None,
    dp: Annotated[list[int] | None, typer.Option(min=1, help="Degrees to try.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Accelerators of a replica at most.")] = 16,
    machine: Annotated[
        list[str] | None, typer.Option(help="Measured record, spec id of one, or ID=RECORD.")
    ] = None,
    network: Annotated[str | None, typer.Option(help="Link between nodes, by name.")] = None,
    prices: Annotated[Path | None, typer.Option(help="Your price file.")] = None,
    price: Annotated[
        list[str] | None, typer.Option(help="ID=USD per accelerator and hour.")
    ] = None,
    term: Annotated[str, typer.Option(help="on_demand, spot, reserved, 1y, 3y, owned, …")] = (
        "on_demand"
    ),
    provider: Annotated[str | None, typer.Option(help="Only this provider's offers.")] = None,
    region: Annotated[str | None, typer.Option(help="Only offers of this region.")] = None,
    api_price: Annotated[
        str | None, typer.Option(help="IN,OUT: an API's USD per million tokens, to compare with.")
    ] = None,
    draft_tokens: Annotated[
        int | None, typer.Option(min=1, help="Speculative decoding: tokens drafted a step.")
    ] = None,
    acceptance: Annotated[
        float | None, typer.Option(help="Share of drafted tokens accepted one by one.")
    ] = None,
    disaggregate: Annotated[
        bool, typer.Option("--disaggregate", help="Also size prefill and decode pools apart.")
    ] = False,
    times: Annotated[str, typer.Option(help="low, mid or high end of the estimates.")] = "mid",
    rack_limit_w: Annotated[float | None, typer.Option(help="Power of one rack, in W.")] = None,
    finalists: Annotated[int, typer.Option(min=1, help="Accelerators simulated at least.")] = 5,
    requests: Annotated[int, typer.Option(min=20, help="Requests of a simulated load.")] = 1500,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated requests.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(callback=figure_path, help="Write the Pareto front as a figure."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a one-page report, .md or .html.")
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Rank deployments that carry the load within the targets, the cheapest first.

    Exit code 3: nothing meets the targets.
    """
    from roofline.api.plan import plan
    from roofline.serving.lengths import load_lengths
    from roofline.serving.speculation import Speculation
    from roofline.serving.traffic import Slo, Traffic

    inputs = {
        key: value for key, value in locals().items()
        if key not in ("form", "output", "plot", "report", "plan", "Speculation", "Slo",
                       "Traffic", "load_lengths")
    }  # fmt: skip
    if (draft_tokens is None) != (acceptance is None):
        raise typer.BadParameter("--draft-tokens and --acceptance go together")
    if prices is not None and price:
        raise typer.BadParameter("--prices or --price, not both")
    traffic = Traffic(
        requests_per_s=requests_per_s,
        users=users,
        requests_per_user_per_s=requests_per_user_per_s,
        prompt_tokens=_length(prompt_tokens, prompt_variation),
        output_tokens=_length(output_tokens, output_variation),
        lengths=None if lengths is None else load_lengths(lengths),
        prefix_share=prefix_share,
        peak_factor=peak_factor,
        growth=growth,
    )
    slo = Slo(
        ttft_s=seconds(ttft_s),
        tpot_s=seconds(tpot_s),
        e2e_s=seconds(e2e_s),
        percentile=percentile,
        spare_replicas=spare_replicas,
        headroom=headroom,
    )
    if report is not None:
        from roofline.report.one_page import checked_suffix

        checked_suffix(report)  # before the search, not after it
    found = plan(
        model,
        traffic,
        slo,
        accelerators or None,
        exclude=exclude or (),
        own={name: int(count) for name, count in pairs("--own", own, int).items()} or None,
        weights=weights or None,
        kv=kv or None,
        engine=engine or "vllm",
        tp=tp or None,
        pp=pp or None,
        ep=ep or None,
        dp=dp or None,
        most=most,
        machine=machines(machine),
        network=network,
        prices=prices if prices is not None else pairs("--price", price, float) or None,
        term=term,
        provider=provider,
        region=region,
        speculation=(
            None if draft_tokens is None or acceptance is None
            else Speculation(draft_tokens, acceptance)
        ),
        api_usd_per_million=_two(api_price),
        disaggregate=disaggregate,
        times=times,
        rack_limit_w=rack_limit_w,
        finalists=finalists,
        requests=requests,
        seed=seed,
    )  # fmt: skip
    emit(_answer(found, inputs, form), form, output)
    if plot is not None:
        from roofline.report.figure_file import save_figure
        from roofline.report.plan_figures import pareto_figure

        save_figure(pareto_figure(found), plot)
        typer.echo(f"wrote {plot}", err=True)
    if report is not None:
        from roofline.report.one_page import write_report

        write_report(found, report)
        typer.echo(f"wrote {report}", err=True)
    if not found.met:
        raise typer.Exit(3)


def seconds(text: str | None) -> float | None:
    """Read a time: plain seconds, or a number with its unit.

    >>> seconds("40ms"), seconds("1")
    (0.04, 1.0)
    """
    from roofline.units import parse

    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return parse(text, "s")


def _two(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"--api-price takes IN,OUT, got {text!r}") from None
    return first, second


def pairs(flag: str, given: list[str] | None, kind: type) -> dict[str, Any]:
    """Read ID=VALUE words; ids resolve as accelerators do.

    >>> pairs("--price", ["t4=0.5"], float)
    {'t4': 0.5}
    """
    from roofline.hardware.accelerator import load_accelerator

    found: dict[str, Any] = {}
    for word in given or []:
        name, equals, value = word.partition("=")
        try:
            if not equals:
                raise ValueError
            found[load_accelerator(name).id] = kind(value)
        except ValueError:
            raise typer.BadParameter(f"{flag} takes ID=VALUE, got {word!r}") from None
    return found


def machines(given: list[str] | None) -> dict[str, Any]:
    """Read records, each of its own accelerator or of the one named: RECORD or ID=RECORD."""
    from roofline.planning.machines import machines_by_spec

    own = [word for word in given or [] if "=" not in word]
    named = [word for word in given or [] if "=" in word]
    return {**machines_by_spec(own), **pairs("--machine", named, str)}


def _length(mean: int | None, variation: float | None) -> "int | LogNormal | None":
    from roofline.serving.lengths import LogNormal

    if mean is None or not variation:
        return mean
    return LogNormal(mean, variation)


def _answer(found: "Plan", inputs: dict[str, Any], form: Format) -> Answer:
    from roofline.planning.candidate import merged

    excluded = [
        (one.accelerator, one.plan, one.reason) for one in merged(found.excluded)
    ]  # fmt: skip
    if form is Format.CSV:
        tables = [full_table(found)]
    else:
        tables = [options_table(found), more_table(found)] if found.options else []
        tables += [split_table(found)] if found.splits else []
    if excluded:
        tables.append(Table("Out, and why", ("accelerator", "plan", "reason"), excluded))
    return Answer(
        command="plan",
        inputs=inputs,
        results=found.to_dict(),
        tables=tables,
        lines=_lines(found),
        assumptions=found.assumptions,
        warnings=found.warnings,
    )


def _lines(found: "Plan") -> list[str]:
    lines = list(found.recommendation)
    if found.cheapest is not None and found.cheapest.launch:
        lines += ["", "start a replica with:", f"  {found.cheapest.launch}", ""]
    return lines
