"""Kernels: from the name of a kernel to the part of a model that it works for.

The rules are tried in order; the first that fits the name gives the part. In eager code a norm is
several kernels (power, mean, reciprocal root): they count as norm. A name that nothing fits is
``other``, and its share of time is shown.

Sources  Kernel names as profilers print them: cuBLAS from Volta (``volta_fp16_s884gemm``) over
         Turing, Ampere (``ampere_bf16_s16816gemm``) and Hopper (``nvjet_tst``, ``sm90_xmma_gemm``)
         to Blackwell (``nvjet_sm100``); CUTLASS 2 and 3; FlashAttention 2 and 3, memory-efficient
         attention, cuDNN; FlashInfer; Triton and inductor; NCCL and RCCL; Tensile (``Cijk_``) and
         Composable Kernel on ROCm; llama.cpp; vLLM, SGLang and TensorRT-LLM custom kernels.
"""

import re
from functools import lru_cache
from typing import NamedTuple

PARTS = (
    "linear", "attention", "experts", "norm", "rotary", "elementwise", "KV append", "recurrent",
    "quantise", "embedding", "softmax", "sampling", "collective", "copy", "other",
)  # fmt: skip

_RULES: tuple[tuple[str, str], ...] = (
    ("copy", r"^mem(cpy|set)|^cuda::memcpy|__amd_rocclr_(copy|fill)"),
    ("collective",
     r"nccl|rccl|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"
     r"|nvshmem|deep_?ep|lamport|multimem|msccl|quick_?reduce|one_shot|two_shot|symm_mem"),
    ("KV append",
     r"reshape_and_cache|concat_and_cache|append_?paged|append_?kv|kv_?append|set_kv_buffer"
     r"|(store|update|write|copy|scatter)_?(to_)?(paged_)?kv|kv_?cache_?(update|scatter|write)"
     r"|store_cache|setkvcache|kv_?cache_?(store|copy)"),
    ("experts",
     r"moe|experts?\b|expert_|topk_?gating|group(ed)?_?gemm|grouped_?mm|groupproblemshape"
     r"|ptr_?array.*gemm|expandinputrows|(un)?permute_(tokens|kernel)|finalizemoe|m_grouped"),
    ("recurrent",
     r"mamba|selective_scan|chunk_scan|chunk_state|ssd_|causal_conv1d|gated_delta"
     r"|fused_recurrent|ssm_|wkv|chunk_gated|chunk_fwd"),
    ("attention",
     r"flash|fmha|atte?n(tion)?(?!orm)|sdpa|\bmha|_mha|\bmla_|_mla_|mla::|splitkv|split_kv"
     r"|batch(decode|prefill)|single(decode|prefill)|pagedkv|logits_soft_?cap|softmax_?bmm"),
    ("norm",
     r"rms_?norm|layer_?norm|group_?norm|batch_?norm|_norm_|norm_kernel|normkernel|rsqrt"
     r"|pow_tensor_scalar|meanops|add_norm|layernorm|\bnorm\b|rms_"),
    ("rotary", r"rotary|rope(?!r)"),
    ("elementwise", r"^triton_poi_"),
    ("linear",
     r"gemm|gemv|nvjet|cublas|cijk_|xmma|splitk|split_k|matmul|mul_mat|_mm_|_mm\b|mm_kernel"
     r"|marlin|machete|awq|gptq|exllama|tensorop|wmma|wvsplitk|rocblas|hipblas|dot_kernel"
     r"|cutlass.*kernel2|scaled_mm|triton_tem_|linear_kernel|_linear|bitblas|dp4a|conv(olution)?_"),
    ("quantise",
     r"quant|float8|fp8|e4m3|e5m2|cast_transpose|mxfp|nvfp4|scale_?(block|rows)|amax"),
    ("embedding", r"indexselect|embedding|index_select|gather_kernel|get_rows"),
    ("sampling",
     r"argmax|arg_?max|topk|top_k|top_p|sort|multinomial|sampling|distribution|penalt|argminmax"),
    ("softmax", r"soft_?max"),
    ("copy",
     r"copy_kernel|direct_copy|catarray|transpose|contiguous|memcpy|cpy_|k_copy|permute|concat"
     r"|^cpy|convert_"),
    ("elementwise",
     r"elementwise|vectorized|unrolled|silu|gelu|swiglu|act_and_mul|activation|triton_(red|per)_"
     r"|\badd_|\bmul_|add_kernel|mul_kernel|reduce_kernel|fill|scatter|gather|index|arange|where"
     r"|masked|cumsum|scan|k_bin_bcast|scale_|triton"),
)  # fmt: skip
_COMPILED = tuple((part, re.compile(pattern, re.IGNORECASE)) for part, pattern in _RULES)

_LIBRARIES = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("RCCL", r"rccl"),
        ("NCCL", r"nccl"),
        ("cuDNN", r"cudnn"),
        ("memory-efficient attention", r"fmha_cutlass|mem_?eff|efficient_attention"),
        ("FlashInfer", r"flashinfer"),
        ("vLLM", r"vllm"),
        ("Composable Kernel", r"ck_tile|\bck::|aiter"),
        ("FlashAttention", r"flash"),
        ("DeepGEMM", r"deep_gemm"),
        ("Tensile", r"cijk_"),
        ("Triton", r"triton"),
        ("CUTLASS", r"cutlass"),
        (
            "cuBLAS",
            r"nvjet|cublas|xmma|gemv2|gemmk1|^(void )?(volta|turing|ampere|maxwell)_",
        ),
        ("TensorRT-LLM", r"tensorrt_llm|trtllm"),
        ("llama.cpp", r"mul_mat_|ggml|k_bin_bcast|dequantize_|flash_attn_ext"),
        ("PyTorch", r"at::|at_cuda|c10::"),
    )
)
_ARCHITECTURES = (
    ("Blackwell", r"sm_?1[0-2]\d|blackwell|tcgen05|umma"),
    ("Hopper", r"sm_?90|cutlass3x|wgmma|hopper|nvjet"),
    ("Ada", r"sm_?89"),
    ("Ampere", r"sm_?8[06]|ampere|16816|cutlass_80|sm80"),
    ("Turing", r"sm_?75|turing|1688|cutlass_75"),
    ("Volta", r"sm_?70|volta|884|cutlass_70"),
    ("ROCm", r"cijk_|gfx\d|ck_tile|\bck::|rccl|__amd"),
)
_WEIGHT_ONLY = re.compile(r"marlin|machete|awq|gptq|exllama|wint|w4a16|w8a16|mixed_gemm", re.I)
_NVJET = re.compile(r"nvjet_(?:sm\d+_)?([a-z]+)_")
_COMPUTE = tuple(
    (compute, re.compile(pattern, re.IGNORECASE))
    for compute, pattern in (
        ("fp4", r"e2m1|fp4|nvf4|mxf4|f4f4|_f4_"),
        ("fp8", r"e4m3|e5m2|fp8|float8|_f8|f8f8|qmma|bf8|_F8"),
        ("int8", r"imma|int8|s8s8|_i8|i8i8|8816|igemm|s8_s8"),
        ("bf16", r"bf16|bfloat16|_BBS|_BB_|BSS_|_B_"),
        ("fp16", r"fp16_s(884|1688|16816)"),
        ("tf32", r"tf32|s1688gemm"),
        ("fp16", r"fp16|f16|half|h884|hgemm|h1688|h16816|_HHS|_HH_|HSS"),
        ("fp32", r"sgemm|f32f32|_SB_|ffma|float"),
    )
)
_NVJET_TYPES = {"q": "fp8", "r": "fp8", "o": "fp4", "t": "bf16", "h": "fp16", "s": "tf32"}
# the type that a part computes in matters where matrices are multiplied
_MULTIPLIES = frozenset({"linear", "attention", "experts"})


class Kernel(NamedTuple):
    """What a kernel's name tells; ``compute`` and ``architecture`` are None when it does not."""

    part: str
    library: str | None
    architecture: str | None
    compute: str | None


@lru_cache(maxsize=65536)
def recognise(name: str) -> Kernel:
    """Read a kernel's name.

    >>> recognise("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT")
    Kernel(part='linear', library='cuBLAS', architecture='Hopper', compute='bf16')
    >>> recognise("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)").part
    'collective'
    """
    part = next((part for part, rule in _COMPILED if rule.search(name)), "other")
    library = next((library for library, rule in _LIBRARIES if rule.search(name)), None)
    architecture = next((a for a, rule in _ARCHITECTURES if re.search(rule, name, re.I)), None)
    return Kernel(part, library, architecture, _compute(name) if part in _MULTIPLIES else None)


def short_name(name: str, width: int = 44) -> str:
    """A kernel's name without its namespaces and arguments, cut to a width.

    >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>"
    ...            "(int, float)")
    'vectorized_elementwise_kernel<4, CUDAFuncto…'
    """
    text = re.sub(r"\(anonymous namespace\)::", "", name)
    text = re.sub(r"^void\s+|\b\w+::", "", text.split("(", 1)[0])
    return text if len(text) <= width else text[: width - 1] + "…"


def _compute(name: str) -> str | None:
    if _WEIGHT_ONLY.search(name):
        return "bf16" if re.search(r"bf16|bfloat16", name, re.IGNORECASE) else "fp16"
    code = _NVJET.search(name)
    if code is not None:
        return _NVJET_TYPES.get(code[1][0])
    return next((compute for compute, rule in _COMPUTE if rule.search(name)), None)
