"""Profiler traces: read them, and turn them into gaps, causes and parts of a model."""

from roofline.trace.compare import compare_ranks, compare_traces
from roofline.trace.reader import read_trace
from roofline.trace.result import TraceSummary, summarise

__all__ = ["TraceSummary", "compare_ranks", "compare_traces", "read_trace", "summarise"]
