"""sweep: equal to predict row by row, the same on any executor, refusals, resumable files."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import Parallel, predict
from roofline.api.sweep.keep import parse_keep
from roofline.api.sweep.run import sweep
from roofline.api.sweep.space import load_space
from roofline.errors import InputError, MissingDataError, UnknownNameError

SPACE = {
    "models": ["llama-3.1-8b", "mixtral-8x7b", "gemma-2-9b"],
    "accelerators": ["h200-sxm-141gb", "l40s"],
    "parallel": [{"tp": 1}, {"tp": 2}],
    "weights": ["own", "fp8"],
    "engines": ["ideal", "vllm"],
    "batch": [1, 3, 64, 700],
    "prompt_tokens": [17, 4000, 30_000],
    "output_tokens": [1, 300],
}


@pytest.fixture(scope="module")
def everything():
    return sweep(SPACE, "all")


def equals_predict(row):
    p = predict(
        row["model"], row["accelerator"], batch=row["batch"],
        prompt_tokens=row["prompt_tokens"], output_tokens=row["output_tokens"],
        parallel=Parallel(tp=row["tp"]), engine=row["engine"],
        weights=None if row["weights"] == "own" else row["weights"],
    )  # fmt: skip
    assert p.fits
    assert row["decode_bound_s"] == pytest.approx(p.decode.bound_s, rel=1e-12)
    assert row["ttft_bound_s"] == pytest.approx(p.prefill.bound_s, rel=1e-12)
    assert row["decode_s"] == pytest.approx(p.decode.estimate_s.mid, rel=1e-12)
    assert row["ttft_s"] == pytest.approx(p.ttft_s.mid, rel=1e-12)


@given(share=st.floats(0, 1, exclude_max=True))
@settings(max_examples=40, deadline=None)
def test_sweep_equals_predict(everything, share):
    rows = everything.configurations()
    equals_predict(rows[int(share * len(rows))])


def test_rows_that_do_not_fit_are_those_that_predict_says(everything):
    kept = {row["row"] for row in everything.configurations()}
    space = everything.space
    width = len(space.lengths[0][0])
    cells = list(space.cells())
    for row in np.random.default_rng(3).integers(0, space.n_rows, 60):
        cell, inside = divmod(int(row), space.rows_per_cell)
        batch, lengths = divmod(inside, width)
        chosen = cells[cell]
        p = predict(
            chosen.model, chosen.accelerator, batch=space.batch[batch],
            prompt_tokens=int(space.lengths[0][0, lengths]),
            output_tokens=int(space.lengths[1][0, lengths]), parallel=chosen.parallel,
            engine=chosen.engine, weights=None if chosen.weights == "own" else chosen.weights,
        )  # fmt: skip
        assert p.fits == (row in kept)


KEEPS = ["top 7 by decode_bound_s", "top 5 by tokens_per_s_per_accelerator", "pareto",
         "winner by ttft_s", "histogram decode_s 0.001 0.01 0.1 1"]  # fmt: skip


@pytest.mark.parametrize("keep", KEEPS)
def test_any_executor_and_any_chunk_gives_the_same(keep):
    alone = sweep(SPACE, keep)
    small = sweep(SPACE, keep, memory_bytes=20_000, task_rows=50)
    with ThreadPoolExecutor(2) as threads:
        pooled = sweep(SPACE, keep, threads, task_rows=40)
    for other in (small, pooled):
        assert alone.rows.keys() == other.rows.keys()
        for name, values in alone.rows.items():
            np.testing.assert_array_equal(values, other.rows[name])
        assert alone.n_feasible == other.n_feasible


def test_processes_give_the_same():
    with ProcessPoolExecutor(1) as pool:
        there = sweep(SPACE, KEEPS[0], pool, task_rows=200)
    assert there.configurations() == sweep(SPACE, KEEPS[0]).configurations()


def test_top_and_front_against_a_plain_sort(everything):
    rows = everything.configurations()
    best = sorted(rows, key=lambda row: (row["decode_bound_s"], row["row"]))[:7]
    found = sweep(SPACE, "top 7 by decode_bound_s").configurations()
    assert [row["row"] for row in found] == [row["row"] for row in best]
    front = {row["row"] for row in sweep(SPACE, "pareto").configurations()}
    x, y = "tokens_per_s_per_user", "tokens_per_s_per_accelerator"
    for row in rows:
        if row["row"] in front:
            assert not any(o[x] > row[x] and o[y] > row[y] for o in rows)


def test_cells_that_cannot_be_are_listed():
    found = sweep({**SPACE, "parallel": [{"tp": 1}, {"tp": 3}]}, "top 1")
    assert len(found.refused) == found.space.n_cells / 2
    assert all("tp=3 does not divide" in why for _, why in found.refused)
    with pytest.raises(MissingDataError, match="no cell of the space can be"):
        sweep({**SPACE, "parallel": [{"tp": 3}]})


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"models": ["llama-3.1-8b"]}, "needs accelerators"),
        ({**SPACE, "batches": [1]}, "no field 'batches'"),
        ({**SPACE, "batch": []}, "empty axis"),
        ({**SPACE, "batch": [0]}, "at least 1"),
        ({**SPACE, "batch": [True]}, "whole numbers"),
        ({**SPACE, "batch": {"from": 1, "to": 10**12}}, "more than"),
        ({**SPACE, "batch": {"first": 1}}, "an axis is a list"),
        ({**SPACE, "parallel": [{"tpp": 1}]}, "a plan is a mapping"),
        ({**SPACE, "models": []}, "at least one of models"),
    ],
)
def test_spaces_that_cannot_be(space, words):
    with pytest.raises(InputError, match=words):
        load_space(space)


@pytest.mark.parametrize("keep", ["top", "top x by y", "best 3", "histogram decode_s a b"])
def test_keeps_that_cannot_be(keep):
    with pytest.raises(InputError):
        parse_keep(keep)


def test_unknown_columns_are_refused():
    with pytest.raises(UnknownNameError, match="no sweep column"):
        parse_keep("top 3 by speed")


def test_parquet_goes_on_where_it_stopped(tmp_path, everything):
    parquet = pytest.importorskip("pyarrow.parquet")
    first = sweep(SPACE, "all", parquet=tmp_path / "rows", task_rows=100)
    assert len(first.files) > 2
    first.files[1].unlink()
    before = first.files[0].stat().st_mtime_ns
    again = sweep(SPACE, "all", parquet=tmp_path / "rows", task_rows=100)
    assert again.files == first.files
    assert first.files[0].stat().st_mtime_ns == before
    tables = [parquet.read_table(path) for path in again.files]
    assert sum(table.num_rows for table in tables) == len(everything.rows["row"])
    rows = np.concatenate([table["row"].to_numpy() for table in tables])
    np.testing.assert_array_equal(rows, everything.rows["row"])
    with pytest.raises(InputError, match="holds another sweep"):
        sweep({**SPACE, "batch": [2]}, "all", parquet=tmp_path / "rows")
