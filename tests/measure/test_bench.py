"""The harness: clocks that are not mixed, flags on what is doubtful, resuming, and levels.

Expected times are those of a sleep, by hand; spreads by hand from the definition.
"""
# ruff: noqa: E402

import time

import pytest

torch = pytest.importorskip("torch")

from roofline.errors import InputError
from roofline.measure.bench import (
    above_hardware,
    operand_sets,
    summarise,
    time_kernel,
    time_wall,
)

CPU = torch.device("cpu")


def test_a_sleep_takes_at_least_what_it_takes():
    """2 ms of sleep; the scheduler wakes late, never early, so only the lower end is sure."""
    timing = time_wall(CPU, lambda: time.sleep(2e-3), warmup_s=0, budget_s=0.02, min_runs=5)
    assert timing.median_s >= 2e-3
    assert timing.timer == "wall"
    kernel = time_kernel(CPU, [lambda: time.sleep(2e-3)], warmup_s=0, budget_s=0.02, min_runs=5)
    assert kernel.median_s >= 2e-3


def test_every_operand_set_is_used_in_turn():
    used = []
    calls = [lambda i=i: used.append(i) for i in range(3)]
    time_kernel(CPU, calls, warmup_s=0, budget_s=0, run_s=1e-7, min_runs=9)
    assert used[:7] == [0, 1, 2, 0, 1, 2, 0]


def test_spread_by_hand():
    """Ten times 1.0 but two of 1.2: p10 = 1.0, p90 = 1.2, median 1.0."""
    timing = summarise([1.0] * 8 + [1.2] * 2, "kernel")
    assert timing.spread == pytest.approx(0.2)
    assert timing.flags == ("spread above 10 % of the median",)
    assert summarise([1.0] * 10, "kernel").flags == ()


@pytest.mark.parametrize("bad", [[], [0.0], [-1.0], [float("nan")], [float("inf"), 1.0]])
def test_times_that_cannot_be(bad):
    with pytest.raises(InputError, match="positive and finite"):
        summarise(bad, "wall")


def test_nothing_to_time():
    with pytest.raises(InputError, match="no launches"):
        time_kernel(CPU, [])


def test_fixed_runs_do_not_depend_on_time():
    calls = []
    time_wall(CPU, lambda: calls.append(1), budget_s=10, min_runs=4, fixed=True)
    assert len(calls) == 3 + 4


def test_operand_sets_exceed_the_cache():
    for size in (1e5, 3e6, 7e7, 1e9):
        sets = operand_sets(size, 60e6)
        assert sets * size >= 4 * 60e6 or sets == 512


def test_above_the_hardware_is_said():
    assert "1.25 of the memory peak" in above_hardware(6e12, 4.8e12, "memory")
    assert above_hardware(4.8e12, 4.8e12, "memory") == ""
