"""``roofline sweep``: a space of configurations, and the best of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit, figure_path

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from roofline.api.sweep.run import SweepResult


LARGE = 200_000_000
"""Configurations from which a sweep says beforehand how long it takes."""
ROWS_PER_S = 3e6
"""Estimates a core evaluates in a second, about: ``benchmarks/speed.py``."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sweep")(sweep_command)


def sweep_command(
    space: Annotated[
        Path,
        typer.Argument(
            help="YAML: models, accelerators, parallel, weights, kv, engines, machine, and axes "
            "batch, prompt_tokens, output_tokens (lists, {from, to, step} or "
            "{from, to, count, scale: log}). examples/space.yaml explains each."
        ),
    ],
    keep: Annotated[
        str,
        typer.Option(
            help="'top 10 by COLUMN', 'pareto [X Y]', 'winner by COLUMN', "
            "'histogram COLUMN EDGES…' or 'all [COLUMN…]'."
        ),
    ] = "top 10",
    parquet: Annotated[
        Path | None, typer.Option(help="Folder for all rows; a stopped run goes on.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Local Dask workers; 0: this process.")] = 0,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler to run on.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            callback=figure_path, help="Write the front or the winners as PNG, SVG or PDF."
        ),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Evaluate a space and keep the best, the front, the winners, a histogram or everything."""
    from roofline.api.sweep.run import sweep

    client, executor = _executor(workers, scheduler)
    try:
        with _progress() as report:
            result = sweep(space, keep, executor, parquet=parquet, progress=report)
    finally:
        if client is not None:
            client.close()
    emit(_answer(result, space, keep), form, output)
    if result.files:
        typer.echo(f"{parquet} holds {len(result.files)} Parquet files", err=True)
    if plot is not None:
        from roofline.report.figure_file import save_figure
        from roofline.report.sweep import sweep_figure

        typer.echo(f"wrote {save_figure(sweep_figure(result), plot)}", err=True)


def _executor(workers: int, scheduler: str | None) -> "tuple[Any, Executor | None]":
    from roofline.errors import InputError, MissingPackageError

    if not workers and scheduler is None:
        return None, None
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingPackageError("workers need Dask: pip install 'roofline[cluster]'") from None
    try:
        target = scheduler or LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        )
        client = Client(target, timeout=10)
    except OSError as error:
        raise InputError(f"no Dask scheduler at {scheduler}: {error}") from None
    return client, client.get_executor()


class _progress:  # noqa: N801
    """A progress bar on stderr, on a terminal only."""

    def __enter__(self) -> "Any":
        import sys

        from rich.console import Console
        from rich.progress import Progress

        from roofline.units import show

        self.bar = Progress(console=Console(stderr=True), disable=not sys.stderr.isatty())
        self.bar.start()
        self.task = self.bar.add_task("configurations", total=None)

        def report(done: int, total: int) -> None:
            if done == 0 and total >= LARGE:
                seconds = total / ROWS_PER_S
                words = (
                    f"{total:,} configurations to evaluate, about {show(seconds, 's')} of a core"
                )
                print(f"{words} (estimates; bounds take less)", file=sys.stderr)
            self.bar.update(self.task, completed=done, total=total)

        return report

    def __exit__(self, *error: object) -> None:
        self.bar.stop()


def _answer(result: "SweepResult", space: Path, keep: str) -> Answer:
    from roofline.api.sweep.columns import COLUMNS
    from roofline.units import number

    rows = result.configurations()
    tables = []
    if rows:
        names = [name for name in rows[0] if name != "row" and not _says_nothing(name, rows)]
        columns = [f"{name} [{COLUMNS[name]}]" if name in COLUMNS else name for name in names]
        tables.append(
            Table("Kept", columns, [[_cell(row[name], number) for name in names] for row in rows])
        )
    elif "count" in result.rows:
        counted = zip(*(result.rows[name].tolist() for name in ("low", "high", "count")),
                      strict=True)  # fmt: skip
        tables.append(Table("Histogram", ["from", "to", "rows"], [list(row) for row in counted]))
    elif "cell" in result.rows:
        tables.append(_winners(result))
    if result.refused:
        left_out = [[c.model, c.accelerator, str(c.parallel), why] for c, why in result.refused]
        tables.append(Table("Left out", ["model", "accelerator", "plan", "why"], left_out[:20]))
    left = f"; {len(result.refused)} of {result.space.n_cells} combinations cannot be"
    left = left if result.refused else ""
    return Answer(
        command="sweep",
        inputs={"space": str(space), "keep": keep},
        results=result.to_dict(),
        tables=tables,
        lines=[f"{result.n_rows:,} configurations, {result.n_feasible:,} of them fit{left}"],
        assumptions=[
            "decode is the step at mid-output context; estimates are the middle of their interval"
        ],
    )


_USUAL = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "weights": "own", "kv": "own", "engine": "ideal"}


def _says_nothing(name: str, rows: list[dict[str, Any]]) -> bool:
    """Whether a column has its usual value in every row; JSON has it all the same."""
    return name in _USUAL and all(row[name] == _USUAL[name] for row in rows)


def _winners(result: "SweepResult") -> Table:
    cells = list(result.space.cells())
    prompt, output = result.space.lengths
    columns = ["batch", *(f"{int(p)}+{int(o)}" for p, o in zip(prompt[0], output[0], strict=True))]
    rows = [
        [batch, *(cells[int(n)].accelerator + f" {cells[int(n)].parallel}" if n >= 0 else "none"
                  for n in line)]
        for batch, line in zip(result.space.batch, result.rows["cell"], strict=True)
    ]  # fmt: skip
    return Table("Winner by batch and lengths", columns, rows)


def _cell(value: Any, number: Any) -> Any:
    return number(value, 4) if isinstance(value, float) else value
