"""Stateful: models without attention: Mamba, RWKV, xLSTM.

Sources  See facts.py and state.py; Peng et al. 2023, arXiv:2305.13048 (RWKV); Beck et al. 2025,
         arXiv:2503.13427 (xLSTM 7B).
"""

from roofline.models.architecture import Linear, Recurrent, Split
from roofline.models.draft import Draft
from roofline.models.families.decoder import (
    HIDDEN,
    LAYERS,
    close,
)
from roofline.models.families.facts import Facts
from roofline.models.families.state import (
    UPDATE_FLOP,
    mamba,
    mamba2,
    state_dtype,
)
from roofline.models.fields import Fields
from roofline.models.parts import Part, feed_forward, join


def read_mamba(fields: Fields) -> Draft:
    """Read Mamba and Falcon-Mamba: nothing but state-space layers."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    block = mamba(fields, hidden, path="mixer", norms=False)
    facts = Facts(tied=True)
    layers = [join(i, block, norms=hidden) for i in range(n_layers)]
    return close(fields, facts, layers, hidden)


def read_mamba2(fields: Fields) -> Draft:
    """Read Mamba-2: nothing but state-space layers."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    inner = int(fields.number("expand", default=2.0) * hidden)
    n_heads = fields.count("num_heads")
    if fields.has("head_dim") and n_heads * fields.count("head_dim") != inner:
        raise fields.error(f"{n_heads} heads of {fields.count('head_dim')} are not {inner} wide")
    block = mamba2(fields, hidden, path="mixer", inner=inner, n_heads=n_heads)
    layers = [join(i, block, norms=hidden) for i in range(n_layers)]
    return close(fields, Facts(), layers, hidden)


def read_rwkv(fields: Fields) -> Draft:
    """Read RWKV-4: time mixing and channel mixing, a state of five vectors a layer."""
    n_layers, hidden = fields.layers(*LAYERS), fields.count(*HIDDEN)
    width = fields.optional("attention_hidden_size") or hidden
    inner = fields.optional("intermediate_size") or 4 * hidden
    time = (
        Linear("attention.key", hidden, width, fused="kvr"),
        Linear("attention.value", hidden, width, fused="kvr"),
        Linear("attention.receptance", hidden, width, fused="kvr"),
        Linear("attention.output", width, hidden, split=Split.ROW),
    )
    channel = (
        Linear("feed_forward.key", hidden, inner),
        Linear("feed_forward.receptance", hidden, hidden),
        Linear("feed_forward.value", inner, hidden, split=Split.ROW),
    )
    recurrent = Recurrent("rwkv", 3 * width + 2 * hidden, 0, 12.0 * width, n_heads=width)
    small = 2 * width + 3 * hidden + 2 * hidden  # decay and bonus, five token shifts
    block = Part((*time, *channel), small, recurrent=recurrent)
    norms = [6 if i == 0 else 4 for i in range(n_layers)]  # with biases; one more at the start
    layers = [join(i, block, norms=norms[i] * hidden) for i in range(n_layers)]
    return close(fields, Facts(norm_values=2), layers, hidden)


def read_xlstm(fields: Fields) -> Draft:
    """Read xLSTM-7B: matrix memories with exponential gates, gated feed-forward."""
    n_layers = fields.layers("num_hidden_layers", "num_blocks")
    hidden, n_heads = fields.count("hidden_size", "embedding_dim"), fields.count("num_heads")
    bias = fields.flag("use_bias", default=False)
    keys = int(hidden * fields.number("qk_dim_factor", default=0.5))
    values = int(hidden * fields.number("v_dim_factor", default=1.0))
    multiple = fields.count("ffn_round_up_to_multiple_of", default=64)
    width = int(hidden * fields.number("ffn_proj_factor", default=2.667))
    width = multiple * -(-width // multiple)
    if fields.text("weight_mode", default="single") not in ("single", "fused"):
        raise fields.error("'weight_mode' is neither single nor fused")
    path = "mlstm_layer"
    linears = (
        Linear(f"{path}.q", hidden, keys, bias, fused="qkv"),
        Linear(f"{path}.k", hidden, keys, bias, fused="qkv"),
        Linear(f"{path}.v", hidden, values, bias, fused="qkv"),
        Linear(f"{path}.ogate_preact", hidden, values, bias, fused="qkv"),
        Linear(f"{path}.igate_preact", hidden, n_heads, True, quantisable=False),
        Linear(f"{path}.fgate_preact", hidden, n_heads, True, quantisable=False),
        Linear(f"{path}.out_proj", values, hidden, bias, Split.ROW),
    )
    state = keys * values // n_heads
    recurrent = Recurrent(
        "mlstm", state + keys + n_heads, 0, UPDATE_FLOP * state, state_dtype(fields), n_heads
    )
    block = Part(linears, values, recurrent=recurrent)
    names = ("proj_up_gate", "proj_up", "proj_down")
    dense = feed_forward(hidden, width, bias=bias, path="ffn", names=names)
    layers = [join(i, block, dense, norms=2 * hidden) for i in range(n_layers)]
    final = fields.flag("add_out_norm", default=True)
    return close(fields, Facts(final_norm=final), layers, hidden)
