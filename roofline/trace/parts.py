"""Parts: the part of the model that each device event works for, by its name and its operator.

A concatenation has one kernel name whatever it joins; the shapes of its operator tell more. Two
tensors [batch, heads, tokens, dim] that differ in tokens are a cache and its new tokens; two equal
halves joined along the last axis are the half-turn of a rotary embedding.
"""

import numpy as np

from roofline.trace.events import DeviceEvents, Shapes, Trace
from roofline.trace.intervals import Ints
from roofline.trace.kernels import PARTS, recognise

_COPY, _APPEND, _ROTARY = (PARTS.index(name) for name in ("copy", "KV append", "rotary"))


def parts_of(trace: Trace, events: DeviceEvents) -> Ints:
    """Index into ``PARTS`` of each event."""
    by_name = np.array([PARTS.index(recognise(name).part) for name in events.names], np.int64)
    parts: Ints = by_name[events.name] if len(events) else np.zeros(0, np.int64)
    for i in np.flatnonzero(parts == _COPY):
        key = int(events.operator[i])
        if key in trace.shapes:
            shapes = trace.shapes[key]
            if shapes.operator == "aten::cat":
                parts[i] = _part_of_cat(shapes)
    return parts


def _part_of_cat(shapes: Shapes) -> int:
    joined = shapes.dims[0] if shapes.dims else []
    if not isinstance(joined, list) or len(joined) != 2:
        return _COPY
    first, second = joined
    if not (isinstance(first, list) and isinstance(second, list)):
        return _COPY
    if len(first) != 4 or len(second) != 4:
        return _COPY
    if first == second:
        axis = shapes.inputs[-1] if shapes.inputs else ""
        return _ROTARY if axis in ("-1", "3") else _COPY
    same = [a == b for a, b in zip(first, second, strict=True)]
    return _APPEND if same == [True, True, False, True] else _COPY
