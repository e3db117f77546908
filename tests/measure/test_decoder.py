# ruff: noqa: E402
"""The measured decoder computes what a plain transformer does, written out here another way.

The reference is the textbook form: one token at a time, separate q, k and v, repeated key and value
heads, softmax by hand, every expert visited in a loop; float64 of the same weights.
"""

import pytest

torch = pytest.importorskip("torch")

from roofline.errors import InputError, UnknownNameError, UnsupportedError
from roofline.measure.decoder import EPSILON, ROPE_BASE, Decoder, random_weights
from roofline.measure.decoder_shape import DecoderShape, decoder_shape
from roofline.models.config import load_model

DENSE = DecoderShape("dense", 3, 64, 101, 8, 2, 16, 96)
EXPERTS = DecoderShape("experts", 2, 64, 101, 4, 4, 16, 32, n_experts=6, n_active=2)


def norm(x, weight=None):
    scaled = x / (x.pow(2).mean(-1, keepdim=True) + EPSILON).sqrt()
    return scaled if weight is None else scaled * weight.double()


def turn(x, positions):
    """Rotary embedding by complex numbers: x [tokens, heads, d]."""
    half = x.shape[-1] // 2
    frequency = ROPE_BASE ** -(torch.arange(half, dtype=torch.float64) / half)
    angle = positions[:, None].double() * frequency
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(
        torch.ones_like(angle), angle
    ).unsqueeze(1)
    return torch.cat((turned.real, turned.imag), dim=-1)


def plain_forward(shape, weights, ids):
    """Logits of the last position of one sequence, all tokens at once, float64."""
    x = weights.embedding[ids].double()
    tokens, positions = len(ids), torch.arange(len(ids))
    heads, kept, dim = shape.n_heads, shape.n_kv_heads, shape.head_dim
    for layer in weights.layers:
        h = norm(x, layer.attention_norm)
        q, k, v = (h @ layer.qkv.double().T).split([heads * dim, kept * dim, kept * dim], dim=-1)
        q = turn(q.view(tokens, heads, dim), positions)
        k = turn(k.view(tokens, kept, dim), positions)
        v = v.view(tokens, kept, dim)
        out = torch.empty(tokens, heads, dim, dtype=torch.float64)
        for head in range(heads):
            own = head // (heads // kept)
            for t in range(tokens):
                score = torch.softmax(k[: t + 1, own] @ q[t, head] / dim**0.5, dim=0)
                out[t, head] = score @ v[: t + 1, own]
        x = x + out.reshape(tokens, -1) @ layer.output.double().T
        h = norm(x, layer.feed_forward_norm)
        x = x + plain_feed_forward(shape, layer, h)
    return norm(x[-1]) @ weights.lm_head.double().T


def plain_feed_forward(shape, layer, h):
    def gated(rows, gate, up, down):
        g = rows @ gate
        return (g * torch.sigmoid(g) * (rows @ up)) @ down

    wide = shape.intermediate
    if layer.router is None:
        up = layer.gate_up.double()
        return gated(h, up[:wide].T, up[wide:].T, layer.down.double().T)
    chance = torch.softmax(h @ layer.router.double().T, dim=-1)
    out = torch.zeros_like(h)
    for t in range(len(h)):
        for expert in chance[t].argsort(descending=True)[: shape.n_active]:
            up = layer.gate_up[expert].double()
            one = gated(h[t], up[:, :wide], up[:, wide:], layer.down[expert].double())
            out[t] += chance[t, expert] * one
    return out


@pytest.mark.parametrize("shape", [DENSE, EXPERTS], ids=lambda shape: shape.name)
def test_prefill_and_decode_give_the_token_of_a_plain_transformer(shape):
    weights = random_weights(shape, torch.device("cpu"), "fp32", seed=3)
    decoder = Decoder(shape, weights)
    ids = torch.randint(0, shape.vocab, (3, 9), generator=torch.Generator().manual_seed(1))
    expected = torch.stack([plain_forward(shape, weights, row) for row in ids]).argmax(-1)
    with torch.inference_mode():
        assert torch.equal(decoder.prefill_step(ids), expected)
        caches = decoder.caches(3, 9)
        decoder.prefill_step(ids[:, :8], caches)
        assert torch.equal(decoder.decode_step(ids[:, 8], caches), expected)


def test_decode_layer_values_match_and_not_only_the_argmax():
    """One layer's output against the plain form, 1e-5 of its size: fp32 rounding."""
    from roofline.measure.decoder import angles

    shape = DecoderShape("one", 1, 64, 101, 8, 2, 16, 96)
    weights = random_weights(shape, torch.device("cpu"), "fp32", seed=5)
    decoder = Decoder(shape, weights)
    ids = torch.randint(0, shape.vocab, (1, 7), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        cosine, sine = angles(weights, torch.arange(7), torch.float32)
        x = weights.embedding[ids]
        layer = weights.layers[0]
        x = decoder.prefill(shape, layer, weights.fp8_scales, decoder.reduce, x, cosine, sine)
        logits = norm(x[0, -1].double()) @ weights.lm_head.double().T
    expected = plain_forward(shape, weights, ids[0])
    assert float((logits - expected).norm() / expected.norm()) < 1e-5


@pytest.mark.parametrize("weights", ["bf16", "fp8"])
def test_low_precision_stays_near_fp32(weights):
    """bf16 keeps 8 bits and fp8 4: logits of a 3-layer model differ by a few percent at most."""
    shape = DENSE
    drawn = random_weights(shape, torch.device("cpu"), weights, seed=4)
    ids = torch.randint(0, shape.vocab, (2, 5), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        token = Decoder(shape, drawn).prefill_step(ids)
    assert token.shape == (2,)
    assert int(token.max()) < shape.vocab


def test_parameters_as_the_reference_decoder_counts_them():
    """The description of the H200 reference rows: the Qwen2.5-0.5B shape has 630,138,880, untied,
    without biases; TinyLlama 1,100,046,336, Llama-3.1-8B 8,030,257,152, Mixtral 46,702,788,608."""
    published = {
        "qwen2.5-0.5b": 630_138_880,
        "tinyllama-1.1b": 1_100_046_336,
        "llama-3.1-8b": 8_030_257_152,
        "mixtral-8x7b": 46_702_788_608,
    }
    for name, parameters in published.items():
        assert decoder_shape(load_model(name)).parameters == parameters


def test_what_is_left_out_is_named():
    shape = decoder_shape(load_model("qwen2.5-0.5b"))
    assert "biases" in shape.left_out
    assert any("tie" in text for text in shape.left_out)
    assert decoder_shape(load_model("llama-3.1-8b")).left_out == ()


def test_weights_held_are_the_parameters_counted():
    weights = random_weights(DENSE, torch.device("cpu"), "fp32")
    assert weights.bytes == 4 * DENSE.parameters
    weights = random_weights(EXPERTS, torch.device("cpu"), "bf16")
    assert weights.bytes == 2 * EXPERTS.parameters


def test_what_it_cannot_run_is_refused():
    with pytest.raises(UnsupportedError, match="grouped-query attention only"):
        decoder_shape(load_model("deepseek-v3"))


def test_windows_are_named():
    assert any("windows" in text for text in decoder_shape(load_model("gpt-oss-20b")).left_out)


def test_ranks_must_divide():
    with pytest.raises(InputError, match="3 ranks do not divide 8 heads"):
        DENSE.sharded(3)
    with pytest.raises(InputError, match="at least one rank"):
        DENSE.sharded(0)
    assert DENSE.sharded(1) == DENSE


def test_formats_it_does_not_run():
    with pytest.raises(UnknownNameError, match="bf16"):
        random_weights(DENSE, torch.device("cpu"), "bf61")
    with pytest.raises(UnsupportedError, match="experts"):
        random_weights(EXPERTS, torch.device("cpu"), "fp8")
