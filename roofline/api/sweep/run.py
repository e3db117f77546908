"""Run a sweep: chunks under a memory ceiling, in this process or on an executor.

Tasks are whole cells, gathered until a task has at least ``TASK_ROWS`` rows; a cell that is larger
is divided by batch. Each task reduces its own rows, so that little travels, and tasks are merged in
their order: the answer is the same for any executor, any number of workers, and after a worker's
loss.

Limits   Executors are ``concurrent.futures`` ones; Dask's ``Client.get_executor()`` is one, and
         runs a lost worker's tasks again by itself.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline.api.sweep.columns import COLUMNS, batches_that_can_fit, evaluate
from roofline.api.sweep.keep import Every, Keep, Reduced, Winner, parse_keep
from roofline.api.sweep.parquet import write_part
from roofline.api.sweep.space import Cell, Space, load_space, refusal
from roofline.errors import InputError, MissingDataError
from roofline.files import write_text

if TYPE_CHECKING:
    import pandas

TASK_ROWS = 5_000_000
"""Fewest rows of a task on an executor: below, sending it costs more than doing it."""
BYTES_PER_ROW = 160
"""Memory that evaluating one row takes at its peak: about twenty temporaries of 8 bytes."""
MEMORY_BYTES = 16 * 2**20
"""Temporaries of a chunk: what a core's caches about hold, twice as fast as 256 MiB."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    """Cells (or batches of one cell) that one worker evaluates."""

    number: int
    pieces: tuple[tuple[Cell, int, int], ...]

    def rows(self, space: Space) -> int:
        """Rows of the task."""
        return sum(last - first for _, first, last in self.pieces) * len(space.lengths[0][0])


@dataclass(frozen=True)
class SweepResult:
    """What a sweep kept.

    Args:
        space: what was swept.
        keep: what was asked for.
        rows: the reduction: columns of the kept rows, or counts, or the winners' grid.
        n_rows: rows of the cells that can be; ``n_feasible`` is how many of them fit.
        refused: cells that cannot be, with the reason.
        files: Parquet files written.
    """

    space: Space
    keep: Keep
    rows: Reduced
    n_rows: int
    n_feasible: int
    refused: tuple[tuple[Cell, str], ...]
    files: tuple[Path, ...] = field(default_factory=tuple)

    def configurations(self) -> list[dict[str, Any]]:
        """Kept rows as dicts: names, numbers, columns, in the order kept."""
        if "row" not in self.rows:
            return []
        cells = list(self.space.cells())
        prompt, output = self.space.lengths
        width = prompt.shape[1]
        found = []
        for position, row in enumerate(self.rows["row"]):
            cell, inside = divmod(int(row), self.space.rows_per_cell)
            batch, lengths = divmod(inside, width)
            chosen = cells[cell]
            found.append(
                {
                    "row": int(row),
                    "model": chosen.model,
                    "accelerator": chosen.accelerator,
                    "tp": chosen.parallel.tp,
                    "pp": chosen.parallel.pp,
                    "dp": chosen.parallel.dp,
                    "ep": chosen.parallel.ep,
                    "weights": chosen.weights,
                    "kv": chosen.kv,
                    "engine": chosen.engine,
                    "batch": self.space.batch[batch],
                    "prompt_tokens": int(prompt[0, lengths]),
                    "output_tokens": int(output[0, lengths]),
                    **{
                        name: float(values[position])
                        for name, values in self.rows.items()
                        if name in COLUMNS
                    },
                }
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Counts, refusals and what was kept, in base units."""
        kept: Any = self.configurations()
        if "row" not in self.rows:
            kept = {name: values.tolist() for name, values in self.rows.items()}
        return {
            "n_rows": self.n_rows,
            "n_feasible": self.n_feasible,
            "refused": [
                {
                    "model": c.model,
                    "accelerator": c.accelerator,
                    "plan": str(c.parallel),
                    "why": why,
                }
                for c, why in self.refused
            ],
            "kept": kept,
            "files": [str(path) for path in self.files],
        }

    def to_frame(self) -> "pandas.DataFrame":
        """What was kept as a table."""
        import pandas

        if "row" in self.rows:
            return pandas.DataFrame(self.configurations())
        if isinstance(self.keep, Winner):
            return pandas.DataFrame(self.rows["cell"], index=list(self.space.batch))
        return pandas.DataFrame(self.rows)


def sweep(
    space: "str | Path | dict[str, Any] | Space",
    keep: "str | Keep" = "top 10",
    executor: Executor | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
    task_rows: int = TASK_ROWS,
    parquet: str | Path | None = None,
    progress: Progress | None = None,
) -> SweepResult:
    """Evaluate a space and keep what was asked for.

    Args:
        space: a Space, a mapping, or a YAML file.
        keep: what to keep, in words or as an object.
        executor: where tasks run; None: this process.
        memory_bytes: temporaries of one chunk.
        task_rows: fewest rows of a task.
        parquet: folder that every feasible row is written to (``keep="all"``); a run that was
            interrupted goes on where it stopped.
        progress: called with rows done and rows in all (those of tasks), first with none done.

    Raises:
        MissingDataError: no cell of the space can be.
        RooflineError: an unknown name or column.

    >>> found = sweep({"models": ["llama-3.1-8b"], "accelerators": ["h200-sxm-141gb", "l40s"],
    ...                "batch": [1, 8, 64], "prompt_tokens": [1024]}, "top 1 by decode_bound_s")
    >>> found.configurations()[0]["accelerator"], found.n_rows
    ('h200-sxm-141gb', 6)
    """
    space, keep = load_space(space), parse_keep(keep)
    if parquet is not None and not isinstance(keep, Every):
        raise InputError("parquet files hold all rows; ask for keep='all'")
    cells, refused = _possible(space)
    tasks = list(_tasks(space, cells, task_rows))
    total = sum(task.rows(space) for task in tasks)
    n_rows = len(cells) * space.rows_per_cell
    folder = None if parquet is None else _prepared(Path(parquet), space, keep)
    work = _Work(space, keep, memory_bytes, folder)
    merged: Reduced | None = None
    done = feasible = 0
    files: list[Path] = []
    if progress is not None:
        progress(0, total)
    for task, (reduced, fit, path) in zip(tasks, _results(work, tasks, executor), strict=True):
        if reduced is not None:
            merged = reduced if merged is None else keep.merge(merged, reduced)
        if path is not None:
            files.append(Path(path))
        done += task.rows(space)
        feasible += fit
        if progress is not None:
            progress(done, total)
    return SweepResult(space, keep, merged or {}, n_rows, feasible, tuple(refused), tuple(files))


def _possible(space: Space) -> tuple[list[Cell], list[tuple[Cell, str]]]:
    cells, refused = [], []
    for cell in space.cells():
        why = refusal(cell, space.machine)
        if why is None:
            cells.append(cell)
        else:
            refused.append((cell, why))
    if not cells:
        raise MissingDataError(f"no cell of the space can be; the first says: {refused[0][1]}")
    return cells, refused


def _tasks(space: Space, cells: Sequence[Cell], task_rows: int) -> Iterator[Task]:
    width = len(space.lengths[0][0])
    batches = len(space.batch)
    step = max(task_rows // width, 1)
    number = 0
    pieces: list[tuple[Cell, int, int]] = []
    rows = 0
    for cell in cells:
        # of a cell that takes several tasks, what fits nowhere is no task
        end = batches if batches <= step else batches_that_can_fit(cell, space)
        for first in range(0, end, step):
            last = min(first + step, end)
            pieces.append((cell, first, last))
            rows += (last - first) * width
            if rows >= task_rows:
                yield Task(number, tuple(pieces))
                number, pieces, rows = number + 1, [], 0
    if pieces:
        yield Task(number, tuple(pieces))


@dataclass(frozen=True)
class _Work:
    """What every task needs; travels to workers."""

    space: Space
    keep: Keep
    memory_bytes: int
    folder: Path | None

    def __call__(self, task: Task) -> tuple[Reduced | None, int, str | None]:
        """Evaluate a task: its reduction, its feasible rows, and the file written."""
        if self.folder is not None:
            path, feasible = write_part(self.folder, task.number, lambda: self._reduce(task))
            return None, feasible, str(path)
        return (*self._reduce(task), None)

    def _reduce(self, task: Task) -> tuple[Reduced, int]:
        merged: Reduced | None = None
        feasible = 0
        width = len(self.space.lengths[0][0])
        rows = max(self.memory_bytes // BYTES_PER_ROW, 1)
        step, block = max(rows // width, 1), min(rows, width)
        for cell, begin, end in task.pieces:
            for first, left in itertools.product(range(begin, end, step), range(0, width, block)):
                batches = slice(first, min(first + step, end))
                lengths = slice(left, min(left + block, width))
                grid = evaluate(self.space, cell, self.keep.columns, batches, lengths)
                feasible += int(np.count_nonzero(grid.feasible))
                if isinstance(self.keep, Winner):
                    merged = self.keep.add(merged, self.space, grid)
                    continue
                reduced = self.keep.reduce(self.space, grid)
                merged = reduced if merged is None else self.keep.merge(merged, reduced)
        return merged or {}, feasible


def _results(
    work: _Work, tasks: Sequence[Task], executor: Executor | None
) -> Iterator[tuple[Reduced | None, int, str | None]]:
    if executor is None:
        yield from map(work, tasks)
        return
    futures: list[Future[Any]] = [executor.submit(work, task) for task in tasks]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _prepared(folder: Path, space: Space, keep: Keep) -> Path:
    """Make the folder of a Parquet sweep, or refuse one that holds another sweep."""
    import hashlib

    asked = hashlib.sha256(repr((space, keep)).encode()).hexdigest()
    mark = folder / "sweep.sha256"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if mark.exists():
            if mark.read_text().strip() != asked:
                raise InputError(f"{folder} holds another sweep; give an empty folder")
        elif any(folder.iterdir()):
            raise InputError(f"{folder} is not empty and holds no sweep; give an empty folder")
        else:
            write_text(mark, asked + "\n")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from None
    return folder
