"""Why a memory row misses by more than 5 %, or judges nothing: each reason is about that row's log.

A row that misses and is not here is a finding.
"""

FITTED: dict[tuple[str, str], str] = {
    ("c0003", "weights"): "the rotary table was read from it",
    ("c0003", "KV cache"): "what is not torch's, and that 0.6.4 counts it twice, was read from it",
    ("c0005", "weights"): "the padding for Marlin kernels was read from it",
    ("c0006", "weights"): "the padding for Triton kernels was read from it",
    ("s0001", "KV cache"): "bytes per logit to 0.16 were read from it",
    ("s0003", "KV cache"): "what is not torch's at TP2 was read from it",
    ("s0004", "KV cache"): "bytes per logit to 0.16 were read from it",
    ("s0005", "KV cache"): "bytes per logit to 0.16 were read from it",
}
"""Rows that a constant was read from: shown, and left out of every error."""

BRANCH = "a pull request's branch is no release, no version's rule is its own"

LARGER_ERRORS: dict[tuple[str, str], str] = {
    (
        "c0004",
        "KV cache",
    ): "0.1 GiB of 79: the pool is 2 % of the card; which H100 is not stated",
    ("c0014", "KV cache"): "that branch counted what the loader's allocator kept as in use, 13 GiB",
    (
        "c0044",
        "KV cache",
    ): "unified memory: the 70 GiB file's pages and the host count as used",
    ("c0051", "weights"): "0.06 GiB: a difference of free memory, in blocks of the allocator",
    ("c0112", "peak"): "at one prompt token the load is the peak: a copy of the token table",
    ("c0126", "peak"): "at one prompt token the load is the peak: a copy of the token table",
    ("c0160", "peak"): "the FP8 checkpoint of a tied model stores lm_head beside the table",
    ("c0171", "peak"): "the FP8 checkpoint of a tied model stores lm_head beside the table",
    ("c0179", "peak"): "the AWQ checkpoint of a tied model stores lm_head beside the table",
    ("s0008", "KV cache"): "2.12 GiB of activation logged, 4.0 expected: the one multimodal model",
}
"""Reasons of the rows that miss by more than 5 %."""
