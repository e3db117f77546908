"""Keep: what a sweep remembers of its rows; reduced inside each chunk, merged in any order.

    top        the k best rows by one column
    pareto     rows that no other beats in two columns
    histogram  counts of one column between edges
    winner     the best cell for each batch and pair of lengths
    all        every feasible row (to Parquet)

Shapes   A reduction is a dict of arrays; rows are identified by their number in the space, and
         ties go to the smaller number: the answer does not depend on who computed what.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.api.sweep.columns import COLUMNS, LARGER_IS_BETTER, Grid
from roofline.api.sweep.space import Space
from roofline.errors import InputError, unknown_name

Reduced = dict[str, NDArray[Any]]
LARGEST_MAP = 4_000_000
"""Winners of one map: 64 MB, and more than a figure has points."""


def _checked(column: str) -> str:
    if column not in COLUMNS:
        raise unknown_name("sweep column", column, COLUMNS)
    return column


def _cost(values: NDArray[np.float64], column: str) -> NDArray[np.float64]:
    """Values so that less is better."""
    return -values if column in LARGER_IS_BETTER else values


def feasible_rows(space: Space, grid: Grid, names: tuple[str, ...]) -> Reduced:
    """Numbers and columns of a grid's feasible rows."""
    shape = grid.feasible.shape
    rows = np.flatnonzero(grid.feasible)
    found: Reduced = {"row": grid.numbers(space, rows)}
    for name in names:
        found[name] = np.broadcast_to(grid.columns[name], shape).reshape(-1)[rows]
    return found


def _take(rows: Reduced, chosen: NDArray[Any]) -> Reduced:
    return {name: values[chosen] for name, values in rows.items()}


def _join(first: Reduced, second: Reduced) -> Reduced:
    return {name: np.concatenate([first[name], second[name]]) for name in first}


@dataclass(frozen=True)
class Top:
    """The ``count`` best rows by a column; ``also`` are columns kept beside it."""

    by: str
    count: int = 10
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.by, *self.also):
            _checked(name)
        if isinstance(self.count, bool) or self.count < 1:
            raise InputError(f"top needs a count of at least 1, got {self.count}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that must be computed."""
        return tuple(dict.fromkeys((self.by, *self.also)))

    def reduce(self, space: Space, grid: Grid) -> Reduced:
        """The best rows of one grid."""
        values = np.broadcast_to(grid.columns[self.by], grid.feasible.shape)
        kept = np.flatnonzero(grid.feasible)
        cost = _cost(values.reshape(-1)[kept], self.by)
        if len(cost) > self.count:
            limit = np.partition(cost, self.count - 1)[self.count - 1]
            kept = kept[cost <= limit]  # all ties stay until rows are ordered
        rows: Reduced = {"row": grid.numbers(space, kept)}
        for name in self.columns:
            column = np.broadcast_to(grid.columns[name], grid.feasible.shape)
            rows[name] = column.reshape(-1)[kept]
        return self._best(rows)

    def merge(self, first: Reduced, second: Reduced) -> Reduced:
        """The best rows of two reductions."""
        return self._best(_join(first, second))

    def _best(self, rows: Reduced) -> Reduced:
        order = np.lexsort((rows["row"], _cost(rows[self.by], self.by)))
        return _take(rows, order[: self.count])


@dataclass(frozen=True)
class Pareto:
    """Rows that no other row beats in both columns."""

    x: str = "tokens_per_s_per_user"
    y: str = "tokens_per_s_per_accelerator"

    def __post_init__(self) -> None:
        _checked(self.x)
        _checked(self.y)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that must be computed."""
        return (self.x, self.y)

    def reduce(self, space: Space, grid: Grid) -> Reduced:
        """The front of one grid."""
        return self._front(feasible_rows(space, grid, self.columns))

    def merge(self, first: Reduced, second: Reduced) -> Reduced:
        """The front of two fronts."""
        return self._front(_join(first, second))

    def _front(self, rows: Reduced) -> Reduced:
        if not len(rows["row"]):
            return rows
        x, y = _cost(rows[self.x], self.x), _cost(rows[self.y], self.y)
        order = np.lexsort((rows["row"], y, x))
        sorted_y = y[order]
        best_before = np.concatenate([[np.inf], np.minimum.accumulate(sorted_y)[:-1]])
        return _take(rows, order[sorted_y < best_before])


@dataclass(frozen=True)
class Histogram:
    """Counts of a column between edges; what lies outside is not counted."""

    column: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        _checked(self.column)
        if len(self.edges) < 2 or list(self.edges) != sorted(set(self.edges)):
            raise InputError(f"histogram edges rise and are at least two, got {self.edges}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that must be computed."""
        return (self.column,)

    def reduce(self, space: Space, grid: Grid) -> Reduced:
        """Counts of one grid."""
        del space
        values = np.broadcast_to(grid.columns[self.column], grid.feasible.shape)[grid.feasible]
        counts, _ = np.histogram(values, np.array(self.edges))
        return {"low": np.array(self.edges[:-1]), "high": np.array(self.edges[1:]), "count": counts}

    def merge(self, first: Reduced, second: Reduced) -> Reduced:
        """Counts of two reductions."""
        return {**first, "count": first["count"] + second["count"]}


@dataclass(frozen=True)
class Winner:
    """The best cell by a column, for each batch and pair of lengths."""

    by: str = "tokens_per_s_per_accelerator"

    def __post_init__(self) -> None:
        _checked(self.by)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that must be computed."""
        return (self.by,)

    def reduce(self, space: Space, grid: Grid) -> Reduced:
        """Best so far on the whole grid: this cell where it is feasible."""
        return self.add(None, space, grid)

    def add(self, best: Reduced | None, space: Space, grid: Grid) -> Reduced:
        """Put a grid's rows into the best so far, in place: the map is there once."""
        whole = (len(space.batch), space.lengths[0].shape[1])
        if math.prod(whole) > LARGEST_MAP:
            raise InputError(
                f"a map of {math.prod(whole):,} winners is more than {LARGEST_MAP:,}; take fewer "
                "batches or lengths"
            )
        if best is None:
            best = {"cost": np.full(whole, np.inf), "cell": np.full(whole, -1, dtype=np.int64)}
        shape = grid.feasible.shape
        part = np.ix_(grid.first_batch + np.arange(shape[0]), grid.lengths)
        values = _cost(np.broadcast_to(grid.columns[self.by], shape), self.by)
        cost = np.where(grid.feasible, values, np.inf)
        cell = np.where(grid.feasible, grid.cell.number, -1)
        better = _better((cost, cell), (best["cost"][part], best["cell"][part]))
        best["cost"][part] = np.where(better, cost, best["cost"][part])
        best["cell"][part] = np.where(better, cell, best["cell"][part])
        return best

    def merge(self, first: Reduced, second: Reduced) -> Reduced:
        """The better of two, the smaller cell number where they tie; ``first`` becomes it."""
        better = _better((second["cost"], second["cell"]), (first["cost"], first["cell"]))
        for name, values in first.items():
            np.copyto(values, second[name], where=better)
        return first


def _better(
    new: tuple[NDArray[Any], NDArray[Any]], old: tuple[NDArray[Any], NDArray[Any]]
) -> NDArray[np.bool_]:
    """Where a (cost, cell) is better than another."""
    less: NDArray[np.bool_] = new[0] < old[0]
    return less | ((new[0] == old[0]) & _earlier(new[1], old[1]))


def _earlier(second: NDArray[Any], first: NDArray[Any]) -> NDArray[np.bool_]:
    return (second >= 0) & ((first < 0) | (second < first))


@dataclass(frozen=True)
class Every:
    """Every feasible row with these columns."""

    names: tuple[str, ...] = tuple(COLUMNS)

    def __post_init__(self) -> None:
        for name in self.names:
            _checked(name)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that must be computed."""
        return self.names

    def reduce(self, space: Space, grid: Grid) -> Reduced:
        """Feasible rows of one grid."""
        return feasible_rows(space, grid, self.names)

    def merge(self, first: Reduced, second: Reduced) -> Reduced:
        """Rows of both."""
        return _join(first, second)


Keep = Top | Pareto | Histogram | Winner | Every


def parse_keep(text: str | Mapping[str, Any] | Keep) -> Keep:
    """Read what to keep from words.

    >>> parse_keep("top 5 by decode_bound_s")
    Top(by='decode_bound_s', count=5, also=())
    >>> parse_keep("pareto")
    Pareto(x='tokens_per_s_per_user', y='tokens_per_s_per_accelerator')
    """
    if not isinstance(text, str):
        return text  # type: ignore[return-value]
    words = text.replace(",", " ").split()
    match words:
        case ["top", count, "by", column] if count.isdigit():
            return Top(column, int(count))
        case ["top", count] if count.isdigit():
            return Top("tokens_per_s_per_accelerator", int(count))
        case ["pareto"]:
            return Pareto()
        case ["pareto", x, y]:
            return Pareto(x, y)
        case ["winner"]:
            return Winner()
        case ["winner", "by", column]:
            return Winner(column)
        case ["all"]:
            return Every()
        case ["all", *names]:
            return Every(tuple(names))
        case ["histogram", column, *edges] if edges:
            try:
                return Histogram(column, tuple(float(edge) for edge in edges))
            except ValueError:
                raise InputError(f"histogram edges are numbers, got {' '.join(edges)}") from None
    raise InputError(
        f"cannot keep {text!r}; write 'top 10 by COLUMN', 'pareto [X Y]', 'winner by COLUMN', "
        "'histogram COLUMN EDGE EDGE …' or 'all [COLUMN …]'"
    )
