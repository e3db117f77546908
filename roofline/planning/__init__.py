"""The search over deployments."""
