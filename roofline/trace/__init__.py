"""Profiler traces to gaps and model parts."""
