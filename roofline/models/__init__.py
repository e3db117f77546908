"""Facts about models."""
