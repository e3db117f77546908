"""Speculative decoding: tokens that one verified step gives, and what the step carries.

Limits   Each drafted token is accepted independently with the same probability, and the draft is
         a chain, not a tree. Acceptance depends on text, draft and temperature: measure it.
Sources  [1] Leviathan et al. 2023, Fast inference from transformers via speculative decoding,
             arXiv:2211.17192, equation 1.
"""

from dataclasses import dataclass

from roofline.errors import InputError
from roofline.serving.lengths import checked, checked_tokens
from roofline.serving.step_table import Array, StepTime


@dataclass(frozen=True)
class Speculation:
    """A draft of ``draft_tokens`` per step, each accepted with probability ``acceptance``.

    ``draft_s`` is the time that making one drafted token takes for the whole batch.

    >>> Speculation(draft_tokens=4, acceptance=0.8).tokens_per_step
    3.3616
    """

    draft_tokens: int
    acceptance: float
    draft_s: float = 0.0

    def __post_init__(self) -> None:
        checked_tokens("draft_tokens", self.draft_tokens)
        checked("acceptance", self.acceptance, most=1)
        checked("draft_s", self.draft_s)

    @property
    def tokens_per_step(self) -> float:
        """Expected tokens per step: (1 − a^(k+1)) / (1 − a), k + 1 when all are accepted [1]."""
        if self.acceptance == 1:
            return float(self.draft_tokens + 1)
        return float((1 - self.acceptance ** (self.draft_tokens + 1)) / (1 - self.acceptance))

    def step_time(self, plain: StepTime) -> StepTime:
        """Make the step-time function of draft and verification.

        The verifying step computes k + 1 tokens for each sequence but reads its context once.

        >>> def plain(n, context, chunk, pairs): return 0.01 + 1e-5 * (n + chunk) + 0 * context
        >>> Speculation(1, 0.5, draft_s=0.001).step_time(plain)(10.0, 0.0, 0.0, 0.0)
        0.0112
        """
        if self.draft_tokens > 64:
            raise InputError(f"draft_tokens above 64 are no speculation, got {self.draft_tokens}")

        def verified(n_decode: Array, context: Array, chunk: Array, pairs: Array) -> Array:
            drafting = self.draft_s * self.draft_tokens * (n_decode > 0)
            widened = n_decode * (self.draft_tokens + 1)
            return plain(widened, context, chunk, pairs) + drafting

        return verified
