"""Facts: what a decoder family does that its config does not say.

Most decoders are one pattern: attention, a feed-forward, norms. What differs from family to family
is small and fixed by its code, not by its config: which projections have biases, how many norms a
layer has, whether queries and keys are normed, whether the feed-forward is gated, which default
stands for a missing key. ``Facts`` holds it; ``family_table.py`` lists the families.

Sources  The families' reference implementations in Hugging Face transformers, read in November 2026
         (release 5.24): parameters that each class builds, not its code.
"""

from dataclasses import dataclass

Choice = bool | tuple[str, bool]
"""Yes, no, or the config's key with the family's default."""


@dataclass(frozen=True)
class Facts:
    """One family.

    Args:
        qkv_bias, o_bias, mlp_bias, head_bias: biases of the projections.
        norms: norms of hidden width in a layer; ``norm_values`` values each width (2: with bias,
            0: without parameters).
        qk_norm: ``head`` (one norm of head_dim for queries and one for keys), ``full`` (as wide as
            all heads), "" (none); with ``qk_norm_when`` a key of the config that switches it on.
        gated: gate, up and down; else up and down.
        gate: see ``AttentionStyle.gate``; with ``gate_when`` a key of the config.
        sinks: one value a head, in ``all`` layers or the ``sliding`` ones.
        tied: whether lm_head is the embedding when the config does not say.
        head_dim: the family's default; None: hidden / heads.
        window: rule for windows when the config lists no layer types, see ``windows.py``.
        head_small, layer_small: further values a layer as a multiple of heads, of 1.
        hidden_small: further values a layer as a multiple of the hidden width.
        ffn_small: further values a layer as a multiple of the feed-forward width.
        final_norm: whether a norm follows the last layer.
        positions: learned positions: the config's key, with ``position_offset`` further rows.
        embedding_norms: norms after the input embedding.
        n_active: the family's experts per token when the config does not say.
        extra_vocab: key of further rows of the input embedding.
        dense_key: key of the dense layers' width where experts have the usual one.
        sparse_norms: further norms in layers with experts.
    """

    qkv_bias: Choice = ("attention_bias", False)
    k_bias: Choice | None = None
    o_bias: Choice = ("attention_bias", False)
    mlp_bias: Choice = ("mlp_bias", False)
    head_bias: Choice = False
    norms: int = 2
    norm_values: int = 1
    qk_norm: str = ""
    qk_norm_when: Choice = True
    qk_norm_values: int = 1
    gated: bool = True
    gate: str = ""
    gate_when: Choice = True
    gate_name: str = "gate_proj"
    sinks: str = ""
    tied: bool = False
    head_dim: int | None = None
    window: str = ""
    head_small: int = 0
    layer_small: int = 0
    hidden_small: int = 0
    head_dim_small: int = 0
    query_small: int = 0
    ffn_small: int = 0
    final_norm: bool = True
    positions: str = ""
    position_offset: int = 0
    embedding_norms: int = 0
    n_active: int | None = None
    attention_path: str = "self_attn"
    attention_names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj")
    packed: str = ""
    mlp_path: str = "mlp"
    mlp_names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    mlp_packed: str = ""
    expert_path: str = "mlp.experts"
    expert_names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    expert_bias: bool = False
    router: str = "mlp.gate"
    router_bias: Choice = False
    router_small: bool = False
    shared_path: str = "mlp.shared_experts"
    shared_gate: bool = False
    experts_use_intermediate: bool = False
    extra_vocab: str = ""
    dense_key: str = ""
    sparse_norms: int = 0
