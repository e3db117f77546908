"""GGUF mixes: which block type llama.cpp gives each tensor when it writes "Q4_K_M" and its kin.

A mix is not a format: value projections and down projections take a finer type in some layers, the
output matrix one of its own, norms stay fp32. ``mix_bytes`` counts a file tensor by tensor;
``mix_format`` gives the average over the blocks' matrices as one storage format.

Units    bytes of the whole file's tensors; bits a value.
Limits   Files written by llama.cpp of 2024, iq4_xs with an importance matrix; "UD" and "XL" mixes
         of others have tables of their own, read those from the file. A rule that depends on the
         layer depends on its position among the model's layers.
Sources  [1] llama.cpp, src/llama-quant.cpp (2024-12), the choice of a tensor's type.
         [2] XiongjieDai/GPU-Benchmarks-on-LLM-Inference, README (2024-05): sizes of files of
             Llama-3-70B, with which the rules agree within 0.5 %.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from roofline.dtypes import DTYPES, GGUF_TYPES, Dtype
from roofline.errors import UnsupportedError, unknown_name
from roofline.models.architecture import Architecture, GroupedQuery, LayerGroup, Linear

NORM_BYTES = 4
"""Vectors stay in fp32."""

MANY_HEADS_LAYERS = 80
"""A model of 80 layers with grouped queries is what [1] calls a 70B: its values get q5_k."""


WIDE_GROUP = 4
"""From as many queries per KV head on, iq4_xs gives the value projection more bits."""


@dataclass(frozen=True)
class Mix:
    """One mix.

    Args:
        base: type of what no rule names.
        output: type of the output matrix.
        embedding: type of the token table; empty: ``base``.
        value: type of value projections in the layers that ``more`` picks, and in the others.
        down: the same for down projections.
        attention_output: type of the attention's output matrix; empty: ``base``.
        query_key: type of query and key projections; empty: ``base``.
        experts: type of routed experts; empty: as any other matrix.
    """

    base: str
    output: str = "q6_k"
    embedding: str = ""
    value: tuple[str, str] = ("", "")
    down: tuple[str, str] = ("", "")
    attention_output: str = ""
    query_key: str = ""
    experts: str = ""


MIXES: dict[str, Mix] = {
    "q4_k_m": Mix("q4_k", value=("q6_k", "q4_k"), down=("q6_k", "q4_k")),
    "q4_k_s": Mix("q4_k", value=("q5_k", "q4_k"), down=("q5_k", "q4_k")),
    "q5_k_m": Mix("q5_k", value=("q6_k", "q5_k"), down=("q6_k", "q5_k")),
    "q5_k_s": Mix("q5_k"),
    "q3_k_s": Mix("q3_k"),
    "q3_k_m": Mix("q3_k", value=("q5_k", "q4_k"), down=("q5_k", "q4_k"), attention_output="q4_k"),
    "q3_k_l": Mix("q3_k", value=("q5_k", "q5_k"), down=("q5_k", "q5_k"), attention_output="q5_k"),
    "q6_k_all": Mix("q6_k"),
    "mxfp4_all": Mix("q8_0", output="q8_0", experts="mxfp4"),
    "q8_0_all": Mix("q8_0", output="q8_0"),
    "q4_0_all": Mix("q4_0"),
    "q5_0_all": Mix("q5_0"),
    "iq4_xs_all": Mix("iq4_xs", value=("q5_k", "q5_k")),
}
"""Mixes by name; ``_all`` marks those whose name is also a block type."""

_FIRST_LAYERS = {"q4_k_s": 4, "q3_k_m": 2}  # value projections: this many layers are picked [1]


def mix_names() -> tuple[str, ...]:
    """Names that ``find_mix`` takes.

    >>> "q4_k_m" in mix_names()
    True
    """
    return tuple(sorted(name.removesuffix("_all") for name in MIXES))


def find_mix(name: str) -> Mix:
    """Find a mix by name.

    Raises:
        UnknownNameError: no such mix.

    >>> find_mix("Q4_K_M").output
    'q6_k'
    """
    key = name.strip().lower().replace("-", "_").removeprefix("gguf_")
    key = key if key in MIXES else f"{key}_all"
    if key not in MIXES:
        raise unknown_name("GGUF mix", name, mix_names())
    return MIXES[key]


def uses_more_bits(layer: int, n_layers: int) -> bool:
    """Say whether a layer is one of those that the M mixes give more bits [1].

    The first and last eighth, and every third between.

    >>> [layer for layer in range(16) if uses_more_bits(layer, 16)]
    [0, 1, 4, 7, 10, 13, 14, 15]
    """
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2


def mix_bytes(arch: Architecture, name: str) -> float:
    """Bytes of all tensors of a file in a mix.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> mix_bytes(LLAMA_3_8B, "q8_0") / 2**30  # the published file holds 7.95 GiB
    7.95
    """
    mix = find_mix(name)
    total = float(arch.small_parameters * NORM_BYTES)
    for linear, count, layer, group in _matrices(arch):
        total += count * linear.values * _bytes_per_value(mix, name, arch, group, linear, layer)
        total += count * (linear.n_out * NORM_BYTES if linear.bias else 0)
    for group in arch.layers:
        biases = (
            0 if group.experts is None else group.experts.n_experts * group.experts.expert_biases
        )
        total += group.n_layers * (group.small_parameters + biases) * NORM_BYTES
    total += table_bytes(arch, name)
    if arch.lm_head is not None and not arch.tied:
        total += arch.lm_head.values * GGUF_TYPES[mix.output].bytes_per_value
    return total


def table_bytes(arch: Architecture, name: str) -> float:
    """Bytes of the token table in a mix: what llama.cpp keeps in host memory unless it is tied.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> table_bytes(LLAMA_3_8B, "q4_k_m") / 2**20  # 128,256 × 4,096 values of 4.5 bit
    281.8
    """
    mix = find_mix(name)
    kind = mix.output if arch.tied else mix.embedding or mix.base
    return arch.embedding_parameters * GGUF_TYPES[kind].bytes_per_value


def mix_format(arch: Architecture, name: str) -> Dtype:
    """Average a mix over the blocks' quantised matrices, as one storage format.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> mix_format(LLAMA_3_8B, "q4_k_m").bits
    4.797
    """
    mix, values, size = find_mix(name), 0.0, 0.0
    for linear, count, layer, group in _matrices(arch):
        if linear.quantisable:
            values += count * linear.values
            size += count * linear.values * _bytes_per_value(mix, name, arch, group, linear, layer)
    if not values:
        raise UnsupportedError(f"{arch.name} has no matrices that a GGUF mix would quantise")
    return Dtype(name.strip().lower(), 8 * size / values)


def _matrices(arch: Architecture) -> Iterator[tuple[Linear, int, int, LayerGroup]]:
    """Every matrix of the blocks, how often it is there, its layer and its group."""
    next_layer = 0
    for group in arch.layers:
        known = len(group.layers) == group.n_layers
        places = group.layers if known else range(next_layer, next_layer + group.n_layers)
        next_layer += group.n_layers
        for layer in places:
            for linear in group.linears:
                yield linear, 1, layer, group
            if group.experts is not None:
                for linear in group.experts.linears:
                    yield linear, group.experts.n_experts, layer, group


def _bytes_per_value(
    mix: Mix, name: str, arch: Architecture, group: LayerGroup, linear: Linear, layer: int
) -> float:
    if mix.experts and group.experts is not None and linear in group.experts.linears:
        return DTYPES[mix.experts].bytes_per_value
    if not linear.quantisable:
        return NORM_BYTES  # routers and small state matrices stay in fp32
    return GGUF_TYPES[_type(mix, name, arch, group, linear, layer)].bytes_per_value


def _type(
    mix: Mix, name: str, arch: Architecture, group: LayerGroup, linear: Linear, layer: int
) -> str:
    key = name.strip().lower()
    last = linear.name.split(".")[-1]
    if last == "v_proj":
        if key == "iq4_xs" and _queries_per_kv_head(group) < WIDE_GROUP:
            return mix.base
        first = _FIRST_LAYERS.get(key)
        picked = uses_more_bits(layer, arch.n_layers) if first is None else layer < first
        chosen = mix.value[0 if picked else 1] or mix.base
        return "q5_k" if _is_70b(arch, group) and chosen in ("q3_k", "q4_k") else chosen
    if last in ("down_proj", "w2", "fc2"):
        return mix.down[0 if _down_picked(key, layer, arch.n_layers) else 1] or mix.base
    if last in ("q_proj", "k_proj"):
        return mix.query_key or mix.base
    if last == "o_proj":
        return mix.attention_output or mix.base
    return mix.base


def _down_picked(key: str, layer: int, n_layers: int) -> bool:
    if key == "q3_k_m":
        return layer < n_layers // 16
    if key.endswith("_m"):
        return uses_more_bits(layer, n_layers)
    return layer < n_layers // 8


def _queries_per_kv_head(group: LayerGroup) -> float:
    attention = group.attention
    if not isinstance(attention, GroupedQuery):
        return 1.0
    return attention.query_heads / attention.n_kv_heads


def _is_70b(arch: Architecture, group: LayerGroup) -> bool:
    return _queries_per_kv_head(group) > 1 and arch.n_layers == MANY_HEADS_LAYERS
