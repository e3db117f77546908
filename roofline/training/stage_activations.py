"""Activations of a pipeline stage: layers, micro-batches in flight, and the layer at work.

Shapes   One rank: the first stage, which holds most micro-batches.
Units    Bytes.
Limits   1F1B or interleaved schedules; layers divided as evenly as whole layers go.
Sources  [1] Korthikanti et al. 2022, arXiv:2205.05198, section 4.2 (first stage, interleaving).
"""

import math

from roofline.models.architecture import Architecture, LayerGroup
from roofline.training.activations import (
    FP32,
    checkpoint_bytes,
    kept_by_layer,
    norm_bytes,
    saved_by_layer,
    types,
)
from roofline.training.layer_parts import attention_widths, feed_forwards
from roofline.training.plan import TrainingPlan


def in_flight(plan: TrainingPlan) -> float:
    """Micro-batches whose activations the first pipeline stage holds [1].

        1F1B: pp;  interleaved: pp + (pp − 1) / interleave; never more than there are

    >>> in_flight(TrainingPlan(pp=8, micro_batches=64))
    8.0
    >>> in_flight(TrainingPlan(pp=8, micro_batches=64, interleave=3)) / 8  # 1 + 7/24 in [1]
    1.2917
    """
    if plan.pp == 1:
        return 1.0
    held = plan.pp + ((plan.pp - 1) / plan.interleave if plan.interleave > 1 else 0.0)
    return min(held, float(plan.micro_batches * plan.interleave))


def activation_bytes(arch: Architecture, plan: TrainingPlan) -> float:
    """Bytes that the layers of the first pipeline stage keep for the backward pass.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> few = TrainingPlan(precision="bf16", recompute="full")
    >>> activation_bytes(LLAMA_3_8B, few) == 2048 * 32 * 4096 * 2  # each layer's input
    True
    """
    tokens = plan.micro_tokens / plan.cp
    left = arch.n_layers if plan.method != "partial" else plan.trainable_layers
    per_token = 0.0
    for group in reversed(arch.layers):
        taken = min(group.n_layers, left)
        per_token += taken * kept_by_layer(arch, group, plan)
        left -= taken
    if plan.adapters and plan.recompute == "none" and plan.framework == "transformers":
        # the first norm's input, the frozen embedding's output, needs no gradient
        per_token -= norm_bytes(arch, types(plan), arch.hidden_size, 1.0)
    stage = math.ceil(arch.n_layers / plan.pp) / arch.n_layers
    kept = tokens * per_token * stage * in_flight(plan)
    if plan.dropout:
        divided = plan.tp if plan.sequence_parallel else 1
        kept += tokens * arch.hidden_size * in_flight(plan) / divided  # the embedding's mask
    return kept


def layer_peak(arch: Architecture, plan: TrainingPlan) -> float:
    """Bytes beside the kept activations while one layer's backward pass runs.

    With full recomputation that layer's activations are there again; gradients of the widest block
    pass through: of its product and of both halves, and of the stream.
    """
    kinds = types(plan)
    tokens = plan.micro_tokens / plan.cp

    def one(group: LayerGroup) -> float:
        again = 0.0
        saved = saved_by_layer(arch, group, plan)
        if plan.recompute == "full":
            again = saved.total
            if plan.framework == "transformers" and kinds.stream == FP32:
                again -= checkpoint_bytes(arch, plan)  # the fp32 input is the norm's, not a copy
        elif plan.recompute == "selective":
            again = saved.scores
        blocks = feed_forwards(group.linears)
        if group.experts is not None:
            blocks += feed_forwards(group.experts.linears) * round(group.experts.mean_active)
        widest = max(
            (
                block.width * (kinds.compute * (1 + block.halves) + kinds.adapter)
                for block in blocks
            ),
            default=0.0,
        )
        heads = attention_widths(group, plan.tp)
        mixing = heads.queries + heads.keys + heads.values + heads.outputs
        gradients = max(widest / plan.tp, kinds.compute * mixing)
        return again + gradients + 2 * kinds.stream * arch.hidden_size

    return tokens * max(one(group) for group in arch.layers)
