"""Context: the longest context that a model was made for.

    max_position_embeddings is the answer where it already holds the rope factor, which is nearly
    everywhere; a yarn-like factor multiplies ``original_max_position_embeddings``, never the total.

Sources  Peng et al. 2023, arXiv:2309.00071 (YaRN).
"""

from roofline.models.fields import Fields

NAMES = ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "n_ctx",
         "seq_length", "max_sequence_length", "context_length")  # fmt: skip


def max_context(fields: Fields) -> int | None:
    """Read the longest context in tokens; None when the config does not state it."""
    return fields.optional(*NAMES)
