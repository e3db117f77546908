"""``roofline specs``: the accelerators and links there are, every fact with its source, and a check
of your own files."""

from pathlib import Path
from typing import Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit
from roofline.errors import InputError, RooflineError, SpecError, UnknownNameError
from roofline.hardware.accelerator import (
    Accelerator,
    accelerator_ids,
    accelerator_problems,
    load_accelerator,
)
from roofline.hardware.folders import data_folders
from roofline.hardware.links import link_names, link_problems, load_link
from roofline.report.spec_answer import accelerator_answer, link_answer
from roofline.units import GB, TERA

_OWN_FILE = """\
Check your own spec or link files: what is wrong, with file and line.

\b
A spec is a YAML file like this (roofline specs show t4 --format json has all fields):
  id: my-accelerator
  name: My accelerator 96GB
  vendor: ACME
  kind: gpu
  memory:
    marketed_bytes: 96 GB
    bytes_per_s: 4 TB/s
    source: ACME X1 datasheet, 2026-05, page 2
  compute:
    flop_per_s: {bf16: 500 TFLOP/s, fp8: 1 PFLOP/s}
    source: ACME X1 datasheet, 2026-05, page 3 (dense)
Use it by its path, or put it into a folder that ROOFLINE_SPEC_PATH names and use its id.
"""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer()
    group.callback(invoke_without_command=True)(bare_command)
    group.command("list")(list_command)
    group.command("show")(show_command)
    group.command("check", help=_OWN_FILE)(check_command)
    app.add_typer(group, name="specs")


def bare_command(
    context: typer.Context, form: FormatOption = Format.TABLE, output: OutputOption = None
) -> None:
    """Accelerators and links: list (when left out), show, check."""
    if context.invoked_subcommand is None:
        list_command(form=form, output=output)
    elif form is not Format.TABLE or output is not None:
        raise InputError(f"write options behind the word: specs {context.invoked_subcommand} …")


def list_command(
    vendor: Annotated[str | None, typer.Option(help="Only this vendor's.")] = None,
    links: Annotated[bool, typer.Option("--links", help="List links instead.")] = False,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """List every accelerator (or link) with its main figures."""
    if links:
        if vendor is not None:
            raise InputError("links have no vendor; leave --vendor out")
        emit(_list_links(), form, output)
        return
    specs, warnings = [], []
    for spec_id in accelerator_ids():
        try:
            specs.append(load_accelerator(spec_id))
        except SpecError as error:  # one broken file of the user's does not hide the others
            warnings.append(f"left out: {error}")
    if vendor is not None:
        known = sorted({spec.vendor for spec in specs})
        specs = [spec for spec in specs if spec.vendor.casefold() == vendor.strip().casefold()]
        if not specs:
            raise UnknownNameError(f"no vendor {vendor!r}; there are: {', '.join(known)}")
    columns = ["id", "GB", "TB/s", "16-bit TFLOP/s", "fp8 TFLOP/s", "link GB/s", "domain", "W",
               "confidence"]  # fmt: skip
    answer = Answer(
        command="specs list",
        inputs={"vendor": vendor},
        results=[_summary(spec) for spec in specs],
        tables=[Table("", columns, [_row(spec) for spec in specs])],
        lines=[f"{len(specs)} accelerators; peaks are dense, links per direction"],
        warnings=warnings,
    )
    emit(answer, form, output)


def _summary(spec: Accelerator) -> dict[str, Any]:
    return {
        "id": spec.id, "name": spec.name, "vendor": spec.vendor, "kind": spec.kind,
        "marketed_bytes": spec.memory.marketed_bytes, "usable_bytes": spec.memory.usable_bytes,
        "memory_bytes_per_s": spec.memory.bytes_per_s, "flop_per_s": spec.compute.flop_per_s,
        "link_bytes_per_s": spec.link.bytes_per_s, "link_domain": spec.link.domain,
        "tdp_w": spec.power.tdp_w, "release_year": spec.release_year,
        "confidence": spec.confidence,
    }  # fmt: skip


def _row(spec: Accelerator) -> list[Any]:
    peaks = {name: spec.peak_flop_per_s(name) for name in spec.compute_types}
    sixteen = max((peaks[name] for name in ("bf16", "fp16") if name in peaks), default=None)
    return [
        spec.id,
        _in(spec.memory.marketed_bytes, GB),
        _in(spec.memory.bytes_per_s, TERA),
        _in(sixteen, TERA),
        _in(peaks.get("fp8"), TERA),
        _in(spec.link.bytes_per_s, GB),
        spec.link.domain,
        _in(spec.power.tdp_w, 1),
        spec.confidence,
    ]


def _in(value: float | None, unit: float) -> float | None:
    if value is None:
        return None
    rounded = float(f"{value / unit:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


def _list_links() -> Answer:
    links = [load_link(name) for name in link_names()]
    rows = [
        [link.id, link.name, link.category, _in(link.bytes_per_s, GB), link.achieved_fraction]
        for link in links
    ]
    return Answer(
        command="specs list",
        inputs={"links": True},
        results=[link.model_dump(mode="json") for link in links],
        tables=[Table("", ["id", "name", "category", "GB/s", "achieved"], rows)],
        lines=[f"{len(links)} links; per direction and accelerator"],
    )


def show_command(
    name: Annotated[str, typer.Argument(help="Id or YAML file of an accelerator, or a link's id.")],
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Show every fact of an accelerator or link with its source."""
    try:
        spec = load_accelerator(name)
    except UnknownNameError:
        try:
            link = load_link(name)
        except UnknownNameError:
            link = None
        if link is None:
            raise
        emit(link_answer(link), form, output)
        return
    emit(accelerator_answer(spec), form, output)


def check_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="YAML files or folders; none: all there are."),
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Check spec files."""
    paths = paths or [*data_folders("gpu_specs"), *data_folders("gpu_specs/links")]
    results = [_check(path) for path in _files(paths)]
    rows = [
        [result["file"], result["id"], line]
        for result in results
        for line in (result["problems"] or ["ok", *result["missing"]])
    ]
    n_wrong = sum(bool(result["problems"]) for result in results)
    answer = Answer(
        command="specs check",
        inputs={"paths": [str(path) for path in paths]},
        results=results,
        tables=[Table("", ["file", "id", "finding"], rows)],
        lines=[f"{len(results)} files, {n_wrong} with problems"],
    )
    emit(answer, form, output)
    if n_wrong:
        raise typer.Exit(1)


def _files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml"))
            if not inside:
                raise InputError(f"no .yaml file in {path}")
            files += inside
        else:
            files.append(path)
    return files


def _check(path: Path) -> dict[str, Any]:
    is_link = path.resolve().parent.name == "links"
    problems = link_problems(path) if is_link else accelerator_problems(path)
    found: dict[str, Any] = {"file": path.name, "id": None, "problems": list(problems)}
    found["missing"] = []
    if problems:
        return found
    if is_link:
        found["id"] = load_link(path).id
        return found
    spec = load_accelerator(path)
    found["id"] = spec.id
    if path.stem.lower() != spec.id:
        found["missing"].append(f"note: to be found by id, name the file {spec.id}.yaml")
    for question in (spec.memory_bandwidth, spec.usable_memory, _any_peak(spec)):
        try:
            question()
        except RooflineError as error:
            found["missing"].append(f"missing: {error}")
    return found


def _any_peak(spec: Accelerator) -> Any:
    return lambda: spec.peak_flop_per_s((*spec.compute_types, "bf16")[0])
