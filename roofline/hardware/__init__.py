"""Facts about accelerators, links and measured records."""
