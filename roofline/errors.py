"""Errors: one base class, which the CLI and the app catch and nothing wider.

    RooflineError
    ├── UnknownNameError       a model, accelerator, format or engine that is not known
    ├── InputError             a value that cannot be: tp that does not divide, a batch of 0
    │   └── SpecError          a spec, price table, record or scenario file that does not load
    ├── UnsupportedError       a thing that is known and not modelled, or a device that lacks it
    ├── MissingDataError       a fact that the answer needs and the spec lacks
    └── MissingPackageError    an optional package that is not installed

A message says in one line what was wrong, what was given and what works.
"""

import difflib
import re
from collections.abc import Iterable


class RooflineError(Exception):
    """Base of every error that roofline raises on purpose."""


class UnknownNameError(RooflineError):
    """A name that is not in the list it should be in."""


class InputError(RooflineError, ValueError):
    """A value that cannot be right."""


class SpecError(InputError):
    """A file that does not load; the message names file and line."""


class UnsupportedError(RooflineError):
    """Something that is known and not modelled, or that a device cannot do."""


class MissingDataError(RooflineError):
    """A fact that the answer needs and nobody has sourced."""


class MissingPackageError(RooflineError):
    """An optional package is missing; the message has the line that installs it."""


def unknown_name(kind: str, given: str, known: Iterable[str]) -> UnknownNameError:
    """Make the error for a name that is not known, with the nearest names.

    >>> str(unknown_name("accelerator", "h20O-sxm", ["h200-sxm-141gb", "t4"]))
    "no accelerator 'h20O-sxm'; did you mean h200-sxm-141gb?"
    >>> str(unknown_name("accelerator", "b200-sxm", ["h200-sxm-141gb", "b200-hgx"]))
    "no accelerator 'b200-sxm'; did you mean b200-hgx, h200-sxm-141gb?"
    >>> str(unknown_name("accelerator", "h2000", ["gh200-96gb", "h200-sxm-141gb"]))
    "no accelerator 'h2000'; did you mean h200-sxm-141gb, gh200-96gb?"
    """
    names = sorted(known)
    shown = given if len(given) <= 80 else given[:77] + "..."
    lowered = given.lower()
    near = difflib.get_close_matches(lowered, names, n=4, cutoff=0.5)
    family = _family(lowered)  # b200-sxm-180gb is nearer to b200-hgx than to h200-sxm-141gb
    if not difflib.get_close_matches(lowered, names, n=1, cutoff=0.8):  # h2000 is no whole name
        families = sorted({_family(name) for name in names})
        family = next(iter(difflib.get_close_matches(family, families, n=1)), family)
    if not any(_family(name) == family for name in near):
        near = [name for name in names if _family(name) == family][:4] + near
    near += [name for name in names if lowered and lowered in name and name not in near][:4]
    if near:
        return UnknownNameError(f"no {kind} {shown!r}; did you mean {', '.join(near[:5])}?")
    listed = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
    return UnknownNameError(f"no {kind} {shown!r}; there are: {listed}")


def _family(name: str) -> str:
    return re.split(r"[-_. ]", name)[0]
