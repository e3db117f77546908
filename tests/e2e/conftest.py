"""A server and a real browser. In CI both must be there; elsewhere the tests are skipped."""

import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from roofline.cli.app import server_command

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def lacking():
    """What is missing to run these tests, in words."""
    if not CHROMIUM.is_file():
        return f"no {CHROMIUM}: apt-get install chromium (or set CHROMIUM)"
    for package in ("playwright", "streamlit"):
        try:
            __import__(package)
        except ImportError:
            return f"no {package}: pip install {package}"
    return ""


@pytest.fixture(scope="session", autouse=True)
def _everything_is_there():
    reason = lacking()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"these tests run always in CI, and there is {reason}")
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Where the app is served; started as ``roofline app`` starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("server") / "log").open("wb")
    server = subprocess.Popen(
        server_command(port, open_browser=False), stdout=log, stderr=subprocess.STDOUT
    )
    found = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{found}/_stcore/health", timeout=1) as answer:
                if answer.status == 200:
                    break
        except OSError:
            time.sleep(0.1)
    yield found
    server.terminate()
    server.wait(timeout=20)
    log.close()


@pytest.fixture(scope="session")
def browser(_everything_is_there):
    """Debian's Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield chromium
        chromium.close()


class Visit:
    """A page in the browser with what it asked the network for and what it complained of."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.requests, self.complaints = [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._console)

    def _console(self, message):
        if message.type == "error":
            self.complaints.append(f"{message.text} {message.location.get('url', '')}")

    def open(self, path=""):
        self.page.goto(f"{self.address}/{path}")
        return self.settle()

    def settle(self):
        """Wait until the script has run and everything is drawn."""
        page = self.page
        page.wait_for_selector("h1", timeout=60_000)
        page.wait_for_timeout(300)
        page.wait_for_function(
            """() => !document.querySelector('[data-testid=stStatusWidget]')
                  && !document.querySelector('[data-testid=stSkeleton]')
                  && !document.querySelector('[data-testid=stSpinner]')
                  && document.querySelector('[data-test-script-state=notRunning]')""",
            timeout=60_000,
        )
        page.wait_for_timeout(300)
        return self

    def metric(self, label):
        """The value of the figure with this label."""
        card = self.page.get_by_test_id("stMetric").filter(
            has=self.page.get_by_test_id("stMetricLabel").filter(has_text=label)
        )
        return card.get_by_test_id("stMetricValue").first.inner_text()

    def own_complaints(self):
        """Complaints but Streamlit's search for its server under a page's path (two 404s)."""
        probes = ("/_stcore/health", "/_stcore/host-config")
        return [line for line in self.complaints if not line.endswith(probes)]


@pytest.fixture(scope="session")
def wide(browser):
    """A browser's window of 1280 pixels; each tab in it is a session of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 1800})
    yield context
    context.close()


@pytest.fixture
def visit(wide, address):
    """A fresh session at 1280 pixels."""
    page = wide.new_page()
    yield Visit(page, address)
    page.close()


@pytest.fixture
def narrow(browser, address):
    """A fresh session on a telephone's 390 pixels, dark."""
    context = browser.new_context(
        viewport={"width": 390, "height": 1400}, color_scheme="dark", has_touch=True
    )
    yield Visit(context.new_page(), address)
    context.close()
