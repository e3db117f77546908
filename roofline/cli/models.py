"""``roofline models``: the catalogue, and what one model (or your config.json) is made of."""

from typing import Annotated

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit
from roofline.errors import InputError
from roofline.models.catalogue import model_names
from roofline.models.checkpoint import checkpoint_at
from roofline.models.config import load_model
from roofline.report.model_answer import model_answer, model_summary
from roofline.units import GB, MILLION

_BILLION = 1000 * MILLION


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer()
    group.callback(invoke_without_command=True)(bare_command)
    group.command("list")(list_command)
    group.command("show")(show_command)
    app.add_typer(group, name="models")


def bare_command(
    context: typer.Context, form: FormatOption = Format.TABLE, output: OutputOption = None
) -> None:
    """Models: list the catalogue (when left out), show one."""
    if context.invoked_subcommand is None:
        list_command(form=form, output=output)
    elif form is not Format.TABLE or output is not None:
        raise InputError(f"write options behind the word: models {context.invoked_subcommand} …")


def list_command(form: FormatOption = Format.TABLE, output: OutputOption = None) -> None:
    """List every model of the catalogue with its exact size."""
    models = [model_summary(load_model(name)) for name in model_names()]
    rows = [
        [
            model["name"],
            _billions(model["parameters"]),
            _billions(model["active_parameters"]),
            model["n_layers"],
            round(model["weights_bytes"] / GB, 2),
            int(model["kv_bytes_per_token"]),
            model["max_context_tokens"],
        ]
        for model in models
    ]
    columns = ["name", "parameters (billion)", "active (billion)", "layers", "weights GB",
               "KV B/token", "context tokens"]  # fmt: skip
    answer = Answer(
        command="models list",
        inputs={},
        results=models,
        tables=[Table("", columns, rows)],
        lines=[f"{len(models)} models; any config.json, folder of one, or hub name works too"],
    )
    emit(answer, form, output)


def show_command(
    name: Annotated[str, typer.Argument(help="Catalogue name, config.json, or a folder with one.")],
    hub: Annotated[
        bool, typer.Option("--hub", help="Ask Hugging Face for owner/name, weight headers too.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="With --hub: the local cache only.")
    ] = False,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Show what a model is made of: exact counts, layers, bytes, and what was inferred.

    Weight files beside a config.json, or of a model on the hub, are counted to the byte by type.
    """
    if hub:
        from roofline.models.hub import hub_checkpoint, load_hub
        from roofline.models.hub_cache import cached_folder

        model = load_hub(name, offline=offline)
        files = checkpoint_at(cached_folder(name)) if offline else hub_checkpoint(name)
        emit(model_answer(model, name, files), form, output)
        return
    if offline:
        raise InputError("--offline goes with --hub; without it nothing is asked for")
    emit(model_answer(load_model(name), name, checkpoint_at(name)), form, output)


def _billions(count: float) -> float:
    return round(count / _BILLION, 3)
