"""Memory budgets: each engine's rule against worked examples, and what must hold for all."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roofline.dtypes import DTYPES, Dtype, find_dtype
from roofline.errors import InputError, MissingDataError, RooflineError
from roofline.hardware.accelerator import Accelerator, Memory, accelerator_ids, load_accelerator
from roofline.models.architecture import LLAMA_3_8B, Tower
from roofline.models.config import load_model
from roofline.serving.budget import budget, memory_budget
from roofline.serving.engines import ENGINE_NAMES, Engine
from roofline.serving.extras import Extras
from roofline.serving.inverse import max_batch, max_context_tokens
from roofline.serving.memory_rules import find_rule
from roofline.serving.placement import Placement
from roofline.timing.parallel import Parallel
from roofline.units import GIB

T4, H100, H200 = (load_accelerator(n) for n in ("t4", "h100-sxm5-80gb", "h200-sxm-141gb"))


def under(engine, arch=LLAMA_3_8B, card=H100, plan=None, extras=None, **settings_):
    """The budget of one sequence of one token."""
    placement = Placement(arch, card, plan or Parallel(), engine=Engine(engine, **settings_),
                          extras=extras or Extras())  # fmt: skip
    return budget(placement, 1, 1)


def llama_2_on_t4(engine, **settings_):
    return Placement(load_model("llama-2-7b"), T4, engine=Engine(engine, **settings_))


class TestLlama2OnT4:
    """13.48 GB of weights in 14.74 GiB: 2.35 GB are left, 0.85 GB beside a 1.5 GB framework."""

    def test_transformers_leaves_about_1600_tokens(self):
        # 0.85e9 / 524,288 B = 1,621
        assert max_context_tokens(llama_2_on_t4("transformers")) == pytest.approx(1600, rel=0.02)

    def test_a_plain_program_holds_the_framework_too(self):
        assert max_context_tokens(llama_2_on_t4("plain")) == 1621

    def test_vllm_leaves_less_than_nothing(self):
        memory = budget(llama_2_on_t4("vllm", memory_fraction=0.9), 1, 1)
        assert not memory.fits
        assert memory.kv_pool_bytes == 0
        assert memory.pool_shortfall_bytes > 0
        assert "0.9 × 14.74 GiB of the total" in memory.rule
        assert max_context_tokens(llama_2_on_t4("vllm")) == 0

    def test_no_engine_leaves_what_arithmetic_leaves(self):
        # (14.74 × 2³⁰ − 13,476,831,232) / 524,288 = 4,482.4
        assert max_context_tokens(llama_2_on_t4("ideal")) == 4482


class TestRules:
    def test_fraction_of_the_total(self):
        """pool = util × physical − weights − activation − non-torch (llm-d-planner, 2026)."""
        memory = under("vllm", memory_fraction=0.8)
        non_torch = next(p.bytes for p in memory.parts if "driver" in p.name)
        pool = (
            0.8 * memory.usable_bytes - memory.weights_bytes - memory.activation_bytes - non_torch
        )
        assert memory.kv_pool_bytes == pytest.approx(pool)

    def test_fraction_of_what_is_free(self):
        """TensorRT-LLM: 0.9 of what loading leaves; a tenth of it stays free."""
        kept, half = (under("tensorrt-llm", memory_fraction=f) for f in (0.9, 0.45))
        assert kept.kv_pool_bytes == pytest.approx(2 * half.kv_pool_bytes)

    def test_the_log_of_tensorrt_llm(self):
        """Issue 1400 (0.8, A100 80GB): 6.53 GiB of a 7B in int8 leave 64.75 GiB of cache."""
        placement = Placement(load_model("llama-2-7b"), load_accelerator("a100-sxm4-80gb"),
                              weights=Dtype.INT8, engine=Engine("tensorrt-llm"))  # fmt: skip
        memory = budget(placement, 1, 1)
        assert memory.weights_bytes / GIB == pytest.approx(6.53, rel=0.01)
        assert memory.kv_pool_bytes / GIB == pytest.approx(64.75, rel=0.01)

    def test_activations_live_outside_sglangs_fraction(self):
        """aisimulate pull request 263: the pool does not depend on the activation peak."""
        pools = {under("sglang", chunk_tokens=n).kv_pool_bytes for n in (512, 8192)}
        assert len(pools) == 1

    @pytest.mark.parametrize(
        ("version", "versions", "activation"),
        [
            ("0.11.0", "0.8 to 0.16", 4.76),
            ("0.19", "0.18 to 0.20", 2.06),
            (None, "0.18 to 0.20", 2.06),
        ],
    )
    def test_activation_follows_the_vocabulary_and_the_version(self, version, versions, activation):
        """H100, 128,256 entries: 4.76 GiB logged with 0.11; 0.347 + 1.334e-5 × V with 0.19."""
        memory = under("vllm", load_model("llama-3.1-8b"), version=version)
        assert find_rule(Engine("vllm", version=version)).versions == versions
        assert memory.activation_bytes / GIB == pytest.approx(activation, rel=5e-3)
        assert versions in memory.rule

    @pytest.mark.parametrize(
        ("model", "activation"), [("gpt-oss-20b", 7.38), ("qwen3-32b", 5.64), ("qwen3-0.6b", 5.56)]
    )
    def test_activation_logged_with_0_11(self, model, activation):
        """llm-d-planner, vLLM 0.11 on H100: it follows the vocabulary, not the size."""
        memory = under("vllm", load_model(model), version="0.11")
        assert memory.activation_bytes / GIB == pytest.approx(activation, rel=0.01)

    def test_smaller_cards_profile_fewer_sequences(self):
        """arg_utils.py: 1,024 sequences from 70 GiB on, 256 below and on an A100."""
        large, small, a100 = (
            under("vllm", card=load_accelerator(name))
            for name in ("h100-sxm5-80gb", "l40s", "a100-sxm4-80gb")
        )
        assert large.activation_bytes > small.activation_bytes == a100.activation_bytes

    def test_two_stages_halve_the_peak(self):
        """llm-d-planner pull request 205: PP2 halves it, TP leaves it."""
        one, tp2, pp2 = (
            under("vllm", plan=plan).activation_bytes
            for plan in (Parallel(), Parallel(tp=2), Parallel(pp=2))
        )
        assert one == tp2 == 2 * pp2

    def test_graphs_are_inside_since_0_21(self):
        outside, inside = (
            under("vllm", version=version, memory_fraction=0.9) for version in ("0.19", "0.21")
        )
        graphs = next(p.bytes for p in inside.parts if p.name == "CUDA graphs")
        assert outside.kv_pool_bytes - inside.kv_pool_bytes == pytest.approx(graphs)
        eager = under("vllm", version="0.21", memory_fraction=0.9, cuda_graphs=False)
        assert eager.kv_pool_bytes == pytest.approx(outside.kv_pool_bytes)

    def test_llama_cpp_allocates_the_whole_context(self):
        """A cache of n_ctx cells in whole 256s, whatever is used of it; tables stay on the host."""
        placement = Placement(load_model("llama-2-7b"), T4, weights=find_dtype("q4_0"),
                              engine=Engine("llama.cpp", max_context_tokens=4000))  # fmt: skip
        memory = budget(placement, 1, 10)
        assert memory.kv_cache_bytes == 4096 * 524_288
        whole = budget(replace(placement, engine=Engine("ideal")), 1, 10)
        assert memory.weights_bytes < whole.weights_bytes

    @pytest.mark.parametrize(
        ("model", "mix", "gib"), [("llama-2-7b", "q4_0", 3.494), ("llama-3-8b", "q4_k_m", 4.300)]
    )
    def test_llama_cpp_holds_the_file_without_its_table(self, model, mix, gib):
        """Files of 3.56 and 4.58 GiB less 32,000 × 4,096 and 128,256 × 4,096 values of 4.5 bit.

        llama.cpp's own log for the first: 3.813 GiB with 0.25 of cache and 0.069 of buffers.
        """
        placement = Placement(load_model(model), T4, weights=find_dtype(mix),
                              engine=Engine("llama.cpp"))  # fmt: skip
        memory = budget(placement, 1, 512)
        assert memory.weights_bytes / GIB == pytest.approx(gib, rel=1e-3)
        if mix == "q4_0":
            held = memory.weights_bytes + memory.kv_cache_bytes + memory.activation_bytes
            assert held / GIB == pytest.approx(3.813, rel=1e-3)
        assert any("the table kept in host memory" in line for line in memory.assumptions)

    def test_a_batch_past_a_steps_sequences_is_said(self):
        memory = budget(Placement(LLAMA_3_8B, H200, engine=Engine("vllm")), 1025, 10)
        assert any("1,025 is more than the 1,024 sequences" in line for line in memory.assumptions)

    @pytest.mark.parametrize("name", ENGINE_NAMES)
    def test_the_parts_add_up_to_the_card(self, name):
        memory = budget(Placement(LLAMA_3_8B, H100, engine=Engine(name)), 4, 2048)
        total = (memory.weights_bytes + memory.kv_cache_bytes + memory.activation_bytes
                 + memory.overhead_bytes + memory.free_bytes)  # fmt: skip
        assert total == pytest.approx(memory.usable_bytes)
        assert memory.overhead_bytes == pytest.approx(sum(p.bytes for p in memory.parts))
        assert all(part.source for part in memory.parts)
        assert name in memory.rule

    def test_one_accelerator_is_no_split(self):
        alone = memory_budget(LLAMA_3_8B, H100, batch=2, context_tokens=100)
        assert alone.weights_bytes == 2 * 8_030_261_248

    def test_the_default_is_said(self):
        memory = budget(Placement(LLAMA_3_8B, H100, engine=Engine("vllm")), 1, 1)
        said = " ".join(memory.assumptions)
        for words in ("0.9 is the default", "0.18 to 0.20", "1024 sequences", "KV cache in bf16"):
            assert words in said

    def test_usable_memory_by_a_rule_is_said(self):
        memory = budget(Placement(LLAMA_3_8B, load_accelerator("rtx-5090")), 1, 1)
        assert any("usable memory of rtx-5090" in line for line in memory.assumptions)


class TestExtras:
    def test_adapters(self):
        """r = 16 on all seven matrices of Llama-3-8B: 41,943,040 values (peft prints the same)."""
        plain, adapted = (under("ideal", extras=Extras(lora_adapters=n)) for n in (0, 4))
        assert adapted.overhead_bytes - plain.overhead_bytes == 4 * 41_943_040 * 2

    def test_towers_count_when_asked(self):
        arch = replace(LLAMA_3_8B, towers=(Tower("vision", 400_000_000),))
        plain, with_tower = (
            under("ideal", arch, extras=Extras(towers=asked)) for asked in (False, True)
        )
        assert with_tower.overhead_bytes - plain.overhead_bytes == 800_000_000

    def test_prediction_layers_hold_weights_and_cache(self):
        arch = load_model("deepseek-v3")
        plain, predicting = (
            budget(Placement(arch, H200, Parallel(tp=8), extras=extras), 1, 1000)
            for extras in (Extras(), Extras(prediction_layers=True))
        )
        assert predicting.weights_bytes > plain.weights_bytes
        # one more layer of 576 values in 16 bit for each of 1,000 tokens
        assert predicting.kv_cache_bytes - plain.kv_cache_bytes == 1000 * 576 * 2

    @pytest.mark.parametrize("adapters", [-1, 1.5, True, 10**9])
    def test_counts_that_cannot_be(self, adapters):
        with pytest.raises(InputError, match="lora_adapters"):
            Extras(lora_adapters=adapters)


class TestBadInput:
    @pytest.mark.parametrize("batch", [0, -1, float("nan"), float("inf"), True, "3", 1e30])
    def test_batch(self, batch):
        with pytest.raises(InputError, match="batch"):
            memory_budget(LLAMA_3_8B, H100, batch=batch, context_tokens=10)

    @pytest.mark.parametrize("tokens", [-1, float("nan"), float("inf"), True, "3"])
    def test_context(self, tokens):
        with pytest.raises(InputError, match="context_tokens"):
            memory_budget(LLAMA_3_8B, H100, batch=1, context_tokens=tokens)

    def test_a_plan_that_does_not_divide(self):
        with pytest.raises(InputError, match=r"tp=3 does not divide .* these do: 1, 2, 4"):
            memory_budget(LLAMA_3_8B, H100, Parallel(tp=3))

    def test_unknown_memory(self):
        blank = Accelerator(id="blank", name="blank", vendor="X", kind="gpu",
                            memory=Memory(source=()))  # fmt: skip
        with pytest.raises(MissingDataError):
            memory_budget(LLAMA_3_8B, blank)


BITS = sorted({dtype.bits: dtype for dtype in DTYPES.values()}.items())


@st.composite
def configs(draw):
    """Configs as people write them, and as nobody should."""
    config = {
        "model_type": draw(st.sampled_from(["llama", "qwen2", "mistral", "gemma2", "unheard_of"])),
        "num_hidden_layers": draw(st.integers(-1, 60)),
        "hidden_size": draw(st.sampled_from([0, 64, 96, 1024, 4096, 7168])),
        "num_attention_heads": draw(st.sampled_from([0, 1, 3, 8, 32, 64])),
        "num_key_value_heads": draw(st.sampled_from([None, 0, 1, 2, 4, 8, 32, -1, "8"])),
        "intermediate_size": draw(st.sampled_from([1, 128, 11008, 14336, None, 1.5])),
        "vocab_size": draw(st.sampled_from([1, 32000, 128_256, 262_144, -5])),
        "head_dim": draw(st.sampled_from([None, 64, 128, 256, 0])),
        "tie_word_embeddings": draw(st.sampled_from([True, False, None, "yes"])),
        "sliding_window": draw(st.sampled_from([None, 128, 4096, 0, -3])),
        "max_position_embeddings": draw(st.sampled_from([None, 2048, 131_072, -1, 1e40])),
        "torch_dtype": draw(st.sampled_from(["bfloat16", "float16", "float32", "int3", None])),
    }
    for key in draw(st.sets(st.sampled_from(sorted(config)), max_size=3)):
        del config[key]
    return config


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    config=configs(),
    engine=st.sampled_from(ENGINE_NAMES),
    tp=st.sampled_from([1, 2, 3, 8]),
    batch=st.integers(1, 2000),
    tokens=st.integers(0, 3_000_000),
)
def test_any_config_gives_memory_or_one_line(config, engine, tp, batch, tokens):
    """No traceback but roofline's own errors; no negative and no infinite memory."""
    try:
        arch = load_model(config)
        placement = Placement(arch, H100, Parallel(tp=tp), engine=Engine(engine))
        memory = budget(placement, batch, tokens)
    except RooflineError:
        return
    sizes = [memory.weights_bytes, memory.kv_cache_bytes, memory.activation_bytes,
             memory.overhead_bytes, memory.kv_pool_bytes, memory.missing_bytes,
             memory.free_bytes, memory.needed_bytes]  # fmt: skip
    assert all(0 <= size < float("inf") for size in sizes)
    assert memory.fits == (memory.missing_bytes == 0)


MODELS = ["llama-3.1-8b", "gpt-oss-20b", "deepseek-v3", "gemma-2-9b", "qwen3-30b-a3b"]


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(MODELS),
    engine=st.sampled_from(ENGINE_NAMES),
    batch=st.integers(1, 500),
    tokens=st.integers(1, 200_000),
    more=st.integers(1, 100_000),
)
def test_more_batch_and_context_never_take_less(model, engine, batch, tokens, more):
    placement = Placement(load_model(model), H200, engine=Engine(engine))
    base = budget(placement, batch, tokens)
    longer, wider = budget(placement, batch, tokens + more), budget(placement, batch + more, tokens)
    for other in (longer, wider):
        assert other.kv_cache_bytes >= base.kv_cache_bytes
        assert other.needed_bytes >= base.needed_bytes * (1 - 1e-12)
        assert base.fits or not other.fits


@pytest.mark.parametrize("model", MODELS)
def test_more_bits_never_take_less(model):
    """Weights and cache in each storage format, by its bits."""
    placement = Placement(load_model(model), H200, engine=Engine("ideal"))
    weights = [budget(replace(placement, weights=d), 1, 1).weights_bytes for _, d in BITS]
    caches = [budget(replace(placement, kv=d), 1, 1000).kv_cache_bytes for _, d in BITS]
    assert caches == sorted(caches)
    own = Dtype.MXFP4 if "oss" in model else Dtype.FP8_BLOCK if "deepseek" in model else Dtype.BF16
    # the checkpoint's own format keeps its layout, what it leaves in 16 bit included
    others = [w for w, (_, d) in zip(weights, BITS, strict=True) if d != own]
    assert others == sorted(others)


@pytest.mark.parametrize("spec", accelerator_ids())
def test_every_accelerator_has_a_budget_or_says_why(spec):
    try:
        memory = memory_budget(LLAMA_3_8B, load_accelerator(spec), engine=Engine("vllm"))
    except MissingDataError:
        return
    assert memory.usable_bytes > 0


def test_h200_against_h100():
    """How many times the context and the sequences: from 79.19 to 139.8 GiB at 0.9."""
    h100, h200 = (
        Placement(load_model("llama-3.1-8b"), card, engine=Engine("vllm", memory_fraction=0.9))
        for card in (H100, H200)
    )
    # (0.9 × 139.8 − 17.3) / (0.9 × 79.19 − 17.3) = 108.5 / 54.0 GiB
    assert max_context_tokens(h200) / max_context_tokens(h100) == pytest.approx(2.01, abs=0.01)
    assert max_batch(h200, 8192) / max_batch(h100, 8192) == pytest.approx(2.0, abs=0.05)
