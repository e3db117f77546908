"""One benchmark run as a record in base units, whatever tool measured it.

Units    seconds, tokens, requests per second, tokens per second.
Limits   ``tpot_s`` leaves the first token out, (end to end − TTFT) / (output − 1); a tool whose own
         time per output token includes TTFT gives another of its figures here, and
         ``tpot_definition`` says which.
Sources  [1] Little 1961, Operations Research 9(3), 383-387: mean number in a system = rate × time.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from roofline.errors import InputError


@dataclass(frozen=True)
class Summary:
    """A distribution, as far as the tool states it."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None

    @property
    def known(self) -> bool:
        """Whether there is any figure."""
        return any(getattr(self, field.name) is not None for field in fields(self))

    @property
    def typical(self) -> float | None:
        """The mean, or the median where no mean is stated."""
        return self.mean if self.mean is not None else self.p50


NOTHING = Summary()


@dataclass(frozen=True)
class BenchmarkRun:
    """One run of a benchmark tool.

    Args:
        tool, tool_version: what measured; an empty version is not stated.
        model_id: as the tool has it; empty: not stated.
        concurrency: cap on the requests in flight; None: none, or not stated.
        rate_per_s: requests sent per second; None: as fast as the cap allows, or not stated.
        prompt_tokens, output_tokens: means of the requests that succeeded.
        n_ok, n_err: requests that succeeded and that did not.
        duration_s: wall time.
        requests_per_s, output_tokens_per_s, total_tokens_per_s: of all requests together.
        ttft_s, tpot_s, itl_s, e2e_s: distributions over requests (``itl_s`` over chunks).
        goodput_requests_per_s, slo: rate of requests that kept the targets, and the targets.
        n_gpus: accelerators, which no tool states; the user says it.
        raw_path: the file, and which of its runs.
        tpot_definition: how the tool defines what stands in ``tpot_s``.
        speculative: speculative decoding as far as the file shows it; empty: none.
        assumptions: every inference that was made.

    Raises:
        InputError: a negative time, count or rate.
    """

    tool: str
    raw_path: str
    tool_version: str = ""
    model_id: str = ""
    concurrency: float | None = None
    rate_per_s: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    n_ok: int | None = None
    n_err: int | None = None
    duration_s: float | None = None
    requests_per_s: float | None = None
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    ttft_s: Summary = NOTHING
    tpot_s: Summary = NOTHING
    itl_s: Summary = NOTHING
    e2e_s: Summary = NOTHING
    goodput_requests_per_s: float | None = None
    slo: str = ""
    n_gpus: int | None = None
    tpot_definition: str = ""
    speculative: str = ""
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in self._numbers():
            if value is not None and value < 0:
                raise InputError(f"{self.raw_path}: {name} is negative ({value:g})")

    def _numbers(self) -> list[tuple[str, float | None]]:
        found: list[tuple[str, float | None]] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Summary):
                found += [(f"{field.name} {key}", number) for key, number in asdict(value).items()]
            elif isinstance(value, int | float):
                found.append((field.name, value))
        return found

    @property
    def decode_s(self) -> float | None:
        """Time that a request decodes, after its first token."""
        if self.tpot_s.typical is None or self.output_tokens is None:
            return None
        return self.tpot_s.typical * max(self.output_tokens - 1, 0)

    @property
    def running_batch(self) -> float | None:
        """Sequences decoded together, by Little's law: requests per second × decode time [1].

        Without a rate of requests, cap × decode / (decode + TTFT).

        >>> run = BenchmarkRun("x", "x.json", concurrency=64, output_tokens=101, requests_per_s=16,
        ...     ttft_s=Summary(mean=1.0), tpot_s=Summary(mean=0.03))
        >>> run.running_batch  # 16 a second, each 3 s long; the other 16 of 64 wait or prefill
        48.0
        """
        decode_s, ttft_s = self.decode_s, self.ttft_s.typical
        if decode_s is None or decode_s <= 0:
            return None
        if self.requests_per_s is not None:
            running = self.requests_per_s * decode_s
        elif self.concurrency is not None and ttft_s is not None:
            running = self.concurrency * decode_s / (decode_s + ttft_s)
        else:
            return None
        return max(min(running, self.concurrency or math.inf), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain data."""
        return asdict(self) | {"running_batch": self.running_batch}


def number(value: Any, *, scale: float = 1.0) -> float | None:
    """Read a number from a file: None for what is none, for booleans, NaN and infinity.

    >>> number("12.5"), number("inf"), number(True), number(250, scale=1e-3)
    (12.5, None, None, 0.25)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found * scale if math.isfinite(found) else None


def count(value: Any) -> int | None:
    """Read a whole number from a file.

    >>> count("80"), count(None)
    (80, None)
    """
    found = number(value)
    return None if found is None else round(found)


def text(value: Any) -> str:
    """Read a text from a file; what is no text is empty, and long ones are cut."""
    return value[:200] if isinstance(value, str) else ""


def mapping(value: Any) -> Mapping[str, Any]:
    """Read a JSON object from a file; what is none is empty."""
    return value if isinstance(value, dict) else {}


def mean_of(total: float | None, requests: float | None) -> float | None:
    """Mean per request of a total; None where either is missing or nothing was done."""
    return None if total is None or not requests else total / requests
