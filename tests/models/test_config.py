"""Configs against counts from elsewhere: published totals, and what reference classes build."""

import gzip
import json
from pathlib import Path

import pytest

from roofline.dtypes import Dtype
from roofline.errors import SpecError, UnsupportedError
from roofline.models.architecture import GroupedQuery, Latent
from roofline.models.config import load_model, read_config, read_json

DATA = Path(__file__).parents[1] / "data"
CONFIGS = DATA / "configs"
COUNTS = json.loads((CONFIGS / "parameter_counts.json").read_text())
REFERENCE = json.loads((DATA / "reference_counts.json").read_text())
FOLDERS = sorted(folder.name for folder in CONFIGS.iterdir() if folder.is_dir())


def load(name):
    folder = CONFIGS / name
    packed = folder / "hf_quant_config.json.gz"
    if not packed.exists():
        return load_model(folder)
    formats = json.loads(gzip.decompress(packed.read_bytes()))
    config = read_json(folder / "config.json")
    return read_config(config, name=name, where=name, formats=formats)


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_parameters_of_public_configs(name):
    """Number of parameters of the text model as a reference implementation builds it."""
    assert load(name).parameters == COUNTS[name]


@pytest.mark.parametrize("name", FOLDERS)
def test_public_configs_load(name):
    model = load(name)
    assert 0 < model.active_parameters <= model.parameters
    assert sorted(i for group in model.layers for i in group.layers) == list(range(model.n_layers))


@pytest.mark.parametrize("model_type", sorted(REFERENCE))
def test_parameters_of_reference_classes(model_type):
    """Default config of each class of Hugging Face transformers 5.24.0, built without weights.

    Vision and audio parts of wrappers are left out of the count.
    """
    entry = REFERENCE[model_type]
    assert load_model(entry["config"]).parameters == entry["parameters"]


def test_deepseek_v3_active_and_router_biases():
    """DeepSeek-AI 2024, arXiv:2412.19437: 671B, 37B active; the checkpoint's 671,026,419,200."""
    model = load_model("deepseek-v3")
    assert model.parameters + model.router_biases == 671_026_419_200
    # every bias is among the active: 37,552,297,472 counted from the checkpoint's matrices
    assert model.active_parameters + model.router_biases == 37_552_297_472


def test_latent_and_indexer_of_deepseek_v32():
    """DeepSeek-V3.2's config: 512 + 64 cached values, an indexer of 64 heads of 128, best 2,048."""
    model = load("deepseek-ai--DeepSeek-V3.2")
    for group in model.layers:
        assert isinstance(group.attention, Latent)
        assert (group.attention.kv_rank, group.attention.rope_dim) == (512, 64)
        assert group.indexer is not None
        assert (group.indexer.n_heads, group.indexer.head_dim, group.indexer.top_k) == (
            64,
            128,
            2048,
        )


def test_glm5_layers_share_an_indexers_choice():
    """GLM-5.2's config lists 78 indexer_types; what it calls shared holds no keys."""
    listed = read_json(CONFIGS / "zai-org--GLM-5.2" / "config.json")["indexer_types"]
    model = load("zai-org--GLM-5.2")
    scoring = sum(group.n_layers for group in model.layers if group.indexer.scores)
    assert scoring == listed.count("full") == 21


def test_deepseek_v4_compresses():
    """DeepSeek-V4's compress_ratios of 61 layers: 30 of ratio 4 choose, 31 of 128 take all."""
    model = load("deepseek-ai--DeepSeek-V4-Pro")
    kinds = {group.compression: group for group in model.layers}
    assert {ratio: group.n_layers for ratio, group in kinds.items()} == {128: 31, 4: 30}
    assert kinds[4].indexer is not None
    assert kinds[128].indexer is None
    assert all(group.window == 128 and group.attention.one_cache for group in model.layers)


def test_windows_by_family():
    """Public descriptions: how many layers see all, how many a window."""
    expected = {
        "openai--gpt-oss-120b": {128: 18, None: 18},
        "family--mistral": {4096: 32},
        "family--qwen3": {None: 32},
        "family--cohere2": {4096: 30, None: 10},
        "meta-llama--Llama-4-Scout-17B-16E-Instruct": {8192: 36, None: 12},
        "nvidia--Gemma-4-31B-IT-NVFP4": {1024: 50, None: 10},
        "XiaomiMiMo--MiMo-V2-Flash": {128: 39, None: 9},
    }
    for name, windows in expected.items():
        found = {}
        for group in load(name).layers:
            found[group.window] = found.get(group.window, 0) + group.n_layers
        assert found == windows, name


def test_switched_windows_of_qwen():
    """Qwen2's rule: windows from max_window_layers on, only when switched on."""
    config = {
        "model_type": "qwen2", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 100, "sliding_window": 16, "max_window_layers": 3,
    }  # fmt: skip
    assert [group.window for group in load_model(config).layers] == [None]
    on = load_model({**config, "use_sliding_window": True})
    assert [(group.window, group.n_layers) for group in on.layers] == [(None, 3), (16, 1)]


def test_shared_caches_of_gemma3n():
    """Gemma-3n E4B: 35 layers, the last 15 reuse an earlier cache."""
    model = load_model(REFERENCE["gemma3n_text"]["config"])
    assert sum(group.n_layers for group in model.layers if group.shares_kv) == 15


def test_values_narrower_than_keys():
    """MiMo-V2-Flash's config: keys of 192, values of 128; 4 KV heads, 8 in windows."""
    heads = {
        (group.attention.n_kv_heads, group.attention.head_dim, group.attention.value_dim)
        for group in load("XiaomiMiMo--MiMo-V2-Flash").layers
    }
    assert heads == {(4, 192, 128), (8, 192, 128)}


@pytest.mark.parametrize(
    ("name", "kind", "values"),
    [
        # Mamba-130M shape: 1,536 channels with 16 states
        ("family--mamba", "mamba", 1536 * 16),
        # Mamba-2: 128 heads of 64 with 128 states
        ("family--mamba2", "mamba2", 128 * 64 * 128),
        # Qwen3.5-27B: 48 value heads, 128 × 128 each
        ("Qwen--Qwen3.5-27B", "gated_delta", 48 * 128 * 128),
        # Kimi-Linear-48B: 32 heads, 128 × 128 each
        ("family--kimi_linear", "kda", 32 * 128 * 128),
        # RecurrentGemma-2B: one state a channel
        ("family--recurrent_gemma", "rg_lru", 2560),
        ("family--falcon_h1", "mamba2", 128 * 8 * 256),
    ],
)
def test_fixed_state(name, kind, values):
    """State of one layer worked out by hand from the dimensions named beside it."""
    states = [group.recurrent for group in load(name).layers if group.recurrent is not None]
    assert {(state.kind, state.state_values) for state in states} == {(kind, values)}
    assert all(state.flop_per_token >= 5 * values for state in states)


def test_parallel_hybrid_has_both():
    """Falcon-H1: attention and state side by side in each layer."""
    assert all(group.attention and group.recurrent for group in load("family--falcon_h1").layers)


def test_hybrid_counts_of_nemotron():
    """Nemotron-H-56B (arXiv:2504.03624): 118 layers, 54 Mamba-2, 10 attention, 54 feed-forward."""
    model = load("nvidia--Nemotron-H-56B-Base-8K")
    mixing = [
        sum(group.n_layers for group in model.layers if group.recurrent),
        sum(group.n_layers for group in model.layers if group.attention),
    ]
    assert (model.n_layers, *mixing) == (118, 54, 10)


def test_identity_experts_of_longcat():
    """LongCat-Flash (arXiv:2509.01322): 512 experts and 256 that compute nothing, 12 chosen."""
    routed = [group.experts for group in load("family--longcat_flash").layers if group.experts]
    assert {(e.n_experts, e.n_identity, e.n_active) for e in routed} == {(512, 256, 12)}
    assert routed[0].mean_active == 8


@pytest.mark.parametrize(
    ("name", "on_the_hub"),
    [("deepseek-v3", 684_489_845_504), ("glm-4.5", 358_337_791_296)],
)
def test_prediction_layers_stay_apart(name, on_the_hub):
    """Hub metadata counts the prediction layer, its copies of embedding and head, router biases."""
    model = load_model(name)
    (layer,) = model.prediction_layers
    copies = 2 * model.vocab_size * model.hidden_size
    biases = model.router_biases + layer.experts.n_experts
    assert model.parameters + layer.parameters_per_layer + copies + biases == on_the_hub
    assert any("multi-token-prediction" in line for line in model.assumptions)


def test_what_a_headline_leaves_out():
    """Qwen3.5-35B-A3B's file: body 34.661e9, prediction head 0.845e9, vision tower 0.447e9."""
    model = load_model("qwen3.5-35b-a3b")
    extra = sum(group.n_layers * group.parameters_per_layer for group in model.prediction_layers)
    parts = [model.parameters, extra, model.towers[0].parameters]
    assert [round(part / 1e9, 3) for part in parts] == [34.661, 0.845, 0.447]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Qwen--Qwen3.5-35B-A3B", 446_571_248),
        ("Qwen--Qwen3-VL-8B-Instruct", 576_388_336),
        ("nvidia--Gemma-4-31B-IT-NVFP4", 575_741_232),
    ],
)
def test_towers(name, values):
    """Encoder and projector as transformers 5.24.0 builds them from the same config."""
    (tower,) = load(name).towers
    assert tower.parameters == values


def test_towers_are_not_in_the_count():
    """Qwen3-VL-8B's text model is Qwen3-8B: 8,190,735,360."""
    assert load("Qwen--Qwen3-VL-8B-Instruct").parameters == COUNTS["Qwen--Qwen3-8B"]


@pytest.mark.parametrize(
    ("rope", "stated", "tokens"),
    [
        # TeleChat3: 8,192 × 4 is in the total already
        (
            {
                "rope_type": "telechat3-yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
            32768,
            32768,
        ),
        # DeepSeek-V3: 4,096 × 40
        ({"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}, 163840, 163840),
        # Qwen2.5 with YaRN switched on as its card says: 32,768 × 4
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 32768, 131072),
        # Llama-3.1: the factor is in the total
        (
            {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192},
            131072,
            131072,
        ),
    ],
)
def test_longest_context(rope, stated, tokens):
    """Model cards of the models named."""
    config = REFERENCE["llama"]["config"]
    model = load_model({**config, "max_position_embeddings": stated, "rope_scaling": rope})
    assert model.max_context_tokens == tokens


def test_linear_calls():
    """A trace of TinyLlama shows aten::linear 7 × 22 + 1 times a step."""
    model = load_model("tinyllama-1.1b")
    assert [group.matrices_per_layer for group in model.layers] == [7]
    assert model.linear_calls_per_step == 155


def test_head_dim_is_taken_from_the_config():
    """Qwen3-4B: 2,560 wide, 32 heads of 128, not of 80."""
    assert load_model("qwen3-4b").layers[0].attention == GroupedQuery(8, 128, 32)


def test_type_by_class_name():
    model = load_model({**REFERENCE["qwen3"]["config"], "model_type": None,
                        "architectures": ["Qwen3ForCausalLM"]})  # fmt: skip
    assert model.parameters == REFERENCE["qwen3"]["parameters"]
    assert any("by the name of the class" in line for line in model.assumptions)


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        # Qwen-7B: gate and up share the stated width (card: 7,721,324,544)
        (
            {"model_type": "qwen", "num_hidden_layers": 32, "hidden_size": 4096,
             "num_attention_heads": 32, "intermediate_size": 22016, "kv_channels": 128,
             "vocab_size": 151936, "tie_word_embeddings": False},
            7_721_324_544,
        ),
        # DeepSeekMoE-16B (arXiv:2401.06066; hub metadata 16,375,728,128)
        (
            {"model_type": "deepseek", "num_hidden_layers": 28, "hidden_size": 2048,
             "num_attention_heads": 16, "intermediate_size": 10944, "moe_intermediate_size": 1408,
             "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
             "first_k_dense_replace": 1, "moe_layer_freq": 1, "vocab_size": 102400,
             "tie_word_embeddings": False},
            16_375_728_128,
        ),
        # BLOOM-7B1: its config says n_embed (card: 7,069,016,064)
        (
            {"model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32,
             "vocab_size": 250880},
            7_069_016_064,
        ),
        # Gemma-3-4B's own config leaves heads and vocabulary to the class (hub: 4,300,079,472 with
        # its tower of 419,816,304)
        (
            {"model_type": "gemma3", "text_config": {
                "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                "num_hidden_layers": 34, "sliding_window": 1024}},
            3_880_263_168,
        ),
    ],
)  # fmt: skip
def test_configs_that_leave_things_unsaid(config, parameters):
    assert load_model(config).parameters == parameters


def test_an_excerpt_counts_attention_only():
    """Gemma-3-1B at 32,768 tokens: 4 global and 22 local layers of 512 tokens."""
    model = load_model(
        {
            "num_hidden_layers": 26, "hidden_size": 1152, "num_attention_heads": 4,
            "num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512,
            "sliding_window_pattern": 6,
        }
    )  # fmt: skip
    windows = {group.window: group.n_layers for group in model.layers}
    assert windows == {512: 22, None: 4}
    assert any("an excerpt of a config" in line for line in model.assumptions)


def test_unknown_family_is_said():
    model = load_model({**REFERENCE["llama"]["config"], "model_type": "brandnew"})
    assert model.parameters == REFERENCE["llama"]["parameters"]
    assert any("'brandnew' is not known" in line for line in model.assumptions)


def test_fields_that_matter_are_said():
    config = {**REFERENCE["llama"]["config"], "model_type": "brandnew", "k_lora_rank": 64}
    assert any("unmodelled field k_lora_rank" in line for line in load_model(config).assumptions)


def test_formats_of_gpt_oss():
    """gpt-oss-120b: experts in mxfp4, everything else in bf16."""
    model = load("openai--gpt-oss-120b")
    (experts,) = {group.experts for group in model.layers}
    assert {linear.dtype for linear in experts.linears} == {Dtype.MXFP4}
    assert {linear.dtype for group in model.layers for linear in group.linears} == {None}


@pytest.mark.parametrize("model_type", ["bert", "t5", "moshi", "zaya"])
def test_what_is_not_modelled_is_refused_by_name(model_type):
    with pytest.raises(UnsupportedError, match=f"'{model_type}' is not modelled"):
        load_model({**REFERENCE["llama"]["config"], "model_type": model_type})


def test_folder_without_config(tmp_path):
    with pytest.raises(SpecError, match=r"the folder has no config\.json"):
        load_model(tmp_path)


def test_missing_file():
    with pytest.raises(SpecError, match="no such file"):
        load_model("/nowhere/config.json")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "line 1: no JSON"),
        (b"[1, 2]", "holds list; a config is a mapping"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"{}", "an empty mapping"),
        (b'{"hidden_size": 8}', "no 'num_hidden_layers'"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_files_that_are_no_config(tmp_path, content, words):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(SpecError, match=words):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("num_hidden_layers", None, "no 'num_hidden_layers'"),
        ("num_hidden_layers", 0, "'num_hidden_layers' is 0"),
        ("num_hidden_layers", -3, "'num_hidden_layers' is -3"),
        ("num_hidden_layers", True, "'num_hidden_layers' is True"),
        ("num_hidden_layers", 10**9, "is no model"),
        ("hidden_size", float("nan"), "'hidden_size' is nan"),
        ("hidden_size", float("inf"), "'hidden_size' is inf"),
        ("hidden_size", 10**30, "'hidden_size' is 1000"),
        ("hidden_size", "4096", "'hidden_size' is '4096'"),
        ("hidden_size", [4096], r"'hidden_size' is \[4096\]"),
        ("vocab_size", 1.5, "'vocab_size' is 1.5"),
        ("num_key_value_heads", 7, "32 query heads on 7 KV heads"),
        ("intermediate_size", None, "no 'intermediate_size'"),
        ("torch_dtype", "float7", "'torch_dtype' is 'float7'"),
        ("tie_word_embeddings", "yes", "'tie_word_embeddings' is 'yes'"),
        ("layer_types", ["full_attention"], "'layer_types' has 1 entries for 32 layers"),
        ("layer_types", "sliding", "'layer_types' is 'sliding'; it needs a list"),
        ("quantization_config", [1], "'quantization_config' is"),
    ],
)
def test_fields_that_cannot_be(field, value, words):
    config = {**REFERENCE["llama"]["config"], field: value}
    with pytest.raises(SpecError, match=words):
        load_model(config)


def test_unknown_layer_type_is_refused():
    config = {**REFERENCE["llama"]["config"], "layer_types": ["quantum"] * 32}
    with pytest.raises(UnsupportedError, match="'quantum' is not modelled"):
        load_model(config)


def test_other_sources_are_refused():
    with pytest.raises(ValueError, match="a name, a path or a mapping, got 7"):
        load_model(7)


VARIANTS = json.loads((DATA / "reference_variants.json").read_text())


@pytest.mark.parametrize("model_type", sorted(VARIANTS))
def test_parameters_of_reference_variants(model_type):
    """Small configs with one switch or size changed, built by transformers 5.24.0."""
    entry = VARIANTS[model_type]
    for change, parameters in entry["changes"]:
        config = {**entry["base"], **change}
        for key in [key for key, value in change.items() if value is None and key != "q_lora_rank"]:
            del config[key]
        assert load_model(config).parameters == parameters, change
