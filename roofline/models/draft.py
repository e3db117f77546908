"""Draft: what a family's reader found, before formats and names are put on it.

Limits   ``layers`` holds one group per layer; ``finish`` merges those that are alike.
"""

from dataclasses import dataclass, field

from roofline.models.architecture import Architecture, LayerGroup, Linear, Split, Tower
from roofline.models.fields import Fields
from roofline.models.parts import merge


@dataclass(frozen=True)
class Draft:
    """A text model as read.

    Args:
        layers: one group for each layer, in order.
        hidden, vocab: width between layers, entries of the vocabulary.
        tied: the output projection is the input embedding.
        small: values outside layers and embeddings.
        embedding: values of the input embeddings; None: vocab × hidden.
        head: the output projection; None: vocab × hidden without bias.
        prediction: multi-token-prediction layers, one group for each.
        prefix: what checkpoints write before ``layers.0.…``.
        towers: parts beside the text model.
        window_keys: further assumption lines come from ``fields``.
    """

    layers: list[LayerGroup]
    hidden: int
    vocab: int
    tied: bool
    small: int
    embedding: int | None = None
    head: Linear | None = None
    prediction: list[LayerGroup] = field(default_factory=list)
    towers: tuple[Tower, ...] = ()


def output_head(hidden: int, vocab: int, *, bias: bool = False, name: str = "lm_head") -> Linear:
    """Build the output projection."""
    return Linear(name, hidden, vocab, bias, Split.COLUMN, quantisable=False)


def finish(
    draft: Draft, fields: Fields, *, name: str, source: str, model_type: str
) -> Architecture:
    """Make the architecture of a draft; formats and context are put on it by the caller."""
    head = draft.head or output_head(draft.hidden, draft.vocab)
    embedding = draft.vocab * draft.hidden if draft.embedding is None else draft.embedding
    return Architecture(
        name=name,
        layers=merge(draft.layers),
        source=source,
        model_type=model_type,
        hidden_size=draft.hidden,
        vocab_size=draft.vocab,
        embedding_parameters=embedding,
        lm_head=head,
        tied=draft.tied,
        small_parameters=draft.small,
        prediction_layers=merge(draft.prediction),
        towers=draft.towers,
        assumptions=tuple(fields.notes),
    )
