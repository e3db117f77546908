"""Training records: what a few training steps of a small transformer really took.

A record is one run on one device; each row is one model in one mode, with the shape of the model in
it, so that a row can be predicted from the row alone.

Shapes   ``measurements/training/<spec id>/<name>.json``: a device, an environment, rows.
Units    Bytes and seconds. ``peak_allocated_bytes`` is the allocator's highest sum of live blocks
         in the timed steps; ``reserved_bytes`` is what the allocator took from the driver.
Limits   Llama-like decoders (gated feed-forward, RMS norms) on one device.
Sources  The record itself: device, versions, command and date stand in it.
"""

import json
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AwareDatetime, Field

from roofline.files import read_text, write_text
from roofline.hardware.measured_rows import Count, Frozen, Positive, Row, Word, parse_record
from roofline.hardware.measurement import Device, Environment
from roofline.units import MIB

Mode = Literal["amp", "bf16", "lora"]
"""What is trained and in which types.

``amp``: fp32 parameters under autocast to bf16; ``bf16``: parameters, gradients and Adam's moments
all bf16; ``lora``: a frozen bf16 model with fp32 adapters on every linear layer of the blocks.
"""
_LARGEST_FILE = 4 * MIB


class ModelShape(Frozen):
    """The dimensions of a Llama-like decoder.

    >>> LLAMA_1B = ModelShape(name="llama-1b", n_layers=16, hidden=2048, n_heads=32, n_kv_heads=8,
    ...     head_dim=64, intermediate=8192, vocab=128256, tied=True)
    >>> LLAMA_1B.qkv_bias
    False
    """

    name: Word
    n_layers: Count
    hidden: Count
    n_heads: Count
    n_kv_heads: Count
    head_dim: Count
    intermediate: Count
    vocab: Count
    tied: bool
    qkv_bias: bool = False


class TrainingRow(Row):
    """A step of one model in one mode; ``median_s`` is the whole step, optimiser included.

    Args:
        model: its shape.
        mode: what is trained and in which types.
        recompute: whether each layer's activations are made again in the backward pass.
        micro_batch: sequences in the step.
        sequence_tokens: tokens of each.
        lora_rank: rank of the adapters; None where there are none.
        parameters: all values, adapters included.
        trainable: values that get a gradient.
        peak_allocated_bytes: highest allocation of the timed steps.
        reserved_bytes: what the allocator held of the device.
    """

    SECTION: ClassVar[str] = "training"

    model: ModelShape
    mode: Mode
    recompute: bool
    micro_batch: Count
    sequence_tokens: Count
    lora_rank: Count | None = None
    parameters: Count
    trainable: Count
    peak_allocated_bytes: Positive
    reserved_bytes: Positive

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.micro_batch * self.sequence_tokens


class TrainingRecord(Frozen):
    """One run of the measured training step, or somebody's numbers with their origin."""

    schema_version: Literal[1] = 1
    device: Device
    environment: Environment = Environment()
    date: AwareDatetime
    command: Annotated[str, Field(max_length=2000)] = ""
    source: Annotated[str, Field(max_length=2000)] = "roofline.measure.training"
    spread_definition: Annotated[str, Field(max_length=2000)] = "(max - min) / median of the steps"
    finished: bool = True
    training_rows: tuple[TrainingRow, ...] = ()


def read_training_record(path: str | Path) -> TrainingRecord:
    """Read one training record.

    Raises:
        SpecError: missing, too large, cut, or no training record.

    >>> read_training_record("/")
    Traceback (most recent call last):
    ...
    roofline.errors.SpecError: /: cannot be read as a training record: Is a directory
    """
    path = Path(path)
    text = read_text(path, most_bytes=_LARGEST_FILE, what="a training record")
    return parse_record(TrainingRecord, text, path.name, "training record", "file")


def save_training_record(record: TrainingRecord, path: str | Path) -> Path:
    """Write a training record, one row a line, and give its path.

    Raises:
        InputError: the file cannot be written.
    """
    path = Path(path)
    data = record.model_dump(mode="json", exclude_defaults=True)
    rows = ",\n  ".join(json.dumps(row) for row in data.pop("training_rows", []))
    head = ",\n ".join(
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in {"schema_version": 1, **data}.items()
    )
    text = "{" + head + ',\n "training_rows": [\n  ' + rows + "]}\n"
    return write_text(path, text, make_folder=True)
