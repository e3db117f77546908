"""Device names: from what a driver calls a device to the id of its spec, or to no id at all.

A name must be one of the spec's ``device_names`` exactly (spaces trimmed, ``_`` for a space, case
aside), and the memory must be that of the spec: within 0.90 to 1.05 of the size on the box, read in
GiB as boxes are labelled. A partition (MIG) is no whole device. Anything else is unknown: a device
that is silently taken for another costs more than a question.
"""

import math
import re

from roofline.errors import RooflineError
from roofline.hardware.accelerator import Accelerator, accelerator_ids, load_accelerator
from roofline.hardware.consistency import is_binary_size
from roofline.units import GB, GIB, show

_LEAST_MEMORY, _MOST_MEMORY = 0.90, 1.05
_PARTITION = re.compile(r"\bmig\b", re.IGNORECASE)


def identify(name: str, memory_bytes: float) -> str | None:
    """Find the id of the spec that a device is, or None.

    >>> identify("NVIDIA H200", 150_109_880_320)
    'h200-sxm-141gb'
    >>> identify("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 10e9), identify("NVIDIA H300", 200e9)
    (None, None)
    """
    if _is_partition(name):
        return None
    found = [spec.id for spec in _named(name) if _memory_agrees(spec, memory_bytes)]
    return found[0] if len(found) == 1 else None


def unidentified_hint(name: str, memory_bytes: float, sm_count: int | None = None) -> str:
    """Say why a device was not identified, and what to do.

    >>> unidentified_hint("NVIDIA H200", 80e9)
    "'NVIDIA H200' is the name of h200-sxm-141gb, but it shows 74.5 GiB of memory, not about 141 GB:
    an unknown variant; name the spec (--spec ID or a YAML file)"
    """
    shown = " ".join(str(name).split())[:80]
    remedy = "name the spec (--spec ID or a YAML file)"
    if _is_partition(name):
        return f"{shown!r} is a partition (MIG) of a device, which has no spec; {remedy}"
    known = _named(name)
    memory = show(memory_bytes, "GiB") if _is_size(memory_bytes) else "no readable amount"
    if known:
        ids = ", ".join(spec.id for spec in known)
        sizes = ", ".join(f"{(spec.memory.marketed_bytes or 0) / GB:g} GB" for spec in known)
        return (
            f"{shown!r} is the name of {ids}, but it shows {memory} of memory, not about {sizes}: "
            f"an unknown variant; {remedy}"
        )
    cores = "" if sm_count is None else f" and {sm_count} SMs"
    return f"no spec has the device name {shown!r} ({memory}{cores}); {remedy}"


def _plain(name: str) -> str:
    return " ".join(str(name).replace("_", " ").split()).casefold()


def _is_partition(name: str) -> bool:
    return _PARTITION.search(_plain(name)) is not None


def _is_size(memory_bytes: float) -> bool:
    return (
        isinstance(memory_bytes, int | float)
        and not isinstance(memory_bytes, bool)
        and math.isfinite(memory_bytes)
        and memory_bytes > 0
    )


def _named(name: str) -> list[Accelerator]:
    wanted, found = _plain(name), []
    for spec_id in accelerator_ids():
        try:
            spec = load_accelerator(spec_id)
        except RooflineError:  # a broken file of the user's must not hide the device
            continue
        if any(_plain(known) == wanted for known in spec.device_names):
            found.append(spec)
    return found


def _memory_agrees(spec: Accelerator, memory_bytes: float) -> bool:
    marketed = spec.memory.marketed_bytes
    if marketed is None or not _is_size(memory_bytes):
        return False
    on_the_box = marketed if is_binary_size(marketed) else marketed / GB * GIB
    return _LEAST_MEMORY <= memory_bytes / on_the_box <= _MOST_MEMORY
