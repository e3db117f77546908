"""Windows: what part of the past each layer sees, from the config or from the family's rule.

A config says it in one of four ways: a list of layer types, a pattern length, a switch with a first
layer, or not at all, when the family's code has a rule.

Limits   Kinds that keep a fixed state instead of a cache (``linear_attention``, ``conv``, …) are
         returned as they are; the families that have them build those layers.
Sources  See facts.py; Beltagy et al. 2020, arXiv:2004.05150 (sliding windows).
"""

import re
from collections.abc import Callable

from roofline.errors import UnsupportedError
from roofline.models.fields import Fields, show
from roofline.models.parts import EVERYTHING, Window

FULL = ("full_attention", "attention", "full", "global", "global_attention")  # fmt: skip
SLIDING = ("sliding_attention", "sliding", "local", "sliding_window",
           "sliding_window_attention", "local_attention", "swa")  # fmt: skip
CHUNKED = ("chunked_attention", "chunked")
STATE = ("linear_attention", "mamba", "mamba2", "recurrent", "conv", "linear", "kda", "gated_delta",
         "mlp", "moe")  # fmt: skip


def layer_kinds(fields: Fields, n_layers: int, rule: str) -> tuple[str, ...]:
    """Name each layer's kind: ``full``, ``sliding``, ``chunked``, or a kind with a state.

    Raises:
        SpecError: the list is too short.
        UnsupportedError: a kind that is not known; the message names it.
    """
    listed = fields.per_layer(n_layers, "layer_types", "layers_block_type", "attention_layers")
    if listed is not None:
        return tuple(_kind(fields, entry) for entry in listed)
    return RULES.get(rule, _by_fields)(fields, n_layers)


def _kind(fields: Fields, entry: object) -> str:
    if entry in FULL:
        return "full"
    if entry in SLIDING:
        return "sliding"
    if entry in CHUNKED:
        return "chunked"
    if entry in STATE:
        return str(entry)
    known = ", ".join(("full_attention", "sliding_attention", "chunked_attention", *STATE))
    raise UnsupportedError(
        f"{fields.where}: layer type {show(entry)} is not modelled; known are {known}"
    )


def window_of(fields: Fields, kind: str) -> Window:
    """Read the window of one kind of layer.

    Raises:
        SpecError: the kind needs a window and the config has none.
    """
    if kind == "sliding":
        tokens = fields.optional("sliding_window", "sliding_window_size", "window_size",
                                 "attention_window_size", "local_attention")  # fmt: skip
        if tokens is None:
            raise fields.error("sliding layers without 'sliding_window'")
        return Window(tokens)
    if kind == "chunked":
        return Window(fields.count("attention_chunk_size", default=8192), chunked=True)
    return EVERYTHING


def _pattern(every: int, n_layers: int) -> tuple[str, ...]:
    return tuple("full" if (i + 1) % every == 0 else "sliding" for i in range(n_layers))


def _by_fields(fields: Fields, n_layers: int) -> tuple[str, ...]:
    """Full attention, or what the usual keys say."""
    every = fields.optional("sliding_window_pattern", "_sliding_window_pattern", "swa_period")
    if fields.optional("sliding_window") is None:
        return ("full",) * n_layers
    if every is not None:
        return _pattern(every, n_layers)
    if not fields.flag("use_sliding_window", default=True):
        return ("full",) * n_layers
    if fields.has("max_window_layers"):
        return _qwen2(fields, n_layers)
    return ("sliding",) * n_layers


def _none(fields: Fields, n_layers: int) -> tuple[str, ...]:
    return ("full",) * n_layers


def _all(fields: Fields, n_layers: int) -> tuple[str, ...]:
    """Every layer has the window, if there is one (Mistral-7B v0.1, Phi-3, StarCoder2)."""
    kind = "full" if fields.optional("sliding_window") is None else "sliding"
    return (kind,) * n_layers


def _qwen2(fields: Fields, n_layers: int) -> tuple[str, ...]:
    """Windows from layer ``max_window_layers`` on, when they are switched on."""
    if not fields.flag("use_sliding_window", default=False):
        fields.find("sliding_window", "max_window_layers")
        return ("full",) * n_layers
    if fields.optional("sliding_window") is None:
        return ("full",) * n_layers
    first = fields.count("max_window_layers", default=28, least=0)
    return tuple("sliding" if i >= first else "full" for i in range(n_layers))


def _every(default: int, *names: str, window: int) -> Callable[[Fields, int], tuple[str, ...]]:
    """Full attention in every n-th layer, windows in the others."""

    def rule(fields: Fields, n_layers: int) -> tuple[str, ...]:
        every = fields.optional(*names) if names else None
        if every is None:
            fields.assume(f"layer types not given: every {default}th layer sees all, as the family")
        if not fields.has("sliding_window"):
            fields.assume(f"sliding_window not given: taken as {window}")
            fields.values = {**fields.values, "sliding_window": window}
        return _pattern(every or default, n_layers)

    return rule


def _alternate(window: int) -> Callable[[Fields, int], tuple[str, ...]]:
    """Window, all, window, all, … (Gemma-2, gpt-oss)."""

    def rule(fields: Fields, n_layers: int) -> tuple[str, ...]:
        fields.assume("layer types not given: every second layer sees all, as the family")
        if not fields.has("sliding_window"):
            fields.assume(f"sliding_window not given: taken as {window}")
            fields.values = {**fields.values, "sliding_window": window}
        return _pattern(2, n_layers)

    return rule


def _first_full(fields: Fields, n_layers: int) -> tuple[str, ...]:
    """All, window, window, window, all, …"""
    return tuple("full" if i % 4 == 0 else "sliding" for i in range(n_layers))


def _exaone4(fields: Fields, n_layers: int) -> tuple[str, ...]:
    """A pattern length or letters (``LLLG``); without a window all layers see all."""
    name, value = fields.find("sliding_window_pattern")
    if fields.optional("sliding_window") is None:
        return ("full",) * n_layers
    if isinstance(value, str) and re.fullmatch(r"[LG]+", value):
        return tuple(
            "full" if value[i % len(value)] == "G" or i == n_layers - 1 else "sliding"
            for i in range(n_layers)
        )
    every = fields.whole(name, value) if name else 4
    return tuple(
        "full" if (i + 1) % every == 0 or i == n_layers - 1 else "sliding" for i in range(n_layers)
    )


def _llama4(fields: Fields, n_layers: int) -> tuple[str, ...]:
    """Chunks in layers with rotary positions, everything in the others."""
    rotary = fields.per_layer(n_layers, "no_rope_layers")
    if rotary:
        return tuple("chunked" if entry else "full" for entry in rotary)
    every = fields.optional("no_rope_layer_interval") or 4
    fields.assume(f"layer types not given: every {every}th layer sees all, the others their chunk")
    return tuple("full" if (i + 1) % every == 0 else "chunked" for i in range(n_layers))


def _gpt_neo(fields: Fields, n_layers: int) -> tuple[str, ...]:
    """Lists such as ``[[["global", "local"], 12]]``."""
    kinds: list[str] = []
    for entry in fields.items("attention_types") or ():
        if not (isinstance(entry, (list, tuple)) and len(entry) == 2):
            raise fields.error(f"'attention_types' has {show(entry)}; it needs [kinds, times]")
        names, times = entry
        for _ in range(fields.whole("attention_types", times)):
            kinds += [_kind(fields, name) for name in names]
            if len(kinds) > n_layers:
                break
    if not kinds:
        kinds = [("full", "sliding")[i % 2] for i in range(n_layers)]
    if len(kinds) < n_layers:
        raise fields.error(f"'attention_types' names {len(kinds)} of {n_layers} layers")
    if not fields.has("window_size"):
        fields.values = {**fields.values, "window_size": 256}
    return tuple(kinds[:n_layers])


RULES: dict[str, Callable[[Fields, int], tuple[str, ...]]] = {
    "": _by_fields,
    "none": _none,
    "all": _all,
    "qwen2": _qwen2,
    "gemma2": _alternate(4096),
    "gpt_oss": _alternate(128),
    "gemma3": _every(6, "sliding_window_pattern", "_sliding_window_pattern", window=4096),
    "gemma3n": _every(5, "sliding_window_pattern", window=512),
    "gemma4": _every(6, "sliding_window_pattern", window=512),
    "cohere2": _every(4, "sliding_window_pattern", "_sliding_window_pattern", window=4096),
    "every4": _every(4, "sliding_window_pattern", window=4096),
    "afmoe": _every(4, "global_attn_every_n_layers", window=1024),
    "exaone4": _exaone4,
    "cwm": _first_full,
    "granite_swa": _first_full,
    "llama4": _llama4,
    "gpt_neo": _gpt_neo,
}
