"""Verdicts with evidence, topology and baselines."""
