"""Names that published tables use, and what they are here: models, accelerators, engines.

A table writes ``H100 SXM 80GB``; the rest of roofline knows spec ids and catalogue names. What has
no exact counterpart is named with the reason and never guessed.

Limits   Where a table leaves the board open (``A100 80GB``), the faster variant is taken: a bound
         with it stays below the measurement; the note travels with the row.
Sources  [1] Argonne, LLM-Inference-Bench, SC24 workshops, table of systems (A100 40 GB SXM4 of
             Polaris; GH200 with 96 GB).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Named:
    """What a label of a table stands for.

    Args:
        id: our name; None when there is none.
        note: why there is none, or what was chosen.
    """

    id: str | None
    note: str = ""


_FASTER = "board not stated: the faster variant is taken"
_NO_SPEC = "no spec of this accelerator"

_ACCELERATORS: dict[str, tuple[str, ...]] = {
    "a100-sxm4-80gb": ("A100 SXM 80GB",),
    "a100-pcie-80gb": ("A100 PCIe 80GB",),
    "a40": ("A40 48GB",),
    "rtx-a6000": ("RTX A6000 48GB",),
    "rtx-6000-ada": ("RTX 6000 Ada 48GB",),
    "rtx-3090": ("RTX 3090 24GB",),
    "rtx-4090": ("RTX 4090 24GB",),
    "rtx-5090": ("RTX 5090 32GB",),
    "l40s": ("L40S 48GB", "NVIDIA L40S"),
    "h100-sxm5-80gb": ("H100 SXM 80GB", "h100_sxm"),
    "h100-pcie-80gb": ("H100 PCIe 80GB",),
    "h20-96gb": ("H20 96GB",),
    "h200-sxm-141gb": ("H200 SXM 141GB", "H200", "NVIDIA H200-SXM-141GB", "h200_sxm"),
    "gh200-96gb": ("GH200 96GB HBM3 (480GB LPDDR)",),
    "b200-hgx": ("B200", "B200 180GB", "NVIDIA B200-SXM-180GB", "b200_sxm"),
    "gb200-nvl72": ("GB200 192GB", "NVIDIA GB200", "gb200"),
    "b300-hgx": ("b300_sxm",),
    "gb300-nvl72": ("NVIDIA GB300", "gb300"),
    "gb10-dgx-spark": ("NVIDIA GB10 (DGX Spark 128GB)", "NVIDIA GB10 (DGX Spark class)"),
    "rtx-pro-6000-bw-server": (
        "RTX PRO 6000 Blackwell Server",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    ),
    "mi300x": ("MI300X 192GB", "MI300X", "AMD Instinct MI300X 192GB HBM3"),
    "mi325x": ("AMD Instinct MI325X 256GB HBM3e",),
    "mi350x": ("MI350X",),
    "mi355x": ("AMD Instinct MI355X 288GB HBM3e",),
    "gaudi2": ("Gaudi 2 96GB",),
    "apple-m2-ultra": ("Apple M2 Ultra 76-Core GPU 192GB", "Apple M2 Ultra 192GB"),
    "apple-m3-ultra": ("Apple M3 Ultra 512GB",),
    "ascend-910b": ("Ascend 910B",),
    "t4": ("T4 16GB", "T4 16GB (14.74 GiB)"),
}
ACCELERATORS: dict[str, Named] = {
    label: Named(spec) for spec, labels in _ACCELERATORS.items() for label in labels
} | {
    "A100 80GB": Named("a100-sxm4-80gb", _FASTER),
    "A100": Named("a100-sxm4-80gb", _FASTER),
    "A100 80GB (330W limit, hybrid cube mesh)": Named(
        "a100-sxm4-80gb", f"{_FASTER}; power limited to 330 W"
    ),
    "A100 (40GB per ALCF Polaris; not stated in the csv)": Named(
        "a100-sxm4-40gb", "the system's description says A100 SXM4 40 GB [1]"
    ),
    "GH200": Named("gh200-96gb", "the system's description says 96 GB [1]"),
    "H100 80GB": Named("h100-sxm5-80gb", _FASTER),
    **{
        f"RTX 3090 24GB ({watts} W limit)": Named("rtx-3090", f"power limited to {watts} W")
        for watts in (220, 250, 270, 300, 320)
    },
    "MI250": Named(None, "no spec of the MI250; the MI250X is another part"),
    "MI250X (one GCD)": Named(None, "one of the two dies of an MI250X; the spec is the whole"),
    "": Named(None, "the table does not say which accelerator"),
}

_MODELS: dict[str, tuple[str, ...]] = {
    "tinyllama-1.1b": ("TinyLlama-1.1B",),
    "llama-2-7b": ("Llama-2-7B",),
    "llama-2-13b": ("Llama-2-13B",),
    "llama-2-70b": ("Llama-2-70B",),
    "llama-3-8b": ("Llama-3-8B",),
    "llama-3-70b": ("Llama-3-70B",),
    "llama-3.1-8b": ("Llama-3.1-8B",),
    "llama-3.1-70b": ("Llama-3.1-70B", "Meta-Llama/Llama-3.1-70B", "meta-llama/Llama-3.1-70B"),
    "llama-3.1-405b": ("Llama-3.1-405B",),
    "llama-3.2-3b": ("Llama-3.2-3B",),
    "llama-3.3-70b": ("Llama-3.3-70B",),
    "llama-4-scout": ("Llama-4-Scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
    "llama-4-maverick": ("Llama-4-Maverick",),
    "codellama-34b": ("CodeLlama-34B",),
    "llama-1-33b": ("Llama-1-33B",),
    "open-llama-3b": ("OpenLlama-3B",),
    "mistral-7b": ("Mistral-7B",),
    "ministral-3-14b": ("mistralai/Ministral-3-14B-Instruct-2512",),
    "mixtral-8x7b": ("Mixtral-8x7B",),
    "mixtral-8x22b": ("Mixtral-8x22B",),
    "falcon-180b": ("Falcon-180B",),
    "gpt-j-6b": ("GPT-J-6B",),
    "qwen2-1.5b": ("Qwen2-1.5B",),
    "qwen2-7b": ("Qwen2-7B",),
    "qwen2-72b": ("Qwen2-72B",),
    "qwen2-57b-a14b": ("Qwen2-57B-A14B",),
    "qwen2.5-3b": ("Qwen2.5-3B",),
    "qwen2.5-7b": ("Qwen2.5-7B",),
    "qwen2.5-14b": ("Qwen2.5-14B", "DeepSeek-R1-Distill-Qwen-14B"),
    "qwen2.5-32b": ("Qwen2.5-32B",),
    "qwen3-1.7b": ("Qwen3-1.7B",),
    "qwen3-8b": ("Qwen3-8B", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B-FP8", "vllm-ascend/Qwen3-8B-W8A8"),
    "qwen3-32b": (
        "Qwen3-32B",
        "Qwen/Qwen3-32B",
        "Qwen/Qwen3-32B-FP8",
        "nvidia/Qwen3-32B-NVFP4",
    ),
    "qwen3-30b-a3b": ("Qwen3-30B-A3B", "Qwen/Qwen3-30B-A3B"),
    "qwen3-235b-a22b": (
        "Qwen3-235B-A22B",
        "Qwen/Qwen3-235B-A22B-FP8",
        "Qwen/Qwen3-235B-A22B-Instruct-2507",
        "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8",
    ),
    "qwen3-coder-next": ("Qwen/Qwen3-Coder-Next",),
    "qwen3.5-9b": ("Qwen3.5-9B",),
    "qwen3.5-27b": (),
    "qwen3.5-35b-a3b": ("Qwen/Qwen3.5-35B-A3B-FP8",),
    "qwen3.5-122b-a10b": ("Qwen3.5-122B", "Qwen3.5-122B-A10B"),
    "qwen3.5-397b-a17b": ("Qwen3.5-397B-A17B", "Qwen/Qwen3.5-397B-A17B"),
    "qwen3.6-35b-a3b": ("Qwen3.6-35B-A3B",),
    "deepseek-v3": ("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1-0528", "DeepSeek-R1",
                    "nvidia/DeepSeek-R1-NVFP4", "nvidia/DeepSeek-V3.1-NVFP4"),
    "deepseek-v3.2": ("deepseek-ai/DeepSeek-V3.2-Exp",),
    "kimi-k2": ("moonshotai/Kimi-K2-Instruct",),
    "kimi-k2.5": ("moonshotai/Kimi-K2.5", "moonshotai/Kimi-K2.6"),
    "kimi-linear-48b-a3b": ("moonshotai/Kimi-Linear-48B-A3B-Instruct",),
    "glm-4.6": ("zai-org/GLM-4.6-FP8",),
    "glm-4.7-flash": ("GLM-4.7-Flash",),
    "glm-5": ("GLM-5", "GLM-5-FP8", "GLM-5.1-FP8", "zhipuai/GLM-5"),
    "glm-5.2": ("zai-org/GLM-5.2-FP8",),
    "minimax-m2.5": ("MiniMaxAI/MiniMax-M2.5", "MiniMax-M2.7"),
    "nemotron-3-nano-30b-a3b": (
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8",
    ),
    "nemotron-3-super-120b-a12b": ("NVIDIA-Nemotron-3-Super-120B-A12B",),
    "gpt-oss-20b": ("gpt-oss-20b", "openai/gpt-oss-20b"),
    "gpt-oss-120b": ("gpt-oss-120b", "openai/gpt-oss-120b"),
    "gemma-4-26b-a4b": ("google/gemma-4-26B-A4B-it",),
    "ernie-4.5-21b-a3b": ("baidu/ERNIE-4.5-21B-A3B-PT",),
}  # fmt: skip
_NO_CONFIG = "no public description of its layers is at hand"
MODELS: dict[str, Named] = {
    label: Named(name) for name, labels in _MODELS.items() for label in labels
} | {
    "Qwen3.8-27B": Named(
        "qwen3.5-27b", "same text shape as Qwen3.5-27B: 64 layers, 16 with attention, 4 KV heads"
    ),
    "DeepSeek-Math-V2": Named("deepseek-v3.2", "built on DeepSeek-V3.2-Exp"),
    "deepseek-ai/DeepSeek-OCR": Named(None, "a vision model: image tokens are not in the row"),
    "inclusionAI/LLaDA2.1-flash": Named(None, "a diffusion model: several tokens a step"),
    "inclusionAI/LLaDA2.1-mini": Named(None, "a diffusion model: several tokens a step"),
    "stepfun-ai/Step-3.5-Flash": Named(None, _NO_CONFIG),
    "Laguna-S-2.1": Named(None, _NO_CONFIG),
    "Inkling-Small": Named(None, _NO_CONFIG),
    "Ternary-Bonsai-8B": Named(None, _NO_CONFIG),
    "DeepSeek-V4-Flash-0731": Named(None, _NO_CONFIG),
    "Gemma-4-12B-it": Named(None, _NO_CONFIG),
    "Gemma-4-E2B-it": Named(None, _NO_CONFIG),
    "google/gemma-4-E2B-it": Named(None, _NO_CONFIG),
    "google/gemma-4-E4B-it": Named(None, _NO_CONFIG),
}

ENGINES: dict[str, str] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "llama.cpp": "llama.cpp",
    "ollama / llama.cpp": "llama.cpp",
    "gpt-fast": "gpt-fast",
    "transformers": "transformers",
}
"""Engines of the tables that are engines here; others keep their own name and have no terms."""


def accelerator_named(label: str) -> Named:
    """Find the spec that a table's accelerator is.

    >>> accelerator_named("H100 SXM 80GB").id
    'h100-sxm5-80gb'
    >>> accelerator_named("RTX 3060 12GB")
    Named(id=None, note='no spec of this accelerator')
    """
    return ACCELERATORS.get(label.strip(), Named(None, _NO_SPEC))


def model_named(label: str) -> Named:
    """Find the catalogue name that a table's model is.

    >>> model_named("openai/gpt-oss-120b").id
    'gpt-oss-120b'
    """
    return MODELS.get(label.strip(), Named(None, _NO_CONFIG))


def engine_named(label: str) -> str | None:
    """Find the engine that a table's engine is, or None when it has no terms here.

    >>> engine_named("vLLM 0.10.0, RHEL 9.6"), engine_named("Deepspeed-MII")
    ('vllm', None)
    """
    lowered = label.strip().lower()
    for name in sorted(ENGINES, key=len, reverse=True):
        if lowered == name or lowered.startswith(f"{name} "):
            return ENGINES[name]
    return None
