"""What a model is made of, for a command, a page and a file: counts, layers, bytes, inferences."""

from dataclasses import asdict
from typing import Any

from roofline.models.architecture import Architecture, GroupedQuery, Latent, LayerGroup
from roofline.models.checkpoint import CheckpointBytes
from roofline.report.answer import Answer, Table
from roofline.units import show
from roofline.work.kv_cache import bytes_per_token
from roofline.work.weights import stored_bytes


def model_answer(
    model: Architecture, name: str, checkpoint: CheckpointBytes | None = None
) -> Answer:
    """Say what a model is made of; ``name`` is what was asked for, ``checkpoint`` its weight files.

    >>> from roofline.models.catalogue import load_named
    >>> model_answer(load_named("llama-3.1-8b"), "llama-3.1-8b").tables[0].rows[0]
    ['parameters', '8,030,261,248']
    """
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
    if checkpoint is not None:
        stored = f"{checkpoint.total_bytes:,} bytes, {checkpoint.n_tensors:,} tensors"
        facts.append(["weight files", stored])
        facts += [[f"of them {kind}", f"{size:,}"] for kind, size in checkpoint.by_dtype.items()]
    columns = ["layers", "attention", "sees", "state", "feed-forward", "parameters a layer"]
    return Answer(
        command="models show",
        inputs={"name": name},
        results=model_summary(model)
        | {
            "linear_calls_per_step": model.linear_calls_per_step,
            "layer_groups": [dict(zip(columns, row, strict=True)) for row in layers],
            "towers": {tower.name: tower.parameters for tower in model.towers},
            "checkpoint": None if checkpoint is None else asdict(checkpoint),
        },
        tables=[Table("", ["fact", "value"], facts), Table("Layers", columns, layers)],
        lines=[f"{model.name} ({model.model_type or 'no model_type'})", f"Source: {model.source}"],
        assumptions=(*model.assumptions, *(checkpoint.assumptions if checkpoint else ())),
    )


def model_summary(model: Architecture) -> dict[str, Any]:
    """Its figures in base units."""
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


def _count(value: int | None) -> str:
    return "not stated" if value is None else f"{value:,} tokens"
