"""Words on a page: text from outside made harmless, times and rates written by ``units``.

Limits   Streamlit renders Markdown; HTML it escapes by itself, links, images and directives not.
"""

import re

from roofline.timing.interval import Interval
from roofline.units import show

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!<>|~$:@&])")


def escaped(text: object) -> str:
    """Write text so that a page shows it as it is: no link, image, formula or directive in it.

    >>> escaped("![x](http://e)")
    '\\\\!\\\\[x\\\\]\\\\(http\\\\://e\\\\)'
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def between(interval: Interval, unit: str) -> str:
    """The ends of an interval.

    >>> between(Interval(0.01, 0.02, 0.04), "s")
    '10.0 ms – 40.0 ms'
    """
    return f"{show(float(interval.low), unit)} – {show(float(interval.high), unit)}"
