"""Memory budgets, traffic, queueing and simulation."""
