"""sweep: a space of configurations evaluated as arrays, keeping only what was asked for."""
