"""Names of the memory tables: which model, format, card and settings a start-up line stands for.

Limits   Versions that a line gives as a month are the release of that month; the choice is here.
"""

from dataclasses import dataclass

from roofline.dtypes import DTYPES, Dtype, grouped
from roofline.errors import MissingDataError
from roofline.serving.engines import Engine
from roofline.units import GIB

MODELS = {
    "Llama-2-7B": "llama-2-7b", "Llama-2-13B": "llama-2-13b", "Llama-2-70B": "llama-2-70b",
    "Llama-3-8B": "llama-3-8b", "Llama-3-70B": "llama-3-70b", "Llama-3.1-8B": "llama-3.1-8b",
    "Llama-3.1-70B": "llama-3.1-70b", "Llama-3.3-70B": "llama-3.3-70b",
    "DeepSeek-V3 class": "deepseek-v3", "gpt-oss-20b": "gpt-oss-20b",
    "gpt-oss-20b-mxfp4": "gpt-oss-20b", "gpt-oss-120b": "gpt-oss-120b",
    "DeepSeek-R1": "deepseek-r1", "DeepSeek-R1/V3": "deepseek-r1",
    "Mistral-Small-24B": "mistral-small-24b",
    **{f"Qwen2.5-{size}": f"qwen2.5-{size.lower()}"
       for size in ("0.5B", "1.5B", "3B", "7B", "14B", "32B", "72B")},
    **{f"Qwen3-{size}": f"qwen3-{size.lower()}"
       for size in ("0.6B", "1.7B", "4B", "8B", "14B", "32B", "30B-A3B", "235B-A22B")},
}  # fmt: skip
"""Catalogue names of the tables' models."""

CONFIGS = {
    "Gemma-4-31B": "nvidia--Gemma-4-31B-IT-NVFP4",
    "Gemma-4-26B-A4B": "nvidia--Gemma-4-26B-A4B-NVFP4",
    "Qwen3.5-122B-A10B": "nvidia--Qwen3.5-122B-A10B-NVFP4",
    "gemma-4-31B-it": "nvidia--Gemma-4-31B-IT-NVFP4",
    "gemma-4-26B-A4B-it": "nvidia--Gemma-4-26B-A4B-NVFP4",
    "Llama-3.1-405B": "meta-llama--Llama-3.1-405B-Instruct-FP8",
}
"""Models whose config.json lies beside the tables."""

OWN_FORMATS = frozenset({"mxfp4", "nvfp4", "gguf-mxfp4"})
"""What the checkpoint is in anyway."""

GPTQ_INT8 = grouped("gptq-int8", 8, 128, zero_bits=8)
AWQ = grouped("awq", 4, 128, zero_bits=4)

FORMATS: dict[str, Dtype] = {
    "bf16": Dtype.BF16, "fp16": Dtype.FP16, "f16": Dtype.FP16, "fp8": Dtype.FP8_BLOCK,
    "fp8-dynamic": Dtype.FP8,
    "int8 w8a8": Dtype.INT8, "gptq-int8": GPTQ_INT8, "awq": AWQ, "awq-int4": AWQ,
}  # fmt: skip

CARDS = {
    "RTX 3090 24GB": "rtx-3090", "RTX 4090 24GB": "rtx-4090", "RTX 4080 16GB": "rtx-4080",
    "RTX 6000 Ada 48GB": "rtx-6000-ada", "H100 80GB": "h100-sxm5-80gb",
    "H100 SXM 80GB": "h100-sxm5-80gb", "A100 80GB": "a100-sxm4-80gb",
    "H200 SXM 141GB": "h200-sxm-141gb", "T4 16GB": "t4", "H20 96GB": "h20-96gb",
}  # fmt: skip


@dataclass(frozen=True)
class OtherCard:
    """A card without a spec: what its driver shows, and where that was read."""

    name: str
    usable_bytes: float
    vendor: str
    source: str


OTHER_CARDS = {
    "Jetson AGX Thor 128GB": OtherCard(
        "Jetson AGX Thor",
        122.82 * GIB,
        "NVIDIA",
        "vLLM's message 'Free memory on device (…/122.82 GiB)' (2026)",
    ),
    "Ascend NPU": OtherCard(
        "Ascend NPU 64GB", 61.27 * GIB, "Huawei", "torch-npu's message '61.27 GiB total' (2026-08)"
    ),
}


def line_engine(line: dict[str, str]) -> Engine:
    """Give the engine with the settings that a line states."""
    name = line["engine"].split(" ")[0]
    fraction = line["gpu_memory_utilization"]
    longest = line.get("max_model_len", "")
    return Engine(
        {"vLLM-Ascend": "vllm", "Transformers": "transformers"}.get(name, name),
        version=_VERSIONS.get(line["id"]) or _stated_version(line["engine_version"]),
        memory_fraction=float(fraction) if fraction else None,
        chunk_tokens=_CHUNKS.get(line["id"]),
        max_context_tokens=int(longest) if longest else _CONTEXTS.get(line["id"]),
    )


def _stated_version(text: str) -> str | None:
    return text if text[:1].isdigit() and not text.startswith("20") else None


_VERSIONS = {
    "c0001": "0.7", "c0003": "0.6.4", "c0004": "0.11.0", "c0005": "0.10.1", "c0012": "0.2.6",
    "c0013": "0.2.5", "c0014": "0.2.6", "c0015": "0.2.5", "c0021": "0.21",
    "c0044": "0.18", "c0045": "0.18",
    "c0046": "0.18", "c0048": "0.11", "s0001": "0.12", "s0002": "0.12",
    "s0009": "0.6.5", "s0010": "0.6.5",
}  # fmt: skip
"""Releases of lines that give a month, a branch or nothing; s0001, s0002 had the Triton kernels."""

_CHUNKS = {"c0004": 1024, "c0024": 32768, "s0011": 2048}
POOLS_IN_NOTES = {"c0021": 50.0}
"""Pools in GiB that a line's notes state."""

_CONTEXTS = {"c0012": 4096, "c0013": 4096, "c0014": 4096, "c0015": 4096}


def model_of(line: dict[str, str]) -> str:
    """Name the catalogue entry of a line's model.

    Raises:
        MissingDataError: the line names no model that is known here.
    """
    if line["model"] not in MODELS:
        raise MissingDataError(f"no config of {line['model'] or 'an unnamed model'!r}")
    return MODELS[line["model"]]


def cache_format_of(label: str) -> Dtype | None:
    """Give the cache format of a line; None: the model's own.

    >>> cache_format_of("fp8").bits, cache_format_of("")
    (8, None)
    """
    return Dtype.FP8 if label.startswith("fp8") else format_of(label)


def format_of(label: str) -> Dtype | None:
    """Give the storage format of a line; None: the checkpoint's own.

    Raises:
        MissingDataError: the line's format has no counterpart here.
    """
    if not label or label in OWN_FORMATS:
        return None
    if label in FORMATS:
        return FORMATS[label]
    gguf = label.removeprefix("gguf-")
    if label.startswith("gguf-") and gguf in DTYPES:
        return DTYPES[gguf]
    raise MissingDataError(f"no storage format for {label!r}")
