"""``roofline compare``: a procurement table of accelerators for one workload."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit, figure_path
from roofline.cli.plan import machines, pairs

if TYPE_CHECKING:
    from roofline.api.comparison import Comparison
    from roofline.units import Numeric


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("compare")(compare_command)


def compare_command(
    model: Annotated[str, typer.Argument(help="Catalogue name, config.json or its folder.")],
    accelerators: Annotated[
        list[str] | None, typer.Argument(help="Spec ids or YAML files; all when left out.")
    ] = None,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a prompt.")] = 2048,
    output_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer.")] = 256,
    batch: Annotated[int | None, typer.Option(min=1, help="Sequences that start together.")] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Requests in flight, instead of a batch.")
    ] = None,
    scenario: Annotated[
        str, typer.Option(help="serving, pre-training or fine-tuning.")
    ] = "serving",
    sort: Annotated[str | None, typer.Option(help="Column to sort by.")] = None,
    tp: Annotated[int | None, typer.Option(min=1, help="Tensor-parallel ranks.")] = None,
    pp: Annotated[int, typer.Option(min=1, help="Pipeline stages.")] = 1,
    weights: Annotated[str | None, typer.Option(help="Format of the weights.")] = None,
    kv: Annotated[str | None, typer.Option(help="Format of the KV cache.")] = None,
    engine: Annotated[str, typer.Option(help="Engine, or ideal for none.")] = "vllm",
    machine: Annotated[
        list[str] | None, typer.Option(help="Measured record, spec id of one, or ID=RECORD.")
    ] = None,
    prices: Annotated[Path | None, typer.Option(help="Your price file.")] = None,
    price: Annotated[
        list[str] | None, typer.Option(help="ID=USD per accelerator and hour.")
    ] = None,
    term: Annotated[str, typer.Option(help="on_demand, spot, 1y, 3y, owned, …")] = "on_demand",
    provider: Annotated[str | None, typer.Option(help="Only this provider's offers.")] = None,
    region: Annotated[str | None, typer.Option(help="Only offers of this region.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(callback=figure_path, help="Write cost bars as a figure."),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Compare fit, bound, estimate, cost and power of accelerators for one workload.

    Exit code 3: no accelerator holds it.
    """
    from roofline.api.compare import compare
    from roofline.serving.traffic import Workload
    from roofline.timing.parallel import Parallel

    if prices is not None and price:
        raise typer.BadParameter("--prices or --price, not both")
    found = compare(
        model,
        Workload(prompt_tokens, output_tokens, batch=batch, concurrency=concurrency),
        accelerators or None,
        scenario=scenario,
        sort=sort,
        parallel=None if tp is None and pp == 1 else Parallel(tp=tp or 1, pp=pp),
        weights=weights,
        kv=kv,
        engine=engine,
        machine=machines(machine),
        prices=prices if prices is not None else pairs("--price", price, float) or None,
        term=term,
        provider=provider,
        region=region,
    )
    inputs = {
        "model": model,
        "accelerators": accelerators,
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "batch": batch,
        "concurrency": concurrency,
        "scenario": scenario,
        "sort": sort,
        "tp": tp,
        "pp": pp,
        "weights": weights,
        "kv": kv,
        "engine": engine,
        "machine": machine,
        "prices": None if prices is None else str(prices),
        "price": price,
        "term": term,
        "provider": provider,
        "region": region,
    }
    emit(_answer(found, inputs, form), form, output)
    if plot is not None:
        from roofline.report.figure_file import save_figure
        from roofline.report.plan_figures import cost_figure

        save_figure(cost_figure(found), plot)
        typer.echo(f"wrote {plot}", err=True)
    if not found.fits:
        raise typer.Exit(3)


def _answer(found: "Comparison", inputs: dict[str, Any], form: Format) -> Answer:
    tables = [_full(found)] if form is Format.CSV else [_speed(found), _money(found)]
    if found.excluded:
        rows = [(one.accelerator, one.reason) for one in found.excluded]
        tables.append(Table("Out, and why", ("accelerator", "reason"), rows))
    return Answer(
        command="compare",
        inputs=inputs,
        results=found.to_dict(),
        tables=tables,
        lines=list(found.recommendation),
        assumptions=found.assumptions,
        warnings=found.warnings,
    )


def _text(value: "Numeric | None") -> str:
    from roofline.units import number

    return "–" if value is None else number(float(value))


def _speed(found: "Comparison") -> Table:
    from roofline.units import show

    serving = found.scenario == "serving"
    columns = (
        "accelerator", "plan", "fits", "bound tok/s", "tok/s (low–high)",
        *(("TTFT", "TPOT") if serving else ()), "limited by",
    )  # fmt: skip
    rows = []
    for row in found.rows:
        tokens = row.tokens_per_s
        latencies = [
            show(None if time is None else float(time.mid), "s")
            for time in (row.ttft_s, row.tpot_s)
        ]
        rows.append(
            (
                row.accelerator,
                row.plan,
                "yes" if row.fits else "NO",
                _text(row.bound_tokens_per_s),
                f"{_text(tokens.mid)} ({_text(tokens.low)}–{_text(tokens.high)})",
                *(latencies if serving else ()),
                row.limited_by,
            )
        )
    return Table(f"{found.model}, {found.scenario}, by {found.sort}", columns, rows)


def _money(found: "Comparison") -> Table:
    columns = (
        "accelerator", "USD/h", "USD/M tok", "GPU-h/M", "USD/TFLOP-h nominal", "effective",
        "place", "of peak", "W", "tok/J", "ratio",
    )  # fmt: skip
    rows = [
        (
            row.accelerator,
            _text(row.usd_per_hour),
            _text(row.usd_per_million_tokens),
            _text(row.gpu_hours_per_million_tokens),
            _text(row.usd_per_nominal_tflop_hour),
            _text(row.usd_per_effective_tflop_hour),
            "–" if row.nominal_rank is None else f"{row.nominal_rank} → {row.effective_rank}",
            f"{row.achieved_share:.0%}",
            _text(row.power_w),
            _text(row.tokens_per_joule),
            _text(row.ratio_to_first),
        )
        for row in found.rows
    ]
    title = "Cost at full load; place by nominal → effective cost; ratio of tokens for the money"
    return Table(title, columns, rows)


def _full(found: "Comparison") -> Table:
    """Every number in base units, for CSV."""
    flat = found.flat_rows()
    columns = list(dict.fromkeys(key for cells in flat for key in cells))
    return Table("", columns, [[cells.get(key) for key in columns] for cells in flat])
