"""One page a file: ``ABOUT`` and ``show_page(scenario, side)``; ``desk`` has the menu."""
