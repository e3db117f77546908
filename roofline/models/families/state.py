"""State: blocks that keep a fixed state instead of a cache of all that was.

Shapes   One layer's state of one sequence:
             mamba           [inner, state]                  and inner × (kernel - 1) inputs
             mamba2          [heads, head_dim, state]        and (inner + 2 groups × state) × …
             delta rules     [value heads, key_dim, value_dim]
             lightning       [heads, head_dim, head_dim]
             short_conv      hidden × (kernel - 1) inputs, no state
Units    ``flop_per_token``: per state value a multiply for the decay, a multiply and an add for the
         new outer product, a multiply and an add for the read-out (5); delta rules read the state
         once more to correct it (7); the first Mamba discretises two factors more (7). Per
         convolved channel 2 × kernel.
Limits   The scan as it runs token by token; chunked prefill kernels do more arithmetic.
Sources  Gu & Dao 2023, arXiv:2312.00752 (Mamba); Dao & Gu 2024, arXiv:2405.21060 (Mamba-2); Yang et
         al. 2024, arXiv:2412.06464 (gated delta); Kimi Team 2025, arXiv:2510.26692 (KDA); De et al.
         2024, arXiv:2402.19427 (RG-LRU); Qin et al. 2024, arXiv:2401.04658 (lightning); facts.py.
"""

from roofline.dtypes import Dtype
from roofline.models.architecture import Linear, Recurrent, Split
from roofline.models.fields import Fields
from roofline.models.parts import Part

UPDATE_FLOP = 5  # decay, outer product and its add, read-out and its add
DELTA_FLOP = 7  # and the read that the delta rule corrects by
SELECTIVE_FLOP = 7  # and the two discretised factors


def state_dtype(fields: Fields) -> Dtype | None:
    """Read the type that the state is kept in; None: fp32."""
    name = fields.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "inference_state_dtype")
    return {"bfloat16": Dtype.BF16, "float16": Dtype.FP16, "float32": Dtype.FP32}.get(name)


def mamba(fields: Fields, hidden: int, *, path: str, norms: bool) -> Part:
    """Build a Mamba block; ``norms``: Jamba's on dt, B and C."""
    inner = fields.optional("mamba_d_inner", "d_inner") or (
        fields.count("mamba_expand", "expand", default=2) * hidden
    )
    state = fields.count("mamba_d_state", "state_size", "d_state", default=16)
    kernel = fields.count("mamba_d_conv", "conv_kernel", "d_conv", default=4)
    rank_name, rank_given = fields.find("mamba_dt_rank", "time_step_rank")
    rank = -(-hidden // 16)
    if rank_name and rank_given != "auto":
        rank = fields.whole(rank_name, rank_given)
    bias = fields.flag("mamba_proj_bias", "use_bias", default=False)
    conv_bias = fields.flag("mamba_conv_bias", "use_conv_bias", default=True)
    linears = (
        Linear(f"{path}.in_proj", hidden, 2 * inner, bias),
        Linear(f"{path}.x_proj", inner, rank + 2 * state, split=Split.ROW),
        Linear(f"{path}.dt_proj", rank, inner, bias=True, quantisable=False),
        Linear(f"{path}.out_proj", inner, hidden, bias, Split.ROW),
    )
    small = inner * state + inner + inner * (kernel + conv_bias)  # A, D, convolution
    small += rank + 2 * state if norms else 0
    flop = SELECTIVE_FLOP * inner * state + 2 * kernel * inner
    recurrent = Recurrent(
        "mamba", inner * state, inner * (kernel - 1), flop, state_dtype(fields), n_heads=inner
    )
    return Part(linears, small, recurrent=recurrent)


def mamba2(
    fields: Fields,
    hidden: int,
    *,
    path: str,
    inner: int,
    n_heads: int,
    norm: bool = True,
    out_bias: str = "",
) -> Part:
    """Build a Mamba-2 block of ``inner`` channels in ``n_heads`` heads."""
    state = fields.count("mamba_d_state", "ssm_state_size", "state_size", default=128)
    groups = fields.count("mamba_n_groups", "n_groups", "mamba_ngroups", default=1)
    kernel = fields.count("mamba_d_conv", "conv_kernel", default=4)
    bias = fields.flag("mamba_proj_bias", "use_bias", "add_bias_linear", default=False)
    after = fields.flag(out_bias, default=False) if out_bias else bias
    conv_bias = fields.flag("mamba_conv_bias", "use_conv_bias", default=True)
    convolved = inner + 2 * groups * state
    linears = (
        Linear(f"{path}.in_proj", hidden, inner + convolved + n_heads, bias),
        Linear(f"{path}.out_proj", inner, hidden, after, Split.ROW),
    )
    small = 3 * n_heads + convolved * (kernel + conv_bias) + (inner if norm else 0)
    values = inner * state
    flop = UPDATE_FLOP * values + 2 * kernel * convolved
    recurrent = Recurrent(
        "mamba2", values, convolved * (kernel - 1), flop, state_dtype(fields), n_heads
    )
    return Part(linears, small, recurrent=recurrent)


def gated_delta(fields: Fields, hidden: int, *, style: str, path: str = "linear_attn") -> Part:
    """Build a gated delta network; ``style``: how the inputs are packed (next, split, olmo)."""
    key_heads = fields.count("linear_num_key_heads", default=16)
    value_heads = fields.count("linear_num_value_heads", default=32)
    key_dim = fields.count("linear_key_head_dim", default=128)
    value_dim = fields.count("linear_value_head_dim", default=128)
    kernel = fields.count("linear_conv_kernel_dim", default=4)
    keys, values = key_heads * key_dim, value_heads * value_dim
    convolved = 2 * keys + values
    if style == "next":
        inputs: tuple[Linear, ...] = (
            Linear(f"{path}.in_proj_qkvz", hidden, convolved + values, fused="in"),
            Linear(f"{path}.in_proj_ba", hidden, 2 * value_heads, fused="in", quantisable=False),
        )
    elif style == "olmo":
        inputs = (
            *(
                Linear(f"{path}.{name}_proj", hidden, width, fused="in")
                for name, width in (("q", keys), ("k", keys), ("v", values), ("g", values))
            ),
            Linear(f"{path}.a_proj", hidden, value_heads, fused="in", quantisable=False),
            Linear(f"{path}.b_proj", hidden, value_heads, fused="in", quantisable=False),
        )
    else:
        inputs = (
            Linear(f"{path}.in_proj_qkv", hidden, convolved, fused="in"),
            Linear(f"{path}.in_proj_z", hidden, values, fused="in"),
            Linear(f"{path}.in_proj_b", hidden, value_heads, fused="in", quantisable=False),
            Linear(f"{path}.in_proj_a", hidden, value_heads, fused="in", quantisable=False),
        )
    name = f"{path}.o_proj" if style == "olmo" else f"{path}.out_proj"
    out = Linear(name, values, hidden, split=Split.ROW)
    state = value_heads * key_dim * value_dim
    flop = DELTA_FLOP * state + 2 * kernel * convolved
    recurrent = Recurrent(
        "gated_delta", state, convolved * (kernel - 1), flop, state_dtype(fields), value_heads
    )
    small = 2 * value_heads + convolved * kernel + value_dim  # dt bias and A, convolution, norm
    return Part((*inputs, out), small, recurrent=recurrent)


def kimi_delta(
    fields: Fields, hidden: int, *, n_heads: int, head_dim: int, kernel: int, full_rank: str = ""
) -> Part:
    """Build Kimi delta attention; ``full_rank``: gates that are one matrix (``g``, ``fg``)."""
    path, width = "self_attn", n_heads * head_dim
    linears = [
        Linear(f"{path}.{name}_proj", hidden, width, fused="qkv") for name in ("q", "k", "v")
    ]
    for gate in ("f", "g"):
        if gate in full_rank:
            linears.append(Linear(f"{path}.{gate}_proj", hidden, width, fused="qkv"))
        else:
            linears += [
                Linear(f"{path}.{gate}_a_proj", hidden, head_dim, split=Split.REPLICATED),
                Linear(f"{path}.{gate}_b_proj", head_dim, width),
            ]
    linears += [
        Linear(f"{path}.b_proj", hidden, n_heads, quantisable=False),
        Linear(f"{path}.o_proj", width, hidden, split=Split.ROW),
    ]
    state = n_heads * head_dim * head_dim
    flop = DELTA_FLOP * state + 2 * kernel * 3 * width
    recurrent = Recurrent(
        "kda", state, 3 * width * (kernel - 1), flop, state_dtype(fields), n_heads
    )
    small = 3 * width * kernel + width + n_heads + head_dim  # convolutions, dt bias, A, norm
    return Part(tuple(linears), small, recurrent=recurrent)


def lightning(fields: Fields, hidden: int, *, n_heads: int, head_dim: int) -> Part:
    """Build lightning attention (MiniMax-01): linear attention with a fixed decay and a gate."""
    width, path = n_heads * head_dim, "self_attn"
    linears = (
        Linear(f"{path}.qkv_proj", hidden, 3 * width, fused="qkv"),
        Linear(f"{path}.output_gate", hidden, width, fused="qkv"),
        Linear(f"{path}.out_proj", width, hidden, split=Split.ROW),
    )
    state = n_heads * head_dim * head_dim
    recurrent = Recurrent("lightning", state, 0, UPDATE_FLOP * state, state_dtype(fields), n_heads)
    return Part(linears, width, recurrent=recurrent)


def short_conv(fields: Fields, hidden: int) -> Part:
    """Build a gated short convolution (LFM2)."""
    kernel = fields.count("conv_L_cache", default=3)
    bias = fields.flag("conv_bias", default=False)
    linears = (
        Linear("conv.in_proj", hidden, 3 * hidden, bias),
        Linear("conv.out_proj", hidden, hidden, bias, Split.ROW),
    )
    flop = 2 * kernel * hidden + 2 * hidden  # convolution, two gates
    recurrent = Recurrent("short_conv", 0, hidden * (kernel - 1), flop, n_heads=hidden)
    return Part(linears, hidden * (kernel + bias), recurrent=recurrent)


def rg_lru(fields: Fields, hidden: int, *, n_heads: int) -> Part:
    """Build a real-gated linear recurrent unit (RecurrentGemma, Griffin)."""
    width = fields.optional("lru_width") or hidden
    kernel = fields.count("conv1d_width", default=4)
    path = "temporal_block"
    block = width // n_heads
    linears = (
        Linear(f"{path}.linear_y", hidden, width, bias=True, fused="xy"),
        Linear(f"{path}.linear_x", hidden, width, bias=True, fused="xy"),
        Linear(f"{path}.linear_out", width, hidden, True, Split.ROW),
    )
    gates = 2 * (n_heads * block * block + width)  # input and recurrence gate, by head
    small = width * (kernel + 1) + width + gates
    flop = 10.0 * width + 2 * kernel * width + 2 * gates
    recurrent = Recurrent("rg_lru", width, width * (kernel - 1), flop, n_heads=n_heads)
    return Part(linears, small, recurrent=recurrent)
