"""Published rows: read by the conventions of measurements/published/README.md.

Expected values are the lines of the tables themselves, converted by hand.
"""

import dataclasses
from collections import Counter

import pytest

from roofline.errors import MissingDataError, SpecError
from roofline.validation import published
from roofline.validation.exclusions import (
    BOUND,
    ESTIMATE,
    EXCLUSIONS,
    excluded_counts,
    exclusion_of,
    judged_rows,
)
from roofline.validation.formats import FORMATS, format_named
from roofline.validation.names import ACCELERATORS, accelerator_named
from roofline.validation.rows import all_rows, engine_rows, running_batch, serving_rows


@pytest.fixture(scope="module")
def by_id():
    return {row.id: row for row in all_rows()}


def test_every_line_keeps_its_id_source_and_date():
    for table in published.TABLES:
        lines = published.table_lines(table)
        assert len({line["id"] for line in lines}) == len(lines)
        assert all(line["source"] and line["date"] for line in lines)


def test_decode_rate_becomes_time_per_token(by_id):
    """s00001: 72.79 tokens per second of one sequence, llama-bench tg 512 from an empty cache."""
    row = by_id["s00001"]
    assert (row.quantity, row.running_batch, row.engine) == ("tpot", 1.0, "llama.cpp")
    assert row.value == pytest.approx(0.013738, rel=1e-4)  # 1 / 72.79
    assert row.decode_context_tokens == 256  # the middle of 512 tokens
    assert (row.weights.name, row.head.name, row.kv.name) == ("q4_k", "q6_k", "fp16")


def test_whole_batch_rates_are_per_sequence():
    """llama-batched-bench: prompt and generation rates count the batch's sequences together."""
    rows = [r for r in serving_rows() if r.group == "llamacpp_dgx_spark" and r.batch == 8]
    prefill = next(r for r in rows if r.quantity == "ttft" and r.prompt_tokens == 4096)
    assert prefill.value == pytest.approx(8 * 4096 / 1830.43)


def test_total_rate_counts_the_prompt():
    """Qwen's SGLang rows: speed = (prompt + generated) / time, 2,048 generated."""
    row = next(r for r in serving_rows() if r.metric == "total_tok_s" and r.prompt_tokens == 63_488)
    assert row.quantity == "e2e"
    assert row.value == pytest.approx((63_488 + 2048) / 1112.78)


def test_prefill_rate_of_the_rig_is_of_one_request():
    """Laguna at 64 in flight: a 512-token prompt at 237.489 tokens per second."""
    rows = [r for r in serving_rows() if r.group == "rig_4x3090" and r.load == "concurrency"]
    values = [r.value for r in rows if r.metric == "prefill_tok_s" and r.batch == 64]
    assert any(value == pytest.approx(512 / 237.4888168527105) for value in values)


def test_the_rig_counts_cards_by_instance():
    rig = [r for r in serving_rows() if r.group == "rig_4x3090"]
    alone = next(r for r in rig if r.load == "single_stream" and r.tp == 1 and r.pp == 1)
    assert alone.n_gpu == 1  # the box has four
    spread = next(r for r in rig if r.plan == "4 instances" and r.load == "concurrency")
    assert (spread.n_gpu, spread.dp) == (4, 4)


def test_tp_above_the_accelerators_counts_ranks_twice():
    row = next(r for r in engine_rows() if r.plan.startswith("agg tp 16") and r.n_gpu == 4)
    assert (row.tp, row.dp, row.ep) == (4, 1, 4)
    attention = next(r for r in engine_rows() if "attention-dp 8 " in r.plan and r.n_gpu == 8)
    assert (attention.tp, attention.dp, attention.plain) == (1, 8, False)


def test_drawn_lengths_have_their_mean(by_id):
    """InferenceX draws evenly between 0.8 and 1.0 of the nominal length."""
    row = by_id["kimik2_5_b200_vllm_fp4_agg_1024x1024_c4_cfg636:tpot"]
    assert row.prompt_tokens == pytest.approx(0.9 * 1024)
    assert row.shortest * row.prompt_tokens == pytest.approx(0.8 * 1024)


def test_running_batch_by_littles_law(by_id):
    """4 in flight, 74.14 ms to the first token, then 920.6 × 7.0616 ms: 6.501 of 6.575 s."""
    row = by_id["kimik2_5_b200_vllm_fp4_agg_1024x1024_c4_cfg636:tpot"]
    assert row.batch == 4
    assert row.running_batch == pytest.approx(4 * 6.501 / 6.575, rel=1e-3)
    assert row.batch_basis == "little"


def test_a_number_of_requests_is_no_batch():
    rows = [r for r in serving_rows() if r.load == "all_at_once" and r.quantity == "tpot"]
    assert all(row.batch_basis == "rate" for row in rows)
    assert any(row.running_batch < row.batch / 3 for row in rows)


def test_running_batch_never_exceeds_the_cap():
    assert all(
        row.running_batch <= row.batch * (1 + 1e-12)
        for row in all_rows()
        if row.batch is not None and row.batch >= 1
    )


def test_running_batch_without_what_it_needs_is_the_least():
    row = dataclasses.replace(serving_rows()[0], load="concurrency", batch=64.0)
    assert running_batch(row, None, 0.01, None) == (1.0, "least")


def test_exclusions_are_predicates_with_reasons():
    ids = ("id", "run")
    for exclusion in EXCLUSIONS:
        assert exclusion.reason
        assert not set(exclusion.holds.__code__.co_names) & set(ids)


def test_changing_an_id_changes_no_verdict():
    for row in all_rows()[::37]:
        other = dataclasses.replace(row, id="other", run=-1)
        for use in (BOUND, ESTIMATE):
            assert exclusion_of(row, use) == exclusion_of(other, use)


def test_what_is_not_judged():
    judged = judged_rows(use=BOUND)
    assert not any(row.speculative for row in judged)
    assert not any("Ollama" in row.engine_label for row in judged)
    assert {row.load for row in judged_rows(use=ESTIMATE)} == {
        "single_stream", "fixed_batch", "concurrency",
    }  # fmt: skip
    counts = excluded_counts(all_rows(), BOUND)
    assert sum(counts.values()) + len(judged) == len(all_rows())
    assert Counter(row.dataset for row in judged)["serving"] > 3000


def test_estimates_ask_for_more_than_bounds():
    assert set(judged_rows(use=ESTIMATE)) < set(judged_rows(use=BOUND))


def test_every_label_of_the_tables_is_known_or_refused_with_a_reason():
    for row in all_rows():
        if row.model is None:
            assert row.model_note
        if row.accelerator is None:
            assert row.accelerator_note
    labels = {row.weights_label for row in all_rows()}
    assert labels <= set(FORMATS)


def test_labels_in_words():
    assert accelerator_named("A100 80GB").note.startswith("board not stated")
    assert ACCELERATORS["RTX 3090 24GB (220 W limit)"].note == "power limited to 220 W"
    assert not format_named("exotic").known


def test_a_damaged_table_is_one_clear_line(tmp_path, monkeypatch):
    folder = tmp_path / "measurements" / "published"
    folder.mkdir(parents=True)
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    (folder / "serving.csv").write_text("id,source,date,value\ns1,x,2025,1,2\n")
    with pytest.raises(SpecError, match=r"serving.csv:2 has 5 cells, not 4"):
        published.table_lines("serving")
    (folder / "peaks.csv").write_text("id,value\np1,3\n")
    with pytest.raises(SpecError, match="no column source, date"):
        published.table_lines("peaks")
    (folder / "engines.csv").write_text("id,source,date\n1,,2025\n")
    with pytest.raises(SpecError, match="lacks its id, source, date"):
        published.table_lines("engines")


def test_an_installation_without_tables_says_so(monkeypatch):
    monkeypatch.setattr(published, "data_folders", lambda kind: ())
    with pytest.raises(MissingDataError, match="run this in a checkout"):
        published.published_folder()
