"""Attention alone by phase, batch, context, KV heads and backend.

Decode runs as the measured decoder runs it: the query heads of one KV head form the query's length,
so that grouped keys and values are read once. Prefill is causal over the whole prompt.

Shapes   decode: q [batch, kv heads, group, d], k and v [batch, kv heads, context, d].
Units    Seconds; decode is judged by bytes of keys and values, prefill by causal FLOP.
Limits   bf16 (fp32 where a CPU runs it); no mask, no window.
Sources  [1] Dao 2023, FlashAttention-2, arXiv:2307.08691. [2] PyTorch, sdpa_kernel.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from roofline.hardware.measured_rows import AttentionRow
from roofline.measure.bench import above_hardware, operand_sets, time_kernel
from roofline.measure.case import Case, Level
from roofline.measure.device import Target
from roofline.measure.framework import functional, torch
from roofline.units import GIB

_LARGEST_KV_BYTES = 18 * GIB


@dataclass(frozen=True)
class Heads:
    """Query heads, KV heads and their width."""

    n_heads: int
    n_kv_heads: int
    head_dim: int


LLAMA, MULTI_HEAD = Heads(32, 8, 128), Heads(32, 32, 128)
OTHERS = (Heads(32, 4, 64), Heads(14, 2, 64), Heads(28, 4, 128), Heads(40, 8, 128))
"""TinyLlama, Qwen2.5 of 0.5B, 7B and 14B or 32B."""


def attention_cases(target: Target, level: Level) -> list[Case]:
    """Decode tables by KV heads and backend, prefill by length."""
    on_gpu = target.torch_device.type == "cuda"
    if not on_gpu:
        heads, on_cpu = Heads(8, 2, 64), ("math", "flash")
        prompts: dict[Level, tuple[int, ...]] = {
            Level.QUICK: (256,),
            Level.STANDARD: (256, 1024),
            Level.FULL: (256, 1024, 2048),
        }
        grids: dict[Level, tuple[tuple[int, ...], tuple[int, ...]]] = {
            Level.QUICK: ((1, 8), (512,)),
            Level.STANDARD: ((1, 8), (256, 1024)),
            Level.FULL: ((1, 4, 16), (256, 1024, 4096)),
        }
        return [
            *(_prefill_case(target, name, heads, prompts[level]) for name in on_cpu),
            *(_decode_case(target, name, heads, *grids[level]) for name in on_cpu),
        ]
    backends: tuple[str, ...] = ("flash", "cudnn", "efficient")
    if level is Level.QUICK:
        return [
            _prefill_case(target, "flash", MULTI_HEAD, (4096,)),
            _decode_case(target, "flash", LLAMA, (1, 32), (2048,)),
            _decode_case(target, "cudnn", MULTI_HEAD, (128,), (2048,)),
        ]
    lengths: tuple[int, ...] = (512, 1024, 2048, 4096, 8192, 16384, 32768)
    batches = (1, 8, 32, 128)
    contexts: tuple[int, ...] = (512, 2048, 8192, 32768)
    if level is Level.STANDARD:
        lengths, contexts, backends = (1024, 4096, 16384), (512, 8192), ("flash", "cudnn")
    cases = [_prefill_case(target, name, MULTI_HEAD, lengths) for name in backends]
    for name in backends:
        cases += [_decode_case(target, name, h, batches, contexts) for h in (LLAMA, MULTI_HEAD)]
    if level is Level.FULL:
        between = (2, 4, 16, 64, 256)
        cases.append(_decode_case(target, "flash", LLAMA, between, (256, *contexts)))
        cases.append(_decode_case(target, "flash", LLAMA, batches, (256,)))
        few = (1, 8, 64, 256)
        cases += [_decode_case(target, "flash", h, few, (256, *contexts)) for h in OTHERS]
    return cases


def _decode_case(
    target: Target, backend: str, heads: Heads, batches: tuple[int, ...], contexts: tuple[int, ...]
) -> Case:
    label = f"{backend} decode {heads.n_heads}/{heads.n_kv_heads}x{heads.head_dim} "
    label += f"batch {batches[0]}-{batches[-1]} context {contexts[0]}-{contexts[-1]}"
    cost_s = 0.2 * len(batches) * len(contexts)
    run = partial(_decode, target, backend, heads, batches, contexts)
    return Case("attention", label, cost_s, run)


def _prefill_case(target: Target, backend: str, heads: Heads, lengths: tuple[int, ...]) -> Case:
    run = partial(_prefill, target, backend, heads, lengths)
    return Case("attention", f"{backend} prefill", 0.3 * len(lengths), run)


def backend_context(backend: str) -> Any:
    """Let attention run on this backend only."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kinds = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "math": SDPBackend.MATH,
    }
    return sdpa_kernel([kinds[backend]])


def _values(target: Target) -> tuple[Any, str]:
    if target.torch_device.type == "cuda":
        return torch.bfloat16, "bf16"
    return torch.float32, "fp32"


def _decode(
    target: Target, backend: str, heads: Heads, batches: tuple[int, ...], contexts: tuple[int, ...]
) -> Iterator[AttentionRow]:
    device = target.torch_device
    dtype, compute = _values(target)
    group = heads.n_heads // heads.n_kv_heads
    most = min(_LARGEST_KV_BYTES, 0.5 * target.free_bytes())
    sizes = {
        (batch, tokens): batch * heads.n_kv_heads * tokens * heads.head_dim
        for tokens in contexts
        for batch in batches
    }
    one = torch.empty((), dtype=dtype).element_size()
    kept = {key: values for key, values in sizes.items() if 2 * values * one <= most}
    room = max([*kept.values(), int(4 * target.cache_bytes / one)])
    keys = torch.empty(room, dtype=dtype, device=device).normal_()
    values = torch.empty(room, dtype=dtype, device=device).normal_()
    for (batch, tokens), count in kept.items():
        shape = (batch, heads.n_kv_heads, tokens, heads.head_dim)
        query = torch.randn(
            batch, heads.n_kv_heads, group, heads.head_dim, dtype=dtype, device=device
        )
        sets = min(operand_sets(2 * count * one, target.cache_bytes), room // count)
        pairs = [
            (keys[i * count : (i + 1) * count].view(shape),
             values[i * count : (i + 1) * count].view(shape))
            for i in range(sets)
        ]  # fmt: skip
        calls = [
            partial(functional.scaled_dot_product_attention, query, key, value)
            for key, value in pairs
        ]
        with backend_context(backend):
            timing = time_kernel(device, calls)
        row = AttentionRow(
            phase="decode", backend=backend, batch=batch, context_tokens=tokens,
            n_heads=heads.n_heads, n_kv_heads=heads.n_kv_heads, head_dim=heads.head_dim,
            compute=compute, **timing.row(),
        )  # fmt: skip
        flag = above_hardware(row.bytes_per_s, target.peak_bytes_per_s(), "memory")
        yield row.model_copy(update={"flags": (*row.flags, flag)}) if flag else row


def _prefill(
    target: Target, backend: str, heads: Heads, lengths: tuple[int, ...]
) -> Iterator[AttentionRow]:
    device = target.torch_device
    dtype, compute = _values(target)
    for tokens in lengths:
        shape = (1, heads.n_heads, tokens, heads.head_dim)
        query, key, value = (torch.randn(shape, dtype=dtype, device=device) for _ in range(3))
        if heads.n_kv_heads != heads.n_heads:
            key, value = key[:, : heads.n_kv_heads], value[:, : heads.n_kv_heads]
        call = partial(
            functional.scaled_dot_product_attention, query, key, value, is_causal=True,
            enable_gqa=heads.n_kv_heads != heads.n_heads,
        )  # fmt: skip
        with backend_context(backend):
            timing = time_kernel(device, [call], settle_s=0.1 if device.type == "cuda" else 0.0)
        row = AttentionRow(
            phase="prefill", backend=backend, batch=1, context_tokens=tokens,
            n_heads=heads.n_heads, n_kv_heads=heads.n_kv_heads, head_dim=heads.head_dim,
            compute=compute, **timing.row(),
        )  # fmt: skip
        flag = above_hardware(row.flop_per_s, target.peak_flop_per_s(compute), compute)
        yield row.model_copy(update={"flags": (*row.flags, flag)}) if flag else row
