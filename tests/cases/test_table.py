"""Which test answers each recorded case, or why none does.

A case without an entry, an entry without its test, and a test that has gone fail here.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

KV, WEIGHTS, POOLS = (
    "cases/test_kv_cases.py",
    "cases/test_weight_cases.py",
    "cases/test_pool_cases.py",
)
CONFIG, SPEED, NODE = (
    "cases/test_config_cases.py",
    "cases/test_speed_cases.py",
    "cases/test_node_cases.py",
)

ANSWERED = {
    "mla-dsv32-indexer-cache": (KV, "test_packed_slot_and_indexer_key"),
    "moe-distinct-experts": (WEIGHTS, "test_over_all_ranks_and_on_one"),
    "hyb-glm53-giant-pages": (POOLS, "test_a_short_prompt_takes_a_page_of_every_group"),
    "w-gptoss120-from-config": (WEIGHTS, "test_gpt_oss_120b_to_the_byte"),
    "dec-resident-not-read": (SPEED, "test_experts_that_are_not_chosen_are_not_read"),
    "dec-aic-kimi-concurrency": (POOLS, "test_384_requests_do_not_go_into_a_worker"),
    "mla-tp-replication": (POOLS, "test_latent_under_tp_and_under_dp_attention"),
    "conc-sim-4090-kv": (POOLS, "test_activation_is_not_the_caches"),
    "cost-olmocr-12000": ("economics/test_cost.py", "test_pages_are_not_tokens"),
    "kv-qwen25-7b-gptq-units": (KV, "test_hidden_size_is_not_the_width_of_the_cache"),
    "cfg-nested-defaults": (WEIGHTS, "test_nested_text_config_is_read"),
    "heads-qwen3vl-tp8": (KV, "test_four_heads_on_eight_ranks_are_copied"),
    "w-dsv3-count": (WEIGHTS, "test_deepseek_v3"),
    "moe-30b-spill-vs-fit": (SPEED, "test_slower_than_all_weights_is_no_bandwidth_limit"),
    "dec-batch-is-not-bandwidth": (SPEED, "test_batch_is_not_bandwidth"),
    "conc-hybrid-log-mismatch": (POOLS, "test_the_two_lines_of_one_log"),
    "kv-from-param-count": (KV, "test_parameters_say_nothing_about_the_cache"),
    "act-prompt-logprobs": (POOLS, "test_prompt_logprobs"),
    "kv-qwen35-name-match": (CONFIG, "test_every_fourth_layer_keeps_a_cache"),
    "graph-tp8-small-pool": (POOLS, "test_graphs_are_not_the_overrun"),
    "kvq-fp8-not-double": (KV, "test_only_attention_halves"),
    "ma-above-theoretical-2080ti": (SPEED, "test_an_easier_clock_explains_more_than_the_peak"),
    "peak-a6000-sparse-merged": (SPEED, "test_dense_peak_of_the_part_itself"),
    "peak-unknown-gpu-fallback": (SPEED, "test_utilisation_against_the_right_peak"),
    "power-cap-decode-vs-prefill": (
        "economics/test_cost.py",
        "test_a_power_cap_slows_compute_not_memory",
    ),
    "topo-h100pcie-12-of-18": (NODE, "test_twelve_of_eighteen_behind_a_bridge_are_all"),
    "tp-3090-batch-vs-single": (SPEED, "test_two_cards_are_never_twice_one"),
    "vocab-tp6-tp24": (POOLS, "test_vocabulary_and_heads"),
    "fits-fp8kv-len-221k": (POOLS, "test_tokens_of_a_pool_and_the_longest_context"),
    "tp-prefill-3090-llama70": (SPEED, "test_bytes_all_reduced_per_prompt_token"),
    "trace-zero-ts": (
        "trace/test_reader.py",
        "test_kernels_without_times_are_counted_and_left_out",
    ),
    "topo-v100-2-links-down": (NODE, "test_two_of_six_are_down"),
    "rope-telechat-double": (CONFIG, "test_the_stated_length_has_the_factor_in_it"),
    "kvq-ollama-ps-f16": (KV, "test_q8_0_is_not_8_bit"),
    "peak-sparse-mfu": (SPEED, "test_utilisation_against_the_right_peak"),
    "swa-gptoss120-two-answers": (KV, "test_below_and_beyond_the_window"),
    "w-accelerate-70b": (WEIGHTS, "test_a_70b_in_16_bit"),
    "fits-llama70-w8a8-one-h100": (POOLS, "test_a_70b_in_w8a8_on_one_h100"),
    "q-mxfp4-native-ladder": (WEIGHTS, "test_mxfp4_native_files_are_one_size"),
    "blog-70b-8k-batch8": (KV, "test_eight_requests_of_8k_on_a_70b"),
    "moe-35b-a3b-6900xt": (SPEED, "test_a_bound_on_all_weights_is_beaten"),
    "q-over-16-bits": (WEIGHTS, "test_more_than_16_bits_exposes_a_headline_count"),
    "conc-transformers-tp-heads": (KV, "test_the_pool_is_sized_with_sharded_heads"),
    "kv-qwen3-4b-lmcache": (KV, "test_explicit_head_dim"),
    "act-specdec-sampler": (POOLS, "test_the_rejection_sampler"),
    "cost-formula": ("economics/test_cost.py", "test_utilisation_is_part_of_the_price"),
    "peak-h20": (SPEED, "test_h20_ridge"),
    "power-multi-gpu-mean": (NODE, "test_power_is_of_all_accelerators"),
    "topo-h100-pcie-bridge": (NODE, "test_a_measured_pair_against_its_bridge"),
    "swa-gemma3-1b": (KV, "test_gemma_3_1b"),
    "dec-tpot-definitions": (SPEED, "test_tpot_leaves_the_first_token_out"),
}
"""Case to the file and the test that answers it."""

NOT_ANSWERED = {
    "frag-384mib": "fragmentation of an allocator depends on its history; a budget sums bytes and "
    "says to keep a margin near the largest temporary",
    "ma-zeros-h100": "how data changes power and clock is measured, not modelled; the harness "
    "fills matrices with random numbers",
    "ma-l2-resident-4060ti": "which bytes stay in a cache is measured; the copy sweep flags what "
    "is less than three times its size",
    "ma-wave-a100": "tiles per multiprocessor are a kernel's choice; curves over measured shapes "
    "stand for them",
    "ma-wave-mi300": "tiles per multiprocessor are a kernel's choice; curves over measured shapes "
    "stand for them",
    "topo-numa-p100": "the rate of pinned memory on either socket is measured by the baseline, "
    "there is nothing to derive it from",
}
"""Cases that ask for something that the library measures or leaves out, and why."""


def test_every_case_has_one_entry(cases):
    assert set(ANSWERED) | set(NOT_ANSWERED) == set(cases)
    assert not set(ANSWERED) & set(NOT_ANSWERED)


@pytest.mark.parametrize("case_id", sorted(ANSWERED))
def test_the_test_is_there(case_id):
    file, name = ANSWERED[case_id]
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in names
