"""``roofline models``: the catalogue, and what one model (or your config.json) is made of."""

from typing import Annotated, Any

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit
from roofline.errors import InputError
from roofline.models.architecture import Architecture, GroupedQuery, Latent, LayerGroup
from roofline.models.catalogue import model_names
from roofline.models.config import load_model
from roofline.units import GB, MILLION, show
from roofline.work.kv_cache import bytes_per_token
from roofline.work.weights import stored_bytes

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
    models = [load_model(name) for name in model_names()]
    rows = [
        [
            model.name,
            _billions(model.parameters),
            _billions(model.active_parameters),
            model.n_layers,
            round(_weights_bytes(model) / GB, 2),
            int(_kv_bytes(model)),
            model.max_context_tokens,
        ]
        for model in models
    ]
    columns = ["name", "parameters (billion)", "active (billion)", "layers", "weights GB",
               "KV B/token", "context tokens"]  # fmt: skip
    answer = Answer(
        command="models list",
        inputs={},
        results=[_summary(model) for model in models],
        tables=[Table("", columns, rows)],
        lines=[f"{len(models)} models; any config.json, folder of one, or hub name works too"],
    )
    emit(answer, form, output)


def show_command(
    name: Annotated[str, typer.Argument(help="Catalogue name, config.json, or a folder with one.")],
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Show what a model is made of: exact counts, layers, bytes, and what was inferred."""
    model = load_model(name)
    layers = [_layer_row(group) for group in model.layers]
    facts = [
        ["parameters", f"{model.parameters:,}"],
        ["active per token", f"{model.active_parameters:,}"],
        ["linear calls per step", f"{model.linear_calls_per_step:,}"],
        ["width", f"{model.hidden_size:,}"],
        ["vocabulary", f"{model.vocab_size:,}" + (", lm_head tied" if model.tied else "")],
        ["stored in", model.quantisation or str(model.dtype)],
        ["weights", show(_weights_bytes(model), "B", 4)],
        ["KV cache", f"{_kv_bytes(model):,.0f} B/token"],
        ["longest context", _count(model.max_context_tokens)],
    ]
    facts += [[f"beside it: {tower.name}", f"{tower.parameters:,}"] for tower in model.towers]
    if model.router_biases:
        facts.append(["router biases in checkpoints", f"{model.router_biases:,}"])
    columns = ["layers", "attention", "sees", "state", "feed-forward", "parameters a layer"]
    answer = Answer(
        command="models show",
        inputs={"name": name},
        results=_summary(model)
        | {
            "linear_calls_per_step": model.linear_calls_per_step,
            "layer_groups": [dict(zip(columns, row, strict=True)) for row in layers],
            "towers": {tower.name: tower.parameters for tower in model.towers},
        },
        tables=[Table("", ["fact", "value"], facts), Table("Layers", columns, layers)],
        lines=[f"{model.name} ({model.model_type or 'no model_type'})", f"Source: {model.source}"],
        assumptions=model.assumptions,
    )
    emit(answer, form, output)


def _summary(model: Architecture) -> dict[str, Any]:
    return {
        "name": model.name,
        "model_type": model.model_type,
        "source": model.source,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "n_layers": model.n_layers,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "weights_bytes": _weights_bytes(model),
        "kv_bytes_per_token": _kv_bytes(model),
        "max_context_tokens": model.max_context_tokens,
        "quantisation": model.quantisation or str(model.dtype),
    }


def _weights_bytes(model: Architecture) -> float:
    return float(stored_bytes(model))


def _kv_bytes(model: Architecture) -> float:
    return float(bytes_per_token(model, model.kv_dtype or model.dtype))


def _layer_row(group: LayerGroup) -> list[Any]:
    return [
        group.n_layers,
        _attention_words(group),
        _sees(group),
        "" if group.recurrent is None else group.recurrent.kind,
        _feed_forward(group),
        group.parameters_per_layer,
    ]


def _attention_words(group: LayerGroup) -> str:
    match group.attention:
        case GroupedQuery(n_kv_heads=heads, head_dim=dim) as attention:
            words = f"{attention.query_heads} heads on {heads} KV × {dim}"
        case Latent(kv_rank=rank, rope_dim=rope, n_heads=heads):
            words = f"latent {rank} + {rope}, {heads} heads"
        case _:
            return "none"
    return words + (", KV of an earlier layer" if group.shares_kv else "")


def _sees(group: LayerGroup) -> str:
    if group.attention is None:
        return ""
    words = "all tokens" if group.window is None else f"{group.window:,} tokens"
    if group.chunked:
        words += ", by chunk"
    if group.compression > 1:
        words += f", {group.compression} tokens an entry beyond"
    if group.indexer is not None:
        words += f", best {group.indexer.top_k:,}"
    return words


def _feed_forward(group: LayerGroup) -> str:
    if group.experts is not None:
        return f"{group.experts.n_active} of {group.experts.n_experts} experts"
    return "dense" if group.linears else "none"


def _billions(count: float) -> float:
    return round(count / _BILLION, 3)


def _count(value: int | None) -> str:
    return "not stated" if value is None else f"{value:,} tokens"
