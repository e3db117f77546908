"""Memory against start-up logs: the errors, and a reason for every larger one."""

import numpy as np
import pytest

from roofline.validation.memory import validate_memory
from roofline.validation.memory_reasons import FITTED, LARGER_ERRORS

STATED = {
    "c0003", "c0004", "c0011", "c0012", "c0013", "c0014", "c0015", "c0021", "c0024", "c0044",
    "c0045", "c0046", "c0048",
}  # fmt: skip
"""Lines of capacity.csv that state model, card, parallelism and memory fraction."""

STARTED = {f"s{number:04d}" for number in range(1, 14)}
"""Lines of startup.csv."""


@pytest.fixture(scope="module")
def validation():
    return validate_memory()


def test_every_line_that_states_enough_is_compared(validation):
    compared = {row.id for row in validation.rows if row.group == "engine pools"}
    assert compared == STATED | STARTED


def test_pools_and_weights(validation):
    """Median at most 1 %, nine in ten within 5 %: over the judged rows of the named lines."""
    errors = np.array([abs(row.error) for row in validation.judged("engine pools")])
    assert len(errors) >= 30
    assert np.median(errors) <= 0.01
    assert np.mean(errors <= 0.05) >= 0.9


def test_every_larger_error_has_its_reason(validation):
    assert validation.unexplained() == ()
    larger = {(row.id, row.quantity) for row in validation.rows if abs(row.error) > 0.05}
    # and no reason is left over for a row that does not miss
    assert larger == set(LARGER_ERRORS)


def test_rows_that_were_fitted_judge_nothing(validation):
    judged = {(row.id, row.quantity) for row in validation.judged()}
    assert not judged & set(FITTED)
    shown = {(row.id, row.quantity) for row in validation.rows if row.role == "fit"}
    assert shown == set(FITTED)


@pytest.mark.parametrize(
    ("group", "median", "within"),
    [
        ("engine pools", 0.01, 0.9),
        ("loaded weights", 0.01, 0.8),
        ("logged tokens", 0.005, 1.0),
        ("llama.cpp", 0.001, 1.0),
        ("files", 0.001, 1.0),
        ("transformers", 0.01, 0.9),
        ("all", 0.005, 0.92),
    ],
)
def test_no_group_gets_worse(validation, group, median, within):
    (summary,) = [each for each in validation.summary() if each["group"] == group]
    assert summary["median error"] <= median
    assert summary["within 5 %"] >= within


def test_lines_without_a_prediction_say_why(validation):
    assert all(each.reason for each in validation.refused)
    ids = {row.id for row in validation.rows} | {each.id for each in validation.refused}
    from roofline.validation.published import table_lines

    assert ids == {line["id"] for name in ("capacity", "startup") for line in table_lines(name)}


def test_loaded_weights_by_hand(validation):
    """Llama-3.1-8B: 8,030,261,248 values in 16 bit and a table of 131,072 × 128: 14.989 GiB."""
    (row,) = [r for r in validation.rows if r.id == "c0003" and r.quantity == "weights"]
    assert row.predicted == pytest.approx((8_030_261_248 * 2 + 131_072 * 128 * 2) / 2**30)
