"""Intervals against a count of covered cells on a grid: another route to the same lengths."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roofline.trace.intervals import clip, exposed_s, union

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=20)


def arrays(rows):
    start = np.array([float(a) for a, _ in rows])
    return start, start + np.array([float(b) for _, b in rows])


def cells(rows):
    return {cell for start, length in rows for cell in range(start, start + length)}


@given(spans)
def test_union_is_the_covered_cells(rows):
    joined = union(*arrays(rows))
    assert joined.total_s == len(cells(rows))
    assert np.all(joined.start_s[1:] > joined.end_s[:-1])


@given(spans)
def test_union_names_the_events_that_open_and_close(rows):
    start, end = arrays(rows)
    joined = union(start, end)
    np.testing.assert_array_equal(start[joined.first], joined.start_s)
    np.testing.assert_array_equal(end[joined.last], joined.end_s)


@given(spans, spans)
def test_exposed_is_the_cells_of_one_and_not_the_other(rows, others):
    assert exposed_s(*arrays(rows), [arrays(others)]) == len(cells(rows) - cells(others))


@given(spans, st.integers(0, 40), st.integers(1, 40))
def test_clip(rows, low, width):
    inside = union(*clip(*arrays(rows), float(low), float(low + width)))
    assert inside.total_s == len(cells(rows) & set(range(low, low + width)))
