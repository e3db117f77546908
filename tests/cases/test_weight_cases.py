"""Cases about weights and formats; expected values are the cases' own (tests/data/cases.jsonl)."""

import pytest

from roofline.dtypes import Dtype, find_dtype
from roofline.errors import RooflineError
from roofline.models.architecture import Experts
from roofline.models.config import load_model
from roofline.units import GIB
from roofline.work.gguf_mix import mix_bytes
from roofline.work.weights import distinct_experts, stored_bytes

GPT_OSS_LAYERS = ["sliding_attention", "full_attention"]


class TestMixedFormats:
    def test_gpt_oss_120b_to_the_byte(self, cases):
        case = cases["w-gptoss120-from-config"]
        config = {**case["input"]["config"], "layer_types": GPT_OSS_LAYERS * 18}
        arch = load_model(config)
        assert stored_bytes(arch) == case["right_answer"]["bytes"]

    def test_gpt_oss_20b_to_the_byte(self):
        """openai/gpt-oss-20b: model.safetensors.index.json states 13,761,264,768 bytes."""
        assert stored_bytes(load_model("gpt-oss-20b")) == pytest.approx(13_761_264_768, rel=1e-4)

    def test_modules_left_alone_cost_two_bytes(self):
        """Meta's 405B in FP8 leaves attention and the first and last layer in 16 bit.

        vLLM loads 57.75 GiB a card at TP8 (issue 6746, 0.5.3), 56.77 in 0.6.3 (dstack, 2024-11);
        with everything in 8 bit it would be 47.8.
        """
        config = {
            "model_type": "llama", "num_hidden_layers": 126, "hidden_size": 16_384,
            "num_attention_heads": 128, "num_key_value_heads": 8, "intermediate_size": 53_248,
            "vocab_size": 128_256, "tie_word_embeddings": False,
        }  # fmt: skip
        left = ["lm_head", "self_attn", "model.layers.0", "model.layers.125"]
        mixed = {**config, "quantization_config": {
            "quant_method": "fbgemm_fp8", "modules_to_not_convert": left}}  # fmt: skip
        assert stored_bytes(load_model(mixed)) / 8 / GIB == pytest.approx(56.77, rel=2e-3)
        assert stored_bytes(load_model(config), Dtype.FP8) / 8 / GIB == pytest.approx(
            47.8, rel=2e-3
        )

    def test_int8_with_lm_head_left_alone(self, cases):
        case = cases["fits-llama70-w8a8-one-h100"]
        config = {**case["input"]["config"]}
        config.pop("quantization_config")  # the case puts it in words
        weights = stored_bytes(load_model(config), Dtype.INT8)
        assert weights / GIB == pytest.approx(case["right_answer"]["weights_GiB"], rel=1e-3)

    @pytest.mark.parametrize(("name", "gib"), [("fp8", 67.67), ("int8", 67.67), ("bf16", 131.42)])
    def test_a_70b_in_other_formats(self, name, gib):
        """68.45e9 values in the blocks; embedding and lm_head, 2.1e9, stay in 16 bit."""
        assert stored_bytes(load_model("llama-3.1-70b"), find_dtype(name)) / GIB == pytest.approx(
            gib, rel=1e-3
        )

    def test_mxfp4_native_files_are_one_size(self, cases):
        case = cases["q-mxfp4-native-ladder"]
        size = mix_bytes(load_model("gpt-oss-120b"), "mxfp4")
        assert size / 1e9 == pytest.approx(case["right_answer"]["GB"], rel=2e-3)
        bits = size * 8 / case["input"]["params"]
        assert bits == pytest.approx(case["right_answer"]["bits"], abs=0.01)


class TestCounts:
    def test_a_70b_in_16_bit(self, cases):
        case = cases["w-accelerate-70b"]
        arch = load_model(case["input"]["config"])
        right = case["right_answer"]
        assert arch.parameters == right["params"]
        assert stored_bytes(arch, Dtype.FP16) / 1e9 == pytest.approx(right["GB"], rel=1e-3)
        assert stored_bytes(arch, Dtype.FP16) / GIB == pytest.approx(right["GiB"], rel=1e-3)

    def test_deepseek_v3(self, cases):
        case = cases["w-dsv3-count"]
        arch = load_model(case["input"]["config"])
        router_biases = 58 * 256  # the case counts them; a reference implementation has buffers
        assert arch.parameters + router_biases == case["right_answer"]["total"]
        assert arch.active_parameters == pytest.approx(case["right_answer"]["active"], rel=1e-6)

    def test_the_first_layers_are_dense(self, cases):
        """Taking all 61 layers for MoE layers adds 3 × (MoE − dense), 33e9: the case's 704e9."""
        config = cases["w-dsv3-count"]["input"]["config"]
        arch = load_model({**config, "first_k_dense_replace": 0})
        assert arch.parameters / 1e9 == pytest.approx(704, abs=0.5)

    def test_prediction_layers_count_only_when_asked(self, cases):
        arch = load_model(cases["w-dsv3-count"]["input"]["config"])
        extra = stored_bytes(arch, prediction_layers=True) - stored_bytes(arch)
        # "about 14e9" with the token table and head that the layer shares, 11.5e9 of its own
        assert 11e9 < extra / 2 < 15e9

    def test_more_than_16_bits_exposes_a_headline_count(self, cases):
        case = cases["q-over-16-bits"]
        given = case["input"]
        size = given["bf16_bits_measured_by_headline"] * given["headline_params"] / 8
        assert size * 8 / given["counted_params"] == pytest.approx(
            case["right_answer"]["bits"], rel=1e-3
        )
        assert max(dtype.bits for dtype in (Dtype.BF16, Dtype.FP16)) == 16

    def test_nested_text_config_is_read(self, cases):
        case = cases["cfg-nested-defaults"]
        arch = load_model(case["input"]["config"])
        assert arch.n_layers == 64
        assert stored_bytes(arch) / 1e9 == pytest.approx(54, rel=0.15)  # "about 54 GB", 27B class

    @pytest.mark.parametrize("lost", ["num_hidden_layers", "hidden_size", "num_attention_heads"])
    def test_what_is_missing_is_refused_never_defaulted(self, cases, lost):
        nested = {**cases["cfg-nested-defaults"]["input"]["config"]["text_config"]}
        nested.pop(lost)
        with pytest.raises(RooflineError):
            load_model({"architectures": ["Qwen3_5ForConditionalGeneration"],
                        "text_config": nested})  # fmt: skip


class TestDistinctExperts:
    def test_over_all_ranks_and_on_one(self, cases):
        case = cases["moe-distinct-experts"]
        given, right = case["input"], case["right_answer"]
        n, k, tokens = given["N"], given["k"], given["batch_per_step"]
        whole = distinct_experts(Experts(n, k, ()), tokens)
        assert float(whole) == pytest.approx(right["total"], rel=1e-3)
        local = Experts(given["experts_per_rank"], k, (), n_routed=n)
        assert float(distinct_experts(local, tokens)) == pytest.approx(right["per_rank"], rel=1e-3)
        assert float(distinct_experts(Experts(n, k, ()), 1e9)) == right["upper_bound"]

    def test_three_tokens_of_eight_experts(self):
        """8 (1 − (3/4)³) = 4.625, the case's check."""
        assert float(distinct_experts(Experts(8, 2, ()), 3)) == 4.625
