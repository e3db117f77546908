"""Quantisation: the storage format of each matrix, from a checkpoint's own description.

Reads the ``quantization_config`` of a config.json (at either nesting level) and the
``hf_quant_config.json`` beside it, for the methods that are in use: fp8 (with and without block
scales), mxfp4, modelopt (NVFP4, FP8, mixed precision by layer), compressed-tensors, GPTQ, AWQ,
AutoRound, bitsandbytes, fbgemm, BitNet.

Limits   Per-tensor and per-row scales are left out, below 0.1 % of a matrix. The order of GPTQ's
         columns (4 bytes per input) likewise.
Sources  [1] Hugging Face transformers, documentation of quantization_config (2026-11).
         [2] NVIDIA TensorRT-Model-Optimizer, hf_quant_config.json as its exporter writes it.
         [3] vLLM compressed-tensors, config_groups and ignore. See dtypes.py for the bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from roofline.dtypes import DTYPES, Dtype, grouped
from roofline.errors import UnsupportedError
from roofline.models.architecture import LayerGroup, Linear
from roofline.models.fields import Fields, show
from roofline.models.modules import ModuleList, module_list

_ALGORITHMS: dict[str, Dtype] = {
    "FP8": Dtype.FP8, "FP8_PER_CHANNEL_PER_TOKEN": Dtype.FP8, "FP8_PB_WO": Dtype.FP8_BLOCK,
    "FP8_PB_REAL": Dtype.FP8_BLOCK, "NVFP4": Dtype.NVFP4, "W4A16_NVFP4": Dtype.NVFP4,
    "NVFP4_AWQ": Dtype.NVFP4, "NVFP4_SVDQUANT": Dtype.NVFP4, "MXFP4": Dtype.MXFP4,
    "W4A8_MXFP4_FP8": Dtype.MXFP4, "W4A16_MXFP4": Dtype.MXFP4, "MXFP8": Dtype.MXFP8,
    "INT8_SQ": Dtype.INT8, "W8A8_SQ_PER_CHANNEL": Dtype.INT8, "W8A16": Dtype.INT8,
    "INT4_AWQ": Dtype.INT4, "W4A16_AWQ": Dtype.INT4, "W4A8_AWQ": Dtype.INT4, "W4A16": Dtype.INT4,
}  # fmt: skip
METHODS = ("fp8", "mxfp4", "modelopt", "compressed-tensors", "gptq", "awq", "auto-round",
           "bitsandbytes", "fbgemm_fp8", "bitnet")  # fmt: skip
BITNET = Dtype("bitnet", 2)  # ternary values, four to a byte


@dataclass(frozen=True)
class Scheme:
    """What each matrix of a checkpoint is stored in.

    Args:
        words: the format in words.
        default: format of the blocks' matrices that no list names; None: as the model.
        experts: format of routed experts where it differs.
        only_experts: the default is for routed experts alone.
        excluded: matrices left as the model.
        listed: matrices with a format of their own, the first list that has them decides.
        kv_dtype: format of the cache that the checkpoint asks for.
    """

    words: str = ""
    default: Dtype | None = None
    experts: Dtype | None = None
    only_experts: bool = False
    excluded: ModuleList = field(default_factory=ModuleList)
    listed: tuple[tuple[ModuleList, Dtype], ...] = ()
    kv_dtype: Dtype | None = None

    def dtype_of(
        self, name: str, *, quantisable: bool = True, expert: bool = False
    ) -> Dtype | None:
        """Find the format of the matrix of this canonical name."""
        for names, dtype in self.listed:
            if names.has(name):
                return dtype
        if not quantisable or self.default is None or (self.only_experts and not expert):
            return None
        if self.excluded.has(name):
            return None
        return self.experts if expert and self.experts is not None else self.default


def read_scheme(fields: Fields, formats: Mapping[str, Any] | None) -> Scheme:
    """Read how a checkpoint is stored; ``fields`` may hold a quantization_config.

    Raises:
        SpecError: the description cannot be.
        UnsupportedError: a method that is not modelled; the message names it.
    """
    block = fields.child("quantization_config", "compression_config")
    beside = None
    if formats is not None:
        beside = Fields(formats, "hf_quant_config.json", fields.notes).child("quantization")
    if block is None and beside is None:
        return Scheme()
    if block is None or (beside is not None and _method(block) == "modelopt"):
        return _modelopt(beside or block or fields, also=block)
    method = _method(block)
    if method == "fp8" or method == "fbgemm_fp8":
        return _fp8(block, fields)
    if method == "mxfp4":
        return Scheme("mxfp4", Dtype.MXFP4, only_experts=True, excluded=_skipped(block))
    if method == "modelopt":
        return _modelopt(block)
    if method == "compressed-tensors":
        return _compressed(block)
    if method in ("gptq", "awq", "auto-round"):
        return _integers(block, method)
    if method == "bitsandbytes":
        return _bitsandbytes(block)
    if method == "bitnet":
        return Scheme("bitnet", BITNET, excluded=_skipped(block))
    raise UnsupportedError(
        f"{block.where}: quantisation method {method!r} is not modelled; "
        f"modelled are {', '.join(METHODS)}; drop the block and give the format instead"
    )


def _method(block: Fields) -> str:
    method = block.text("quant_method").lower().replace("_", "-")
    if not method and block.has("quant_algo"):
        return "modelopt"
    if not method and block.has("config_groups"):
        return "compressed-tensors"
    return {"fbgemm-fp8": "fbgemm_fp8", "modelopt-fp4": "modelopt", "gptq-marlin": "gptq",
            "awq-marlin": "awq", "auto-gptq": "gptq", "auto-awq": "awq",
            "intel/auto-round": "auto-round"}.get(method, method)  # fmt: skip


def _skipped(block: Fields) -> ModuleList:
    names = block.items("modules_to_not_convert", "llm_int8_skip_modules", "ignored_layers") or ()
    return module_list(names, block.where)


def _fp8(block: Fields, fields: Fields) -> Scheme:
    size = block.items("weight_block_size")
    dtype, words = Dtype.FP8, "fp8"
    if size is not None:
        if len(size) != 2:
            raise block.error(f"'weight_block_size' is {show(size)}; it needs two numbers")
        rows, columns = (block.whole("weight_block_size", entry) for entry in size)
        words = f"fp8, a 32-bit scale per {rows} × {columns}"
        dtype = Dtype.FP8_BLOCK
        if (rows, columns) != (128, 128):
            dtype = replace(Dtype.FP8_BLOCK, name="fp8_block", bits=8 + 32 / (rows * columns))
    experts = None
    if fields.text("expert_dtype").lower() == "fp4":
        experts, words = Dtype.MXFP4, f"{words}; experts fp4"
    listed = _listed(block)
    if listed:
        words += "; " + ", ".join(sorted({dtype.name for _, dtype in listed})) + " by layer"
    return Scheme(
        words, dtype, experts, excluded=_skipped(block), listed=listed, kv_dtype=_kv(block)
    )


def _algorithm(block: Fields, name: str, group: int | None = None) -> Dtype | None:
    if name.upper() in ("", "NONE", "MIXED_PRECISION"):
        return None
    dtype = _ALGORITHMS.get(name.upper())
    if dtype is None:
        raise UnsupportedError(
            f"{block.where}: format {name!r} is not modelled; "
            f"modelled are {', '.join(sorted(_ALGORITHMS))}"
        )
    if dtype is Dtype.INT4 and group and group != 128:
        return grouped(f"int4_g{group}", 4, group)
    return dtype


def _listed(block: Fields) -> tuple[tuple[ModuleList, Dtype], ...]:
    """Read ``quantized_layers``: a format by module name."""
    layers = block.child("quantized_layers")
    if layers is None:
        return ()
    names: dict[Dtype, list[str]] = {}
    for name in layers.values:
        entry = layers.child(name)
        if entry is not None:
            dtype = _algorithm(entry, entry.text("quant_algo"), entry.optional("group_size"))
            if dtype is not None:
                names.setdefault(dtype, []).append(name)
    return tuple((module_list(entries, block.where), dtype) for dtype, entries in names.items())


def _kv(block: Fields) -> Dtype | None:
    algorithm = block.text("kv_cache_quant_algo")
    if algorithm and algorithm.upper() != "NONE":
        return {"FP8": Dtype.FP8, "INT8": Dtype.INT8, "NVFP4": Dtype.NVFP4}.get(
            algorithm.upper()
        ) or _algorithm(block, algorithm)
    scheme = block.child("kv_cache_scheme")
    return None if scheme is None else _weights(scheme)


def _modelopt(block: Fields, also: Fields | None = None) -> Scheme:
    excluded = [*(block.items("exclude_modules", "ignore") or ())]
    if also is not None:
        excluded += also.items("ignore", "exclude_modules") or ()
    algorithm = block.text("quant_algo")
    default = _algorithm(block, algorithm, block.optional("group_size"))
    listed = _listed(block)
    if not excluded and not listed:
        block.assume("no list of excluded modules: every matrix of the blocks taken as quantised")
    if default is None and not listed and also is None:
        return replace(_compressed(block), kv_dtype=_kv(block))
    kv_dtype = _kv(block) or (None if also is None else _kv(also))
    words = algorithm.lower().replace("_", " ") or "modelopt"
    return Scheme(
        words, default, excluded=module_list(excluded, block.where), listed=listed,
        kv_dtype=kv_dtype,
    )  # fmt: skip


def _weights(weights: Fields) -> Dtype:
    """Read one compressed-tensors description of values."""
    bits = weights.count("num_bits")
    kind = weights.text("type", default="int")
    group = weights.optional("group_size") if weights.values.get("group_size") != -1 else None
    blocks = weights.items("block_structure")
    if kind == "float" and bits == 8:
        if group == 32:
            return Dtype.MXFP8
        return Dtype.FP8_BLOCK if blocks is not None else Dtype.FP8
    if kind == "float" and bits == 4:
        return Dtype.MXFP4 if group == 32 else Dtype.NVFP4
    if kind == "int" and bits == 8 and group is None:
        return Dtype.INT8
    if kind == "int" and bits <= 8:
        zero = 0 if weights.flag("symmetric", default=True) else bits
        if group is None:
            return Dtype(f"int{bits}_channel", bits)
        return grouped(f"int{bits}_g{group}", bits, group, zero_bits=zero)
    raise UnsupportedError(
        f"{weights.where}: {bits}-bit {kind} is not modelled; "
        "modelled are float of 4 and 8 bits and int of up to 8"
    )


def _compressed(block: Fields) -> Scheme:
    groups = block.child("config_groups")
    if groups is None and isinstance(block.values.get("weights"), str):
        words = block.text("weights").lower()
        found = next((name for name in DTYPES if words.startswith(name)), None)
        if found is not None:
            block.assume(f"compressed-tensors without config_groups: {found}, by its words")
            excluded = module_list(block.items("ignore") or (), block.where)
            return Scheme(found, DTYPES[found], excluded=excluded)
    if groups is None:
        raise block.error("no 'config_groups'; the format of its matrices is not known")
    default, listed, names = None, [], []
    for key in groups.values:
        group = groups.child(key)
        weights = None if group is None else group.child("weights")
        if group is None or weights is None:
            continue
        dtype = _weights(weights)
        names.append(dtype.name)
        targets = group.items("targets") or ("Linear",)
        if any(target == "Linear" for target in targets):
            default = dtype
        else:
            listed.append((module_list(targets, group.where), dtype))
    return Scheme(
        ", ".join(dict.fromkeys(names)), default,
        excluded=module_list(block.items("ignore") or (), block.where),
        listed=tuple(listed), kv_dtype=_kv(block),
    )  # fmt: skip


def _integers(block: Fields, method: str) -> Scheme:
    """Read GPTQ, AWQ and AutoRound: integers with a scale and a zero point per group."""
    bits = block.count("bits", "w_bit")
    if bits not in (2, 3, 4, 8):
        raise block.error(f"'bits' is {bits}; known are 2, 3, 4 and 8")
    name, group = block.find("group_size", "q_group_size")
    if group == -1:
        dtype = Dtype(f"{method}_int{bits}", bits)
    else:
        size = block.whole(name, group) if name else 128
        if not name:
            block.assume("group_size not given: taken as 128")
        has_zero = method != "awq" or block.flag("zero_point", default=True)
        zero = bits if has_zero else 0
        dtype = grouped(f"{method}_int{bits}_g{size}", bits, size, zero_bits=zero)
    return Scheme(dtype.name.replace("_", " "), dtype, excluded=_skipped(block))


def _bitsandbytes(block: Fields) -> Scheme:
    if block.flag("load_in_8bit", "_load_in_8bit", default=False):
        return Scheme("bitsandbytes int8", Dtype.INT8, excluded=_skipped(block))
    kind = block.text("bnb_4bit_quant_type", default="fp4")
    doubled = block.flag("bnb_4bit_use_double_quant", default=False)
    dtype = replace(Dtype.NF4, name=kind, bits=Dtype.NF4.bits if doubled else 4 + 32 / 64)
    return Scheme(f"bitsandbytes {kind}", dtype, excluded=_skipped(block))


def apply(scheme: Scheme, layer: LayerGroup) -> LayerGroup:
    """Put the formats on one layer's matrices."""
    position = layer.layers[0]

    def stored(linear: Linear, *, expert: bool) -> Linear:
        name = f"layers.{position}.{linear.name.replace('*', '0')}"
        dtype = scheme.dtype_of(name, quantisable=linear.quantisable, expert=expert)
        return linear if dtype is None else replace(linear, dtype=dtype)

    linears = tuple(stored(linear, expert=False) for linear in layer.linears)
    experts = layer.experts
    if experts is not None:
        matrices = tuple(stored(linear, expert=True) for linear in experts.linears)
        experts = replace(experts, linears=matrices)
    return replace(layer, linears=linears, experts=experts)
