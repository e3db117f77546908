"""Number formats: what values are stored in, and the types that devices compute in.

A ``Dtype`` is a storage format: its real bits a value with scales and zero points, and the compute
types it admits, in the order engines prefer them. A compute type is a plain name, one of
``COMPUTE_TYPES``; which of them a device has is a fact of the device.

Units    ``bits``: bits a stored value takes on average, block scales included.
Limits   Per-tensor scales (4 bytes a matrix) are left out: below 10⁻⁶ of the matrix.
Sources  [1] OCP Microscaling Formats v1.0, 2023, section 5 (mxfp4, mxfp6, mxfp8: 32 values and
             an 8-bit scale).
         [2] NVIDIA, Introducing NVFP4, 2025 (16 values, 8-bit scale).
         [3] DeepSeek-AI, arXiv:2412.19437, section 3.3 (fp8 with a 32-bit scale per 128×128 block).
         [4] ggml, ggml-common.h (block structures of the GGUF types).
         [5] Frantar et al., GPTQ, arXiv:2210.17323; Lin et al., AWQ, arXiv:2306.00978 (group 128).
         [6] Dettmers et al., QLoRA, arXiv:2305.14314, section 3 (nf4: block 64; double quantisation
             takes the scale from 0.5 to 0.127 bit).
         [7] DeepSeek-AI, FlashMLA, README (2025): the packed fp8 cache of DeepSeek-V3.2.
"""

from dataclasses import dataclass
from typing import ClassVar

from roofline.errors import unknown_name

COMPUTE_TYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4", "int4")
SIXTEEN_BIT = ("bf16", "fp16")


@dataclass(frozen=True)
class Dtype:
    """One storage format.

    Args:
        name: its usual name, lower case.
        bits: bits a value, scales included.
        compute: compute types that it admits, besides 16-bit.

    >>> Dtype.BF16.bytes_per_value, Dtype.MXFP4.bits
    (2.0, 4.25)
    """

    name: str
    bits: float
    compute: tuple[str, ...] = SIXTEEN_BIT

    FP32: ClassVar["Dtype"]
    BF16: ClassVar["Dtype"]
    FP16: ClassVar["Dtype"]
    FP8: ClassVar["Dtype"]
    FP8_BLOCK: ClassVar["Dtype"]
    MXFP8: ClassVar["Dtype"]
    INT8: ClassVar["Dtype"]
    INT4: ClassVar["Dtype"]
    MXFP4: ClassVar["Dtype"]
    NVFP4: ClassVar["Dtype"]
    NF4: ClassVar["Dtype"]

    @property
    def bytes_per_value(self) -> float:
        """Bytes that one value takes on average."""
        return self.bits / 8

    def __str__(self) -> str:
        return self.name


Dtype.FP32 = Dtype("fp32", 32, ("fp32", "tf32"))
Dtype.BF16 = Dtype("bf16", 16, ("bf16",))
Dtype.FP16 = Dtype("fp16", 16, ("fp16",))
Dtype.FP8 = Dtype("fp8", 8, ("fp8", *SIXTEEN_BIT))
Dtype.FP8_BLOCK = Dtype("fp8_block", 8 + 32 / 128**2, ("fp8", *SIXTEEN_BIT))
Dtype.MXFP8 = Dtype("mxfp8", 8 + 8 / 32, ("fp8", *SIXTEEN_BIT))
Dtype.INT8 = Dtype("int8", 8, ("int8", *SIXTEEN_BIT))
Dtype.INT4 = Dtype("int4", 4 + 16 / 128, SIXTEEN_BIT)
Dtype.MXFP4 = Dtype("mxfp4", 4 + 8 / 32, ("fp4", *SIXTEEN_BIT))
Dtype.NVFP4 = Dtype("nvfp4", 4 + 8 / 16, ("fp4", *SIXTEEN_BIT))
Dtype.NF4 = Dtype("nf4", 4 + 0.127, SIXTEEN_BIT)

# one latent: 512 fp8 values with four 32-bit scales, 64 rotary values in 16 bit, 656 bytes [7]
FP8_DS_MLA = Dtype("fp8_ds_mla", 656 * 8 / 576, SIXTEEN_BIT)

# bytes a block and values a block, from ggml-common.h [4]
_GGUF_BLOCKS = {
    "q4_0": (18, 32), "q4_1": (20, 32), "q5_0": (22, 32), "q5_1": (24, 32), "q8_0": (34, 32),
    "q2_k": (84, 256), "q3_k": (110, 256), "q4_k": (144, 256), "q5_k": (176, 256),
    "q6_k": (210, 256), "q8_k": (292, 256),
    "iq1_s": (50, 256), "iq1_m": (56, 256), "iq2_xxs": (66, 256), "iq2_xs": (74, 256),
    "iq2_s": (82, 256), "iq3_xxs": (98, 256), "iq3_s": (110, 256), "iq4_nl": (18, 32),
    "iq4_xs": (136, 256), "tq1_0": (54, 256), "tq2_0": (66, 256),
}  # fmt: skip
GGUF_TYPES = {name: Dtype(name, size * 8 / values) for name, (size, values) in _GGUF_BLOCKS.items()}

# mixes of block types: the average over the blocks' matrices of a Llama-3 shape
GGUF_MIXES = {
    name: Dtype(name, bits)
    for name, bits in {
        "q3_k_s": 3.46, "q3_k_m": 3.85, "q3_k_l": 4.19, "q4_k_s": 4.54, "q4_k_m": 4.80,
        "q5_k_s": 5.50, "q5_k_m": 5.65,
    }.items()
}  # fmt: skip

DTYPES: dict[str, Dtype] = {
    dtype.name: dtype
    for dtype in (
        Dtype.FP32, Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.FP8_BLOCK, Dtype.MXFP8, Dtype.INT8,
        Dtype.INT4, Dtype.MXFP4, Dtype.NVFP4, Dtype.NF4, *GGUF_TYPES.values(), *GGUF_MIXES.values(),
        FP8_DS_MLA,
    )
}  # fmt: skip

_ALIASES = {
    "float32": "fp32", "float": "fp32", "f32": "fp32", "bfloat16": "bf16", "float16": "fp16",
    "half": "fp16", "f16": "fp16", "float8_e4m3fn": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
    "e4m3": "fp8", "fp8-block": "fp8_block", "w8a8": "int8", "i8": "int8",
}  # fmt: skip


def find_dtype(name: "str | Dtype") -> Dtype:
    """Find a storage format by its name.

    Raises:
        UnknownNameError: no such format; the message has the nearest names.

    >>> find_dtype("bfloat16").bits
    16
    >>> find_dtype("fp9")
    Traceback (most recent call last):
    ...
    roofline.errors.UnknownNameError: no storage format 'fp9'; did you mean fp8, fp32, fp16, nvfp4?
    """
    if isinstance(name, Dtype):
        return name
    key = str(name).strip().lower()
    key = _ALIASES.get(key, key)
    if key not in DTYPES:
        raise unknown_name("storage format", str(name), DTYPES)
    return DTYPES[key]


def grouped(name: str, bits: int, group: int, *, scale_bits: int = 16, zero_bits: int = 0) -> Dtype:
    """A weight-only integer format with a scale (and a zero point) per group of values [5].

    >>> grouped("awq", 4, 128, zero_bits=4).bits
    4.15625
    """
    return Dtype(name, bits + (scale_bits + zero_bits) / group)
