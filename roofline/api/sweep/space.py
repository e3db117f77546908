"""Space: what a sweep ranges over, as lists of names and axes of numbers.

A cell is one choice of everything that has a name (model, accelerator, plan, formats, engine); its
grid is batch × lengths. Rows are numbered cell by cell, batch by batch, length by length: that
number is a row's identity, whatever process evaluates it.

Shapes   grid [batch, lengths]; lengths are the pairs of prompt and output tokens, prompt first.
Limits   A YAML file of a space has these fields as keys, and axes as lists or as
         ``{from, to, step}`` or ``{from, to, count, scale: log}``.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError, RooflineError, UnknownNameError
from roofline.hardware.accelerator import accelerator_ids, load_accelerator
from roofline.hardware.yaml_file import read_yaml
from roofline.models.config import load_model
from roofline.serving.deployment import Deployment, deploy
from roofline.timing.parallel import Parallel

LARGEST_AXIS = 2_000_000
"""Values of one axis, and pairs of prompt and output tokens: what one process can list."""
OWN = "own"
"""The checkpoint's own format."""
_PLAN_FIELDS = ("tp", "pp", "dp", "ep")


@dataclass(frozen=True)
class Cell:
    """One choice of everything that has a name; ``number`` is its place in the space."""

    number: int
    model: str
    accelerator: str
    parallel: Parallel
    weights: str
    kv: str
    engine: str

    def deployment(self, machine: str | None = None) -> Deployment:
        """Resolve the cell.

        Raises:
            RooflineError: the cell cannot be: a plan that does not divide, a type not there.
        """
        return deploy(
            load_model(self.model),
            load_accelerator(self.accelerator),
            parallel=self.parallel,
            weights=None if self.weights == OWN else self.weights,
            kv=None if self.kv == OWN else self.kv,
            engine=self.engine,
            machine=machine,
        )


@dataclass(frozen=True)
class Space:
    """What a sweep ranges over.

    Args:
        models, accelerators: names; ``("all",)`` for every accelerator.
        parallel: plans.
        weights, kv: formats, or ``own`` for the checkpoint's.
        engines: engine names.
        batch, prompt_tokens, output_tokens: axes of whole numbers of at least 1.
        machine: spec id of a measured record for estimates, or None.

    >>> space = Space(("llama-3.1-8b",), ("h200-sxm-141gb", "l40s"), batch=(1, 8))
    >>> space.n_cells, space.n_rows
    (2, 4)
    """

    models: tuple[str, ...]
    accelerators: tuple[str, ...]
    parallel: tuple[Parallel, ...] = (Parallel(),)
    weights: tuple[str, ...] = (OWN,)
    kv: tuple[str, ...] = (OWN,)
    engines: tuple[str, ...] = ("ideal",)
    batch: Sequence[int] = (1,)
    prompt_tokens: Sequence[int] = (2048,)
    output_tokens: Sequence[int] = (256,)
    machine: str | None = None

    def __post_init__(self) -> None:
        if "all" in self.accelerators:
            named = [name for name in self.accelerators if name != "all"]
            every = dict.fromkeys((*named, *accelerator_ids()))
            object.__setattr__(self, "accelerators", tuple(every))
        for name in ("models", "accelerators", "parallel", "weights", "kv", "engines"):
            if not getattr(self, name):
                raise InputError(f"a space needs at least one of {name}")
        for name in ("batch", "prompt_tokens", "output_tokens"):
            object.__setattr__(self, name, tuple(_axis(name, getattr(self, name))))
        pairs = len(self.prompt_tokens) * len(self.output_tokens)
        if pairs > LARGEST_AXIS:
            raise InputError(
                f"{pairs:,} pairs of prompt and output tokens are more than {LARGEST_AXIS:,}; "
                "take wider steps, or divide the space"
            )
        if self.machine is not None and not isinstance(self.machine, str | Path):
            raise InputError(f"machine is a spec id or a record's path, got {self.machine!r}")

    @property
    def n_cells(self) -> int:
        """Cells of the space."""
        names = (self.models, self.accelerators, self.parallel, self.weights, self.kv, self.engines)
        return math.prod(len(choices) for choices in names)

    @property
    def rows_per_cell(self) -> int:
        """Rows of one cell's grid."""
        return len(self.batch) * len(self.prompt_tokens) * len(self.output_tokens)

    @property
    def n_rows(self) -> int:
        """Rows of the space, feasible or not."""
        return self.n_cells * self.rows_per_cell

    def cells(self) -> Iterator[Cell]:
        """Cells in the order of their numbers."""
        choices = itertools.product(
            self.models, self.accelerators, self.parallel, self.weights, self.kv, self.engines
        )
        for number, names in enumerate(choices):
            yield Cell(number, *names)

    @cached_property
    def batch_axis(self) -> NDArray[np.float64]:
        """Batches, [batch, 1]."""
        return np.array(self.batch, dtype=float)[:, None]

    @cached_property
    def lengths(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Prompt and output tokens of each pair, each [1, lengths]."""
        prompt, output = np.meshgrid(
            np.array(self.prompt_tokens, dtype=float),
            np.array(self.output_tokens, dtype=float),
            indexing="ij",
        )
        return prompt.reshape(1, -1), output.reshape(1, -1)


def _axis(name: str, values: Any) -> Sequence[int]:
    if isinstance(values, Mapping):
        values = _range(name, values)
    if isinstance(values, str):
        raise InputError(f"{name} is whole numbers of at least 1, got {values!r}")
    try:
        numbers = list(values) if not isinstance(values, int) else [values]
    except TypeError:
        raise InputError(f"{name} is whole numbers of at least 1, got {values!r}") from None
    if not numbers:
        raise InputError(f"{name} is an empty axis")
    if len(numbers) > LARGEST_AXIS:
        raise InputError(f"{name}: more than {LARGEST_AXIS:,} values")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise InputError(f"{name} is whole numbers of at least 1, got {number!r}")
        if number > 2**31:
            raise InputError(f"{name} has {number}, which is more than {2**31:,}")
    return [int(number) for number in numbers]


def _range(name: str, given: Mapping[str, Any]) -> Sequence[int]:
    known = {"from", "to", "step", "count", "scale"}
    extra = set(given) - known
    if extra or "from" not in given or "to" not in given:
        raise InputError(
            f"{name}: an axis is a list or {{from, to, step}} or {{from, to, count, scale: log}}, "
            f"got {dict(given)}"
        )
    first, last = given["from"], given["to"]
    for number in (first, last, given.get("step", 1), given.get("count", 1)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InputError(f"{name}: from, to, step and count are whole numbers of at least 1")
    if last < first:
        raise InputError(f"{name}: from {first} is more than to {last}")
    if given.get("scale", "linear") not in ("linear", "log"):
        raise InputError(f"{name}: scale is linear or log, got {given['scale']!r}")
    if "count" in given and "step" in given:
        raise InputError(f"{name}: step and count exclude each other")
    if "scale" in given and "count" not in given:
        raise InputError(f"{name}: a scale needs a count")
    if "count" in given:
        if given["count"] > LARGEST_AXIS:
            raise InputError(f"{name}: more than {LARGEST_AXIS:,} values")
        spaced = np.geomspace if given.get("scale") == "log" else np.linspace
        return np.unique(np.round(spaced(first, last, given["count"]))).astype(int).tolist()
    if (last - first) // given.get("step", 1) > LARGEST_AXIS:
        raise InputError(f"{name}: more than {LARGEST_AXIS:,} values")
    return range(first, last + 1, given.get("step", 1))


def load_space(source: "str | Path | Mapping[str, Any] | Space") -> Space:
    """Read a space from a YAML file, a mapping, or take it as it is.

    Raises:
        InputError: an unknown field, or a value that cannot be.
        SpecError: a file that does not load.

    >>> load_space({"models": ["llama-3.1-8b"], "accelerators": ["t4"], "parallel": [{"tp": 2}],
    ...             "batch": {"from": 1, "to": 64, "count": 7, "scale": "log"}}).batch
    (1, 2, 4, 8, 16, 32, 64)
    """
    if isinstance(source, Space):
        return source
    if isinstance(source, str | Path):
        source = read_yaml(Path(source)).value
    if not isinstance(source, Mapping):
        raise InputError("a space is a mapping with models, accelerators, batch, prompt_tokens, …")
    known = tuple(Space.__dataclass_fields__)
    extra = [str(key) for key in source if key not in known]
    if extra:
        raise InputError(f"a space has no field {extra[0]!r}; it has {', '.join(known)}")
    fields: dict[str, Any] = {}
    for name, value in source.items():
        if name == "parallel":
            fields[name] = tuple(_plan(plan) for plan in _listed(value))
        elif name in ("batch", "prompt_tokens", "output_tokens"):
            fields[name] = _axis(name, value)
        elif name == "machine":
            fields[name] = value
        else:
            fields[name] = tuple(str(item) for item in _listed(value))
    for name in ("models", "accelerators"):
        if name not in fields:
            raise InputError(f"a space needs {name}")
    return Space(**fields)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _plan(value: Any) -> Parallel:
    if isinstance(value, Parallel):
        return value
    if not isinstance(value, Mapping) or set(value) - set(_PLAN_FIELDS):
        raise InputError(f"a plan is a mapping of tp, pp, dp, ep, got {value!r}")
    return Parallel(**value)


def refusal(cell: Cell, machine: str | None = None) -> str | None:
    """Say why a cell cannot be, or None.

    Raises:
        UnknownNameError: nothing has such a name.
    """
    try:
        cell.deployment(machine)
    except UnknownNameError:
        raise  # a mistyped name is of every cell, not of this one
    except RooflineError as error:
        return str(error)
    return None
