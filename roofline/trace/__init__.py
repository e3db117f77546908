"""Profiler traces: read them, and turn them into gaps, causes and parts of a model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roofline.trace.compare import compare_ranks, compare_traces
    from roofline.trace.reader import read_trace
    from roofline.trace.result import TraceSummary, summarise

__all__ = ["TraceSummary", "compare_ranks", "compare_traces", "read_trace", "summarise"]

_HOMES = {
    "TraceSummary": "result", "compare_ranks": "compare", "compare_traces": "compare",
    "read_trace": "reader", "summarise": "result",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'roofline.trace' has no attribute {name!r}")
    return getattr(import_module(f"roofline.trace.{_HOMES[name]}"), name)
