"""Cases about what a config says; expected values are the cases' own (tests/data/cases.jsonl)."""

import pytest

from roofline.dtypes import Dtype
from roofline.models.config import load_model
from roofline.work.kv_cache import bytes_per_token, caches

PLAIN = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
    "intermediate_size": 512, "vocab_size": 1000,
}  # fmt: skip


class TestHybridNames:
    @pytest.fixture
    def config(self, cases):
        nested = cases["kv-qwen35-name-match"]["input"]["config"]["text_config"]
        return {"text_config": {
            **nested, "intermediate_size": 17_408, "vocab_size": 248_320,
            "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_key_head_dim": 128,
            "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
        }}  # fmt: skip

    def test_every_fourth_layer_keeps_a_cache(self, cases, config):
        right = cases["kv-qwen35-name-match"]["right_answer"]
        arch = load_model({**config, "model_type": "qwen3_5"})
        assert (
            sum(group.n_layers for group in arch.layers if caches(group))
            == (right["attention_layers"])
        )
        assert bytes_per_token(arch, Dtype.BF16) == right["bytes_per_token"]

    @pytest.mark.parametrize(("interval", "n_bytes"), [(2, 131_072), (8, 32_768)])
    def test_the_interval_decides(self, config, interval, n_bytes):
        nested = {**config["text_config"], "full_attention_interval": interval}
        arch = load_model({"text_config": nested, "model_type": "qwen3_5"})
        assert bytes_per_token(arch, Dtype.BF16) == n_bytes


class TestLongestContext:
    def test_the_stated_length_has_the_factor_in_it(self, cases):
        case = cases["rope-telechat-double"]
        arch = load_model({**PLAIN, **case["input"]["config"]})
        assert arch.max_context_tokens == case["right_answer"]["tokens"]

    @pytest.mark.parametrize(
        ("stated", "scaling", "longest"),
        [
            pytest.param(131_072, {"rope_type": "llama3", "factor": 8.0,
                                   "original_max_position_embeddings": 8192}, 131_072,
                         id="llama-3.1"),
            pytest.param(163_840, {"type": "yarn", "factor": 40,
                                   "original_max_position_embeddings": 4096}, 163_840,
                         id="deepseek-v3"),
            pytest.param(4096, None, 4096, id="none"),
        ],
    )  # fmt: skip
    def test_published_models(self, stated, scaling, longest):
        """The lengths that the models' cards state: 128K, 160K, 4K."""
        config = {**PLAIN, "max_position_embeddings": stated}
        if scaling:
            config["rope_scaling"] = scaling
        assert load_model(config).max_context_tokens == longest
