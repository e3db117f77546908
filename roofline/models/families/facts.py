"""Facts: what a decoder family does that its config does not say.

Most decoders are one pattern: attention, a feed-forward, norms. What differs from family to family
is small and fixed by its code, not by its config: which projections have biases, how many norms a
layer has, whether queries and keys are normed, whether the feed-forward is gated, which default
stands for a missing key. This table holds it.

Sources  The families' reference implementations in Hugging Face transformers, read in November 2026
         (release 5.24): parameters that each class builds, not its code.
"""

from dataclasses import dataclass, replace

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


LLAMA = Facts()
GEMMA = Facts(tied=True, head_dim=256)
GEMMA2 = replace(GEMMA, norms=4, window="gemma2")
QWEN2 = Facts(qkv_bias=True, o_bias=False, mlp_bias=False, window="qwen2")
ERNIE = Facts(
    qkv_bias=("use_bias", False),
    o_bias=("use_bias", False),
    mlp_bias=("use_bias", False),
    tied=True,
    head_dim=128,
)
QWEN3 = Facts(qk_norm="head", head_dim=128, window="qwen2")
OLMO2 = Facts(qk_norm="full")
MIXTRAL_EXPERTS = Facts(
    expert_path="block_sparse_moe.experts",
    expert_names=("w1", "w3", "w2"),
    router="block_sparse_moe.gate",
    experts_use_intermediate=True,
    window="all",
)
STEP = Facts(
    qk_norm="head", gate="head", gate_name="g_proj", head_dim=128, shared_path="share_expert"
)
GRANITE_MOE = Facts(
    expert_path="block_sparse_moe.experts",
    router="block_sparse_moe.router",
    experts_use_intermediate=True,
    shared_path="shared_mlp",
)
GPT2 = Facts(
    qkv_bias=True,
    o_bias=True,
    mlp_bias=True,
    norm_values=2,
    gated=False,
    tied=True,
    positions="n_positions",
    attention_path="attn",
    packed="c_attn",
    attention_names=("q_proj", "k_proj", "v_proj", "c_proj"),
    mlp_names=("", "c_fc", "c_proj"),
)
GPTJ = replace(
    GPT2,
    qkv_bias=False,
    o_bias=False,
    norms=1,
    tied=False,
    head_bias=True,
    positions="",
    packed="",
    attention_names=("q_proj", "k_proj", "v_proj", "out_proj"),
    mlp_names=("", "fc_in", "fc_out"),
)
FALCON_NAMES = replace(
    GPT2,
    positions="",
    attention_path="self_attention",
    packed="query_key_value",
    attention_names=("", "", "", "dense"),
    mlp_names=("", "dense_h_to_4h", "dense_4h_to_h"),
)
OPT = replace(
    GPT2,
    attention_path="self_attn",
    packed="",
    attention_names=("q_proj", "k_proj", "v_proj", "out_proj"),
    mlp_path="",
    mlp_names=("", "fc1", "fc2"),
)
QWEN_MOE = Facts(window="qwen2", shared_path="mlp.shared_expert", shared_gate=True)

FAMILIES: dict[str, Facts] = {
    "llama": LLAMA,
    "internlm3": replace(LLAMA, qkv_bias=("qkv_bias", False), o_bias=("bias", False)),
    "iquestcoder": LLAMA,
    "exaone": LLAMA,
    "yi": LLAMA,
    "minicpm": replace(LLAMA, tied=True),
    "cwm": replace(LLAMA, qkv_bias=False, o_bias=False, window="cwm"),
    "arcee": replace(LLAMA, gated=False),
    "mistral": replace(LLAMA, qkv_bias=False, o_bias=False, mlp_bias=False, window="all"),
    "ministral": replace(LLAMA, qkv_bias=False, o_bias=False, mlp_bias=False, window="all"),
    "ministral3": replace(LLAMA, qkv_bias=False, o_bias=False, mlp_bias=False, window="all"),
    "mixtral": replace(MIXTRAL_EXPERTS, qkv_bias=False, o_bias=False),
    "qwen2": Facts(qkv_bias=True, o_bias=False, mlp_bias=False, window="qwen2"),
    "qwen3": QWEN3,
    "qwen2_moe": replace(QWEN_MOE, qkv_bias=("qkv_bias", True), o_bias=False),
    "qwen3_moe": replace(QWEN3, head_dim=None),
    "qwen2_vl_text": Facts(qkv_bias=True, o_bias=False, mlp_bias=False, window="qwen2"),
    "qwen2_5_vl_text": Facts(qkv_bias=True, o_bias=False, mlp_bias=False, window="qwen2"),
    "qwen3_vl_text": replace(QWEN3, mlp_bias=False),
    "qwen3_vl_moe_text": replace(QWEN3, mlp_bias=False, head_dim=None),
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma3_text": replace(GEMMA2, qk_norm="head", window="gemma3"),
    "vaultgemma": replace(GEMMA2, norms=2),
    "phi": Facts(
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        head_bias=True,
        norms=1,
        norm_values=2,
        gated=False,
        qk_norm="head",
        qk_norm_when=("qk_layernorm", False),
        qk_norm_values=2,
        attention_names=("q_proj", "k_proj", "v_proj", "dense"),
        mlp_names=("", "fc1", "fc2"),
    ),
    "phi3": replace(LLAMA, qkv_bias=False, o_bias=False, mlp_bias=False, window="all"),
    "phi4_multimodal": replace(LLAMA, qkv_bias=False, o_bias=False, mlp_bias=False, window="all"),
    "phimoe": replace(
        MIXTRAL_EXPERTS, norm_values=2, head_bias=("lm_head_bias", False), window="all"
    ),
    "cohere": Facts(norms=1, tied=True, qk_norm="full", qk_norm_when=("use_qk_norm", False)),
    "cohere2": Facts(norms=1, tied=True, window="cohere2"),
    "cohere2_moe": Facts(norms=1, tied=True, window="cohere2", experts_use_intermediate=True),
    "olmo": Facts(norm_values=0),
    "olmo2": OLMO2,
    "olmo3": replace(OLMO2, window="every4"),
    "olmoe": replace(OLMO2, experts_use_intermediate=True),
    "flex_olmo": replace(OLMO2, experts_use_intermediate=True),
    "glm": Facts(qkv_bias=("attention_bias", True), o_bias=False, mlp_bias=False, head_dim=128),
    "glm4": Facts(
        qkv_bias=("attention_bias", True), o_bias=False, mlp_bias=False, norms=4, head_dim=128
    ),
    "glm4_moe": Facts(
        o_bias=False, mlp_bias=False, qk_norm="head", qk_norm_when=("use_qk_norm", False)
    ),
    "sarvam_moe": Facts(
        o_bias=False, mlp_bias=False, qk_norm="head", qk_norm_when=("use_qk_norm", True)
    ),
    "solar_open": Facts(o_bias=False, mlp_bias=False, head_dim=128),
    "dots1": Facts(qk_norm="head", window="qwen2"),
    "granite": LLAMA,
    "granite_swa": Facts(sinks="all", tied=True, window="granite_swa"),
    "granitemoe": GRANITE_MOE,
    "granitemoeshared": GRANITE_MOE,
    "granitemoe_swa": replace(GRANITE_MOE, sinks="all", window="granite_swa"),
    "hyperclovax": Facts(norms=4),
    "jais2": Facts(
        qkv_bias=("attention_bias", True),
        o_bias=("attention_bias", True),
        mlp_bias=("mlp_bias", True),
        norm_values=2,
        gated=False,
    ),
    "nemotron": Facts(norm_values=2, gated=False),
    "seed_oss": Facts(
        qkv_bias=("attention_bias", True), o_bias=("attention_out_bias", False), head_dim=128
    ),
    "smollm3": Facts(tied=True, window="qwen2"),
    "stablelm": Facts(
        qkv_bias=("use_qkv_bias", False),
        o_bias=False,
        mlp_bias=False,
        norm_values=2,
        qk_norm="full",
        qk_norm_when=("qk_layernorm", False),
    ),
    "starcoder2": Facts(
        qkv_bias=("use_bias", True),
        o_bias=("use_bias", True),
        mlp_bias=("use_bias", True),
        norm_values=2,
        gated=False,
        tied=True,
        window="all",
        mlp_names=("", "c_fc", "c_proj"),
    ),
    "persimmon": Facts(
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        norm_values=2,
        qk_norm="head",
        qk_norm_when=("qk_layernorm", True),
        qk_norm_values=2,
        gated=False,
        packed="query_key_value",
        attention_names=("", "", "", "dense"),
        mlp_names=("", "dense_h_to_4h", "dense_4h_to_h"),
    ),
    "apertus": Facts(qk_norm="head", gated=False, layer_small=2),
    "helium": Facts(o_bias=False, head_dim=128),
    "ernie4_5": Facts(
        qkv_bias=("use_bias", False),
        o_bias=("use_bias", False),
        mlp_bias=("use_bias", False),
        tied=True,
        head_dim=128,
    ),
    "ernie4_5_moe": Facts(
        qkv_bias=("use_bias", False),
        o_bias=("use_bias", False),
        mlp_bias=("use_bias", False),
        tied=True,
        router_small=True,
    ),
    "exaone4": Facts(qk_norm="head", window="exaone4"),
    "exaone_moe": Facts(qk_norm="head", window="exaone4"),
    "hunyuan_v1_dense": Facts(qk_norm="head", tied=False, head_dim=128),
    "hunyuan_v1_moe": Facts(
        qk_norm="head", experts_use_intermediate=True, shared_path="mlp.shared_mlp"
    ),
    "hy_v3": Facts(qk_norm="head", head_dim=128),
    "bitnet": Facts(query_small=1, ffn_small=1),
    "diffllama": Facts(head_dim_small=4),
    "minimax_m2": replace(
        MIXTRAL_EXPERTS, qkv_bias=False, o_bias=False, qk_norm="full", window=""
    ),
    "gpt_oss": Facts(
        qkv_bias=("attention_bias", True),
        o_bias=("attention_bias", True),
        mlp_bias=False,
        sinks="all",
        head_dim=64,
        window="gpt_oss",
        router="mlp.router",
        router_bias=True,
        expert_bias=True,
        experts_use_intermediate=True,
    ),
    "afmoe": Facts(
        o_bias=("attention_bias", False),
        qk_norm="head",
        norms=4,
        gate="output",
        router="mlp.router.gate",
        router_small=True,
        head_dim=128,
        window="afmoe",
    ),
    "beam": Facts(qk_norm="head", norms=4, gate="output", head_small=1, head_dim=128),
    "step3p5": STEP,
    "step3p7": STEP,
    "laguna": Facts(
        qk_norm="head",
        gate="head",
        gate_name="g_proj",
        gate_when=("gating", True),
        router_small=True,
        head_dim=128,
    ),
    "flint": replace(QWEN_MOE, qk_norm="head", sinks="all", head_dim=128, shared_gate=False),
    "kolibri1": Facts(qk_norm="head", norms=4, head_dim=128),
    "mellum": Facts(qk_norm="head", head_dim=128),
    "nanochat": Facts(norm_values=0, gated=False, mlp_bias=False, mlp_names=("", "fc1", "fc2")),
    "doge": Facts(
        qk_norm="head",
        hidden_small=2,
        head_small=1,
        o_bias=("attention_bias", False),
    ),
    "mimo_v2_flash": Facts(o_bias=False, mlp_bias=False, sinks="sliding", head_dim=192),
    "llama4_text": Facts(
        window="llama4",
        tied=False,
        mlp_path="feed_forward",
        expert_path="feed_forward.experts",
        router="feed_forward.router",
        shared_path="feed_forward.shared_expert",
        head_dim=128,
    ),
    "gpt2": GPT2,
    "gpt_bigcode": GPT2,
    "gpt_neo": replace(
        GPT2,
        qkv_bias=False,
        positions="max_position_embeddings",
        packed="",
        attention_path="attn.attention",
        attention_names=("q_proj", "k_proj", "v_proj", "out_proj"),
        window="gpt_neo",
    ),
    "openai-gpt": replace(GPT2, final_norm=False),
    "gptj": GPTJ,
    "codegen": replace(GPTJ, packed="qkv_proj"),
    "gpt_neox": replace(
        FALCON_NAMES,
        qkv_bias=("attention_bias", True),
        o_bias=("attention_bias", True),
        tied=False,
        attention_path="attention",
    ),
    "bloom": replace(FALCON_NAMES, embedding_norms=1),
    "falcon": FALCON_NAMES,
    "mpt": Facts(
        qkv_bias=False,
        o_bias=False,
        mlp_bias=False,
        gated=False,
        tied=True,
        attention_path="attn",
        packed="Wqkv",
        attention_names=("", "", "", "out_proj"),
        mlp_path="ffn",
        mlp_names=("", "up_proj", "down_proj"),
    ),
    "opt": replace(OPT, positions="max_position_embeddings", position_offset=2),
    "biogpt": replace(
        OPT, positions="max_position_embeddings", position_offset=2
    ),
    "xglm": replace(OPT, positions=""),
    "ctrl": replace(
        GPT2, head_bias=True, positions="", packed="", attention_path="multi_head_attention",
        attention_names=("Wq", "Wk", "Wv", "dense"), mlp_path="ffn", mlp_names=("", "0", "2"),
    ),
    "dbrx": replace(
        MIXTRAL_EXPERTS,
        qkv_bias=False,
        o_bias=False,
        expert_path="ffn.experts",
        router="ffn.router.layer",
        window="",
        packed="Wqkv",
        attention_path="norm_attn_norm.attn",
        attention_names=("", "", "", "out_proj"),
    ),
    "glm4v_text": Facts(
        qkv_bias=("attention_bias", True), o_bias=False, mlp_bias=False, norms=4
    ),
    "glm4v_moe_text": Facts(qkv_bias=("attention_bias", True), o_bias=False, mlp_bias=False),
    "glm_ocr_text": Facts(qkv_bias=False, o_bias=False, mlp_bias=False, norms=4),
    "qwen2_vl": QWEN2,
    "qwen2_5_vl": QWEN2,
    "qwen2_5_omni_text": QWEN2,
    "qwen3_vl": QWEN3,
    "qwen3_vl_moe": replace(QWEN3, head_dim=None),
    "qwen3_omni_moe_text": replace(QWEN3, head_dim=None),
    "emu3_text_model": LLAMA,
    "granite_docling_text": LLAMA,
    "aria_text": replace(LLAMA, router="mlp.router", experts_use_intermediate=True),
    "paddleocr_vl_text": ERNIE,
    "cosmos3_edge_text": replace(LLAMA, gated=False, mlp_names=("", "fc1", "fc2")),
    "apertus1p5_text": Facts(qk_norm="head", gated=False, layer_small=2),
    "muse_glimmer_text": Facts(norms=4, gate="output", head_dim=128),
    "molmo2_text": Facts(qk_norm="head", extra_vocab="additional_vocab_size"),
    "minimax_m3_vl_text": Facts(
        qk_norm="head", qkv_bias=False, o_bias=False, dense_key="dense_intermediate_size",
        experts_use_intermediate=True, head_dim=128,
    ),
    "internlm": replace(LLAMA, qkv_bias=("bias", True), o_bias=("bias", True)),
    "internlm2": replace(LLAMA, qkv_bias=("bias", False), o_bias=("bias", False)),
    "baichuan": LLAMA,
    "xverse": LLAMA,
    "deepseek": LLAMA,
    "orion": replace(LLAMA, norm_values=2),
    "aquila": LLAMA,
    "chatglm": Facts(
        qkv_bias=("add_qkv_bias", False), o_bias=("add_bias_linear", False),
        mlp_bias=("add_bias_linear", False), attention_path="self_attention",
    ),
}  # fmt: skip
