"""The measured decoder: the least of a language model that still does all of its work.

Random weights. A decode step looks up the embedding, makes the position angles, and in each layer:
RMSNorm; one matmul for q, k and v; rotary embedding of q and of k (seven elementwise kernels each);
two copies of the new key and value into the cache; q made contiguous; attention with the query
heads of a KV head as query length, over the whole cache; one copy that brings the heads back in
order; output matmul; residual; RMSNorm; one matmul for gate and up; SiLU; product; down matmul;
residual. Then a norm of the last position, lm_head, argmax. Experts: router, softmax, top-k,
argsort, scatter-add, cumulative sum, gather, two grouped matmuls around SiLU and product,
weighting, index-add. fp8: inputs cast per tensor, rows padded to 16, block matrices only.

Shapes   x [batch, tokens, hidden]; keys and values of a layer [batch, kv heads, S, head_dim].
Units    Seconds are measured elsewhere (``model_run``); here is what is run.
Limits   The new token's position is the last of the cache, so a step reads exactly S tokens; a
         measured step overwrites the same position each time.
Sources  [1] Vaswani et al. 2017, arXiv:1706.03762. [2] Su et al. 2021, arXiv:2104.09864 (rotary).
         [3] Shazeer 2020, arXiv:2002.05202 (gated feed-forward).
"""

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from roofline.errors import UnsupportedError, unknown_name
from roofline.measure.decoder_shape import DecoderShape
from roofline.measure.framework import distributed, functional, torch

EPSILON = 1e-5
ROPE_BASE = 10_000.0
SCALE = 0.02
FP8_ROWS = 16
WEIGHT_FORMATS = ("bf16", "fp16", "fp32", "fp8")

Reduce = Callable[[Any], Any]


@dataclass(frozen=True)
class LayerWeights:
    """Matrices of one layer, each [out, in]; experts [n_experts, in, out]."""

    attention_norm: Any
    qkv: Any
    output: Any
    feed_forward_norm: Any
    gate_up: Any
    down: Any
    router: Any = None


@dataclass(frozen=True)
class DecoderWeights:
    """All values of the decoder (of one rank)."""

    embedding: Any
    lm_head: Any
    layers: tuple[LayerWeights, ...]
    inverse_frequency: Any
    fp8_scales: tuple[Any, Any]

    @property
    def bytes(self) -> int:
        """Bytes that the values take."""
        tensors = [self.embedding, self.lm_head]
        for layer in self.layers:
            tensors += [value for value in vars(layer).values() if value is not None]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def random_weights(
    shape: DecoderShape, device: Any, weights: str = "bf16", *, seed: int = 0
) -> DecoderWeights:
    """Draw the decoder's values.

    Raises:
        UnknownNameError: a format that this decoder does not run.
        UnsupportedError: experts in fp8.
    """
    if weights not in WEIGHT_FORMATS:
        raise unknown_name("weight format of the measured decoder", weights, WEIGHT_FORMATS)
    if weights == "fp8" and shape.n_experts:
        raise UnsupportedError("the measured decoder runs experts in bf16, fp16 or fp32, not fp8")
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
    dtype = kinds.get(weights, torch.bfloat16)
    generator = torch.Generator(device=device).manual_seed(seed)

    def draw(*size: int) -> Any:
        values = torch.empty(*size, device=device, dtype=dtype)
        return values.normal_(0.0, SCALE, generator=generator)

    def matrix(n_out: int, n_in: int) -> Any:
        if weights != "fp8":
            return draw(n_out, n_in)
        return draw(n_out, n_in).div_(SCALE).to(torch.float8_e4m3fn)

    def experts(n_in: int, n_out: int) -> Any:
        return draw(shape.n_experts, n_in, n_out)

    def norm() -> Any:
        return torch.ones(shape.hidden, device=device, dtype=dtype)

    queries, keys = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    hidden, wide = shape.hidden, shape.intermediate
    layers = tuple(
        LayerWeights(
            attention_norm=norm(),
            qkv=matrix(queries + 2 * keys, hidden),
            output=matrix(hidden, queries),
            feed_forward_norm=norm(),
            gate_up=experts(hidden, 2 * wide) if shape.n_experts else matrix(2 * wide, hidden),
            down=experts(wide, hidden) if shape.n_experts else matrix(hidden, wide),
            router=draw(shape.n_experts, hidden) if shape.n_experts else None,
        )
        for _ in range(shape.n_layers)
    )
    half = shape.head_dim // 2
    exponent = torch.arange(half, device=device, dtype=torch.float32) / half
    one = torch.ones((), device=device)
    return DecoderWeights(
        embedding=draw(shape.vocab, hidden),
        lm_head=draw(shape.vocab, hidden),
        layers=layers,
        inverse_frequency=ROPE_BASE**-exponent,
        fp8_scales=(one, one * SCALE),
    )


def angles(weights: DecoderWeights, positions: Any, dtype: Any) -> tuple[Any, Any]:
    """Cosine and sine of each position [tokens, head_dim / 2] [2]."""
    turned = positions[:, None].float() * weights.inverse_frequency
    return turned.cos().to(dtype), turned.sin().to(dtype)


def rotate(values: Any, cosine: Any, sine: Any) -> Any:
    """Rotary embedding: seven elementwise kernels [2]."""
    half = values.shape[-1] // 2
    first, second = values[..., :half], values[..., half:]
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def linear(values: Any, weight: Any, scales: tuple[Any, Any]) -> Any:
    """values [.., in] times weight [out, in]; fp8 weights take fp8 inputs, rows padded to 16."""
    if weight.dtype != torch.float8_e4m3fn:
        return functional.linear(values, weight)
    rows = values.reshape(-1, values.shape[-1])
    count = rows.shape[0]
    missing = -count % FP8_ROWS
    if missing:
        rows = functional.pad(rows, (0, 0, 0, missing))
    product = torch._scaled_mm(
        rows.to(torch.float8_e4m3fn), weight.t(), scale_a=scales[0], scale_b=scales[1],
        out_dtype=values.dtype, use_fast_accum=values.device.type == "cuda",
    )  # fmt: skip
    return product[:count].view(*values.shape[:-1], weight.shape[0])


def feed_forward(shape: DecoderShape, layer: LayerWeights, x: Any, scales: tuple[Any, Any]) -> Any:
    """The gated feed-forward [3], dense or of experts."""
    if layer.router is not None:
        return routed_experts(shape, layer, x)
    wide = linear(x, layer.gate_up, scales)
    gate, up = wide.chunk(2, dim=-1)
    return linear(functional.silu(gate) * up, layer.down, scales)


def routed_experts(shape: DecoderShape, layer: LayerWeights, x: Any) -> Any:
    """Each token through its ``n_active`` best experts: sorted, then two grouped matmuls."""
    tokens = x.reshape(-1, x.shape[-1])
    chances = torch.softmax(functional.linear(tokens, layer.router), dim=-1)
    weight, expert = chances.topk(shape.n_active, dim=-1)
    flat = expert.flatten()
    order = flat.argsort()
    count = torch.zeros(shape.n_experts, dtype=torch.int32, device=x.device)
    count = count.scatter_add(0, flat, torch.ones_like(flat, dtype=torch.int32))
    ends = count.cumsum(0, dtype=torch.int32)
    source = order // shape.n_active
    wide = grouped_matmul(tokens[source], layer.gate_up, ends)
    gate, up = wide.chunk(2, dim=-1)
    out = grouped_matmul(functional.silu(gate) * up, layer.down, ends)
    out = out * weight.flatten()[order, None]
    return torch.zeros_like(tokens).index_add(0, source, out).view(x.shape)


def grouped_matmul(rows: Any, matrices: Any, ends: Any) -> Any:
    """Rows sorted by group times the matrix [in, out] of their group; ``ends``: last row + 1."""
    if rows.dtype == torch.bfloat16:
        return torch._grouped_mm(rows, matrices, offs=ends)
    bounds = itertools.pairwise([0, *ends.tolist()])
    parts = [
        rows[begin:end] @ matrix for matrix, (begin, end) in zip(matrices, bounds, strict=True)
    ]
    return torch.cat(parts)


def decode_layer(
    shape: DecoderShape, layer: LayerWeights, scales: tuple[Any, Any], reduce: Reduce,
    x: Any, cosine: Any, sine: Any, keys: Any, values: Any,
) -> Any:  # fmt: skip
    """One layer of a decode step: x [batch, 1, hidden]; the token's is the cache's last place."""
    batch, queries, kept = x.shape[0], shape.n_heads * shape.head_dim, shape.n_kv_heads
    normed = functional.rms_norm(x, (shape.hidden,), layer.attention_norm, EPSILON)
    qkv = linear(normed, layer.qkv, scales)
    query, key, value = qkv.split([queries, kept * shape.head_dim, kept * shape.head_dim], dim=-1)
    query = query.view(batch, 1, shape.n_heads, shape.head_dim).transpose(1, 2)
    key = key.view(batch, 1, kept, shape.head_dim).transpose(1, 2)
    value = value.view(batch, 1, kept, shape.head_dim).transpose(1, 2)
    query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
    keys[:, :, -1:].copy_(key)
    values[:, :, -1:].copy_(value)
    grouped = query.contiguous().view(batch, kept, shape.group, shape.head_dim)
    mixed = functional.scaled_dot_product_attention(grouped, keys, values)
    mixed = mixed.reshape(batch, 1, queries)
    x = x + reduce(linear(mixed, layer.output, scales))
    normed = functional.rms_norm(x, (shape.hidden,), layer.feed_forward_norm, EPSILON)
    return x + reduce(feed_forward(shape, layer, normed, scales))


def prefill_layer(
    shape: DecoderShape, layer: LayerWeights, scales: tuple[Any, Any], reduce: Reduce,
    x: Any, cosine: Any, sine: Any, keys: Any = None, values: Any = None,
) -> Any:  # fmt: skip
    """One layer of a prefill: x [batch, tokens, hidden]; fills a cache when one is given."""
    batch, tokens = x.shape[0], x.shape[1]
    queries, kept = shape.n_heads * shape.head_dim, shape.n_kv_heads
    normed = functional.rms_norm(x, (shape.hidden,), layer.attention_norm, EPSILON)
    qkv = linear(normed, layer.qkv, scales)
    query, key, value = qkv.split([queries, kept * shape.head_dim, kept * shape.head_dim], dim=-1)
    query = query.view(batch, tokens, shape.n_heads, shape.head_dim).transpose(1, 2)
    key = key.view(batch, tokens, kept, shape.head_dim).transpose(1, 2)
    value = value.view(batch, tokens, kept, shape.head_dim).transpose(1, 2)
    query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
    if keys is not None:
        keys[:, :, :tokens].copy_(key)
        values[:, :, :tokens].copy_(value)
    mixed = functional.scaled_dot_product_attention(
        query.contiguous(), key, value, is_causal=True, enable_gqa=shape.group > 1
    )
    mixed = mixed.transpose(1, 2).reshape(batch, tokens, queries)
    x = x + reduce(linear(mixed, layer.output, scales))
    normed = functional.rms_norm(x, (shape.hidden,), layer.feed_forward_norm, EPSILON)
    return x + reduce(feed_forward(shape, layer, normed, scales))


def next_token(shape: DecoderShape, weights: DecoderWeights, x: Any) -> Any:
    """The most likely next token of the last position: norm, lm_head, argmax."""
    last = functional.rms_norm(x[:, -1], (shape.hidden,), None, EPSILON)
    return functional.linear(last, weights.lm_head).argmax(dim=-1)


@dataclass(frozen=True)
class Decoder:
    """A decoder ready to step.

    Args:
        shape: of this rank.
        weights: of this rank.
        group: the process group of tensor parallelism; None: one rank.
        decode, prefill: the functions of one layer (compiled ones may stand in).
    """

    shape: DecoderShape
    weights: DecoderWeights
    group: Any = None
    decode: Callable[..., Any] = decode_layer
    prefill: Callable[..., Any] = prefill_layer

    @property
    def dtype(self) -> Any:
        """Type of activations and cache."""
        return self.weights.embedding.dtype

    def reduce(self, x: Any) -> Any:
        """Sum over the ranks, where there are several."""
        if self.group is not None:
            distributed.all_reduce(x, group=self.group)
        return x

    def caches(self, batch: int, tokens: int, *, pool: Any = None) -> list[tuple[Any, Any]]:
        """Keys and values of every layer, random; from a flat ``pool`` when one is given."""
        shape = (batch, self.shape.n_kv_heads, tokens, self.shape.head_dim)
        count = batch * self.shape.n_kv_heads * tokens * self.shape.head_dim
        if pool is None:
            total = 2 * self.shape.n_layers * count
            pool = torch.empty(total, device=self.weights.embedding.device, dtype=self.dtype)
            pool.normal_()
        ends = range(0, 2 * self.shape.n_layers * count, count)
        parts = [pool[begin : begin + count].view(shape) for begin in ends]
        return list(zip(parts[::2], parts[1::2], strict=True))

    def decode_step(self, ids: Any, caches: list[tuple[Any, Any]]) -> Any:
        """One token of every sequence: ids [batch] to the next ids [batch]."""
        position = caches[0][0].shape[2] - 1
        positions = torch.arange(position, position + 1, device=ids.device)
        cosine, sine = angles(self.weights, positions, self.dtype)
        x = functional.embedding(ids[:, None], self.weights.embedding)
        with attention_backend(ids.device):
            for layer, (keys, values) in zip(self.weights.layers, caches, strict=True):
                x = self.decode(
                    self.shape, layer, self.weights.fp8_scales, self.reduce, x, cosine, sine,
                    keys, values,
                )  # fmt: skip
        return next_token(self.shape, self.weights, x)

    def prefill_step(self, ids: Any, caches: list[tuple[Any, Any]] | None = None) -> Any:
        """All prompts: ids [batch, tokens] to the next ids [batch]; fills caches if given."""
        positions = torch.arange(ids.shape[1], device=ids.device)
        cosine, sine = angles(self.weights, positions, self.dtype)
        x = functional.embedding(ids, self.weights.embedding)
        with attention_backend(ids.device):
            for index, layer in enumerate(self.weights.layers):
                cache = (None, None) if caches is None else caches[index]
                x = self.prefill(
                    self.shape, layer, self.weights.fp8_scales, self.reduce, x, cosine, sine, *cache
                )
        return next_token(self.shape, self.weights, x)


def attention_backend(device: Any) -> AbstractContextManager[Any]:
    """Flash attention on a GPU; what torch takes on a CPU."""
    if device.type != "cuda":
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    context: AbstractContextManager[Any] = sdpa_kernel([SDPBackend.FLASH_ATTENTION])
    return context
