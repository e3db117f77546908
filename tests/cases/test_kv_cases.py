"""Cases about the KV cache; expected values are the cases' own (tests/data/cases.jsonl)."""

import pytest

from roofline.dtypes import Dtype, find_dtype
from roofline.models.architecture import Architecture, GroupedQuery, Indexer, Latent, LayerGroup
from roofline.models.config import load_model
from roofline.timing.parallel import Parallel, shard
from roofline.units import GIB, MIB
from roofline.work.kv_cache import bytes_per_token, cache_bytes, marginal_bytes_per_token

FULL, SLIDING = "full_attention", "sliding_attention"


def architecture(*groups, **facts):
    return Architecture(name="case", layers=groups, source="test", **facts)


def dense(n_layers, n_kv_heads, head_dim):
    return architecture(LayerGroup(n_layers, GroupedQuery(n_kv_heads, head_dim)))


def gpt_oss(config):
    """The case abbreviates the list of layer types in words."""
    return {
        **config, "layer_types": [SLIDING, FULL] * 18, "vocab_size": 201_088,
        "num_local_experts": 128, "num_experts_per_tok": 4, "intermediate_size": 2880,
    }  # fmt: skip


class TestLatentWithIndexer:
    """mla-dsv32-indexer-cache: SGLang's own log, 975,424 tokens in 43.67 GiB after its fix."""

    @pytest.fixture
    def v32(self, cases):
        config = cases["mla-dsv32-indexer-cache"]["input"]["config"]
        return load_model({
            **config, "q_lora_rank": 1536, "vocab_size": 129_280, "intermediate_size": 18_432,
            "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
            "num_experts_per_tok": 8, "first_k_dense_replace": 3, "index_n_heads": 64,
            "index_topk": 2048,
        })  # fmt: skip

    def test_packed_slot_and_indexer_key(self, cases, v32):
        right = cases["mla-dsv32-indexer-cache"]["right_answer"]
        packed = find_dtype("fp8_ds_mla")
        assert bytes_per_token(v32, packed) == right["bytes_per_token"]
        assert cache_bytes(v32, 1_462_784, packed) / GIB == pytest.approx(right["GiB"], rel=1e-3)

    def test_the_log_after_the_fix(self, v32):
        assert cache_bytes(v32, 975_424, find_dtype("fp8_ds_mla")) / GIB == pytest.approx(
            43.67, rel=1e-3
        )

    def test_16_bit_latent_keeps_the_indexer_in_8_bit(self, v32):
        """70,272 B (arXiv:2505.09343, table 1) and 132 B of indexer key for each of 61 layers."""
        assert bytes_per_token(v32, Dtype.BF16) == 70_272 + 61 * 132


class TestGroupedQuery:
    def test_hidden_size_is_not_the_width_of_the_cache(self, cases):
        case = cases["kv-qwen25-7b-gptq-units"]
        arch = load_model(case["input"]["config"])
        right = case["right_answer"]
        assert bytes_per_token(arch, Dtype.FP16) == right["bytes_per_token"]
        request = cache_bytes(arch, case["input"]["context_tokens"], Dtype.FP16)
        assert request / GIB == pytest.approx(right["per_request_GiB"], rel=2e-3)  # 3 digits
        assert request / 1e9 == pytest.approx(right["per_request_GB"], rel=2e-3)

    @pytest.mark.parametrize("quantised", [None, {"quant_method": "gptq", "bits": 4}])
    def test_weight_formats_leave_the_cache_alone(self, cases, quantised):
        config = {**cases["kv-qwen25-7b-gptq-units"]["input"]["config"]}
        config.pop("quantization_config")
        if quantised:
            config["quantization_config"] = {**quantised, "group_size": 128}
        assert bytes_per_token(load_model(config), Dtype.FP16) == 57_344

    def test_explicit_head_dim(self, cases):
        case = cases["kv-qwen3-4b-lmcache"]
        arch = load_model({**case["input"]["config"], "intermediate_size": 9728,
                           "vocab_size": 151_936})  # fmt: skip
        assert bytes_per_token(arch, Dtype.BF16) == case["right_answer"]["bytes_per_token"]

    def test_absent_head_dim_is_hidden_over_heads(self, cases):
        """The same config without head_dim: 2 × 36 × 8 × 80 × 2 bytes, as the tool had it."""
        config = {**cases["kv-qwen3-4b-lmcache"]["input"]["config"], "intermediate_size": 9728,
                  "vocab_size": 151_936}  # fmt: skip
        config.pop("head_dim")
        assert bytes_per_token(load_model(config), Dtype.BF16) == 92_160

    def test_eight_requests_of_8k_on_a_70b(self, cases):
        case = cases["blog-70b-8k-batch8"]
        arch = load_model(case["input"]["config"])
        one = cache_bytes(arch, case["input"]["context_tokens"], Dtype.BF16)
        assert 8 * one / 1e9 == pytest.approx(case["right_answer"]["GB"], rel=2e-3)
        assert cache_bytes(arch, 131_072, Dtype.BF16) / GIB == 40  # the article's own 128K figure

    def test_parameters_say_nothing_about_the_cache(self, cases):
        case = cases["kv-from-param-count"]
        large = load_model(gpt_oss(case["input"]["config_A"]))
        small = dense(28, 8, 128)
        tokens = case["input"]["context_tokens"]
        right = case["right_answer"]
        assert cache_bytes(large, tokens, Dtype.FP16) / GIB == pytest.approx(
            right["A_GiB"], rel=5e-3
        )
        assert cache_bytes(small, tokens, Dtype.FP16) / GIB == pytest.approx(right["B_GiB"])


class TestWindows:
    def test_below_and_beyond_the_window(self, cases):
        case = cases["swa-gptoss120-two-answers"]
        arch = load_model(gpt_oss(case["input"]["config"]))
        right = case["right_answer"]
        assert bytes_per_token(arch, Dtype.BF16) == right["first_token"]
        assert marginal_bytes_per_token(arch, Dtype.BF16) == right["marginal_beyond_window"]
        assert cache_bytes(arch, 1, Dtype.BF16) == right["first_token"]
        grown = cache_bytes(arch, 5001, Dtype.BF16) - cache_bytes(arch, 5000, Dtype.BF16)
        assert grown == right["marginal_beyond_window"]

    def test_gemma_3_1b(self, cases):
        case = cases["swa-gemma3-1b"]
        arch = load_model({**case["input"]["config"], "model_type": "gemma3_text",
                           "intermediate_size": 6912, "vocab_size": 262_144})  # fmt: skip
        tokens = case["input"]["context_tokens"]
        assert cache_bytes(arch, tokens, Dtype.FP16) / MIB == case["right_answer"]["MiB"]

    @pytest.mark.parametrize(
        ("n_layers", "n_full", "mib"),
        [
            pytest.param(26, 4, 139.0, id="five-to-one"),
            pytest.param(26, 26, 832.0, id="all-full"),  # the case's naive figure
            pytest.param(26, 0, 13.0, id="all-sliding"),  # 26 × 512 × 1,024 B
        ],
    )
    def test_the_mix_decides(self, n_layers, n_full, mib):
        heads = GroupedQuery(n_kv_heads=1, head_dim=256)
        groups = [LayerGroup(n_full, heads), LayerGroup(n_layers - n_full, heads, window=512)]
        arch = architecture(*[group for group in groups if group.n_layers])
        assert cache_bytes(arch, 32_768, Dtype.FP16) / MIB == mib


class TestFormatsOfTheCache:
    def test_q8_0_is_not_8_bit(self, cases):
        case = cases["kvq-ollama-ps-f16"]
        arch = dense(56, 8, 128)
        tokens = case["input"]["context_tokens"]
        assert cache_bytes(arch, tokens, find_dtype("q8_0")) / MIB == case["right_answer"]["kv_MiB"]
        assert cache_bytes(arch, tokens, Dtype.FP16) / MIB == 10_752  # what the tool sized

    def test_q4_0_is_18_bytes_for_32_values(self):
        """ggml-common.h: a block of 32 values takes 18 bytes; 2 × 56 × 8 × 128 values a token."""
        assert bytes_per_token(dense(56, 8, 128), find_dtype("q4_0")) == 2 * 56 * 8 * 128 * 18 / 32

    @pytest.mark.parametrize(
        ("values", "key_width", "gain"),
        [
            pytest.param(870, 130, 1.766, id="share-0.87"),  # the case's A
            pytest.param(110, 890, 1.059, id="share-0.11"),  # the case's B
            pytest.param(1000, 0, 2.0, id="nothing-else"),
        ],
    )
    def test_only_attention_halves(self, cases, values, key_width, gain):
        """kvq-fp8-not-double: gain = 1 / (1 − s/2) where a share s of the bytes halves."""
        indexer = Indexer(1, key_width, 1, key_dtype=Dtype.BF16) if key_width else None
        heads = GroupedQuery(n_kv_heads=1, head_dim=values // 2)
        arch = architecture(LayerGroup(1, heads, indexer=indexer))
        measured = bytes_per_token(arch, Dtype.BF16) / bytes_per_token(arch, Dtype.FP8)
        assert measured == pytest.approx(gain, rel=5e-3)  # the share has two digits
        right = cases["kvq-fp8-not-double"]["right_answer"]
        assert gain in (right["A"], right["B"], 2.0)


class TestTensorParallel:
    def test_four_heads_on_eight_ranks_are_copied(self, cases):
        case = cases["heads-qwen3vl-tp8"]
        arch = load_model(case["input"]["config"])
        for tp in (4, case["input"]["tp"]):
            rank = shard(arch, Parallel(tp=tp))
            assert bytes_per_token(rank, Dtype.BF16) == case["right_answer"]["B_bytes"]
        assert bytes_per_token(shard(arch, Parallel(tp=2)), Dtype.BF16) == 49_152

    def test_the_pool_is_sized_with_sharded_heads(self, cases):
        case = cases["conc-transformers-tp-heads"]
        arch = load_model({**case["input"]["config"], "intermediate_size": 25_600,
                           "vocab_size": 151_936})  # fmt: skip
        right = case["right_answer"]
        rank = shard(arch, Parallel(tp=case["input"]["tp"]))
        assert bytes_per_token(rank, Dtype.BF16) == right["bytes_per_token_per_gpu"]
        # a pool that held 814 blocks of the whole model's 262,144 B a token
        pool = 814 * case["input"]["block_tokens"] * bytes_per_token(arch, Dtype.BF16)
        blocks = pool / bytes_per_token(rank, Dtype.BF16) / case["input"]["block_tokens"]
        assert blocks == pytest.approx(right["blocks"], rel=1e-3)  # 814 is a whole number

    @pytest.mark.parametrize("tp", [1, 2, 8, 16])
    def test_a_latent_is_whole_on_every_rank(self, tp):
        """mla-tp-replication: DeepSeek-V3 stays at 70,272 B on each GPU, never 70,272 / tp."""
        heads = Latent(kv_rank=512, rope_dim=64, n_heads=128)
        arch = architecture(LayerGroup(61, heads))
        assert bytes_per_token(shard(arch, Parallel(tp=tp)), Dtype.BF16) == 70_272
