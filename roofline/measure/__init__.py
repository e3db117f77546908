"""Measurements on torch: harness, sweeps, decoder, records."""
