"""Kernel names as profilers print them, from Turing to Blackwell and ROCm, to parts of a model."""

import pytest

from roofline.trace.events import Shapes
from roofline.trace.kernels import PARTS, recognise, short_name
from roofline.trace.operators import demand

# name, part, library, compute; names from public profiles (PyTorch, vLLM, SGLang, TensorRT-LLM and
# llama.cpp issues and logs) and from the three H200 traces
NAMES = [
    ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_tn", "linear", "cuBLAS", "fp16"),
    ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", "linear", "cuBLAS", "fp16"),
    ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "linear", "cuBLAS", "bf16"),
    ("ampere_sgemm_128x64_tn", "linear", "cuBLAS", "fp32"),
    ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4", "linear", "cuBLAS",
     "bf16"),
    ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x128_warpgroupsize1x1x1", "linear",
     "cuBLAS", "fp8"),
    ("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "linear", "cuBLAS", "bf16"),
    ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT", "linear", "cuBLAS", "fp16"),
    ("nvjet_qqtst_128x128_128x6_2x1_v_bz_TNT", "linear", "cuBLAS", "fp8"),
    ("nvjet_sm100_tst_128x256_64x6_2x1_2cta_v_bz_TNT", "linear", "cuBLAS", "bf16"),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>", "linear",
     "cuBLAS", "bf16"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>",
     "linear", "CUTLASS", "bf16"),
    ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, "
     "int>, cutlass::gemm::collective::CollectiveMma<cutlass::float_e4m3_t>>>", "linear",
     "CUTLASS", "fp8"),
    ("cutlass3x_sm90_tensorop_s64x128x32gemm_e4m3_e4m3_f32_bf16_bf16_128x128x128", "linear",
     "CUTLASS", "fp8"),
    ("void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128>",
     "linear", "cuBLAS", "bf16"),
    ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u>", "linear", "DeepGEMM", "fp8"),
    ("void marlin::Marlin<__nv_bfloat16, 1128098930098176l, 256, 1, 8, 8, false, 4, -1>",
     "linear", None, None),
    ("triton_tem_fused_mm_3", "linear", "Triton", None),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1", "linear", "Tensile",
     "bf16"),
    ("wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16, 8, 2, 1>", "linear", None, None),
    ("mul_mat_vec_q<(ggml_type)12, 1, false>", "linear", "llama.cpp", None),
    ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, "
     "false, cutlass::bfloat16_t>>", "attention", "FlashAttention", "bf16"),
    ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>",
     "attention", "FlashAttention", None),
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<>)",
     "attention", "memory-efficient attention", "bf16"),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_128x128x128_4x1x1",
     "attention", "cuDNN", None),
    ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u>",
     "attention", "FlashInfer", None),
    ("void vllm::paged_attention_v2_kernel<unsigned short, unsigned short, 128, 16>", "attention",
     "vLLM", None),
    ("kernel_unified_attention_2d", "attention", None, None),
    ("fmhaSm100fKernel_QkvE4m3OBfloat16HQk128HV128PagedKvCausalP32VarSeqQ128Kv128Persistent",
     "attention", None, "fp8"),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", "norm",
     "PyTorch", None),
    ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", "norm", "vLLM", None),
    ("triton_red_fused_add_mean_mul_pow_rsqrt_3", "norm", "Triton", None),
    ("triton_poi_fused_mul_silu_5", "elementwise", "Triton", None),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>", "rotary", "vLLM", None),
    ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>", "KV append",
     "vLLM", None),
    ("void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16>", "KV append", "vLLM",
     None),
    ("void flashinfer::AppendPagedKVCacheKernel<128u, 8u>", "KV append", "FlashInfer", None),
    ("fused_moe_kernel", "experts", None, None),
    ("void vllm::moe::topkGatingSoftmax<4, 128, 4, 16>", "experts", "vLLM", None),
    ("void vllm::moe::moe_align_block_size_kernel<int>", "experts", "vLLM", None),
    ("_ZN7ck_tile6kentryI..grouped_gemm", "experts", "Composable Kernel", None),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective",
     "NCCL", None),
    ("ncclKernel_AllReduce_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)",
     "collective", "NCCL", None),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", "collective", "vLLM", None),
    ("void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<>",
     "collective", "TensorRT-LLM", None),
    ("void deep_ep::internode::dispatch<true, 8>", "collective", None, None),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda>",
     "quantise", "PyTorch", None),
    ("void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16>", "quantise", "vLLM",
     None),
    ("_per_token_group_quant_8bit", "quantise", None, None),
    ("void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4>>", "recurrent", None,
     None),
    ("_chunk_scan_fwd_kernel", "recurrent", None, None),
    ("void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add>",
     "elementwise", "PyTorch", None),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>", "elementwise", "vLLM",
     None),
    ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16>", "softmax",
     "PyTorch", None),
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, "
     "at::native::ArgMaxOps<float>>>", "sampling", "PyTorch", None),
    ("void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long>",
     "embedding", "PyTorch", None),
    ("Memcpy DtoD (Device -> Device)", "copy", None, None),
    ("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>", "copy",
     "PyTorch", None),
    ("a kernel that nobody knows", "other", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "part", "library", "compute"), NAMES)
def test_names(name, part, library, compute):
    kernel = recognise(name)
    assert (kernel.part, kernel.library) == (part, library)
    if compute is not None:
        assert kernel.compute == compute


def test_weight_only_kernels_compute_in_16_bit():
    assert recognise("void marlin::Marlin<__nv_bfloat16, fp8, 256>").compute == "bf16"
    assert recognise("machete_mm_fp8_w4a16").compute == "fp16"


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("volta_fp16_s884gemm_fp16", "Volta"),
        ("turing_fp16_s1688gemm_fp16", "Turing"),
        ("ampere_bf16_s16816gemm_bf16", "Ampere"),
        ("sm89_xmma_gemm_e4m3", "Ada"),
        ("nvjet_sm90_tst_64x8", "Hopper"),
        ("nvjet_sm100_tst_64x8", "Blackwell"),
        ("Cijk_Alik_Bljk_BBS", "ROCm"),
    ],
)
def test_architectures(name, architecture):
    assert recognise(name).architecture == architecture


def test_every_part_of_the_traces_is_known(traces):
    from roofline.trace import summarise

    for path in traces.glob("*.json.gz"):
        assert "other" not in summarise(path).only.summary.part_s, path
    assert len(set(PARTS)) == len(PARTS)


def test_short_name():
    full = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::X<2u>, 4>(int)"
    assert short_name(full) == "CatArrayBatchedCopy<X<2u>, 4>"


BF16 = ("c10::BFloat16",) * 3


@pytest.mark.parametrize(
    ("call", "flop", "moved"),
    [
        # 4096³: 137.4 GFLOP, three matrices of 33.5 MB
        (Shapes("aten::mm", ([4096, 4096], [4096, 4096]), BF16, ()), 137_438_953_472, 100_663_296),
        # bias of addmm is not a matrix of the product
        (Shapes("aten::addmm", ([8], [2, 4], [4, 8]), BF16, ()), 128, 112),
        (Shapes("aten::bmm", ([3, 2, 4], [3, 4, 8]), BF16, ()), 384, 336),
        # 8-bit operands, a 16-bit result: 8 + 32 bytes in, 32 out
        (
            Shapes("aten::_scaled_mm", ([2, 4], [4, 8]), ("c10::Float8_e4m3fn",) * 2, ()),
            128,
            8 + 32 + 32,
        ),
        # decode: one query of 32 heads over 240 tokens of 4 KV heads, dim 64
        (
            Shapes(
                "aten::_cudnn_attention_forward",
                ([1, 32, 1, 64], [1, 4, 240, 64], [1, 4, 240, 64]),
                BF16,
                (),
            ),
            2 * 2 * 32 * 64 * 240,
            2 * (2 * 32 * 64 + 2 * 4 * 240 * 64),
        ),
    ],
)
def test_demand_by_hand(call, flop, moved):
    found = demand(call)
    assert (found.flop, found.bytes) == (flop, moved)


@pytest.mark.parametrize(
    "call",
    [
        Shapes("aten::mm", ([2, 3], [4, 5]), BF16, ()),
        Shapes("aten::mm", ([2, 3],), BF16, ()),
        Shapes("aten::mm", ([2, "x"], ["x", 5]), BF16, ()),
        Shapes("aten::mm", ([2, 3], [3, 5]), ("unknown", "unknown"), ()),
        Shapes("aten::unknown", ([2, 3], [3, 5]), BF16, ()),
        # prefill whose mask is not in the trace
        Shapes("aten::scaled_dot_product_attention", ([1, 8, 9, 64],) * 3, BF16, ()),
    ],
)
def test_unknown_shapes_have_no_demand(call):
    assert demand(call) is None
