"""Cases about pools, concurrency and start-up; values are the cases' own (cases.jsonl)."""

import json
import math
from pathlib import Path

import pytest

from roofline.dtypes import Dtype, find_dtype
from roofline.errors import InputError
from roofline.hardware.accelerator import Accelerator, Memory, load_accelerator
from roofline.models.architecture import Architecture, GroupedQuery, LayerGroup, Linear, Recurrent
from roofline.models.config import load_model
from roofline.serving.activation import (
    ggml_buffer_bytes,
    prompt_logprobs_bytes,
    rejection_sampler_bytes,
)
from roofline.serving.budget import budget
from roofline.serving.engines import Engine
from roofline.serving.inverse import max_batch, max_context_tokens, reported_concurrency
from roofline.serving.pages import concurrency, logged_tokens, page_groups
from roofline.serving.placement import Placement
from roofline.timing.parallel import Parallel, padded_vocabulary, shard
from roofline.units import GIB, MIB
from roofline.work.kv_cache import bytes_per_token, cache_bytes

CONFIGS = Path(__file__).parents[1] / "data" / "case_configs"


def card(gib, name="card"):
    return Accelerator(id=name, name=name, vendor="NVIDIA", kind="gpu",
                       memory=Memory(usable_bytes=gib * GIB, source=("test",)))  # fmt: skip


def attention_only(n_layers, n_kv_heads, head_dim, window=None):
    heads = GroupedQuery(n_kv_heads, head_dim)
    group = LayerGroup(n_layers, heads, window=window)
    return Architecture(name="case", layers=(group,), source="test")


class TestPagesOfMixedModels:
    """vLLM divides a pool into pages of one size; every group takes at least one per request."""

    @pytest.fixture
    def qwen35(self):
        """16 attention layers of 4 × 256, 48 with a state of 48 × 128 × 128 in fp32."""
        conv = (2 * 16 * 128 + 48 * 128) * 3  # keys, queries and values of three past tokens
        state = Recurrent("gated_delta", state_values=48 * 128 * 128, conv_values=conv,
                          flop_per_token=0.0, n_heads=48)  # fmt: skip
        groups = (LayerGroup(16, GroupedQuery(4, 256, n_heads=24)), LayerGroup(48, recurrent=state))
        return Architecture(name="qwen3.5-27b", layers=groups, source="test")

    def test_the_two_lines_of_one_log(self, cases, qwen35):
        """conc-hybrid-log-mismatch: 290,864 "tokens" and 33.04 requests of 32,768."""
        case = cases["conc-hybrid-log-mismatch"]
        log, right = case["input"]["log"], case["right_answer"]
        groups = page_groups(qwen35, Dtype.BF16)
        assert groups.n_groups == 4
        blocks = 1487  # the pool of that log: 371 pages of each of four groups, and three over
        assert logged_tokens(groups, blocks) == log["kv_tokens"]
        found = concurrency(groups, blocks, log["max_model_len"])
        assert found == pytest.approx(right["concurrency"], abs=0.01)
        assert found * log["max_model_len"] == pytest.approx(right["tokens"], rel=1e-3)

    def test_state_sets_the_page(self, qwen35):
        """3,207,168 B of state are 783 tokens of 4,096 B, in whole sixteens 784."""
        groups = page_groups(qwen35, Dtype.BF16)
        assert max(kind.page_tokens for kind in groups.kinds) == 784
        assert groups.page_bytes == 784 * 4096

    def test_a_short_prompt_takes_a_page_of_every_group(self, cases):
        """hyb-glm53-giant-pages: 12 tokens pin 0.329 of the pool."""
        case = cases["hyb-glm53-giant-pages"]
        given, right = case["input"], case["right_answer"]
        per_token = 1024  # any: the page is what counts
        state = Recurrent("kda", state_values=given["attention_block"] * per_token // 4,
                          conv_values=0, flop_per_token=0.0)  # fmt: skip
        arch = Architecture(
            name="case",
            layers=(LayerGroup(2, GroupedQuery(1, 256)), LayerGroup(44, recurrent=state)),
            source="test",
        )
        groups = page_groups(arch, Dtype.BF16)
        assert groups.n_groups == given["groups"]
        assert groups.kinds[0].page_tokens == given["attention_block"]
        blocks = round(groups.n_groups / right["share"])  # a pool of 70 blocks
        assert concurrency(groups, blocks, 12) == pytest.approx(1 / right["share"], rel=0.01)
        share = groups.blocks_per_request(12) / blocks
        assert share * given["pool_tokens"] == pytest.approx(right["token_equivalents"], rel=0.01)
        assert int(concurrency(groups, blocks, 12)) in (2, 3)
        # the token count hardly matters: the whole of a page costs what one token does
        assert concurrency(groups, blocks, given["attention_block"]) == concurrency(
            groups, blocks, 1
        )

    def test_windows_and_full_attention(self, cases):
        """swa-gptoss120-two-answers: 5.38 GiB are 78,384 tokens in vLLM's log."""
        case = cases["swa-gptoss120-two-answers"]
        heads = GroupedQuery(8, 64)
        arch = Architecture(
            name="gpt-oss-120b",
            layers=(LayerGroup(18, heads, window=128), LayerGroup(18, heads)),
            source="test",
        )
        groups = page_groups(arch, Dtype.BF16)
        pool = case["input"]["available_kv_GiB"] * GIB
        # the pool has three digits
        assert logged_tokens(groups, groups.blocks(pool)) == pytest.approx(
            case["right_answer"]["log_tokens"], rel=1e-3
        )


class TestStartUp:
    def test_activation_is_not_the_caches(self, cases):
        """conc-sim-4090-kv: vLLM resolves 41,408 tokens, what remains without activation 54,415."""
        case = cases["conc-sim-4090-kv"]
        engine = Engine("vllm", memory_fraction=0.9,
                        chunk_tokens=case["input"]["max_num_batched_tokens"])  # fmt: skip
        arch = load_model(case["input"]["config"])
        pool = budget(Placement(arch, load_accelerator("rtx-4090"), engine=engine), 1, 1)
        tokens = pool.kv_pool_bytes / bytes_per_token(arch, Dtype.BF16)
        # the version is not stated, 4.5 % either way between the two samplers
        assert tokens == pytest.approx(case["right_answer"]["measured_tokens"], rel=0.05)
        assert tokens < case["right_answer"]["upper_bound_tokens"]
        plain = budget(Placement(arch, card(24 * 0.9)), 1, 1)
        assert plain.kv_pool_bytes / bytes_per_token(arch, Dtype.BF16) == pytest.approx(
            case["right_answer"]["upper_bound_tokens"], rel=1e-4
        )

    def test_the_rejection_sampler(self, cases):
        case = cases["act-specdec-sampler"]
        given, right = case["input"], case["right_answer"]
        sized = rejection_sampler_bytes(
            given["max_num_seqs"], given["draft_tokens"], given["vocab_size"]
        )
        assert sized / MIB == right["MiB"]
        one = rejection_sampler_bytes(given["max_num_seqs"], 1, given["vocab_size"])
        assert one / MIB == right["assumed_before_MiB"]

    def test_draft_tokens_raise_the_budget(self):
        arch, h100 = load_model("llama-3.1-8b"), load_accelerator("h100-sxm5-80gb")
        plain, drafting = (
            budget(Placement(arch, h100, engine=Engine("vllm", speculative_tokens=n)), 1, 1)
            for n in (0, 5)
        )
        assert drafting.activation_bytes > plain.activation_bytes

    @pytest.mark.parametrize(("tokens", "gib"), [(8192, 6.96), (4096, 3.48)])
    def test_prompt_logprobs(self, cases, tokens, gib):
        case = cases["act-prompt-logprobs"]
        sized = prompt_logprobs_bytes(tokens, case["input"]["vocab_size"])
        assert sized / GIB == pytest.approx(gib, rel=2e-3)
        if tokens == case["input"]["scheduled_tokens"]:
            assert sized / 1e9 == pytest.approx(case["right_answer"]["GB"], rel=2e-3)

    def test_graphs_are_not_the_overrun(self, cases):
        """graph-tp8-small-pool: of 31.38 GiB at 0.95, 29.81 are the budget; 0.06 are graphs."""
        case = cases["graph-tp8-small-pool"]
        given, right = case["input"], case["right_answer"]
        arch = load_model("gpt-oss-120b")
        memory = budget(
            Placement(arch, card(31.38), Parallel(tp=given["tp"]),
                      engine=Engine("vllm", memory_fraction=given["gpu_memory_utilization"])),
            1, 1,
        )  # fmt: skip
        outside = sum(part.bytes for part in memory.parts
                      if "fraction" in part.name)  # fmt: skip
        assert (memory.usable_bytes - outside) / GIB == pytest.approx(right["budget_GiB"], abs=0.01)
        # more than the graphs: communication takes its share of every card at TP8
        communication = next(p for p in memory.parts if "communication" in p.name)
        assert communication.bytes / GIB > right["over_GiB"]
        assert right["over_GiB"] > 20 * right["graph_pool_GiB"]

    @pytest.mark.parametrize("tp", [1, 2, 4, 8])
    def test_non_torch_grows_with_ranks(self, tp):
        arch, h100 = load_model("llama-3.1-70b"), load_accelerator("h100-sxm5-80gb")
        parts = {
            p.name: p.bytes
            for p in budget(
                Placement(arch, h100, Parallel(tp=tp), engine=Engine("vllm")), 1, 1
            ).parts
        }
        assert (parts["driver context and communication"] / GIB > 1) == (tp > 1)


class TestWhatFits:
    def test_tokens_of_a_pool_and_the_longest_context(self, cases):
        case = cases["fits-fp8kv-len-221k"]
        right = case["right_answer"]
        arch = attention_only(24, 8, 128)
        assert bytes_per_token(arch, Dtype.FP8) == case["input"]["bytes_per_token"]
        at_100k, at_221k = (Placement(arch, card(gib), kv=Dtype.FP8) for gib in (10.55, 5.59))
        assert max_context_tokens(at_100k) == pytest.approx(right["tokens_at_100k"], rel=1e-3)
        assert budget(at_221k, 1, 221_000).fits is right["starts_221k"]
        assert max_context_tokens(at_221k) == pytest.approx(right["max_len_at_5.59GiB"], rel=1e-3)

    def test_the_pool_shrinks_with_the_length_it_is_started_for(self):
        """Without chunked prefill the profile runs the whole context (vLLM to 0.7)."""
        arch, rtx = load_model("llama-3.1-8b"), load_accelerator("rtx-3090")
        pools = [
            budget(
                Placement(arch, rtx, kv=Dtype.FP8,
                          engine=Engine("vllm", version="0.6.6", max_context_tokens=length)),
                1, 1,
            ).kv_pool_bytes
            for length in (8192, 16_384, 32_768)
        ]  # fmt: skip
        assert pools == sorted(pools, reverse=True)
        assert pools[0] > pools[-1]

    def test_a_70b_in_w8a8_on_one_h100(self, cases):
        """1,381 blocks of 16 tokens are 22,096 tokens, 10.79 requests of 2,048."""
        right = cases["fits-llama70-w8a8-one-h100"]["right_answer"]
        arch = load_model("llama-3.1-70b")
        pool = right["kv_tokens"] * bytes_per_token(arch, Dtype.BF16)
        placement = Placement(attention_only(80, 8, 128), card(pool / GIB))
        assert max_context_tokens(placement) == right["kv_tokens"]
        assert reported_concurrency(placement, 2048) == pytest.approx(
            right["concurrency"], abs=0.005
        )
        assert max_batch(placement, 2048) == math.floor(right["concurrency"])

    @pytest.mark.parametrize(("weights", "fits"), [("bf16", False), ("int8", True), ("int4", True)])
    def test_formats_decide_on_one_h100(self, weights, fits):
        """141 GB do not go into 79.19 GiB; 67.7 GiB in W8A8 started there at 0.98 (the case)."""
        placement = Placement(
            load_model("llama-3.1-70b"), load_accelerator("h100-sxm5-80gb"),
            weights=find_dtype(weights), engine=Engine("vllm", memory_fraction=0.98),
        )  # fmt: skip
        assert budget(placement, 1, 2048).fits is fits

    def test_the_whole_card_with_a_quantised_cache(self, cases):
        """kvq-ollama-ps-f16: weights 17,295, cache 5,712, compute 192 MiB; 23,508 in nvidia-smi."""
        case = cases["kvq-ollama-ps-f16"]
        arch = Architecture(
            name="mistral-small-22b", hidden_size=6144, vocab_size=32_768,
            layers=(LayerGroup(56, GroupedQuery(8, 128, n_heads=48)),), source="test",
        )  # fmt: skip
        tokens = case["input"]["context_tokens"]
        compute = ggml_buffer_bytes(arch, 512, tokens)
        assert compute / MIB == pytest.approx(192)
        total = 17_295 * MIB + cache_bytes(arch, tokens, find_dtype("q8_0")) + compute
        assert total / MIB == pytest.approx(case["right_answer"]["gpu_total_MiB"], rel=1e-3)
        context = next(
            p for p in budget(Placement(arch, card(24), engine=Engine("llama.cpp")), 1, 1).parts
            if "driver" in p.name
        )  # fmt: skip
        assert (total + context.bytes) / MIB == pytest.approx(
            case["right_answer"]["nvidia_smi_MiB"], rel=2e-3
        )

    def test_384_requests_do_not_go_into_a_worker(self, cases):
        """dec-aic-kimi-concurrency: 384 were configured, about 35 ran."""
        case = cases["dec-aic-kimi-concurrency"]
        arch = load_model(json.loads((CONFIGS / "kimi-k2.6-nvfp4.json").read_text()))
        engine = Engine("vllm", memory_fraction=case["input"]["gpu_memory_utilization"])
        worker = Placement(arch, load_accelerator("b200-hgx"), Parallel(tp=4), kv=Dtype.BF16,
                           engine=engine)  # fmt: skip
        context = case["input"]["isl"] + case["input"]["osl"]
        held = max_batch(worker, context)
        # 192.44 tok/s/GPU × 8 / 44.59 tok/s/user; which cards held the cache is not stated
        assert held == pytest.approx(case["right_answer"]["effective"], rel=0.3)
        assert not budget(worker, 384, context).fits

    def test_layers_left_in_16_bit_weigh_more(self):
        """The same case: self_attn and lm_head stay in bf16 whatever the checkpoint is called."""
        arch = load_model(json.loads((CONFIGS / "kimi-k2.6-nvfp4.json").read_text()))
        attention = [
            linear
            for group in arch.layers
            for linear in group.linears
            if "self_attn" in linear.name
        ]
        assert attention
        assert all((linear.dtype or arch.dtype).bits == 16 for linear in attention)


class TestParallelPlans:
    def test_latent_under_tp_and_under_dp_attention(self, cases):
        """mla-tp-replication: eight copies of one pool, or eight pools: near 8 × (7.68 there)."""
        right = cases["mla-tp-replication"]["right_answer"]
        arch, b200 = load_model("deepseek-v3"), load_accelerator("b200-hgx")
        engine = Engine("vllm", memory_fraction=0.95)
        together = Placement(arch, b200, Parallel(tp=8), engine=engine)
        apart = Placement(arch, b200, Parallel(dp=8, ep=8), engine=engine)
        ratio = 8 * reported_concurrency(apart, 131_072) / reported_concurrency(together, 131_072)
        # here attention is copied with each pool, so a little below the case's model
        assert 0.8 * right["ratio"] < ratio < 8

    def test_vocabulary_and_heads(self, cases):
        """vocab-tp6-tp24: both engines refused; padding the vocabulary alone is not enough."""
        given = cases["vocab-tp6-tp24"]["input"]
        assert padded_vocabulary(given["A"]["vocab_size"], 6) == 151_680
        assert padded_vocabulary(given["B"]["vocab_size"], 24) == 129_408
        heads = GroupedQuery(given["A"]["num_key_value_heads"], 128,
                             n_heads=given["A"]["num_attention_heads"])  # fmt: skip
        queries = Linear("self_attn.q_proj", 5120, 96 * 128)
        arch = Architecture(name="glm-4.7", layers=(LayerGroup(92, heads, linears=(queries,)),),
                            vocab_size=given["A"]["vocab_size"], source="test")  # fmt: skip
        with pytest.raises(InputError, match=r"8 KV heads .* these do: 1, 2, 4, 8, 16, 24, 32"):
            shard(arch, Parallel(tp=6))

    @pytest.mark.parametrize(
        ("vocab", "tp", "padded"),
        [(32_000, 1, 32_000), (128_256, 8, 128_256), (50_257, 2, 50_304), (151_936, 3, 152_064)],
    )
    def test_padding_is_the_next_common_multiple(self, vocab, tp, padded):
        """50,257 is 785.3 × 64; 151,936 is 791.3 × 192: worked by hand."""
        assert padded_vocabulary(vocab, tp) == padded
