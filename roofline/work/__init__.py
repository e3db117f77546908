"""FLOPs and bytes of operators, weights and caches; no hardware."""
