"""Activation memory: the peak that a step needs beside weights and cache.

Start-up of a serving engine runs one step at its limits and keeps what that took. Two things set
it: the forward pass of the most tokens, and the sampler over the most sequences; they do not
overlap in time, so the peak is the larger.

Shapes   One token of a layer holds its widest fused output, what follows it, and residuals:
             gate and up [2 × intermediate], their product [intermediate], ``residuals`` × [hidden].
Units    bytes on one rank; counts of tokens and sequences of one step.
Limits   Fragmentation of the allocator is not in it; keep a reserve near the largest temporary.
Sources  [1] Qwen, Speed Benchmark (2024-11): peak memory of transformers runs at 6,144 and 30,720
             prompt tokens; residuals = 4 gives each within 2 %.
         [2] vLLM issue 10517 (2024-11): 2.64 GiB for 29,000 tokens of Llama-3.1-8B; residuals = 1.
         [3] llama.cpp start-up logs (2024): 70.5 MiB for a 7B at a context of 512, 296 MiB at 4,096
             without flash attention; 192 MiB for a 22B at 49,152 with it.
         [4] vLLM pull request 38220 (rejection sampler), 2026.
"""

from roofline.models.architecture import Architecture, LayerGroup, Split
from roofline.units import Numeric

FP32_BYTES = 4
SIXTEEN_BIT_BYTES = 2


def widest_values(group: LayerGroup) -> float:
    """Values that one token holds at a layer's widest point: a fused output and what follows it.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> widest_values(LLAMA_3_8B.layers[0])  # 2 × 14,336 for gate and up, 14,336 for their product
    43008.0
    """
    outputs: dict[str, float] = {}
    for linear in group.linears:
        if linear.split is not Split.ROW:
            key = linear.fused or linear.name
            outputs[key] = outputs.get(key, 0.0) + linear.n_out
    inner = max((linear.n_in for linear in group.linears if linear.split is Split.ROW), default=0)
    dense = max(outputs.values(), default=0.0) + inner
    return max(dense, _expert_values(group))


def _expert_values(group: LayerGroup) -> float:
    """Each token's copies: one per expert that it passes through, outputs kept until summed."""
    if group.experts is None or not group.experts.linears:
        return 0.0
    up = sum(linear.n_out for linear in group.experts.linears if linear.split is not Split.ROW)
    down = [linear for linear in group.experts.linears if linear.split is Split.ROW]
    inner = max((linear.n_in for linear in down), default=0)
    result = max((linear.n_out for linear in down), default=0)
    return group.experts.n_active * (max(up, result) + inner)


def forward_bytes(arch: Architecture, tokens: Numeric, *, residuals: int = 1) -> Numeric:
    """Bytes of the forward pass of ``tokens`` tokens in 16 bit [1, 2].

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> forward_bytes(LLAMA_3_8B, 29_000) / 2**30  # [2] has 2.64 with the allocator's rest
    2.544
    """
    widest = max((widest_values(group) for group in arch.layers), default=0.0)
    return tokens * (widest + residuals * arch.hidden_size) * SIXTEEN_BIT_BYTES


def sampler_bytes(sequences: Numeric, vocab_size: int, logits_bytes: float) -> Numeric:
    """Bytes of a sampler's warm-up: ``logits_bytes`` for each sequence and vocabulary entry."""
    return sequences * vocab_size * logits_bytes


def rejection_sampler_bytes(sequences: Numeric, draft_tokens: int, vocab_size: int) -> Numeric:
    """Bytes of the fp32 logits that a speculative step scores: each draft token and one more [4].

    >>> rejection_sampler_bytes(200, 5, 131_072) / 2**20
    600.0
    """
    return sequences * (draft_tokens + 1) * vocab_size * FP32_BYTES


def prompt_logprobs_bytes(tokens: Numeric, vocab_size: int) -> Numeric:
    """Bytes of asking for the log-probabilities of a prompt: 16-bit logits and their fp32 copy.

    No start-up profile sees it: the tokens of a whole step are scored at once.

    >>> prompt_logprobs_bytes(8192, 152_064) / 2**30
    6.96
    """
    return tokens * vocab_size * (SIXTEEN_BIT_BYTES + FP32_BYTES)


def ggml_buffer_bytes(
    arch: Architecture, tokens: Numeric, context_tokens: Numeric, *, flash_attention: bool = True
) -> Numeric:
    """Bytes of llama.cpp's compute buffer for ``tokens`` tokens of a step, in fp32 [3].

    >>> from roofline.models.architecture import dense_decoder
    >>> llama_2 = dense_decoder("llama-2-7b", n_layers=32, hidden=4096, n_heads=32, n_kv_heads=32,
    ...     head_dim=128, intermediate=11008, vocab=32000, source="arXiv:2307.09288")
    >>> ggml_buffer_bytes(llama_2, 512, 512) / 2**20  # [3]: 70.50 MiB
    70.5
    >>> ggml_buffer_bytes(llama_2, 512, 4096, flash_attention=False) / 2**20  # [3]: 296.00 MiB
    296.0
    """
    logits = tokens * (arch.vocab_size + arch.hidden_size) * FP32_BYTES
    if flash_attention:  # the mask in fp32 and in 16 bit, and four rows of states
        inside = tokens * (context_tokens * 6 + 4 * arch.hidden_size * FP32_BYTES)
    else:  # the scores of every head, and five rows of states
        heads = max((group.query_heads for group in arch.layers), default=0)
        inside = tokens * (context_tokens * heads + 5 * arch.hidden_size) * FP32_BYTES
    return max(logits, inside)
