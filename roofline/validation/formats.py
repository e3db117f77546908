"""Storage formats that published tables name, and what they are here.

A table writes ``gguf-q4_k_m`` or ``awq-int4``. A file's mix of formats is taken at its smallest, so
that a bound stays below the measurement; a file that no single format describes is not judged.

Sources  [1] ggml, k-quants (a file named Q4_K_M mixes q4_k with q6_k matrices; its least is q4_k).
"""

from dataclasses import dataclass

from roofline.dtypes import DTYPES, Dtype, grouped


@dataclass(frozen=True)
class Format:
    """How a table's weights are stored.

    Args:
        blocks: format of the matrices in the layers; None: the checkpoint's own.
        head: format of lm_head where the file stores that smaller as well; None: 16 bit.
        note: what was chosen.
        known: False when no single format describes the file.
    """

    blocks: Dtype | None
    head: Dtype | None = None
    note: str = ""
    known: bool = True


_Q8, _Q6 = DTYPES["q8_0"], DTYPES["q6_k"]


def _gguf(base: str, head: Dtype = _Q6) -> Format:
    dtype = DTYPES[base]
    return Format(dtype, head if head.bits > dtype.bits else dtype, "the least of the file's mix")


FORMATS: dict[str, Format] = {
    "": Format(None, note="format not stated: the checkpoint's own"),
    "bf16": Format(Dtype.BF16),
    "fp16": Format(Dtype.FP16),
    "fp8": Format(Dtype.FP8),
    "fp8-static": Format(Dtype.FP8),
    "fp8_block": Format(Dtype.FP8_BLOCK),
    "int8": Format(Dtype.INT8),
    "int4": Format(Dtype.INT4),
    "int4_wo": Format(Dtype.INT4),
    "int4-g32": Format(grouped("int4-g32", 4, 32)),
    "fp4": Format(Dtype.NVFP4),
    "nvfp4": Format(Dtype.NVFP4),
    "mxfp4": Format(Dtype.MXFP4),
    "awq": Format(Dtype.INT4),
    "awq-int4": Format(Dtype.INT4),
    "gptq-int4": Format(Dtype.INT4),
    "gptq-int4-g128-act": Format(Dtype.INT4),
    "gptq-int8": Format(grouped("gptq-int8", 8, 128)),
    "autoround-int4": Format(Dtype.INT4),
    "compressed-tensors-int4-g32-symmetric": Format(grouped("int4-g32", 4, 32)),
    "compressed-tensors-w4a16-g32-asym-rtn": Format(grouped("int4-g32-asym", 4, 32, zero_bits=4)),
    "gguf-f16": Format(Dtype.FP16, Dtype.FP16),
    "gguf-bf16": Format(Dtype.BF16, Dtype.BF16),
    "gguf-q8_0": _gguf("q8_0", _Q8),
    "gguf-q8_k_xl": _gguf("q8_0", _Q8),
    "gguf-q6_k": _gguf("q6_k"),
    "gguf-q5_k_m": _gguf("q5_k"),
    "gguf-q5_k_xl": _gguf("q5_k"),
    "gguf-q4_k_m": _gguf("q4_k"),
    "gguf-q4_k_xl": _gguf("q4_k"),
    "gguf-q4_0": _gguf("q4_0"),
    "gguf-q3_k_s": _gguf("q3_k"),
    "gguf-q2_k": _gguf("q2_k"),
    "gguf-mxfp4": Format(Dtype.MXFP4, _Q8, "experts in mxfp4, the rest of the file in q8_0"),
    "gguf-ud-iq2_m": Format(None, note="a dynamic mix of formats", known=False),
    "gguf-ud-iq2_xxs": Format(None, note="a dynamic mix of formats", known=False),
    "gguf-q4_k_m-reap50": Format(None, note="half of the experts are cut out", known=False),
    "qat-mixed-int2-4-8": Format(None, note="2, 4 and 8 bit mixed", known=False),
    "UNSET": Format(None, note="format not stated", known=False),
    "UINT4": Format(Dtype.INT4),
    **{
        f"exl2-{bits}bpw": Format(
            Dtype(f"exl2-{bits}", float(bits)), Dtype(f"exl2-{bits}", float(bits))
        )
        for bits in ("2.5", "3.0", "4.0", "5.0")
    },
}  # fmt: skip
"""Weight formats of the tables [1]."""

KV_FORMATS: dict[str, Dtype | None] = {
    "": None,
    "auto": None,
    "f16": Dtype.FP16,
    "f16/f16": Dtype.FP16,
    "fp16": Dtype.FP16,
    "bf16": Dtype.BF16,
    "fp8": Dtype.FP8,
    "fp8_e5m2": Dtype.FP8,
    "int8": Dtype.INT8,
}
"""Cache formats of the tables; None: not stated."""


def format_named(label: str) -> Format:
    """Find the storage format that a table's weights have.

    >>> format_named("gguf-q4_k_m").blocks.name, format_named("gguf-ud-iq2_m").known
    ('q4_k', False)
    """
    return FORMATS.get(label.strip(), Format(None, note="unknown format", known=False))
