"""Memory: what one accelerator holds of a deployment, part by part.

    usable = weights + cache of the batch + activation + overhead + free − missing

Units    bytes on one accelerator, the one that holds most.
"""

from dataclasses import asdict, dataclass
from typing import Any

from roofline.serving.memory_rules import Part


@dataclass(frozen=True)
class Memory:
    """What one accelerator holds.

    Args:
        usable_bytes: memory as the driver shows it.
        weights_bytes: the rank's share of the weights.
        kv_cache_bytes: what the batch's cache takes at the context, fixed states included.
        activation_bytes: the peak of a step.
        overhead_bytes: the sum of ``parts``.
        parts: everything else, each with name and source.
        kv_pool_bytes: what the engine has for the cache: 0 when not even the weights fit.
        missing_bytes: by how much the batch at this context does not fit; 0: it fits.
        rule: which engine, versions and arithmetic were used.
        assumptions: defaults and inferences, in words.
    """

    usable_bytes: float
    weights_bytes: float
    kv_cache_bytes: float
    activation_bytes: float
    overhead_bytes: float
    kv_pool_bytes: float
    missing_bytes: float
    rule: str
    parts: tuple[Part, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the batch at this context fits."""
        return self.missing_bytes == 0

    @property
    def free_bytes(self) -> float:
        """Room for more cache."""
        return max(self.kv_pool_bytes - self.kv_cache_bytes, 0.0)

    @property
    def needed_bytes(self) -> float:
        """Memory that a card would have to show for this to fit under the same rule."""
        return self.usable_bytes - self.free_bytes + self.missing_bytes

    @property
    def pool_shortfall_bytes(self) -> float:
        """What is lacking before the first token of cache; 0: there is a pool."""
        return max(self.missing_bytes - self.kv_cache_bytes, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Give all fields and what follows from them, in bytes."""
        return {
            **asdict(self),
            "parts": [asdict(part) for part in self.parts],
            "fits": self.fits,
            "free_bytes": self.free_bytes,
            "needed_bytes": self.needed_bytes,
        }
