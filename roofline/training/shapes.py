"""Shapes: the architectures and plans behind measured and published training rows.

Limits   A published table gives layers, widths and heads; what it leaves out (biases, norms,
         learned positions) is GPT's.
Sources  [1] Narayanan et al. 2021, arXiv:2104.04473, equation 2:
             P = 12·l·h²·(1 + 13/(12·h) + (V + s)/(12·l·h)).
"""

from dataclasses import replace

from roofline.hardware.training_record import TrainingRow
from roofline.models.architecture import (
    Architecture,
    GroupedQuery,
    LayerGroup,
    Linear,
    Split,
    dense_decoder,
)
from roofline.training.plan import TrainingPlan

GPT_SEQUENCE, GPT_VOCABULARY = 2048, 51200


def megatron_gpt(
    name: str,
    *,
    n_layers: int,
    hidden: int,
    n_heads: int,
    vocab: int = GPT_VOCABULARY,
    positions: int = GPT_SEQUENCE,
) -> Architecture:
    """Build the GPT of Megatron's papers: biases, LayerNorm, learned positions, a tied head [1].

    >>> gpt = megatron_gpt("1T", n_layers=128, hidden=25600, n_heads=160)
    >>> round(gpt.parameters / 1e9, 1)  # printed as 1008.0 billion
    1008.0
    """
    linears = (
        Linear("attention.query_key_value", hidden, 3 * hidden, bias=True, fused="qkv"),
        Linear("attention.dense", hidden, hidden, bias=True, split=Split.ROW),
        Linear("mlp.dense_h_to_4h", hidden, 4 * hidden, bias=True),
        Linear("mlp.dense_4h_to_h", 4 * hidden, hidden, bias=True, split=Split.ROW),
    )
    group = LayerGroup(
        n_layers=n_layers,
        attention=GroupedQuery(n_kv_heads=n_heads, head_dim=hidden // n_heads),
        linears=linears,
        small_parameters=4 * hidden,  # scale and shift of two norms
        layers=tuple(range(n_layers)),
    )
    return Architecture(
        name=name,
        layers=(group,),
        source="layers, width and heads as the paper's table prints them",
        model_type="megatron-gpt",
        hidden_size=hidden,
        vocab_size=vocab,
        embedding_parameters=(vocab + positions) * hidden,
        lm_head=Linear("lm_head", hidden, vocab, quantisable=False),
        tied=True,
        small_parameters=2 * hidden,
    )


def shape_of_row(row: TrainingRow) -> Architecture:
    """Build the model of a measured row.

    Query, key and value biases are counted as small values of the layer.
    """
    shape = row.model
    arch = dense_decoder(
        shape.name,
        n_layers=shape.n_layers,
        hidden=shape.hidden,
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads,
        head_dim=shape.head_dim,
        intermediate=shape.intermediate,
        vocab=shape.vocab,
        tied=shape.tied,
        source="a training record",
    )
    if not shape.qkv_bias:
        return arch
    (group,) = arch.layers
    linears = tuple(
        replace(linear, bias=linear.name.endswith(("q_proj", "k_proj", "v_proj")))
        for linear in group.linears
    )
    return replace(arch, model_type="qwen2", layers=(replace(group, linears=linears),))


def plan_of_row(row: TrainingRow) -> TrainingPlan:
    """Make the plan of a measured row: one device, one micro-batch."""
    lora = row.mode == "lora"
    return TrainingPlan(
        sequence_tokens=row.sequence_tokens,
        micro_batch=row.micro_batch,
        method="lora" if lora else "full",
        precision="amp" if row.mode == "amp" else "bf16",
        recompute="full" if row.recompute else "none",
        lora_rank=row.lora_rank or 16,
    )
