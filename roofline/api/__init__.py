"""The public verbs and their results."""
