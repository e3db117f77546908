"""Formats that checkpoints describe, matrix by matrix."""

import json
from pathlib import Path

import pytest

from roofline.dtypes import Dtype
from roofline.errors import SpecError, UnsupportedError
from roofline.models.config import load_model, read_config
from roofline.models.modules import canonical, module_list

DATA = Path(__file__).parents[1] / "data"
REFERENCE = json.loads((DATA / "reference_counts.json").read_text())
LLAMA = {**REFERENCE["llama"]["config"], "num_hidden_layers": 2}
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
MOE = {**REFERENCE["qwen3_moe"]["config"], "num_hidden_layers": 2}


def formats(model):
    """Names of the formats by matrix and layer."""
    found = {}
    for group in model.layers:
        for position in group.layers:
            for linear in group.linears:
                found[position, linear.name] = linear.dtype
            for linear in group.experts.linears if group.experts else ():
                found[position, linear.name] = linear.dtype
    return found


def quantised(block, config=LLAMA, beside=None):
    given = {**config, **({"quantization_config": block} if block else {})}
    return read_config(given, name="test", where="test", formats=beside)


@pytest.mark.parametrize(
    ("block", "bits"),
    [
        # 128 × 128 values share a 32-bit scale
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 16384),
        ({"quant_method": "fp8"}, 8),
        ({"quant_method": "fbgemm_fp8"}, 8),
        # a 16-bit scale and a 4-bit zero point for 128 values
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, 4 + 20 / 64),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": False}, 4 + 16 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        # a 32-bit scale for 64 values, or a second level of scales: 0.127 bit (QLoRA, section 3)
        (NF4, 4.5),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_use_double_quant": True,
            },
            4.127,
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
    ],
)
def test_bits(block, bits):
    """Bits a value from the definition of each format, see the comment beside it."""
    found = set(formats(quantised(block)).values())
    assert [dtype.bits for dtype in found] == [pytest.approx(bits, rel=1e-12)]


@pytest.mark.parametrize(
    ("weights", "name"),
    [
        ({"num_bits": 8, "type": "float", "strategy": "channel"}, "fp8"),
        ({"num_bits": 8, "type": "float", "block_structure": [128, 128]}, "fp8_block"),
        ({"num_bits": 4, "type": "float", "group_size": 16}, "nvfp4"),
        ({"num_bits": 4, "type": "float", "group_size": 32}, "mxfp4"),
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, "int8"),
        ({"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True}, "int4_g128"),
    ],
)
def test_compressed_tensors(weights, name):
    block = {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head", "re:.*down_proj$", "model.layers.1.self_attn.q_proj"],
    }
    found = formats(quantised(block))
    assert found[0, "self_attn.q_proj"].name == name
    assert found[1, "self_attn.q_proj"] is None
    assert found[0, "mlp.down_proj"] is found[1, "mlp.down_proj"] is None


def test_mixed_precision_by_layer():
    """A list by module decides, what it does not name stays as it is; lm_head may be in it."""
    beside = {
        "quantization": {
            "quant_algo": "MIXED_PRECISION",
            "kv_cache_quant_algo": "FP8",
            "quantized_layers": {
                "model.layers.0.mlp.experts": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
                "model.layers.1.self_attn.o_proj": {"quant_algo": "FP8"},
                "lm_head": {"quant_algo": "NVFP4"},
            },
        }
    }
    model = quantised(None, MOE, beside)
    found = formats(model)
    assert found[0, "mlp.experts.*.up_proj"] == Dtype.NVFP4
    assert found[1, "mlp.experts.*.up_proj"] is None
    assert found[1, "self_attn.o_proj"] == Dtype.FP8
    assert found[0, "self_attn.o_proj"] is None
    assert model.lm_head.dtype == Dtype.NVFP4
    assert model.kv_dtype == Dtype.FP8
    assert len(model.layers) == 2  # layers that differ are groups of their own


def test_routers_stay():
    block = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
    assert formats(quantised(block, MOE))[0, "mlp.gate"] is None


def test_modules_by_word_do_not_take_longer_words():
    """``gate`` names the router, not gate_proj (MiniMax-M2's list)."""
    listed = module_list(["gate", "model.layers.0.mlp.gate"], "test")
    assert listed.has("layers.3.block_sparse_moe.gate")
    assert not listed.has("layers.0.mlp.gate_proj")


def test_prefixes_of_wrappers():
    assert canonical("language_model.model.layers.1.mlp") == "layers.1.mlp"
    assert canonical("visual.blocks.0") == "visual.blocks.0"


@pytest.mark.parametrize("pattern", ["re:(a+)+$", "re:((x*)*)*y", "re:[", "re:" + "a" * 400])
def test_expressions_that_could_run_for_ever_are_refused(pattern):
    with pytest.raises(SpecError, match="module pattern"):
        module_list([pattern], "test")


def test_unknown_methods_are_refused():
    with pytest.raises(UnsupportedError, match=r"'aqlm' is not modelled; modelled are fp8"):
        quantised({"quant_method": "aqlm", "bits": 2})


def test_unknown_algorithms_are_refused():
    with pytest.raises(UnsupportedError, match="format 'W3A3' is not modelled"):
        quantised({"quant_method": "modelopt", "quant_algo": "W3A3"})


def test_weights_of_a_70b_in_int8():
    """A log of vLLM: 67.7 GiB for Llama-3.1-70B w8a8 with lm_head in 16 bit."""
    model = load_model(
        {
            **REFERENCE["llama"]["config"], "num_hidden_layers": 80, "hidden_size": 8192,
            "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672,
            "vocab_size": 128256, "head_dim": 128,
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "config_groups": {"0": {"weights": {"num_bits": 8, "type": "int"}}},
                "ignore": ["lm_head"],
            },
        }
    )  # fmt: skip
    (group,) = model.layers
    linear = sum(matrix.values for matrix in group.linears) * 80
    sixteen = 2 * 2 * 128256 * 8192  # embedding and lm_head
    assert {matrix.dtype.name for matrix in group.linears} == {"int8"}
    assert (linear + sixteen) / 2**30 == pytest.approx(67.7, rel=0.002)  # scales left out
