"""Context: the longest context that a model was made for.

    max_position_embeddings holds the rope factor already, nearly everywhere; where a yarn-like
    factor is given with ``original_max_position_embeddings``, the answer is the larger of the two,
    factor × original or the total, and never factor × total.

Sources  Peng et al. 2023, arXiv:2309.00071 (YaRN).
"""

from collections.abc import Mapping

from roofline.models.fields import Fields

NAMES = ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "n_ctx",
         "seq_length", "max_sequence_length", "context_length")  # fmt: skip


def max_context(fields: Fields) -> int | None:
    """Read the longest context in tokens; None when the config does not state it.

    >>> fields = Fields({"max_position_embeddings": 32768, "rope_scaling": {"rope_type": "yarn",
    ...     "factor": 4.0, "original_max_position_embeddings": 8192}}, "config")
    >>> max_context(fields)
    32768
    """
    stated = fields.optional(*NAMES)
    rope = fields.child("rope_scaling", "rope_parameters")
    if rope is None:
        return stated
    if rope.values and all(isinstance(value, Mapping) for value in rope.values.values()):
        rope = rope.child("full_attention") or rope
    kind = rope.text("rope_type", "type").lower()
    if "yarn" not in kind or not rope.has("factor", "original_max_position_embeddings"):
        return stated
    original = rope.optional("original_max_position_embeddings") or stated
    if original is None:
        return None
    stretched = int(original * rope.number("factor", default=1.0))
    if stated is not None and stretched > stated:
        fields.assume(f"max context {stretched}: {original} positions stretched by YaRN")
    return max(stretched, stated or 0)
