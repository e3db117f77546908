"""Gradients: what one exchange over data-parallel devices costs each of them.

    volume = 2(n − 1)/n · parameters · bytes a parameter, sent by every GPU of a ring

Units    bytes, seconds, bytes per second and direction.
Sources  [1] Patarasuk & Yuan 2009, JPDC 69(2) (ring).
"""

from dataclasses import asdict, dataclass
from typing import Any

from roofline.dtypes import find_dtype
from roofline.errors import InputError
from roofline.timing.collectives import all_reduce_volume


@dataclass(frozen=True)
class GradientBill:
    """What one exchange of all gradients costs each GPU."""

    parameters: float
    bytes_per_parameter: float
    ranks: int
    message_bytes: float
    volume_bytes: float
    time_s: float | None

    def to_dict(self) -> dict[str, Any]:
        """In base units."""
        return asdict(self)


def gradient_bill(
    parameters: float, ranks: int, *, dtype: str = "bf16", bytes_per_s: float | None = None
) -> GradientBill:
    """Bytes that every GPU sends to exchange gradients in a ring, and the least time it takes.

    Args:
        parameters: parameters with gradients.
        ranks: data-parallel GPUs.
        dtype: format of the gradients.
        bytes_per_s: rate of the slowest link of the ring; None: no time.

    Raises:
        InputError: a count that cannot be.

    >>> bill = gradient_bill(70e9, 8, bytes_per_s=300e9)
    >>> bill.volume_bytes / 1e9, round(bill.time_s, 3)
    (245.0, 0.817)
    """
    if not 0 < parameters < 1e15:
        raise InputError(f"parameters must be a positive count, got {parameters}")
    if bytes_per_s is not None and not bytes_per_s > 0:
        raise InputError(f"a link's rate must be positive, got {bytes_per_s}")
    size = find_dtype(dtype).bytes_per_value
    message = float(parameters * size)
    volume = float(all_reduce_volume(message, ranks))
    time_s = volume / bytes_per_s if bytes_per_s else None
    return GradientBill(float(parameters), size, ranks, message, volume, time_s)
