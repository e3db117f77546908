"""Reconcile: do the calls in a trace agree with the architecture of the model?

Limits   Fused projections (q, k, v in one; gate and up in one) make fewer calls than the
         architecture has matrices; each is named when the numbers fit it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.trace.summary import DeviceSummary


@dataclass(frozen=True)
class Reconciliation:
    """Linear calls of a step, in the trace and in the architecture."""

    model: str
    expected_per_step: int
    traced_per_step: float | None
    operator: str | None
    verdict: str

    @property
    def agrees(self) -> bool:
        """Whether the two are equal."""
        return self.traced_per_step == self.expected_per_step


def reconcile(
    summary: DeviceSummary, model: "str | Path | dict[str, Any] | Architecture"
) -> Reconciliation:
    """Compare the linear calls of a step with the model's.

    Raises:
        UnknownNameError: no such model.
    """
    arch = load_model(model)
    expected = arch.linear_calls_per_step
    traced = summary.linear_calls_per_step
    return Reconciliation(
        arch.name, expected, traced, summary.linear_operator, _verdict(arch, expected, traced)
    )


def _verdict(arch: Architecture, expected: int, traced: float | None) -> str:
    if traced is None:
        return "the trace has no ProfilerStep marks or no operators: calls a step are unknown"
    if traced == expected:
        return f"{traced:.0f} linear calls a step, as {arch.name} has"
    if traced == 0:
        return "no linear operator in the steps: a graph replay, or a compiled module"
    layers = arch.n_layers
    for fewer, what in (
        (2 * layers, "q, k and v in one call"),
        (layers, "gate and up in one call"),
        (3 * layers, "q, k, v in one call and gate, up in one"),
    ):
        if traced == expected - fewer:
            return f"{traced:.0f} linear calls a step, {expected} in {arch.name}: {what}"
    whole = traced / expected
    if whole > 1 and whole == int(whole):
        return f"{traced:.0f} linear calls a step: {int(whole)} forward passes of {arch.name}"
    return f"{traced:,.1f} linear calls a step where {arch.name} has {expected}: another model?"
