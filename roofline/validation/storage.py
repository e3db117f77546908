"""Storage as a published run had it: the model of a row with the formats of its file.

A table's format covers more than the public argument ``weights`` says: GGUF, ExLlama and gpt-fast
files store lm_head smaller than 16 bit as well, and a GGUF file of gpt-oss keeps everything but the
experts in q8_0. Here the formats are written into the architecture, matrix by matrix.

Limits   A mix of formats is taken at its smallest, for bounds.
"""

import functools
from dataclasses import replace

from roofline.dtypes import DTYPES, Dtype
from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture, Experts, LayerGroup, Linear
from roofline.validation.models import row_model
from roofline.validation.rows import Row
from roofline.work.gguf_mix import mix_format, mix_names
from roofline.work.weights import own_format

_SMALL_BITS = 9.0
"""Formats up to this many bits count as 8 bit or less, block scales included."""
_QUANTISES_HEAD = ("gpt-fast", "MLC-LLM", "ExLlama")


def row_architecture(row: Row) -> Architecture:
    """Load the model of a row, stored as its file is.

    Raises:
        UnknownNameError: the catalogue has no such model.

    >>> from roofline.validation.rows import serving_rows
    >>> row_architecture(serving_rows()[0]).lm_head.dtype.name  # a q4_k_m file
    'q6_k'
    """
    head = row.head
    if head is None and row.weights is not None and row.engine_label in _QUANTISES_HEAD:
        head = row.weights if row.weights.bits <= _SMALL_BITS else None
    return stored_as(row.model or "", row.weights, head)


def likely_architecture(row: Row) -> Architecture:
    """Load the model of a row as its file most likely is: a GGUF mix by its mean, for estimates."""
    name = row.weights_label.removeprefix("gguf-")
    if row.weights is None or row.weights_label == name or name not in mix_names():
        return row_architecture(row)
    mean = mix_format(row_model(row.model or ""), name)
    return stored_as(row.model or "", mean, row.head)


@functools.lru_cache(maxsize=256)
def stored_as(model: str, weights: Dtype | None, head: Dtype | None) -> Architecture:
    """Load a model with this format in its blocks and that one in lm_head; None: its own."""
    arch = row_model(model)
    if weights is not None and not (head is None and weights == own_format(arch)):
        dense = DTYPES["q8_0"] if weights is Dtype.MXFP4 and head is not None else weights
        groups = tuple(_group_stored(group, dense, weights) for group in arch.layers)
        arch = replace(arch, layers=groups)
    if head is not None and arch.lm_head is not None:
        arch = replace(arch, lm_head=replace(arch.lm_head, dtype=head))
    return arch


def _group_stored(group: LayerGroup, dense: Dtype, experts: Dtype) -> LayerGroup:
    held = group.experts
    return replace(
        group,
        linears=tuple(_linear_stored(linear, dense) for linear in group.linears),
        experts=None if held is None else _experts_stored(held, experts),
    )


def _experts_stored(experts: Experts, dtype: Dtype) -> Experts:
    return replace(experts, linears=tuple(_linear_stored(each, dtype) for each in experts.linears))


def _linear_stored(linear: Linear, dtype: Dtype) -> Linear:
    return replace(linear, dtype=dtype) if linear.quantisable else linear


def on_device(dtype: Dtype, accelerator: Accelerator) -> Dtype:
    """Give the 16-bit type that a device has for the other one: the bytes are the same.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> on_device(Dtype.FP16, load_accelerator("gb10-dgx-spark")).name
    'bf16'
    """
    rates = accelerator.compute.flop_per_s
    other = {"bf16": Dtype.FP16, "fp16": Dtype.BF16}.get(dtype.name)
    if other is None or rates.get(dtype.name) or not rates.get(other.name):
        return dtype
    return other


def cache_format(row: Row, arch: Architecture) -> Dtype:
    """Storage of a row's cache for a bound: 8 bit where unstated and the weights are that small."""
    if row.kv is not None:
        return row.kv
    return Dtype.FP8 if own_format(arch).bits <= _SMALL_BITS else (arch.kv_dtype or arch.dtype)
