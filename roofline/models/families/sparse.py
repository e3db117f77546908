"""Sparse: which layers have experts, how many, how wide; the config's many words for it.

Limits   Widths and counts only; how the router chooses does not change what is read or computed.
Sources  See facts.py; Fedus et al. 2021, arXiv:2101.03961 (routed experts); DeepSeek-AI 2024,
         arXiv:2401.06066 (shared experts).
"""

from dataclasses import replace

from roofline.models.architecture import Linear, Split
from roofline.models.families.facts import Facts
from roofline.models.fields import Fields
from roofline.models.parts import ExpertShape, Part, experts, feed_forward

EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
ACTIVE = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k",
          "top_k_experts", "moe_top_k", "num_selected_experts")  # fmt: skip
WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "expert_intermediate_size",
         "expert_hidden_size", "moe_ffn_hidden_size")  # fmt: skip
DENSE_WIDTH = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "hidden_dim", "dff",
               "d_ff", "dim_ff")  # fmt: skip
SHARED_COUNT = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts",
                "num_shared_expert")  # fmt: skip
SHARED_WIDTH = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                "shared_experts_intermediate_size", "share_expert_dim",
                "shared_intermediate_size")  # fmt: skip
IDENTITY = ("zero_expert_num",)


def n_experts(fields: Fields) -> int:
    """Count the routed experts of a layer that has them; 0: a dense model."""
    for name in EXPERTS:
        value = fields.find(name)[1]
        if isinstance(value, (list, tuple)):
            raise fields.error(f"'{name}' is a list; experts that differ by layer are not modelled")
        if value is not None and value != 0:
            return fields.whole(name, value)
    return 0


def sparse_layers(fields: Fields, n_layers: int) -> tuple[bool, ...]:
    """Say for each layer whether its feed-forward is routed experts.

    Raises:
        SpecError: a list is too short or has an unknown word.
    """
    listed = fields.per_layer(n_layers, "mlp_layer_types")
    if listed is not None:
        words = {"dense": False, "mlp": False, "sparse": True, "moe": True, "hash_moe": True}
        for entry in listed:
            if entry not in words:
                raise fields.error(f"'mlp_layer_types' has {entry!r}; known are {sorted(words)}")
        return tuple(words[entry] for entry in listed)
    moe_layers = fields.indices(n_layers, "moe_layers")
    if moe_layers is not None:
        return tuple(i in moe_layers for i in range(n_layers))
    if fields.has("moe_layers_enum"):
        words_text = fields.text("moe_layers_enum")
        chosen = {int(word) for word in words_text.split(",") if word.strip().isdigit()}
        return tuple(i in chosen for i in range(n_layers))
    if fields.has("interleave_moe_layer_step"):
        step = fields.count("interleave_moe_layer_step", least=0)
        return tuple(step > 0 and (i + 1) % step == 0 for i in range(n_layers))
    if fields.has("moe_layer_start_index", "moe_layer_interval"):
        first = fields.count("moe_layer_start_index", default=0, least=0, silent=True)
        name, last_given = fields.find("moe_layer_end_index")
        last = n_layers - 1
        if name and last_given != -1:
            last = fields.whole(name, last_given, least=0)
        step = fields.count("moe_layer_interval", default=1, silent=True)
        return tuple((i + 1) % step == 0 and first <= i <= last for i in range(n_layers))
    if fields.has("decoder_sparse_step", "mlp_only_layers"):
        dense = fields.indices(n_layers, "mlp_only_layers") or frozenset()
        step = fields.count("decoder_sparse_step", default=1, silent=True)
        return tuple(i not in dense and (i + 1) % step == 0 for i in range(n_layers))
    if fields.has("expert_layer_period"):
        period = fields.count("expert_layer_period")
        offset = fields.count("expert_layer_offset", default=0, least=0, silent=True)
        return tuple(i % period == offset for i in range(n_layers))
    freq_name, freq = fields.find("moe_layer_freq")
    if isinstance(freq, (list, tuple)):
        return tuple(bool(entry) for entry in fields.per_layer(n_layers, "moe_layer_freq") or ())
    every = fields.whole(freq_name, freq) if freq_name else 1
    first = fields.count(
        "first_k_dense_replace", "num_dense_layers", "moe_first_k_dense", "n_dense_layers",
        default=0, least=0, silent=True,
    )  # fmt: skip
    return tuple(i >= first and i % every == 0 for i in range(n_layers))


def dense_width(fields: Fields, hidden: int, *, four_times: bool = False) -> int:
    """Read the width of the dense feed-forward.

    Raises:
        SpecError: it is not given.
    """
    if four_times and not fields.has(*DENSE_WIDTH):
        fields.assume("feed-forward width not given: 4 × hidden, as the family")
        return 4 * hidden
    return fields.count(*DENSE_WIDTH)


def expert_width(fields: Fields, facts: Facts) -> int:
    """Read the width of one routed expert."""
    if fields.has(*WIDTH):
        return fields.count(*WIDTH)
    if not facts.experts_use_intermediate:
        fields.assume("width of an expert not given: taken as intermediate_size")
    return fields.count(*DENSE_WIDTH)


def shared_width(fields: Fields, expert: int) -> int:
    """Read the width of all shared experts together; 0: none."""
    name, value = fields.find(*SHARED_WIDTH)
    count = fields.find(*SHARED_COUNT)[1]
    if name:
        return fields.whole(name, value, least=0)
    if isinstance(count, (list, tuple)):
        raise fields.error("shared experts that differ by layer are not modelled")
    return expert * fields.count(*SHARED_COUNT, default=0, least=0, silent=True)


def active(fields: Fields, facts: Facts) -> int:
    """Read how many experts a token passes through."""
    return fields.count(*ACTIVE, default=facts.n_active)


def expert_block(fields: Fields, facts: Facts, hidden: int, *, gated: bool = True) -> Part:
    """Build one layer's routed and shared experts with their router.

    Raises:
        SpecError: more experts are chosen than there are.
    """
    count, width = n_experts(fields), expert_width(fields, facts)
    chosen = active(fields, facts)
    if count == 0:
        raise fields.error(f"no '{EXPERTS[0]}' (or another word for it); the architecture needs it")
    identity = fields.optional(*IDENTITY) or 0
    if chosen > count + identity:
        raise fields.error(f"{chosen} experts per token of {count + identity}")
    shape = ExpertShape(hidden, count, chosen, width, n_identity=identity)
    router_bias = facts.router_bias if isinstance(facts.router_bias, bool) else False
    part = experts(
        shape, gated=gated, bias=facts.expert_bias, router_bias=router_bias,
        path=facts.expert_path, router=facts.router, names=facts.expert_names,
    )  # fmt: skip
    mlp_bias = facts.mlp_bias
    if not isinstance(mlp_bias, bool):
        mlp_bias = fields.flag(mlp_bias[0], default=mlp_bias[1])
    shared = feed_forward(
        hidden, shared_width(fields, width), gated=gated, bias=mlp_bias, path=facts.shared_path
    )
    linears = (*part.linears, *shared.linears)
    if facts.shared_gate and shared.linears:
        gate = Linear(
            f"{facts.shared_path}_gate", hidden, 1, split=Split.REPLICATED, quantisable=False
        )
        linears = (*linears, gate)
    small = count if facts.router_small else 0
    return Part(linears, small, experts=part.experts)


def narrowed(fields: Fields, part: Part, hidden: int, path: str) -> Part:
    """Put experts on a narrower vector between a projection down and one up, if the config does."""
    narrow = fields.optional("moe_latent_size", "routed_expert_hidden_size")
    if narrow is None or part.experts is None:
        return part
    inside = tuple(
        replace(linear, n_out=narrow) if linear.split is Split.ROW else replace(linear, n_in=narrow)
        for linear in part.experts.linears
    )
    down = Linear(f"{path}.fc1_latent_proj", hidden, narrow, split=Split.REPLICATED)
    up = Linear(f"{path}.fc2_latent_proj", narrow, hidden, split=Split.REPLICATED)
    return replace(
        part, linears=(*part.linears, down, up), experts=replace(part.experts, linears=inside)
    )
