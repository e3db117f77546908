"""Towers: encoders beside the text model, counted apart and only when asked for."""

from roofline.models.architecture import Tower
from roofline.models.fields import Fields


def read_towers(top: Fields, text: Fields) -> tuple[Tower, ...]:
    """Count the values of vision and audio encoders with their projectors."""
    return ()
