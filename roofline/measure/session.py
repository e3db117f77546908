"""A session: runs cases one after the other, keeps what they gave, and can be taken up again.

The record is written after every few seconds of work and after each section; a case that fails is
recorded as an error and the rest goes on. An interrupted session leaves ``finished: false`` and the
list of what is done; ``resume`` finds that record and does only the rest.

Units    Seconds.
"""

import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roofline.errors import InputError, RooflineError
from roofline.hardware.measured_rows import SECTIONS, LinkRow, Row
from roofline.hardware.measurement import (
    Measurement,
    read_measurement,
    save_measurement,
)
from roofline.measure.attention_sweep import attention_cases
from roofline.measure.case import Case, Level
from roofline.measure.copy_sweep import copy_cases
from roofline.measure.device import (
    Target,
    conditions,
    describe_unknown,
    doubts_before,
    doubts_during,
    environment,
    release_memory,
)
from roofline.measure.grouped_sweep import grouped_cases
from roofline.measure.host_link_sweep import host_link_cases
from roofline.measure.launch_sweep import launch_cases
from roofline.measure.matmul_sweep import matmul_cases
from roofline.units import show

SWEEPS: dict[str, Callable[[Target, Level], list[Case]]] = {
    "launch": launch_cases,
    "copy": copy_cases,
    "host_link": host_link_cases,
    "matmul": lambda target, level: [
        *matmul_cases(target, level),
        *grouped_cases(target, level),
    ],
    "attention": attention_cases,
}
"""Sections of a machine's own roofs, in the order in which they are run."""
_SAVE_EVERY_S = 5.0

Report = Callable[[str, float, float], None]
"""Called with what runs now, the share that is done and the seconds that are left."""


def silent(what: str, share: float, left_s: float) -> None:
    """Report nothing."""


def to_stderr(what: str, share: float, left_s: float) -> None:
    """Report one line on stderr: rewritten on a terminal, a new one elsewhere."""
    text = f"{share * 100:3.0f} %  {show(left_s, 's', 2)} left  {what}"
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        if share >= 1:
            sys.stderr.write("\n")
    else:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@dataclass
class Session:
    """One run that grows a record.

    Args:
        record: what there is so far.
        folder: where records are kept; None: nothing is written.
        report: the progress line.
        limit_s: no new case is begun after this long.
        path: the file of a record that is taken up again.
        target: looked at after each case: slowed clocks and other work on it become flags.
    """

    record: Measurement
    folder: Path | None = None
    report: Report = silent
    limit_s: float = float("inf")
    path: Path | None = None
    target: Target | None = None
    _saved_at: float = field(default=0.0, repr=False)

    def run(self, cases: Sequence[Case]) -> Measurement:
        """Run what is not done yet and give the record.

        A ``KeyboardInterrupt`` saves the record before it goes on.
        """
        done = set(self.record.cases_done)
        left = [case for case in cases if case.label not in done]
        total = sum(case.cost_s for case in left) or 1.0
        begin, spent = time.perf_counter(), 0.0
        try:
            for case in left:
                elapsed = time.perf_counter() - begin
                if elapsed > self.limit_s:
                    self._note(case, f"not begun: the limit of {self.limit_s:.0f} s had passed")
                    continue
                pace = elapsed / spent if spent > 0.1 * total else 1.0
                self.report(case.label, spent / total, (total - spent) * pace)
                self._run_case(case)
                self._look()
                release_memory()
                spent += case.cost_s
                if time.perf_counter() - self._saved_at > _SAVE_EVERY_S:
                    self.save()
        except KeyboardInterrupt:
            self.save()
            raise
        self.report("done", 1.0, 0.0)
        return self._finish(cases)

    def _look(self) -> None:
        if self.target is None:
            return
        new = [
            flag for flag in doubts_during(conditions(self.target)) if flag not in self.record.flags
        ]  # fmt: skip
        if new:
            self.record = self.record.model_copy(update={"flags": (*self.record.flags, *new)})

    def _run_case(self, case: Case) -> None:
        try:
            for row in case.measure():
                self._add(case.section, row)
        except RooflineError as error:
            self._note(case, str(error))
        except (RuntimeError, ValueError, NotImplementedError, AttributeError, TypeError) as error:
            # what torch raises for a shape, type or backend that this device has not
            self._note(case, f"{type(error).__name__}: {error}")
        else:
            self.record = self.record.model_copy(
                update={"cases_done": (*self.record.cases_done, case.label)}
            )

    def _add(self, section: str, row: Row | LinkRow) -> None:
        rows = [old for old in self.record.rows(section) if old.identity() != row.identity()]
        self.record = self.record.with_rows(section, [*rows, row])

    def _note(self, case: Case, message: str) -> None:
        short = " ".join(message.split())[:300]
        self.record = self.record.model_copy(
            update={"errors": {**self.record.errors, case.label: _without_paths(short)}}
        )

    def _finish(self, cases: Sequence[Case]) -> Measurement:
        done = set(self.record.cases_done)
        complete = set(self.record.complete_sections)
        for section in SECTIONS:
            own = [case for case in cases if case.section == section]
            # a type or backend that the device lacks is an answer: most cases must have run
            if own and any(case.label in done for case in own):
                unbegun = [
                    case for case in own
                    if self.record.errors.get(case.label, "").startswith("not begun")
                ]  # fmt: skip
                if not unbegun:
                    complete.add(section)
        finished = all(case.label in done or case.label in self.record.errors for case in cases)
        finished = finished and not any(
            message.startswith("not begun") for message in self.record.errors.values()
        )
        self.record = self.record.model_copy(
            update={
                "complete_sections": tuple(name for name in SECTIONS if name in complete),
                "finished": finished,
                "cases_done": () if finished else self.record.cases_done,
            }
        )
        self.save()
        return self.record

    def save(self) -> None:
        """Write the record, where there is a folder; the same file each time."""
        self._saved_at = time.perf_counter()
        if self.folder is not None:
            name = self.path.name if self.path else ""
            self.path = save_measurement(self.record, self.folder, name)


def _without_paths(text: str) -> str:
    return re.sub(r"(?:~|\.{1,2})?(?:/[\w.+-]+)+/?", "PATH", text)


def new_record(target: Target, level: Any, command: str) -> Measurement:
    """An empty record of this device, now."""
    state = conditions(target)
    flags = list(doubts_before(state))
    if target.device.spec_id is None and target.device.kind != "cpu":
        flags.append(describe_unknown(target.device))
    return Measurement(
        device=target.device,
        environment=environment(),
        date=datetime.now(UTC).replace(microsecond=0),
        command=_without_paths(command),
        level=level,
        finished=False,
        before=state,
        flags=tuple(flags),
    )


def measure(
    target: Target,
    level: Level,
    *,
    sections: Iterable[str] = (),
    folder: Path | None = None,
    resume: bool = False,
    report: Report = silent,
    command: str = "",
    limit_s: float = float("inf"),
) -> tuple[Measurement, Path | None]:
    """Measure this machine's roofs; gives the record and where it was written.

    Args:
        target: from ``find_target``.
        level: quick, standard or full.
        sections: of ``SWEEPS``; empty: all.
        folder: where records are kept; None: nothing is written.
        resume: take up the newest unfinished record of this device and level.
        report: the progress line.
        command: the command line, as the record shall show it.
        limit_s: no new case is begun after this long.

    Raises:
        InputError: a section that is not one, or nothing to resume.
    """
    asked = tuple(sections) or tuple(SWEEPS)
    if unknown := [name for name in asked if name not in SWEEPS]:
        raise InputError(f"no sweep {unknown[0]!r}; there are {', '.join(SWEEPS)}")
    cases = [case for name in SWEEPS if name in asked for case in SWEEPS[name](target, level)]
    path = None
    if resume:
        if folder is None:
            raise InputError("nothing to resume: no folder of records was given")
        path, record = _unfinished(folder, target, level)
    else:
        record = new_record(target, level.value, command)
    session = Session(record, folder, report, limit_s, path, target)
    session.run(cases)
    final = session.record.model_copy(update={"after": conditions(target)})
    session.record = final
    session.save()
    return final, session.path


def _unfinished(folder: Path, target: Target, level: Level) -> tuple[Path, Measurement]:
    place = folder / target.device.record_id
    for path in sorted(place.glob("*.json"), reverse=True):
        try:
            record = read_measurement(path)
        except RooflineError:
            continue
        if not record.finished and record.level == level.value:
            kept = {
                label: text
                for label, text in record.errors.items()
                if not text.startswith("not begun")
            }
            return path, record.model_copy(update={"errors": kept})
    raise InputError(
        f"no unfinished {level.value} record of {target.device.record_id} in {folder}; "
        "leave --resume out to begin one"
    )


def summary(record: Measurement) -> list[tuple[str, str]]:
    """The record's headlines: what was reached, for a reader."""
    found: list[tuple[str, str]] = []

    def best(name: str, rows: list[Any], attribute: str, unit: str) -> None:
        if rows:
            found.append((name, show(max(getattr(row, attribute) for row in rows), unit)))

    cold = [row for row in record.copy_rows if not any("cache" in text for text in row.flags)]
    for op in ("copy", "add", "triad", "read", "write"):
        best(op, [r for r in cold if r.op == op], "bytes_per_s", "B/s")
    # small ones are kernels: only the largest shows the engine
    engine = [r for r in cold if r.op == "copy_engine"]
    largest = max((r.buffer_bytes for r in engine), default=0)
    best("copy engine", [r for r in engine if r.buffer_bytes == largest], "bytes_per_s", "B/s")
    for row_mode in ("burst", "sustained"):
        for compute in dict.fromkeys(row.compute for row in record.matmul_rows):
            rows = [
                r for r in record.matmul_rows
                if r.compute == compute and r.shape == "square" and r.mode == row_mode
            ]  # fmt: skip
            best(f"{compute} matmul, {row_mode}", rows, "flop_per_s", "FLOP/s")
    decode = [r for r in record.attention_rows if r.phase == "decode"]
    best("decode attention", decode, "bytes_per_s", "B/s")
    prefill = [r for r in record.attention_rows if r.phase == "prefill"]
    best("prefill attention", prefill, "flop_per_s", "FLOP/s")
    for launch in record.launch_rows:
        if launch.what == "kernel":
            found.append((f"kernel launch, {launch.mode}", show(launch.median_s, "s")))
    for direction in ("host_to_device", "device_to_host"):
        for pinned in (True, False):
            links = [
                r for r in record.host_link_rows if (r.direction, r.pinned) == (direction, pinned)
            ]
            label = f"{direction.replace('_', ' ')}, {'pinned' if pinned else 'pageable'}"
            best(label, links, "bytes_per_s", "B/s")
    return found
