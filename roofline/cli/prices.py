"""``roofline prices``: list, check and import price tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit
from roofline.files import write_text

if TYPE_CHECKING:
    from roofline.economics.price_row import Price


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = typer.Typer(help="Price tables: list, check, import.", no_args_is_help=True)
    group.command("list")(list_command)
    group.command("check")(check_command)
    group.command("import")(import_command)
    app.add_typer(group, name="prices")


def list_command(
    accelerators: Annotated[
        list[str] | None, typer.Argument(help="Spec ids; all when left out.")
    ] = None,
    prices: Annotated[Path | None, typer.Option(help="Your price file, before ours.")] = None,
    term: Annotated[str | None, typer.Option(help="Only this basis.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only this provider.")] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """List the offers that plans and comparisons would use, with date and source."""
    from roofline.economics.price_row import TERMS
    from roofline.economics.prices import price_table
    from roofline.errors import unknown_name
    from roofline.hardware.accelerator import load_accelerator

    if term is not None and term not in TERMS:
        raise unknown_name("price term", term, TERMS)
    wanted = {load_accelerator(name).id for name in accelerators or []}
    table = price_table(prices)
    chosen = [
        price for price in table.prices
        if (not wanted or price.spec_id in wanted)
        and (term is None or price.term == term)
        and (provider is None or price.provider.lower() == provider.lower())
    ]  # fmt: skip
    mapped = [price for price in chosen if price not in table.unmapped]
    open_rows = [price for price in chosen if price in table.unmapped]
    tables = [Table("Offers", _COLUMNS, [_row(price) for price in mapped])]
    if open_rows:
        tables.append(Table("Not mapped to a spec", _COLUMNS, [_row(price) for price in open_rows]))
    emit(
        Answer(
            command="prices list",
            inputs={"accelerators": accelerators, "term": term, "provider": provider},
            results=[_plain(price) for price in chosen],
            tables=tables,
            warnings=[
                str(one) for one in table.findings
                if any(one.line == price.line and one.file == price.file for price in mapped)
            ] if wanted else (),
        ),
        form,
        output,
    )  # fmt: skip


def check_command(
    file: Annotated[Path | None, typer.Argument(help="Price file; ours when left out.")] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Check a price file row by row. Exit code 1: there are errors."""
    from datetime import date

    from roofline.economics.price_checks import check_prices
    from roofline.economics.price_row import read_prices
    from roofline.economics.prices import price_files
    from roofline.hardware.accelerator import accelerator_ids

    path = file or price_files()[-1]
    rows, findings = read_prices(path)
    ours = [] if file is None else read_prices(price_files()[-1])[0]
    findings += check_prices(rows, accelerator_ids(), today=date.today(), beside=ours)
    errors = sum(one.severity == "error" for one in findings)
    emit(
        Answer(
            command="prices check",
            inputs={"file": str(path)},
            results={
                "rows": len(rows),
                "errors": errors,
                "findings": [vars(one) for one in findings],
            },
            tables=[
                Table(
                    "",
                    ("line", "severity", "what"),
                    [(one.line, one.severity, one.message) for one in findings],
                )
            ] if findings else [],
            lines=[
                f"{path}: {len(rows)} rows, {errors} errors, {len(findings) - errors} warnings"
            ],
        ),
        form,
        output,
    )  # fmt: skip
    if errors:
        raise typer.Exit(1)


def import_command(
    source: Annotated[Path, typer.Argument(help="Folder (gpuhunt) or CSV file (skypilot).")],
    kind: Annotated[str, typer.Option("--from", help="gpuhunt or skypilot.")],
    to: Annotated[Path | None, typer.Option(help="Price file to write.")] = None,
    provider: Annotated[
        str | None, typer.Option(help="Whose catalogue it is (skypilot); its folder's name.")
    ] = None,
    as_of: Annotated[str | None, typer.Option(help="Date of the prices: 2026-09-17.")] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Turn a public catalogue into a price file; what cannot be mapped is listed, not guessed."""
    from roofline.economics.catalogues import import_gpuhunt, import_skypilot
    from roofline.economics.price_row import first_day
    from roofline.errors import InputError, unknown_name

    if as_of is not None and first_day(as_of) is None:
        raise InputError(f"as_of {as_of!r} is no date; write 2026-09-17")
    if kind == "gpuhunt":
        found = import_gpuhunt(source, as_of=as_of)
    elif kind == "skypilot":
        found = import_skypilot(source, provider=provider, as_of=as_of)
    else:
        raise unknown_name("catalogue format", kind, ("gpuhunt", "skypilot"))
    if to is not None:
        write_text(to, found.to_csv())
    lines = [
        f"{len(found.prices)} offers mapped, {len(found.unmapped)} open, {len(found.refused)} "
        f"refused, {found.without_accelerator} rows without an accelerator"
    ]
    if to is not None:
        lines.append(f"wrote {to}; use it with --prices, or in prices/ of ROOFLINE_SPEC_PATH")
    tables = [Table("Mapped", _COLUMNS, [_row(price) for price in found.prices])]
    if found.unmapped:
        tables.append(
            Table("Open: give spec_id yourself", ("line", "item", "instance", "why"),
                  [(p.line, p.item, p.instance, p.notes) for p in found.unmapped])
        )  # fmt: skip
    if found.refused:
        tables.append(
            Table("Refused", ("line", "why"), [(one.line, one.message) for one in found.refused])
        )
    emit(
        Answer(
            command="prices import",
            inputs={"source": str(source), "from": kind, "provider": provider, "as_of": as_of},
            results={
                "prices": [_plain(price) for price in found.prices],
                "unmapped": [_plain(price) for price in found.unmapped],
                "refused": [vars(one) for one in found.refused],
                "rows_without_accelerator": found.without_accelerator,
            },
            tables=tables,
            lines=lines,
        ),
        form,
        output,
    )


_COLUMNS = (
    "accelerator", "provider", "instance", "region", "term", "count", "USD/h", "USD/h each",
    "purchase USD", "as of", "source",
)  # fmt: skip


def _row(price: "Price") -> tuple[Any, ...]:
    from roofline.units import number

    each = price.usd_per_accelerator_hour
    return (
        price.spec_id or price.item,
        price.provider,
        price.instance,
        price.region,
        price.term,
        price.gpu_count,
        "–" if price.usd_per_hour is None else number(price.usd_per_hour, 4),
        "–" if each is None else number(each, 3),
        "–" if price.capex_usd is None else number(price.capex_usd),
        price.as_of or "undated",
        price.source_url.split(";")[0],
    )


def _plain(price: "Price") -> dict[str, Any]:
    return {key: value for key, value in vars(price).items() if key != "file"}
