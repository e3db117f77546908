"""The page of training: the numbers of the library, and what cannot be said in words."""

import roofline


def test_the_page_shows_the_peak_that_the_library_gives(opened):
    at = opened("train")
    peak = roofline.train("llama-3.1-8b", "h200-sxm-141gb").peak_bytes
    shown = {metric.label: metric.value for metric in at.metric}
    assert shown["Peak memory"] == f"{peak / 2**30:.0f} GiB"
    assert not at.error


def test_lora_fits_where_full_training_does_not(opened):
    at = opened("train", accelerator="rtx-4090")
    assert any("DOES NOT FIT" in one.value for one in at.error)
    at.selectbox(key="train-mode").select("qlora").run()
    at.selectbox(key="train-recompute").select("full").run()
    assert not at.exception
    assert any("Fits" in one.value for one in at.success)


def test_what_cannot_be_is_said_on_the_page(opened):
    at = opened("train", tp="3")
    assert any("does not divide the 32 query heads" in one.value for one in at.error)
    assert not at.exception
