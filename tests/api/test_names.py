"""The names that ``import roofline`` promises."""

import pytest

import roofline

VERBS = ("predict", "sweep", "plan", "compare", "train", "calibrate", "validate")


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_is_a_function_of_the_package(name):
    """The public interface names these verbs; each is found where a user looks for it."""
    assert name in roofline.__all__
    assert callable(getattr(roofline, name))


@pytest.mark.parametrize("name", roofline.__all__)
def test_every_exported_name_is_there(name):
    assert getattr(roofline, name) is not None
    assert name in dir(roofline)
