"""Hybrid: families whose layers differ in how they mix tokens: attention here, a state there.

Sources  See facts.py and state.py.
"""

from collections.abc import Callable
from dataclasses import replace

from roofline.models.architecture import LayerGroup
from roofline.models.attention_parts import Heads, grouped_query
from roofline.models.draft import Draft
from roofline.models.families.decoder import (
    HIDDEN,
    LAYERS,
    close,
    heads_of,
    qk_norm,
    style_of,
    transform,
)
from roofline.models.families.facts import Facts
from roofline.models.families.prediction import prediction_layers
from roofline.models.families.sparse import n_experts, narrowed, sparse_layers
from roofline.models.families.state import (
    gated_delta,
    mamba,
    mamba2,
)
from roofline.models.families.windows import layer_kinds, window_of
from roofline.models.fields import Fields
from roofline.models.parts import Part, Window, join

Mixer = Callable[[str], Part]


def attention_part(fields: Fields, facts: Facts, heads: Heads) -> Part:
    """Build grouped-query attention with the family's norms on queries and keys."""
    return grouped_query(heads, style_of(fields, facts), small=qk_norm(fields, facts, heads))


def assemble(
    fields: Fields, facts: Facts, kinds: tuple[str, ...], hidden: int, mixer: Mixer
) -> list[LayerGroup]:
    """Put layers together: the mixer of each kind, a feed-forward, two norms (or the family's)."""
    n_layers = len(kinds)
    sparse = sparse_layers(fields, n_layers) if n_experts(fields) else (False,) * n_layers
    norms = facts.norms * facts.norm_values * hidden
    layers = []
    for i, kind in enumerate(kinds):
        block = transform(fields, facts, hidden, sparse=sparse[i])
        if sparse[i]:
            block = narrowed(fields, block, hidden, facts.mlp_path)
        window = window_of(fields, kind) if kind in ("sliding", "chunked") else Window()
        layers.append(join(i, mixer(kind), block, norms=norms, window=window))
    return layers


def unknown_kind(fields: Fields, kind: str) -> Part:
    """Refuse a kind of layer that the family does not have."""
    raise fields.error(f"layer type {kind!r} in a family that has none of this kind")


QWEN_NEXT = Facts(
    qk_norm="head", gate="query", head_dim=256, shared_path="mlp.shared_expert", shared_gate=True,
    o_bias=("attention_bias", False), mlp_bias=False,
)  # fmt: skip


def read_gated_delta(
    fields: Fields, style: str = "split", facts: Facts = QWEN_NEXT, every: int = 4
) -> Draft:
    """Read Qwen3-Next, Qwen3.5 and others: gated delta networks, attention in every n-th layer."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    step = fields.optional("full_attention_interval") or every
    if fields.has("layer_types"):
        kinds = layer_kinds(fields, n_layers, "")
    else:
        kinds = tuple(
            "full" if (i + 1) % step == 0 else "linear_attention" for i in range(n_layers)
        )
    if not fields.flag("attn_output_gate", default=True):
        facts = replace(facts, gate="")
    attention = attention_part(fields, facts, heads_of(fields, hidden, facts.head_dim))
    state = Part()
    if fields.partial and not fields.has("linear_num_value_heads"):
        fields.assume("the state of linear layers is not described, so it is not counted")
    elif "linear_attention" in kinds:
        state = gated_delta(fields, hidden, style=style)

    def mixer(kind: str) -> Part:
        return state if kind == "linear_attention" else attention

    layers = assemble(fields, facts, kinds, hidden, mixer)
    draft = close(fields, facts, layers, hidden)
    return replace(draft, prediction=prediction_layers(fields, layers, hidden))


def read_olmo_hybrid(fields: Fields) -> Draft:
    """Read OLMo-Hybrid: delta networks with a norm before, attention with norms after."""
    return read_gated_delta(fields, "olmo", Facts(qk_norm="full"))


def read_jamba(fields: Fields) -> Draft:
    """Read Jamba: Mamba, attention in every n-th layer, experts in every other."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(
        qkv_bias=False, o_bias=False, mlp_bias=False, mlp_path="feed_forward",
        expert_path="feed_forward.experts", router="feed_forward.router",
        experts_use_intermediate=True,
    )  # fmt: skip
    if fields.has("layers_block_type", "layer_types"):
        kinds = layer_kinds(fields, n_layers, "")
    else:
        period = fields.count("attn_layer_period", default=8)
        offset = fields.count("attn_layer_offset", default=4, least=0)
        kinds = tuple("full" if i % period == offset else "mamba" for i in range(n_layers))
    attention = attention_part(fields, facts, heads_of(fields, hidden))
    state = mamba(fields, hidden, path="mamba", norms=True)
    if not fields.has("expert_layer_period"):
        fields.assume("expert_layer_period not given: taken as 2, offset 1, as the family")
        fields.values = {**fields.values, "expert_layer_period": 2, "expert_layer_offset": 1}
    if fields.values.get("num_experts") == 1:
        fields.values = {**fields.values, "num_experts": 0}  # the family's word for dense
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: attention if kind == "full" else state
    )
    return close(fields, facts, layers, hidden)


def mamba2_of(
    fields: Fields, hidden: int, *, path: str, norm: bool = True, out_bias: str = ""
) -> Part:
    """Build a Mamba-2 block from the config's words for its channels and heads."""
    inner = fields.optional("mamba_d_ssm")
    if inner is None:
        inner = int(fields.number("mamba_expand", "expand", default=2.0) * hidden)
    n_heads = fields.count("mamba_n_heads", "mamba_num_heads", "num_heads", "n_mamba_heads")
    head_name, head = fields.find("mamba_d_head", "mamba_head_dim", "mamba_headdim")
    if head_name and head != "auto":
        inner = n_heads * fields.whole(head_name, head)
    return mamba2(
        fields, hidden, path=path, inner=inner, n_heads=n_heads, norm=norm, out_bias=out_bias
    )


def read_bamba(fields: Fields) -> Draft:
    """Read Bamba: Mamba-2, attention in the layers listed."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(mlp_path="feed_forward")
    if fields.has("layers_block_type", "layer_types"):
        kinds = layer_kinds(fields, n_layers, "")
    else:
        chosen = fields.indices(n_layers, "attn_layer_indices") or frozenset()
        kinds = tuple("full" if i in chosen else "mamba" for i in range(n_layers))
    attention = attention_part(fields, facts, heads_of(fields, hidden))
    state = mamba2_of(fields, hidden, path="mamba")
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: attention if kind == "full" else state
    )
    return close(fields, facts, layers, hidden)


def read_falcon_h1(fields: Fields) -> Draft:
    """Read Falcon-H1: attention and Mamba-2 side by side in every layer."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(mlp_path="feed_forward")
    attention = attention_part(fields, facts, heads_of(fields, hidden))
    norm = fields.flag("mamba_rms_norm", default=False)
    state = mamba2_of(fields, hidden, path="mamba", norm=norm, out_bias="projectors_bias")
    block = transform(fields, facts, hidden, sparse=False)
    layers = [join(i, state, attention, block, norms=2 * hidden) for i in range(n_layers)]
    return close(fields, facts, layers, hidden)


def read_granite_hybrid(fields: Fields) -> Draft:
    """Read Granite-4: Mamba-2 or attention, experts (or none) beside a shared feed-forward."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(
        expert_path="block_sparse_moe.experts", router="block_sparse_moe.router",
        experts_use_intermediate=True, shared_path="shared_mlp",
    )  # fmt: skip
    kinds = layer_kinds(fields, n_layers, "")
    attention = attention_part(fields, facts, heads_of(fields, hidden))
    state = mamba2_of(fields, hidden, path="mamba")
    if not n_experts(fields):
        width = fields.count("shared_intermediate_size")
        fields.values = {**fields.values, "intermediate_size": width}
        fields.assume("no experts: the shared feed-forward alone")
        facts = replace(facts, mlp_path="shared_mlp")
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: attention if kind == "full" else state
    )
    return close(fields, facts, layers, hidden)
