"""The page of training: the numbers of the library, and what cannot be said in words."""

import roofline
from roofline.units import show


def test_the_page_shows_the_peak_that_the_library_gives(opened):
    at = opened("training")
    peak = roofline.train("llama-3.1-8b", "h200-sxm-141gb").peak_bytes
    assert show(peak, "GiB") in {metric.value for metric in at.metric}
    assert not at.error


def test_what_cannot_be_is_said_on_the_page(opened):
    at = opened("training", tp="3")
    assert any("does not divide the 32 query heads" in one.value for one in at.error)
    assert not at.exception
