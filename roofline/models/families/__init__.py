"""Families: readers of model configs, one file per kind of architecture."""
