"""Commands: read input, call the library, show the answer."""
