"""Prediction: multi-token-prediction layers, held only for speculative decoding.

Sources  DeepSeek-AI 2024, arXiv:2412.19437, section 2.2.
"""

from dataclasses import replace

from roofline.models.architecture import LayerGroup, Linear, Split
from roofline.models.fields import MOST_LAYERS, Fields


def check_layers(fields: Fields, name: str, count: int) -> None:
    """Refuse more prediction layers than any model has layers."""
    if count > MOST_LAYERS:
        raise fields.error(f"{name!r} is {count}; more than {MOST_LAYERS} is no model")


def prediction_layers(fields: Fields, layers: list[LayerGroup], hidden: int) -> list[LayerGroup]:
    """Build multi-token-prediction layers: a layer like the last, fed by two normed inputs.

    The projection takes the hidden state and the next token's embedding (V3, section 2.2); the
    embedding and head are shared with the model.
    """
    count = fields.optional("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    fields.find("mtp_transformer_layers")
    if not fields.flag("use_mtp", default=True):
        return []
    if not count:
        return []
    check_layers(fields, "num_nextn_predict_layers", count)
    fields.assume(f"{count} multi-token-prediction layer(s) not counted unless asked for")
    last = layers[-1]
    joint = Linear("eh_proj", 2 * hidden, hidden, split=Split.REPLICATED)
    return [
        replace(
            last,
            linears=(joint, *last.linears),
            small_parameters=last.small_parameters + 3 * hidden,  # two inputs', one output norm
            layers=(len(layers) + i,),
        )
        for i in range(count)
    ]
