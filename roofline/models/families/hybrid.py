"""Hybrid: families whose layers differ in how they mix tokens: attention here, a state there.

Sources  See facts.py and state.py.
"""

from collections.abc import Callable
from dataclasses import replace

from roofline.models.architecture import LayerGroup, Linear, Split
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
from roofline.models.families.latent import latent_shape, prediction_layers
from roofline.models.families.sparse import dense_width, n_experts, sparse_layers
from roofline.models.families.state import (
    gated_delta,
    kimi_delta,
    lightning,
    mamba,
    mamba2,
    rg_lru,
    short_conv,
)
from roofline.models.families.windows import layer_kinds, window_of
from roofline.models.fields import Fields
from roofline.models.parts import Heads, Part, Window, feed_forward, grouped_query, join, latent

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
        window = window_of(fields, kind) if kind in ("sliding", "chunked") else Window()
        layers.append(join(i, mixer(kind), block, norms=norms, window=window))
    return layers


def _unknown(fields: Fields, kind: str) -> Part:
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
    state = gated_delta(fields, hidden, style=style) if "linear_attention" in kinds else Part()

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


def _mamba2_of(fields: Fields, hidden: int, *, path: str, norm: bool = True) -> Part:
    inner = fields.optional("mamba_d_ssm")
    if inner is None:
        inner = int(fields.number("mamba_expand", "expand", default=2.0) * hidden)
    n_heads = fields.count("mamba_n_heads", "mamba_num_heads", "num_heads", "n_mamba_heads")
    head_name, head = fields.find("mamba_d_head", "mamba_head_dim", "mamba_headdim")
    if head_name and head != "auto":
        inner = n_heads * fields.whole(head_name, head)
    return mamba2(fields, hidden, path=path, inner=inner, n_heads=n_heads, norm=norm)


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
    state = _mamba2_of(fields, hidden, path="mamba")
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
    state = _mamba2_of(fields, hidden, path="mamba", norm=norm)
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
    state = _mamba2_of(fields, hidden, path="mamba")
    if not n_experts(fields):
        width = fields.count("shared_intermediate_size")
        fields.values = {**fields.values, "intermediate_size": width}
        fields.assume("no experts: the shared feed-forward alone")
        facts = replace(facts, mlp_path="shared_mlp")
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: attention if kind == "full" else state
    )
    return close(fields, facts, layers, hidden)


LETTERS = {"M": "mamba", "*": "full", "-": "mlp", "E": "moe"}
NEMOTRON = Facts(
    attention_path="mixer", mlp_path="mixer", expert_path="mixer.experts", router="mixer.gate",
    shared_path="mixer.shared_experts", gated=False, norms=1, prefix="backbone.",
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
        "mamba": _mamba2_of(fields, hidden, path="mixer") if _has_state(kinds) else Part(),
    }
    if "mlp" in kinds:
        blocks["mlp"] = transform(fields, NEMOTRON, hidden, sparse=False)
    if "moe" in kinds:
        blocks["moe"] = _latent_experts(fields, hidden)
    blocks["linear_attention"] = blocks["mamba"]
    layers = [
        join(i, blocks[kind] if kind in blocks else _unknown(fields, kind), norms=hidden)
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


def _latent_experts(fields: Fields, hidden: int) -> Part:
    """Build experts that work on a narrower vector (``moe_latent_size``), if it is given."""
    part = transform(fields, NEMOTRON, hidden, sparse=True)
    narrow = fields.optional("moe_latent_size", "routed_expert_hidden_size")
    if narrow is None or part.experts is None:
        return part
    inside = tuple(
        replace(linear, n_in=narrow) if linear.n_in == hidden and linear.split is Split.COLUMN
        else replace(linear, n_out=narrow)
        for linear in part.experts.linears
    )  # fmt: skip
    down = Linear("mixer.fc1_latent_proj", hidden, narrow, split=Split.REPLICATED)
    up = Linear("mixer.fc2_latent_proj", narrow, hidden, split=Split.REPLICATED)
    return replace(
        part, linears=(*part.linears, down, up), experts=replace(part.experts, linears=inside)
    )


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
    fields.assume(f"{count} multi-token-prediction layer(s) not counted unless asked for")
    joint = Part((Linear("eh_proj", 2 * hidden, hidden, split=Split.REPLICATED),), 3 * hidden)
    layers = []
    for _ in range(count):
        for index, kind in enumerate(kinds):
            parts = (joint, blocks[kind]) if index == 0 else (blocks[kind],)
            layers.append(join(first + len(layers), *parts, norms=hidden))
    return layers


def read_minimax(fields: Fields) -> Draft:
    """Read MiniMax-01: lightning attention, softmax attention in every eighth layer, experts."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(
        qkv_bias=False, o_bias=False, expert_path="block_sparse_moe.experts",
        expert_names=("w1", "w3", "w2"), router="block_sparse_moe.gate",
        experts_use_intermediate=True,
    )  # fmt: skip
    listed = fields.per_layer(n_layers, "attn_type_list")
    if listed is not None:
        kinds = tuple("full" if entry == 1 else "linear_attention" for entry in listed)
    elif fields.has("layer_types"):
        kinds = layer_kinds(fields, n_layers, "")
    else:
        fields.assume("layer types not given: every second layer is linear, as the family")
        kinds = tuple(("full", "linear_attention")[i % 2] for i in range(n_layers))
    heads = heads_of(fields, hidden)
    attention = attention_part(fields, facts, heads)
    state = lightning(fields, hidden, n_heads=heads.n_heads, head_dim=heads.head_dim)
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: attention if kind == "full" else state
    )
    return close(fields, facts, layers, hidden)


def read_lfm2(fields: Fields) -> Draft:
    """Read LFM2: gated short convolutions, attention in the layers listed."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(
        qk_norm="head", tied=True, attention_names=("q_proj", "k_proj", "v_proj", "out_proj"),
        qkv_bias=False, o_bias=False, mlp_bias=False, mlp_path="feed_forward",
        mlp_names=("w1", "w3", "w2"), expert_path="feed_forward.experts",
        expert_names=("w1", "w3", "w2"), router="feed_forward.gate",
    )  # fmt: skip
    if fields.has("layer_types"):
        kinds = layer_kinds(fields, n_layers, "")
    else:
        chosen = fields.indices(n_layers, "full_attn_idxs")
        if chosen is None:
            raise fields.error("no 'layer_types' or 'full_attn_idxs'")
        kinds = tuple("full" if i in chosen else "conv" for i in range(n_layers))
    if not n_experts(fields):
        fields.values = {**fields.values, "intermediate_size": _lfm2_width(fields, hidden)}
    attention = attention_part(fields, facts, heads_of(fields, hidden))
    conv = short_conv(fields, hidden)
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: conv if kind == "conv" else attention
    )
    return close(fields, facts, layers, hidden)


def _lfm2_width(fields: Fields, hidden: int) -> int:
    """Two thirds of the stated width, times a factor, up to a multiple: the family's own rule."""
    width = fields.count("block_ff_dim", "intermediate_size")
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return width
    width = int(2 * width / 3)
    width = int(fields.number("block_ffn_dim_multiplier", default=1.0) * width)
    multiple = fields.count("block_multiple_of", default=256)
    return multiple * -(-width // multiple)


def read_recurrent_gemma(fields: Fields) -> Draft:
    """Read RecurrentGemma: two recurrent layers, one with a window, half the stated width."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    facts = Facts(
        tied=True, o_bias=True, attention_path="temporal_block", mlp_bias=True,
        mlp_path="mlp_block", head_dim=256,
    )  # fmt: skip
    pattern = fields.items("block_types", "_block_types") or ("recurrent", "recurrent", "attention")
    words = {"recurrent": "recurrent", "attention": "sliding"}
    if any(entry not in words for entry in pattern):
        raise fields.error("'block_types' has other words than recurrent and attention")
    kinds = tuple(words[pattern[i % len(pattern)]] for i in range(n_layers))
    heads = heads_of(fields, hidden, hidden // fields.count("num_attention_heads"))
    attention = attention_part(fields, facts, heads)
    state = rg_lru(fields, hidden, n_heads=heads.n_heads)
    width = dense_width(fields, hidden) // 2
    block = feed_forward(hidden, width, bias=True, path="mlp_block")
    layers = [
        join(i, state if kind == "recurrent" else attention, block, norms=2 * hidden,
             window=Window() if kind == "recurrent" else window_of(fields, kind))
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    return close(fields, facts, layers, hidden)


def read_kimi_linear(fields: Fields) -> Draft:
    """Read Kimi-Linear: delta attention, latent attention in every fourth layer, experts."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    nested = fields.child("linear_attn_config")
    if nested is not None:
        full = frozenset(i - 1 for i in nested.indices(n_layers, "full_attn_layers") or ())
        kinds = tuple("full" if i in full else "linear_attention" for i in range(n_layers))
        n_heads, dim = nested.count("num_heads"), nested.count("head_dim")
        kernel = nested.count("short_conv_kernel_size", default=4)
        full_rank = "g" if nested.flag("use_full_rank_gate", default=False) else ""
    else:
        kinds = layer_kinds(fields, n_layers, "")
        n_heads, dim = fields.count("linear_num_heads"), fields.count("linear_head_dim")
        kernel = fields.count("linear_conv_kernel_dim", default=4)
        full_rank = ""
    gate = "g_proj" if fields.flag("mla_use_output_gate", default=False) else ""
    attention = latent(latent_shape(fields, hidden), gate=gate)
    state = kimi_delta(
        fields, hidden, n_heads=n_heads, head_dim=dim, kernel=kernel, full_rank=full_rank
    )
    facts = Facts(mlp_bias=False, expert_path="block_sparse_moe.experts",
                  router="block_sparse_moe.gate", expert_names=("w1", "w3", "w2"),
                  shared_path="block_sparse_moe.shared_experts")  # fmt: skip
    layers = assemble(
        fields, facts, kinds, hidden, lambda kind: attention if kind == "full" else state
    )
    return close(fields, facts, layers, hidden)


def read_mamba(fields: Fields) -> Draft:
    """Read Mamba and Falcon-Mamba: nothing but state-space layers."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    block = mamba(fields, hidden, path="mixer", norms=False)
    facts = Facts(tied=True)
    layers = [join(i, block, norms=hidden) for i in range(n_layers)]
    return close(fields, facts, layers, hidden)


def read_mamba2(fields: Fields) -> Draft:
    """Read Mamba-2: nothing but state-space layers."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    inner = int(fields.number("expand", default=2.0) * hidden)
    n_heads = fields.count("num_heads")
    if fields.has("head_dim") and n_heads * fields.count("head_dim") != inner:
        raise fields.error(f"{n_heads} heads of {fields.count('head_dim')} are not {inner} wide")
    block = mamba2(fields, hidden, path="mixer", inner=inner, n_heads=n_heads)
    layers = [join(i, block, norms=hidden) for i in range(n_layers)]
    return close(fields, Facts(), layers, hidden)
