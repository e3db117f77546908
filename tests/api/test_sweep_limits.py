"""sweep: spaces that are huge, narrow or mistyped."""

import numpy as np
import pytest

from roofline.api.sweep.run import sweep
from roofline.api.sweep.space import load_space
from roofline.errors import InputError, UnknownNameError

ONE = {"models": ["llama-3.1-8b"], "accelerators": ["l40s"]}


def test_a_million_million_rows_take_as_long_as_those_that_can_fit():
    """By hand: 48 GB hold at most 250,000 tokens of 131,072 bytes beside 16 GB of weights, so no
    more than 250 prompts of 1,000 tokens, and 250 of a million batches are worth evaluating."""
    seen = []
    space = {
        **ONE,
        "batch": {"from": 1, "to": 1_000_000},
        "prompt_tokens": {"from": 1_000, "to": 1_000_000, "count": 1_000},
        "output_tokens": {"from": 1, "to": 1_000},
    }
    found = sweep(space, "top 1 by decode_bound_s", progress=lambda *rows: seen.append(rows))
    assert found.n_rows == 10**12
    assert seen[0][0] == 0
    assert seen[0][1] <= 250 * 10**6
    assert seen[-1][0] == seen[-1][1]
    assert found.configurations()[0]["row"] == 0


@pytest.mark.parametrize("keep", ["top 5", "pareto", "winner by ttft_s", "all decode_s"])
def test_lengths_are_divided_when_one_batch_is_too_large_for_memory(keep):
    space = {**ONE, "batch": [1, 20], "prompt_tokens": {"from": 64, "to": 40_000, "step": 640}}
    whole, parts = sweep(space, keep), sweep(space, keep, memory_bytes=160 * 7)
    assert whole.n_feasible == parts.n_feasible < whole.n_rows
    for name, values in whole.rows.items():
        np.testing.assert_array_equal(values, parts.rows[name])


def test_a_mistyped_name_is_an_error_and_no_cell_that_cannot_be():
    for field, name in (("models", "lama"), ("accelerators", "l40x"), ("engines", "vlm")):
        with pytest.raises(UnknownNameError, match=name):
            sweep({**ONE, field: [*ONE.get(field, ["vllm"]), name]})


def test_all_accelerators_beside_named_ones():
    some = load_space({**ONE, "accelerators": ["t4", "all"]})
    assert some.accelerators[0] == "t4"
    assert len(set(some.accelerators)) == len(some.accelerators) > 50


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ({"from": 1, "to": 9, "count": 3, "scale": "cubic"}, "linear or log, got 'cubic'"),
        ({"from": 1, "to": 9, "count": 3, "step": 2}, "exclude each other"),
        ({"from": 1, "to": 9, "scale": "log"}, "a scale needs a count"),
        (None, "whole numbers"),
        ("12", "whole numbers"),
        (1.5, "whole numbers"),
    ],
)
def test_axes_that_cannot_be(axis, words):
    with pytest.raises(InputError, match=words):
        load_space({**ONE, "batch": axis})


def test_pairs_of_lengths_past_what_a_process_lists():
    with pytest.raises(InputError, match="pairs of prompt and output"):
        load_space({**ONE, "prompt_tokens": {"from": 1, "to": 2000},
                    "output_tokens": {"from": 1, "to": 2000}})  # fmt: skip
    with pytest.raises(InputError, match="spec id or a record's path"):
        load_space({**ONE, "machine": ["h200-sxm-141gb"]})


def test_maps_of_more_winners_than_memory_is_for():
    space = {**ONE, "batch": {"from": 1, "to": 3000}, "prompt_tokens": {"from": 1, "to": 2000}}
    with pytest.raises(InputError, match="a map of 6,000,000 winners"):
        sweep(space, "winner")
