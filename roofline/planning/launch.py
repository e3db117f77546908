"""Launch lines: the command that starts one replica as it was planned.

Limits   Flags that the plan decides, and no others; the engines' own defaults hold for the rest.
Sources  [1] vLLM engine arguments, docs.vllm.ai, 2026.
         [2] SGLang server arguments, docs.sglang.ai, 2026.
         [3] trtllm-serve, nvidia.github.io/TensorRT-LLM, 2026.
         [4] llama.cpp, tools/server/README.md, 2026.
"""

import json
import re
import shlex

from roofline.models.architecture import Architecture
from roofline.planning.candidate import Candidate
from roofline.work.weights import own_format

_HUB = re.compile(r"huggingface\.co/([\w.-]+/[\w.-]+)")


MADE_WHILE_LOADING = ("fp8", "bf16", "fp16", "fp32")
"""Formats that a flag gives a 16-bit checkpoint; others need a checkpoint of their own."""


def model_reference(arch: Architecture) -> str:
    """Name a model as an engine takes it: its hub name where the source has one."""
    match = _HUB.search(arch.source or "")
    return match[1] if match else arch.name


def launch_line(
    candidate: Candidate, *, max_context_tokens: int, max_batch: int, draft_tokens: int = 0
) -> str:
    """Write the command that starts one replica; empty for engines without a server.

    Args:
        candidate: the replica.
        max_context_tokens: longest prompt and output together.
        max_batch: most sequences at once.
        draft_tokens: of speculative decoding; 0: none.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.config import load_model
    >>> from roofline.planning.candidate import Space, candidates
    >>> arch, device = load_model("llama-3.1-8b"), load_accelerator("h200-sxm-141gb")
    >>> found, _ = candidates(arch, device, Space(tp=(2,), weights=("fp8",)), 8192)
    >>> print(launch_line(found[0], max_context_tokens=8192, max_batch=256))
    vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2 --quantization fp8
    --max-model-len 8192 --max-num-seqs 256 --max-num-batched-tokens 8192
    --gpu-memory-utilization 0.9
    """
    deployment, parallel, placement = candidate.deployment, candidate.parallel, candidate.placement
    arch = deployment.arch
    model = shlex.quote(model_reference(arch))
    wanted = deployment.weights_dtype.name if deployment.formats.weights else None
    if wanted == own_format(arch).name:
        wanted = None
    kv = deployment.formats.kv.name if deployment.formats.kv != arch.dtype else None
    chunk = int(placement.chunk_tokens(max_context_tokens))
    share = f"{placement.fraction:g}"
    many = ((parallel.tp, "tp"), (parallel.pp, "pp"), (parallel.dp, "dp"))
    match deployment.engine.name:
        case "vllm":
            names = {"tp": "tensor", "pp": "pipeline", "dp": "data"}
            words = ["vllm serve", model]
            words += [f"--{names[key]}-parallel-size {n}" for n, key in many if n > 1]
            words += ["--enable-expert-parallel"] if parallel.ep > 1 else []
            words += ["--quantization fp8"] if wanted == "fp8" else []
            words += [f"--dtype {_torch(wanted)}"] if wanted in ("bf16", "fp16", "fp32") else []
            words += ["--kv-cache-dtype fp8"] if kv == "fp8" else []
            words += [
                f"--max-model-len {max_context_tokens}",
                f"--max-num-seqs {max_batch}",
                f"--max-num-batched-tokens {chunk}",
                f"--gpu-memory-utilization {share}",
            ]
        case "sglang":
            words = ["python -m sglang.launch_server --model-path", model]
            words += [f"--{key}-size {n}" for n, key in many if n > 1]
            words += [f"--ep-size {parallel.ep}"] if parallel.ep > 1 else []
            words += ["--quantization fp8"] if wanted == "fp8" else []
            words += ["--kv-cache-dtype fp8_e4m3"] if kv == "fp8" else []
            words += [
                f"--context-length {max_context_tokens}",
                f"--max-running-requests {max_batch}",
                f"--chunked-prefill-size {chunk}",
                f"--mem-fraction-static {share}",
            ]
        case "tensorrt-llm":
            words = ["trtllm-serve", model]
            words += [f"--{key}_size {n}" for n, key in many[:2] if n > 1]
            words += [f"--ep_size {parallel.ep}"] if parallel.ep > 1 else []
            words += [
                f"--max_seq_len {max_context_tokens}",
                f"--max_batch_size {max_batch}",
                f"--max_num_tokens {chunk}",
                f"--kv_cache_free_gpu_memory_fraction {share}",
            ]
        case "llama.cpp":
            words = ["llama-server -m", model, f"-c {max_context_tokens * max_batch}",
                     f"-np {max_batch}", "-ngl 999"]  # fmt: skip
        case _:
            return ""
    if draft_tokens:
        words += _speculation(deployment.engine.name, draft_tokens)
    if wanted is not None and wanted not in MADE_WHILE_LOADING:
        words.append(f"  # needs a checkpoint of the model in {wanted}")
    return " ".join(words)


def _speculation(engine: str, draft_tokens: int) -> list[str]:
    """Flags of speculative decoding; the draft model is the reader's to name."""
    match engine:
        case "vllm":
            config = {"model": "DRAFT_MODEL", "num_speculative_tokens": draft_tokens}
            return [f"--speculative-config {shlex.quote(json.dumps(config))}"]
        case "sglang":
            return [
                "--speculative-algorithm EAGLE --speculative-draft-model-path DRAFT_MODEL",
                f"--speculative-num-draft-tokens {draft_tokens}",
            ]
        case "llama.cpp":
            return [f"--model-draft DRAFT_MODEL --draft-max {draft_tokens}"]
        case _:
            return []


def _torch(name: str) -> str:
    return {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[name]
