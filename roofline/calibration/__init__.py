"""Loads the terms that timing takes."""
