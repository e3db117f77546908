"""One page a file: ``TITLE``, ``ICON``, ``PATH``, ``ABOUT``, ``show_page(scenario, side)``."""
