"""Intervals: what an estimate is, a low, a middle and a high.

Shapes   Each end is a number or an array of one shape.
Units    Those of the quantity; the name that holds the interval says them.
"""

from dataclasses import dataclass

import numpy as np

from roofline.timing.terms import Spread
from roofline.units import Numeric


@dataclass(frozen=True)
class Interval:
    """An estimate: four of five measurements are expected between ``low`` and ``high``.

    >>> Interval(1.0, 2.0, 4.0).scaled(3.0)
    Interval(low=3.0, mid=6.0, high=12.0)
    >>> Interval(1.0, 2.0, 4.0).inverted(8.0)
    Interval(low=2.0, mid=4.0, high=8.0)
    """

    low: Numeric
    mid: Numeric
    high: Numeric

    def scaled(self, factor: Numeric) -> "Interval":
        """The interval of this quantity times a number."""
        return Interval(self.low * factor, self.mid * factor, self.high * factor)

    def shifted(self, other: "Interval") -> "Interval":
        """The interval of a sum of two quantities whose errors go together."""
        return Interval(self.low + other.low, self.mid + other.mid, self.high + other.high)

    def inverted(self, numerator: Numeric) -> "Interval":
        """The interval of a number divided by this quantity."""
        return Interval(numerator / self.high, numerator / self.mid, numerator / self.low)

    def to_dict(self) -> dict[str, Numeric]:
        """Low, middle and high by name."""
        return {"low": self.low, "mid": self.mid, "high": self.high}


def around(middle: Numeric, spread: Spread, least: Numeric) -> Interval:
    """Make an interval from a middle and a spread of measured / estimated, never below a bound.

    >>> around(10.0, Spread(0.8, 1.5, 40, "rows"), least=9.0)
    Interval(low=9.0, mid=10.0, high=15.0)
    """
    return Interval(
        _same(np.maximum(middle * spread.low, least)),
        _same(np.maximum(middle, least)),
        _same(np.maximum(middle * spread.high, least)),
    )


def whole_request(
    first: Interval, decode: Interval, spread: Spread | None, least: Numeric
) -> Interval:
    """The interval of whole requests: a first token and the others' decoding, never below a bound.

    Where decoding is at least half of it, whole requests' own ``spread`` makes the interval: the
    errors of its two phases do not all go one way.

    >>> first, decode = Interval(1.0, 2.0, 6.0), Interval(6.0, 8.0, 14.0)
    >>> whole_request(first, decode, Spread(0.8, 1.5, 40, "rows"), least=5.0)
    Interval(low=8.0, mid=10.0, high=15.0)
    >>> whole_request(first, decode, None, least=5.0)
    Interval(low=7.0, mid=10.0, high=20.0)
    """
    total = first.shifted(decode)
    if spread is None:
        return total
    own = around(total.mid, spread, least)
    mostly = np.asarray(decode.mid) >= np.asarray(total.mid) / 2
    return Interval(
        _same(np.where(mostly, np.minimum(own.low, total.mid), total.low)),
        total.mid,
        _same(np.where(mostly, np.maximum(own.high, total.mid), total.high)),
    )


def _same(value: Numeric) -> Numeric:
    return float(value) if np.ndim(value) == 0 else value
