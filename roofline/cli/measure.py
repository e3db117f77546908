"""``roofline measure``: this machine's own roofs, models with random weights, links, imports."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, emit
from roofline.errors import InputError

if TYPE_CHECKING:
    from roofline.hardware.measurement import Measurement
    from roofline.measure.session import Report

DeviceOption = Annotated[str, typer.Option(help="cuda, cuda:1 or cpu; a GPU when left out.")]
SpecOption = Annotated[
    str | None, typer.Option("--spec", help="Spec id of the device, when its names do not say.")
]
FolderOption = Annotated[Path, typer.Option("--output-dir", help="Folder of the records.")]
FiguresOption = Annotated[
    Path | None, typer.Option("--figures", help="Folder to draw the figures into.")
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = typer.Typer(
        help="Measure this machine's own roofs and write a record that predictions can use.",
        invoke_without_command=True,
        no_args_is_help=False,
    )
    group.callback()(machine_command)
    group.command("model")(model_command)
    group.command("collectives")(collectives_command)
    group.command("import")(import_command)
    group.command("show")(show_command)
    app.add_typer(group, name="measure")


def machine_command(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Under 30 s on a GPU.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Everything; answers for a spec.")] = False,
    device: DeviceOption = "",
    spec: SpecOption = None,
    sections: Annotated[str, typer.Option(help="Only these, comma-separated.")] = "",
    output_dir: FolderOption = Path("measurements"),
    resume: Annotated[bool, typer.Option("--resume", help="Take up an interrupted run.")] = False,
    figures: FiguresOption = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Measure copies, matmuls, attention, launches and host links of this machine."""
    if context.invoked_subcommand is not None:
        return
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other")
    if sections and not _words(sections):
        raise InputError(f"--sections takes names such as copy,matmul, got {sections!r}")
    from roofline.measure.case import Level
    from roofline.measure.device import find_target
    from roofline.measure.session import measure

    level = Level.QUICK if quick else Level.FULL if full else Level.STANDARD
    with progress() as report:
        record, path = measure(
            find_target(device, spec),
            level,
            sections=_words(sections),
            folder=output_dir,
            resume=resume,
            report=report,
            command=f"roofline measure --{level.value}",
        )
    inputs = {"level": level.value, "device": device or None, "sections": sections or None}
    _show(record, path, "measure", inputs, figures, form, output)


def model_command(
    models: Annotated[list[str], typer.Argument(help="Catalogue names or paths of configs.")],
    weights: Annotated[str, typer.Option(help="Formats: bf16, fp16, fp32, fp8.")] = "bf16",
    batch: Annotated[str, typer.Option(help="Batches.")] = "1,2,4,8,16,32,64,128",
    context: Annotated[str, typer.Option(help="Tokens of KV that a decode step reads.")] = "2048",
    prompt_tokens: Annotated[str, typer.Option(help="Prompts of prefill.")] = "128,512,2048",
    mode: Annotated[
        str, typer.Option(help="graph, eager, compiled; graph on a GPU, eager on a CPU.")
    ] = "",
    transformers: Annotated[
        bool, typer.Option("--transformers", help="The same shapes in transformers, too.")
    ] = False,
    tp: Annotated[int, typer.Option(help="Ranks of tensor parallelism on this node.")] = 1,
    device: DeviceOption = "",
    spec: SpecOption = None,
    output_dir: FolderOption = Path("measurements"),
    figures: FiguresOption = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Run models with random weights: TTFT, TPOT and memory by batch and context."""
    if tp > 1:
        _ranks(tp, ["models", *models, "--formats", weights, "--batches", batch, "--contexts",
                    context, "--prompts", prompt_tokens, *(("--modes", mode) if mode else ()),
                    "--output-dir", str(output_dir), "--device", device])  # fmt: skip
        return
    from roofline.measure.device import find_target
    from roofline.measure.model_run import ModelPlan
    from roofline.measure.model_session import measure_models

    target = find_target(device, spec)
    modes = _words(mode) or ("graph" if target.torch_device.type == "cuda" else "eager",)
    plan = ModelPlan(
        batches=_numbers(batch, "--batch"),
        contexts=_numbers(context, "--context"),
        prompts=_numbers(prompt_tokens, "--prompt-tokens"),
        modes=modes,
    )
    with progress() as report:
        record, path = measure_models(
            target, models, plan, formats=_words(weights), with_transformers=transformers,
            folder=output_dir, report=report,
            command=f"roofline measure model {' '.join(models)} --weights {weights}",
        )  # fmt: skip
    inputs = {"models": models, "weights": weights, "batch": batch, "context": context}
    _show(record, path, "measure model", inputs, figures, form, output)


def collectives_command(
    ranks: Annotated[int, typer.Option(help="Ranks on this node; all its GPUs if 0.")] = 0,
    largest: Annotated[int, typer.Option(help="Largest size in bytes.")] = 2**30,
    ops: Annotated[
        str, typer.Option(help="Collectives.")
    ] = "all_reduce,all_gather,reduce_scatter,all_to_all,send_recv",
    device: DeviceOption = "",
    output_dir: FolderOption = Path("measurements"),
) -> None:
    """Sweep collectives by size over the ranks of this node; on several nodes use torchrun."""
    _ranks(ranks or _gpus(), ["collectives", "--largest", str(largest), "--ops", ops, "--device",
                              device, "--output-dir", str(output_dir)])  # fmt: skip


def import_command(
    file: Annotated[Path, typer.Argument(help="Output of nvbandwidth or nccl-tests.")],
    op: Annotated[str, typer.Option(help="The collective, when the file does not say.")] = "",
    ranks: Annotated[int, typer.Option(help="Ranks, when the file does not say.")] = 0,
    spec: SpecOption = None,
    output_dir: FolderOption = Path("measurements"),
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Import what nvbandwidth (JSON or text) or nccl-tests (JSON or text) measured."""
    from roofline.hardware.accelerator import load_accelerator
    from roofline.hardware.measurement import Device, save_measurement
    from roofline.measure.importers import import_file

    if spec is None:
        raise InputError("say which accelerator was measured: --spec ID (roofline specs list)")
    accelerator = load_accelerator(spec)
    memory_bytes, _ = accelerator.usable_memory()
    device = Device(
        name=accelerator.name, spec_id=accelerator.id, memory_bytes=int(memory_bytes),
        count=max(ranks, 1),
    )  # fmt: skip
    record = import_file(file, device, op=op, n_ranks=ranks)
    path = save_measurement(record, output_dir)
    _show(record, path, "measure import", {"file": file.name}, None, form, output)


def show_command(
    which: Annotated[str, typer.Argument(help="A record's path, or a spec id.")],
    figures: FiguresOption = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Show a record: nominal, measured, percent and why; its models; its figures."""
    from roofline.hardware.measurement import load_measurement

    _show(load_measurement(which), None, "measure show", {"record": which}, figures, form, output)


def _show(
    record: "Measurement", path: Path | None, command: str, inputs: dict[str, Any],
    figures: Path | None, form: Format, output: Path | None,
) -> None:  # fmt: skip
    from roofline.report.measured_answer import record_answer
    from roofline.report.measured_figures import save_figures

    warnings = [*record.flags, *(f"failed: {name}: {why}" for name, why in record.errors.items())]
    answer = record_answer(record)
    emit(
        Answer(
            command=command, inputs=inputs, results=answer.results, tables=answer.tables,
            lines=answer.lines, assumptions=record.assumptions, warnings=warnings,
        ),
        form,
        output,
    )  # fmt: skip
    if path is not None:
        typer.echo(f"wrote {path}", err=True)
    if figures is not None:
        for drawn in save_figures(record, figures):
            typer.echo(f"wrote {drawn}", err=True)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(text: str, option: str) -> tuple[int, ...]:
    words = _words(text)
    if not words or not all(word.isdigit() and 0 < int(word) < 10**9 for word in words):
        raise InputError(f"{option} takes whole numbers such as 1,8,32, got {text!r}")
    return tuple(int(word) for word in words)


def _gpus() -> int:
    from roofline.measure.framework import torch

    return int(torch.cuda.device_count())


def _ranks(count: int, arguments: list[str]) -> None:
    from roofline.measure.ranks import start_ranks

    start_ranks(count, arguments)


class progress:  # noqa: N801  a context manager, used as a function
    """A bar on stderr with what runs and how long is left; lines where there is no terminal."""

    def __enter__(self) -> "Report":
        """Start the bar on a terminal."""
        self._bar: Any = None
        if not sys.stderr.isatty():
            from roofline.measure.session import silent

            return silent
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.percentage:3.0f} %"),
            BarColumn(30),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        task = self._bar.add_task("", total=1.0, left="")

        def report(what: str, share: float, left_s: float) -> None:
            from roofline.units import show

            left = f"{show(left_s, 's', 2)} left"
            self._bar.update(task, completed=share, description=what, left=left)

        return report

    def __exit__(self, *error: object) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
