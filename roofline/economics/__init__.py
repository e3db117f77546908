"""Prices, costs, ownership, power and racks."""
