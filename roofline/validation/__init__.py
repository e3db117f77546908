"""Published rows and users' benchmark files against predictions."""
