import logging
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("streamlit", reason="the app needs streamlit: pip install 'roofline[app]'")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

APP = Path(__file__).parents[2] / "app.py"
logging.getLogger("streamlit").setLevel(logging.ERROR)


def open_page(path: str = "", **query: str) -> AppTest:
    """Open a page as a link with these settings would."""
    at = AppTest.from_file(str(APP), default_timeout=90)
    for key, value in query.items():
        at.query_params[key] = value
    if path:
        at._page_hash = calc_hash(path)  # pages that are functions have no public way in AppTest
    at.run()
    assert not at.exception, [one.value for one in at.exception]
    return at


@pytest.fixture(scope="session")
def opened() -> Callable[..., AppTest]:
    return open_page
