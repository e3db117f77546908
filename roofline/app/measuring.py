"""Measuring: one sweep of this machine in a process of its own, with progress, that can be stopped.

Limits   One at a time on a machine, whoever asks: two would measure each other.
"""

import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from roofline.errors import UnsupportedError

LEVELS = ("quick", "standard")
DEVICES = ("auto", "cpu")
LONGEST_S = 600
_PROGRESS = re.compile(r"^\s*(\d{1,3}) %\s+(\S+ \S+) left\s+(.*)$")
_ONE = threading.Lock()
_running: "list[Job]" = []


@dataclass
class Job:
    """A sweep that runs, or has run; its folder goes with it."""

    process: "subprocess.Popen[bytes]"
    folder: "TemporaryDirectory[str]"
    stopped: bool = field(default=False)

    @property
    def finished(self) -> bool:
        """Whether it has ended, by itself or stopped."""
        return self.process.poll() is not None

    def progress(self) -> tuple[float, str]:
        """Share that is done, and what runs now with the time that is left."""
        for line in reversed(self._said()):
            if found := _PROGRESS.match(line):
                return min(int(found[1]) / 100, 1.0), f"{found[3]}, {found[2]} left"
        return 0.0, "starting"

    def trouble(self) -> str:
        """Why it ended without a record; empty where it did not."""
        if not self.finished or self.record_file() is not None:
            return ""
        words = [line for line in self._said() if not _PROGRESS.match(line)]
        last = words[-1] if words else "it ended without a word"
        return "stopped before there was anything to keep" if self.stopped else last[:300]

    def _said(self) -> list[str]:
        text = (Path(self.folder.name) / "log").read_text(encoding="utf-8", errors="replace")
        return [line for line in text.splitlines() if line.strip()]

    def record_file(self) -> Path | None:
        """The record that it has written so far."""
        found = sorted(Path(self.folder.name).glob("*/*.json"))
        return found[-1] if found else None

    def stop(self) -> None:
        """End it; what it has measured is kept."""
        self.stopped = True
        if not self.finished:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=5)

    def clear(self) -> None:
        """Take its folder away."""
        self.stop()
        self.folder.cleanup()


def start(level: str, device: str, sections: tuple[str, ...] = ()) -> Job:
    """Begin a sweep.

    Raises:
        UnsupportedError: one is running, or no such level or device.
    """
    if level not in LEVELS or device not in DEVICES:
        raise UnsupportedError(f"a sweep here is {', '.join(LEVELS)} on {', '.join(DEVICES)}")
    with _ONE:
        if any(not job.finished for job in _running):
            raise UnsupportedError(
                "this machine is being measured already; two sweeps would disturb each other"
            )
        _running.clear()
        folder = TemporaryDirectory(prefix="roofline-measure-")
        words = [sys.executable, "-m", "roofline.measure", "machine", "--level", level,
                 "--output-dir", folder.name, "--limit-s", str(LONGEST_S)]  # fmt: skip
        words += [] if device == "auto" else ["--device", device]
        words += ["--sections", ",".join(sections)] if sections else []
        with (Path(folder.name) / "log").open("wb") as log:
            process = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=log, stdin=subprocess.DEVNULL
            )
        job = Job(process, folder)
        _running.append(job)
    return job
