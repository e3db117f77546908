"""Nemotron: NVIDIA's hybrids, whose layers hold one block each, named by letters or words.

Sources  See facts.py and state.py.
"""

from dataclasses import replace

from roofline.models.architecture import LayerGroup, Linear, Split
from roofline.models.draft import Draft
from roofline.models.families.decoder import (
    HIDDEN,
    LAYERS,
    close,
    heads_of,
    transform,
)
from roofline.models.families.facts import Facts
from roofline.models.families.hybrid import attention_part, mamba2_of, unknown_kind
from roofline.models.families.prediction import check_layers
from roofline.models.families.sparse import narrowed
from roofline.models.families.windows import layer_kinds
from roofline.models.fields import Fields
from roofline.models.parts import Part, join

LETTERS = {"M": "mamba", "*": "full", "-": "mlp", "E": "moe"}
NEMOTRON = Facts(
    qkv_bias=False,
    o_bias=False,
    attention_path="mixer", mlp_path="mixer", expert_path="mixer.experts", router="mixer.gate",
    shared_path="mixer.shared_experts", gated=False, norms=1,
)  # fmt: skip


def read_nemotron_h(fields: Fields) -> Draft:
    """Read Nemotron-H: one block a layer, Mamba-2, attention, feed-forward or experts."""
    hidden = fields.count(*HIDDEN)
    kinds = _letters(fields, "hybrid_override_pattern")
    if kinds is None:
        listed = fields.items("layers_block_type", "layer_types")
        if listed is None:
            raise fields.error("no 'hybrid_override_pattern' or 'layers_block_type'")
        kinds = layer_kinds(fields, len(listed), "")
    stated = fields.optional(*LAYERS)
    if stated is not None and stated != len(kinds):
        raise fields.error(f"{len(kinds)} layer types for {stated} layers")
    heads = heads_of(fields, hidden)
    blocks = {
        "full": attention_part(fields, NEMOTRON, heads),
        "mamba": mamba2_of(fields, hidden, path="mixer") if _has_state(kinds) else Part(),
    }
    if "mlp" in kinds:
        blocks["mlp"] = transform(fields, NEMOTRON, hidden, sparse=False)
    if "moe" in kinds:
        blocks["moe"] = narrowed(
            fields, transform(fields, NEMOTRON, hidden, sparse=True), hidden, "mixer"
        )
    blocks["linear_attention"] = blocks["mamba"]
    layers = [
        join(i, blocks[kind] if kind in blocks else unknown_kind(fields, kind), norms=hidden)
        for i, kind in enumerate(kinds)
    ]
    draft = close(fields, NEMOTRON, layers, hidden)
    return replace(draft, prediction=_nemotron_prediction(fields, blocks, hidden, len(layers)))


def _has_state(kinds: tuple[str, ...]) -> bool:
    return any(kind in ("mamba", "linear_attention") for kind in kinds)


def _letters(fields: Fields, name: str) -> tuple[str, ...] | None:
    pattern = fields.text(name)
    if not pattern:
        return None
    for letter in pattern:
        if letter not in LETTERS:
            raise fields.error(f"'{name}' has {letter!r}; known are {' '.join(LETTERS)}")
    return tuple(LETTERS[letter] for letter in pattern)


def _nemotron_prediction(
    fields: Fields, blocks: dict[str, Part], hidden: int, first: int
) -> list[LayerGroup]:
    count = fields.optional("num_nextn_predict_layers")
    kinds = _letters(fields, "mtp_hybrid_override_pattern")
    if kinds is None:
        listed = fields.items("mtp_layers_block_type") or ()
        words = {"attention": "full", "full_attention": "full", "moe": "moe", "mlp": "mlp"}
        kinds = tuple(words.get(str(entry), "") for entry in listed)
    if not count or any(kind not in blocks for kind in kinds):
        return []
    check_layers(fields, "num_nextn_predict_layers", count)
    fields.assume(f"{count} multi-token-prediction layer(s) not counted unless asked for")
    joint = Part((Linear("eh_proj", 2 * hidden, hidden, split=Split.REPLICATED),), 3 * hidden)
    layers: list[LayerGroup] = []
    for _ in range(count):
        for index, kind in enumerate(kinds):
            parts = (joint, blocks[kind]) if index == 0 else (blocks[kind],)
            layers.append(join(first + len(layers), *parts, norms=hidden))
    return layers
