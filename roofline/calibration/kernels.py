"""Small kernels: what engines run between the matmuls of a layer, kernel by kernel.

Each line is one kind of kernel with the 16-bit values that it moves per token, in widths of the
hidden state, the queries, the keys and the feed-forward. Fused engines run few, PyTorch's eager
mode many; the counts are those of the engines' own traces.

Sources  [1] The decoder that ``roofline measure model`` runs as one graph (roofline/measure): its
             operators, counted.
         [2] torch profiler traces of transformers 5.17 (eager), TinyLlama and Llama-3.1-8B, one
             H200, November 2026: 924 and 1,462 kernels a step.
         [3] vLLM 0.11, csrc: fused_add_rms_norm, rotary_embedding, reshape_and_cache,
             silu_and_mul; one kernel each. SGLang and TensorRT-LLM fuse alike.
"""

from roofline.timing.terms import SmallKernel

DECODER = (
    SmallKernel("norm before attention", "mixer", 1, hidden=2),
    SmallKernel("rotary of queries", "attention", 7, query=14),
    SmallKernel("rotary of keys", "attention", 7, key=14),
    SmallKernel("write keys and values", "attention", 2, key=4),
    SmallKernel("queries made contiguous", "attention", 1, query=2, not_for_one=True),
    SmallKernel("outputs transposed", "attention", 1, query=2, not_for_one=True),
    SmallKernel("residual after attention", "mixer", 1, hidden=3),
    SmallKernel("norm before feed-forward", "layer", 1, hidden=2),
    SmallKernel("activation", "dense", 1, inner=2),
    SmallKernel("gate times up", "dense", 1, inner=3),
    SmallKernel("routing: softmax, top-k, sort, counts", "experts", 13, hidden=0.1),
    SmallKernel("tokens to experts and back", "experts", 6, hidden=3, picked_hidden=7),
    SmallKernel("activation of experts", "experts", 2, picked=5),
    SmallKernel("residual after feed-forward", "layer", 1, hidden=3),
)
"""The minimal decoder of [1]: 24 a dense layer."""

DECODER_FP8_CASTS = (
    SmallKernel("inputs cast to 8 bit", "layer", 4, hidden=4.5, inner=1.5),
    SmallKernel("rows padded to 16", "layer", 8, hidden=6, inner=2, below_rows=16),
)
"""What per-tensor 8-bit inputs add to each layer of the decoder: a cast before each of the four
matmuls, and below 16 rows a fill and a copy."""

FUSED = (
    SmallKernel("norm with residual", "mixer", 1, hidden=4),
    SmallKernel("rotary", "attention", 1, query=2, key=2),
    SmallKernel("write keys and values", "attention", 1, key=4),
    SmallKernel("norm with residual", "layer", 1, hidden=4),
    SmallKernel("activation times up", "dense", 1, inner=3),
    SmallKernel("routing", "experts", 3, hidden=0.1),
    SmallKernel("tokens sorted and combined", "experts", 2, hidden=6),
    SmallKernel("activation of experts", "experts", 1, picked=3),
)
"""Serving engines with fused kernels [3]: 5 a dense layer."""

EAGER = (
    SmallKernel("norm before attention", "mixer", 6, hidden=14),
    SmallKernel("rotary of queries and keys", "attention", 10, query=10, key=10),
    SmallKernel("cache append", "attention", 2, key=4),
    SmallKernel("copies around attention", "attention", 3, query=4, key=4),
    SmallKernel("residual after attention", "mixer", 1, hidden=3),
    SmallKernel("norm before feed-forward", "layer", 6, hidden=14),
    SmallKernel("activation", "dense", 2, inner=5),
    SmallKernel("routing and dispatch", "experts", 14, hidden=8),
    SmallKernel("activation of experts", "experts", 2, picked=5),
    SmallKernel("residual after feed-forward", "layer", 1, hidden=3),
)
"""transformers in eager mode [2]: 31 a dense layer beside 7 matmuls and attention."""

COMPILED = (
    SmallKernel("norm", "mixer", 1, hidden=4),
    SmallKernel("rotary and cache append", "attention", 2, query=2, key=6),
    SmallKernel("norm", "layer", 1, hidden=4),
    SmallKernel("activation times up", "dense", 1, inner=3),
    SmallKernel("routing", "experts", 5, hidden=4),
    SmallKernel("activation of experts", "experts", 1, picked=3),
)
"""torch.compile with generated kernels, as gpt-fast runs."""

KERNEL_SETS: dict[str, tuple[SmallKernel, ...]] = {
    "none": (),
    "decoder": DECODER,
    "decoder fp8": DECODER + DECODER_FP8_CASTS,
    "fused": FUSED,
    "eager": EAGER,
    "compiled": COMPILED,
}
"""Sets by the name that calibration files use."""
