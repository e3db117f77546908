"""Modules: which matrices a list of module names means.

Quantisation lists name modules in four ways: whole names (``model.layers.3.mlp.gate``), words of a
name (``lm_head``, ``gate``), globs (``model.layers.0*``) and regular expressions (``re:.*attn.*``).
Checkpoints put different words before ``layers``; those are dropped on both sides.

Limits   Regular expressions of other people's files: at most 300 characters, no nested repeats.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from roofline.errors import SpecError

_PREFIXES = ("model.language_model.model.", "language_model.model.", "model.language_model.",
             "language_model.", "thinker.model.", "model.model.", "model.decoder.", "transformer.",
             "backbone.", "gpt_neox.", "model.")  # fmt: skip
MOST_PATTERNS = 2000
_NESTED_REPEAT = re.compile(r"[+*}]\)[+*{?]|\)[+*{].*\)[+*{]")


def canonical(name: str) -> str:
    """Drop what checkpoints write before ``layers`` or ``lm_head``.

    >>> canonical("model.language_model.layers.3.mlp.gate"), canonical("mtp.layers.0")
    ('layers.3.mlp.gate', 'mtp.layers.0')
    """
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


@dataclass(frozen=True)
class ModuleList:
    """Module names as a quantisation config lists them.

    >>> listed = module_list(["lm_head", "model.layers.0*", "re:.*shared.*"], "config")
    >>> [listed.has(name) for name in ("layers.0.mlp.up_proj", "layers.1.mlp.up_proj", "lm_head")]
    [True, False, True]
    """

    words: frozenset[str] = frozenset()
    starts: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()

    def has(self, name: str) -> bool:
        """Whether the list means this module, or one that it is part of; canonical names."""
        if self.starts and name.startswith(self.starts):
            return True
        parts = name.split(".")
        if self.words:
            for first in range(len(parts)):
                for last in range(first + 1, len(parts) + 1):
                    if ".".join(parts[first:last]) in self.words:
                        return True
        return any(pattern.match(name) for pattern in self.patterns)


def module_list(entries: Iterable[object], where: str) -> ModuleList:
    """Read a list of module names.

    Raises:
        SpecError: an entry is no text, or a regular expression that does not compile or could run
            for ever.
    """
    words, starts, patterns = set(), set(), []
    for entry in entries:
        if not isinstance(entry, str):
            raise SpecError(f"{where}: a list of modules has {entry!r}; it needs names")
        if entry.startswith("re:"):
            patterns.append(_expression(entry[3:], where))
            continue
        name = canonical(entry)
        if "*" not in name and "?" not in name:
            words.add(name.rstrip("."))
        elif name.find("*") == len(name) - 1 and "?" not in name:
            starts.add(name[:-1])
        else:
            patterns.append(_glob(name, where))
    if len(patterns) > MOST_PATTERNS:
        raise SpecError(
            f"{where}: {len(patterns)} module patterns; at most {MOST_PATTERNS} are read"
        )
    starts.discard("")
    return ModuleList(frozenset(words), tuple(sorted(starts)), tuple(patterns))


def _glob(text: str, where: str) -> re.Pattern[str]:
    if len(text) > 300 or text.count("*") > 6:
        raise SpecError(f"{where}: module pattern of {len(text)} characters is not read")
    body = "".join(
        "[^ ]*" if char == "*" else "." if char == "?" else re.escape(char) for char in text
    )
    return re.compile(f"(?:.*\\.)?{body}(?:\\..*)?$")


def _expression(text: str, where: str) -> re.Pattern[str]:
    if len(text) > 300 or _NESTED_REPEAT.search(text) or text.count("*") > 6:
        raise SpecError(f"{where}: module pattern {text[:60]!r} could run for ever; not read")
    try:
        return re.compile(f"(?:model\\.|language_model\\.)*(?:{text})")
    except re.error as error:
        raise SpecError(
            f"{where}: module pattern {text[:60]!r} is no expression ({error})"
        ) from None
