"""Fitting: records and published rows to the terms that calibration loads."""
