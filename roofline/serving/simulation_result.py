"""What a simulation gives: times of every request; percentiles, goodput and throughput of them.

Shapes   one array element a request, in order of arrival.
Units    second, token, request per second.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError
from roofline.serving.traffic import Slo


@dataclass(frozen=True)
class Simulation:
    """What happened to each request, and how busy the replica was."""

    arrival_s: NDArray[np.float64]
    first_token_s: NDArray[np.float64]
    finish_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    preemptions: int
    busy_s: float
    steps: int
    peak_batch: int

    @property
    def ttft_s(self) -> NDArray[np.float64]:
        """Time to first token: sent to first output token."""
        return self.first_token_s - self.arrival_s

    @property
    def e2e_s(self) -> NDArray[np.float64]:
        """Sent to last output token."""
        return self.finish_s - self.arrival_s

    @property
    def tpot_s(self) -> NDArray[np.float64]:
        """(end to end − TTFT) / (output tokens − 1); not a number for a single output token."""
        gaps = self.output_tokens - 1
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(gaps > 0, (self.finish_s - self.first_token_s) / gaps, np.nan)

    @property
    def span_s(self) -> float:
        """First arrival to last completion."""
        return float(self.finish_s.max() - self.arrival_s[0])

    @property
    def output_tokens_per_s(self) -> float:
        """Output tokens over the wall time of the whole run."""
        return float(self.output_tokens.sum()) / self.span_s if self.span_s > 0 else math.inf

    def percentile(self, metric: str, percent: float, *, warm_up: float = 0.1) -> float:
        """Percentile of ``ttft_s``, ``tpot_s`` or ``e2e_s`` after a share of warm-up requests.

        Returns ``nan`` where no request has that metric.

        Raises:
            InputError: another metric.
        """
        if metric not in ("ttft_s", "tpot_s", "e2e_s"):
            raise InputError(f"no metric {metric!r}; there are: ttft_s, tpot_s, e2e_s")
        values = getattr(self, metric)[int(warm_up * len(self.arrival_s)) :]
        values = values[~np.isnan(values)]
        return float(np.percentile(values, percent)) if values.size else math.nan

    def meets(self, slo: Slo) -> NDArray[np.bool_]:
        """Say for each request whether it met every target."""
        met = np.ones(len(self.arrival_s), dtype=bool)
        for metric in ("ttft_s", "tpot_s", "e2e_s"):
            target = getattr(slo, metric)
            if target is not None:
                values = getattr(self, metric)
                met &= np.isnan(values) | (values <= target)
        return met

    def goodput_per_s(self, slo: Slo) -> float:
        """Requests per second that met every target."""
        return float(self.meets(slo).sum()) / self.span_s if self.span_s > 0 else math.inf

    def to_dict(self) -> dict[str, float | int]:
        """P50, P95 and P99 of each metric, throughput and counts, in base units."""
        shown: dict[str, float | int] = {
            f"p{percent}_{metric}": self.percentile(metric, percent)
            for metric in ("ttft_s", "tpot_s", "e2e_s")
            for percent in (50, 95, 99)
        }
        shown = {key: value for key, value in shown.items() if not math.isnan(value)}
        return shown | {
            "requests": len(self.arrival_s),
            "output_tokens_per_s": self.output_tokens_per_s,
            "busy_share": min(self.busy_s / self.span_s, 1.0) if self.span_s > 0 else 1.0,
            "preemptions": self.preemptions,
            "peak_batch": self.peak_batch,
            "steps": self.steps,
        }
