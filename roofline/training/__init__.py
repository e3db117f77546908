"""Memory and step time of training."""
