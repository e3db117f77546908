"""Roofs, sharding, collectives and step times; terms come from outside."""
