"""Fields: a model's config read with types, one clear line for what cannot be.

A config is a mapping that somebody else wrote: fields are missing, misnamed, of the wrong type, or
impossible. ``Fields`` reads it by lists of names (the same fact has many), checks each value, and
remembers what was read, what was defaulted and what has to be said.

Limits   Counts are whole numbers below 2³¹, layers at most 4,096: beyond every model there is, and
         small enough that a hostile config cannot fill the memory.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from roofline.errors import SpecError

LARGEST = 2**31
MOST_LAYERS = 4096


class Fields:
    """A config (or one of its nested parts) while it is read.

    ``partial``: an excerpt that describes attention alone.

    >>> fields = Fields({"n_layer": 12, "bias": True}, "config.json")
    >>> fields.count("num_hidden_layers", "n_layer")
    12
    >>> fields.count("hidden_size")
    Traceback (most recent call last):
    ...
    roofline.errors.SpecError: config.json: no 'hidden_size'; the architecture needs it
    """

    def __init__(
        self, values: Mapping[str, Any], where: str, notes: list[str] | None = None
    ) -> None:
        self.values = values
        self.where = where
        self.notes: list[str] = [] if notes is None else notes
        self.seen: set[str] = set()
        self.partial = False

    def error(self, text: str) -> SpecError:
        """Make the error of this config."""
        line = "".join(char if char.isprintable() else "?" for char in text)
        return SpecError(f"{self.where}: {line[:400]}")

    def assume(self, text: str) -> None:
        """Record what had to be assumed, once."""
        if text not in self.notes:
            self.notes.append(text)

    def has(self, *names: str) -> bool:
        """Whether one of the names holds a value."""
        return any(self.values.get(name) is not None for name in names)

    def find(self, *names: str) -> tuple[str, Any]:
        """Find the first name that holds a value; ("", None) when none does."""
        self.seen.update(names)
        for name in names:
            value = self.values.get(name)
            if value is not None:
                return name, value
        return "", None

    def count(
        self, *names: str, default: int | None = None, least: int = 1, silent: bool = False
    ) -> int:
        """Read a whole number of at least ``least``.

        Raises:
            SpecError: it is missing without a default, or is no such number.
        """
        name, value = self.find(*names)
        if not name:
            if default is None:
                raise self.error(f"no '{names[0]}'; the architecture needs it")
            if not silent:
                self.assume(f"{names[0]} not given: taken as {default}")
            return default
        return self.whole(name, value, least)

    def optional(self, *names: str, least: int = 1) -> int | None:
        """Read a whole number that may be missing, null or 0 (both mean none)."""
        name, value = self.find(*names)
        if not name or (value == 0 and not isinstance(value, bool)):
            return None
        return self.whole(name, value, least)

    def whole(self, name: str, value: Any, least: int = 1) -> int:
        """Check one whole number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"'{name}' is {show(value)}; it needs a whole number")
        if isinstance(value, float) and (not math.isfinite(value) or value != int(value)):
            raise self.error(f"'{name}' is {show(value)}; it needs a whole number")
        if not least <= value < LARGEST:
            raise self.error(f"'{name}' is {show(value)}; it needs {least} to {LARGEST - 1}")
        return int(value)

    def number(self, *names: str, default: float) -> float:
        """Read a finite positive number."""
        name, value = self.find(*names)
        if not name:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"'{name}' is {show(value)}; it needs a number")
        if not (0 < value < LARGEST):
            raise self.error(f"'{name}' is {show(value)}; it needs a finite number above 0")
        return float(value)

    def flag(self, *names: str, default: bool, say: bool = False) -> bool:
        """Read a yes or no."""
        name, value = self.find(*names)
        if not name:
            if say:
                self.assume(f"{names[0]} not given: taken as {default}")
            return default
        if isinstance(value, bool) or value in (0, 1):
            return bool(value)
        raise self.error(f"'{name}' is {show(value)}; it needs true or false")

    def text(self, *names: str, default: str = "") -> str:
        """Read a word."""
        name, value = self.find(*names)
        if not name:
            return default
        if not isinstance(value, str):
            raise self.error(f"'{name}' is {show(value)}; it needs text")
        return value

    def items(self, *names: str) -> tuple[Any, ...] | None:
        """Read a list; None when it is missing."""
        name, value = self.find(*names)
        if not name:
            return None
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.error(f"'{name}' is {show(value)}; it needs a list")
        if len(value) > 64 * MOST_LAYERS:
            raise self.error(f"'{name}' has {len(value)} entries, more than any model")
        return tuple(value)

    def per_layer(self, n_layers: int, *names: str) -> tuple[Any, ...] | None:
        """Read a list with one entry for each layer; longer lists (extra layers) are cut."""
        listed = self.items(*names)
        if listed is None:
            return None
        if len(listed) < n_layers:
            name = next(name for name in names if self.values.get(name) is not None)
            raise self.error(f"'{name}' has {len(listed)} entries for {n_layers} layers")
        return listed[:n_layers]

    def counts_per_layer(self, n_layers: int, *names: str, least: int = 1) -> tuple[int, ...]:
        """Read a whole number that is one for all layers or a list of one each."""
        name, value = self.find(*names)
        if not name:
            raise self.error(f"no '{names[0]}'; the architecture needs it")
        if isinstance(value, Sequence) and not isinstance(value, str):
            listed = self.per_layer(n_layers, name)
            return tuple(self.whole(name, entry, least) for entry in listed or ())
        return (self.whole(name, value, least),) * n_layers

    def indices(self, n_layers: int, *names: str) -> frozenset[int] | None:
        """Read a list of layer positions, first is 0."""
        listed = self.items(*names)
        if listed is None:
            return None
        return frozenset(self.whole(names[0], entry, least=0) for entry in listed)

    def child(self, *names: str) -> "Fields | None":
        """Read a nested mapping."""
        name, value = self.find(*names)
        if not name:
            return None
        if not isinstance(value, Mapping):
            raise self.error(f"'{name}' is {show(value)}; it needs a mapping")
        label = name if name.isprintable() and len(name) <= 60 else show(name)
        return Fields(value, f"{self.where}, {label}", self.notes)

    def layers(self, *names: str, least: int = 1) -> int:
        """Read the number of layers."""
        count = self.count(*names, least=least)
        if count > MOST_LAYERS:
            raise self.error(f"'{names[0]}' is {count}; more than {MOST_LAYERS} is no model")
        return count


def show(value: Any) -> str:
    """Write a value of a config in an error, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
