"""Towers: encoders beside the text model, counted apart and only when asked for.

Exact for the encoders of Qwen (2 to 3.6), Gemma (3, 4), Kimi (MoonViT) and Mistral (Pixtral); by
the usual transformer's shape for others, which ``assumptions`` then says.

Limits   Values only; an encoder's compute and activations are not modelled.
Sources  See facts.py.
"""

from roofline.models.architecture import Tower
from roofline.models.fields import Fields

VISION = ("vision_config", "vision_tower_config", "visual", "vit_config", "vision_encoder_config")
AUDIO = ("audio_config", "audio_tower_config", "speech_config", "audio_encoder_config")
LAYERS = ("num_hidden_layers", "depth", "vt_num_hidden_layers", "layers", "num_layers",
          "encoder_layers")  # fmt: skip
WIDTH = ("vt_hidden_size", "embed_dim", "hidden_size", "width", "d_model", "image_dim")
INNER = ("vt_intermediate_size", "intermediate_size", "encoder_ffn_dim", "ffn_dim")


def read_towers(top: Fields, text: Fields) -> tuple[Tower, ...]:
    """Count the values of vision and audio encoders with their projectors."""
    towers = []
    for kind, names in (("vision", VISION), ("audio", AUDIO)):
        config = top.child(*names)
        if config is None or not config.has(*LAYERS) or not config.has(*WIDTH):
            if config is not None and config.values:
                top.assume(f"{kind} tower: its config has no sizes, so it is not counted")
            continue
        out = text.optional("hidden_size", "d_model") or 0
        towers.append(Tower(kind, _count(top, config, kind, out)))
        top.assume(f"{kind} tower not counted unless asked for")
    return tuple(towers)


def _count(top: Fields, config: Fields, kind: str, out: int) -> int:
    model_type = config.text("model_type") or top.text("model_type")
    if kind == "vision":
        if config.has("deepstack_visual_indexes"):
            return _qwen3(config)
        if model_type.startswith(("qwen2_5_vl", "qwen2_5_omni")):
            return _qwen25(config)
        if model_type.startswith("qwen2_vl"):
            return _qwen2(config)
        if model_type.startswith("gemma4"):
            return _gemma4(config, out)
        if model_type.startswith("siglip") and top.text("model_type") == "gemma3":
            return _siglip(config) + config.count("hidden_size") * (out + 1)
        if model_type.startswith("pixtral"):
            return _pixtral(top, config, out)
        if config.has("init_pos_emb_height", "pos_emb_height") and not config.has(
            "qkv_hidden_size"
        ):
            return _moonvit(config, out)
    top.assume(f"{kind} tower counted by the usual transformer's shape: approximate")
    return _usual(config, out)


def _block(width: int, inner: int, *, gated: bool = False, bias: bool = True, norm: int = 2) -> int:
    """Values of one encoder layer: attention, feed-forward, two norms."""
    matrices = 4 * width * width + (3 if gated else 2) * width * inner
    biases = (4 * width + (2 if gated else 1) * inner + width) if bias else 0
    return matrices + biases + 2 * norm * width


def _merger(width: int, merged: int, out: int, norm: int) -> int:
    """Values of a projector: norm, a square of the merged patches, a matrix to the text model."""
    return 2 * norm + merged * merged + merged + merged * out + out


def _qwen3(config: Fields) -> int:
    width, inner = config.count("hidden_size"), config.count("intermediate_size")
    out = config.count("out_hidden_size")
    merged = width * config.count("spatial_merge_size", default=2) ** 2
    patch = width * _patch(config) + width
    positions = config.count("num_position_embeddings", default=2304) * width
    extra = len(config.items("deepstack_visual_indexes") or ())
    mergers = _merger(width, merged, out, width) + extra * _merger(width, merged, out, merged)
    return patch + positions + config.layers(*LAYERS) * _block(width, inner) + mergers


def _patch(config: Fields) -> int:
    """Values that one channel of the patch embedding reads."""
    channels = config.count("in_channels", "in_chans", "num_channels", default=3, silent=True)
    times = config.count("temporal_patch_size", default=2, silent=True)
    return channels * times * config.count("patch_size", default=14, silent=True) ** 2


def _qwen25(config: Fields) -> int:
    width, inner = config.count("hidden_size"), config.count("intermediate_size")
    out = config.count("out_hidden_size")
    merged = width * config.count("spatial_merge_size", default=2, silent=True) ** 2
    layers = config.layers(*LAYERS) * _block(width, inner, gated=True, norm=1)
    merger = width + merged * merged + merged + merged * out + out
    return width * _patch(config) + layers + merger


def _qwen2(config: Fields) -> int:
    width, out = config.count("embed_dim"), config.count("hidden_size")
    inner = int(width * config.number("mlp_ratio", default=4.0))
    merged = width * config.count("spatial_merge_size", default=2, silent=True) ** 2
    layers = config.layers(*LAYERS) * _block(width, inner)
    return width * _patch(config) + layers + _merger(width, merged, out, width)


def _gemma4(config: Fields, out: int) -> int:
    width, inner = config.count("hidden_size"), config.count("intermediate_size")
    heads = config.count("num_attention_heads") * config.count("head_dim")
    keys = config.count("num_key_value_heads") * config.count("head_dim")
    attention = 2 * width * heads + 2 * width * keys + 2 * config.count("head_dim")
    layer = attention + 3 * width * inner + 4 * width
    patch = 3 * config.count("patch_size") ** 2 * width
    positions = 2 * config.count("position_embedding_size") * width
    return patch + positions + config.layers(*LAYERS) * layer + width * out


def _siglip(config: Fields) -> int:
    width, inner = config.count("hidden_size"), config.count("intermediate_size")
    patch = config.count("patch_size")
    positions = (config.count("image_size") // patch) ** 2 * width
    head = 0
    if config.flag("vision_use_head", default=True):
        head = width + 4 * width * width + 4 * width + 2 * width
        head += 2 * width * inner + inner + width
    embedding = 3 * patch * patch * width + width + positions
    return embedding + config.layers(*LAYERS) * _block(width, inner) + 2 * width + head


def _pixtral(top: Fields, config: Fields, out: int) -> int:
    width, inner = config.count("hidden_size"), config.count("intermediate_size")
    merged = width * top.count("spatial_merge_size", default=2, silent=True) ** 2
    layers = config.layers(*LAYERS) * _block(width, inner, gated=True, bias=False, norm=1)
    bias = 2 * out if top.flag("multimodal_projector_bias", default=False) else 0
    projector = width + merged * width + width * out + out * out + bias
    return 3 * config.count("patch_size") ** 2 * width + width + layers + projector


def _moonvit(config: Fields, out: int) -> int:
    width = config.count("vt_hidden_size", "hidden_size")
    inner = config.count(*INNER)
    rows = config.count("init_pos_emb_height", "pos_emb_height")
    columns = config.count("init_pos_emb_width", "pos_emb_width")
    kernel = config.items("merge_kernel_size") or (2, 2)
    merged = width
    for side in kernel:
        merged *= config.whole("merge_kernel_size", side)
    patch = 3 * config.count("patch_size") ** 2 * width + width + rows * columns * width
    projector = _merger(width, merged, out, width)
    return patch + config.layers(*LAYERS) * _block(width, inner) + 2 * width + projector


def _usual(config: Fields, out: int) -> int:
    """The usual encoder with a projector of two matrices."""
    width = config.count(*WIDTH)
    inner = config.optional(*INNER)
    if inner is None:
        inner = int(width * config.number("mlp_ratio", default=4.0))
    patch = (
        config.optional("patch_size") if isinstance(config.values.get("patch_size"), int) else None
    )
    embedding = 3 * (patch or 0) ** 2 * width
    return embedding + config.layers(*LAYERS) * _block(width, inner) + width * out + out * out
