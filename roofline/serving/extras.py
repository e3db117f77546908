"""Extras: what is held beside the text model when it is asked for.

Units    bytes on one rank.
Limits   LoRA adapters are counted for every linear layer of the blocks, experts included only when
         asked for; engines that reserve for fewer take less. Towers are held whole on every rank.
Sources  [1] Hu et al. 2021, arXiv:2106.09685: an adapter is two matrices, n_in × r and r × n_out.
"""

from dataclasses import dataclass

from roofline.errors import InputError
from roofline.models.architecture import Architecture
from roofline.serving.memory_rules import Part


@dataclass(frozen=True)
class Extras:
    """What counts besides the text model.

    Args:
        lora_adapters: adapters held at once.
        lora_rank: their rank.
        lora_experts: whether routed experts have adapters too.
        towers: whether vision and audio encoders are held.
        prediction_layers: whether multi-token-prediction layers, with their cache, are held.

    Raises:
        InputError: a count that cannot be.

    >>> Extras(lora_adapters=4, lora_rank=16).lora_rank
    16
    """

    lora_adapters: int = 0
    lora_rank: int = 16
    lora_experts: bool = False
    towers: bool = False
    prediction_layers: bool = False

    def __post_init__(self) -> None:
        for name, most in (("lora_adapters", 100_000), ("lora_rank", 65_536)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                raise InputError(f"{name} is a whole number from 0 to {most}, got {value!r}")


NO_EXTRAS = Extras()


def lora_bytes(arch: Architecture, adapters: int, rank: int, *, experts: bool = False) -> float:
    """Bytes of LoRA adapters on every linear layer of the blocks [1].

        bytes = adapters × Σ r (n_in + n_out) × bytes of the model's own type

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> lora_bytes(LLAMA_3_8B, 1, 16) / 2  # r = 16 on all seven matrices: 41,943,040 values
    41943040.0
    """
    widths = 0.0
    for group in arch.layers:
        layer = sum(linear.n_in + linear.n_out for linear in group.linears if linear.quantisable)
        if experts and group.experts is not None:
            layer += group.experts.n_experts * sum(
                linear.n_in + linear.n_out for linear in group.experts.linears
            )
        widths += group.n_layers * layer
    return adapters * rank * widths * arch.dtype.bytes_per_value


def tower_bytes(arch: Architecture) -> float:
    """Bytes of the encoders beside the text model, in the model's own type."""
    return sum(tower.parameters for tower in arch.towers) * arch.dtype.bytes_per_value


def extra_parts(rank: Architecture, arch: Architecture, extras: Extras) -> list[Part]:
    """List the parts that extras add on one rank."""
    parts = []
    if extras.lora_adapters:
        size = lora_bytes(rank, extras.lora_adapters, extras.lora_rank, experts=extras.lora_experts)
        parts.append(Part(f"{extras.lora_adapters} LoRA adapters of rank {extras.lora_rank}", size,
                          "arXiv:2106.09685"))  # fmt: skip
    if extras.towers and arch.towers:
        names = ", ".join(tower.name for tower in arch.towers)
        parts.append(Part(f"encoders ({names})", tower_bytes(arch), arch.source))
    return parts
