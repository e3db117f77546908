"""``roofline app``: the planning desk in a browser, on this machine alone."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from roofline.errors import InputError, MissingPackageError

OPTIONS = {
    "server.address": "127.0.0.1",
    "server.maxUploadSize": 200,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "global.disableWidgetStateDuplicationWarning": True,
}
"""The server's settings: this machine alone, nothing sent anywhere, uploads of 200 MB at most."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("app")(app_command)


def app_command(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    open_browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser window.")
    ] = True,
) -> None:
    """Open the app in a browser; it listens on 127.0.0.1 and sends nothing anywhere.

    Stop it with Ctrl-C.
    """
    line = server_command(port, open_browser=open_browser)
    if os.name == "posix":
        os.execv(line[0], line)  # the server is this process: a signal ends it
    raise typer.Exit(subprocess.call(line))


def server_command(port: int, *, open_browser: bool) -> list[str]:
    """The command line that serves the app.

    Raises:
        MissingPackageError: streamlit is not installed.
    """
    if importlib.util.find_spec("streamlit") is None:
        raise MissingPackageError("the app needs streamlit: pip install 'roofline[app]'")
    found = importlib.util.find_spec("roofline")
    if found is None or not found.submodule_search_locations:
        raise InputError("this installation of roofline has no folder; install it anew")
    script = Path(found.submodule_search_locations[0]) / "app" / "start.py"
    options = {**OPTIONS, "server.port": port, "server.headless": not open_browser}
    flags = [f"--{name}={_word(value)}" for name, value in options.items()]
    return [sys.executable, "-m", "streamlit", "run", str(script), *flags]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
