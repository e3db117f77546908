"""Lengths of prompts and answers: fixed, log-normal or recorded, and the checks of what is given.

Shapes   ``draw`` gives an array of one element a request; a recorded pair stays a pair.
Units    token.
"""

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roofline.errors import InputError, SpecError
from roofline.files import read_text

MAX_FILE_BYTES = 64_000_000
MAX_TOKENS = 100_000_000
"""Longest request taken at its word; past that a length is a slip."""

_PROMPT_COLUMNS = ("prompt_tokens", "input_tokens", "input", "prompt", "isl")
_OUTPUT_COLUMNS = ("output_tokens", "completion_tokens", "output", "completion", "osl")


def checked(name: str, value: object, *, least: float = 0.0, most: float = math.inf) -> float:
    """Take a number that is finite, not a bool and within its limits.

    Raises:
        InputError: it is none.

    >>> checked("requests_per_s", 50)
    50.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name} needs a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number) or not least <= number <= most:
        upper = f" and at most {most:g}" if math.isfinite(most) else ""
        raise InputError(f"{name} needs to be at least {least:g}{upper}, got {value!r}")
    return number


def checked_tokens(name: str, value: object, *, least: int = 1) -> int:
    """Take a whole number of tokens.

    >>> checked_tokens("output_tokens", 512)
    512
    """
    number = checked(name, value, least=least, most=MAX_TOKENS)
    if number != int(number):
        raise InputError(f"{name} needs a whole number, got {value!r}")
    return int(number)


@dataclass(frozen=True)
class LogNormal:
    """Lengths whose logarithm is normal, given by their mean and coefficient of variation.

    >>> LogNormal(mean=1000, variation=0.5).mean
    1000
    """

    mean: float
    variation: float = 1.0

    def __post_init__(self) -> None:
        checked("mean length", self.mean, least=1, most=MAX_TOKENS)
        checked("coefficient of variation", self.variation, most=100)

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw whole lengths of at least one token."""
        sigma_squared = math.log1p(self.variation**2)
        mu = math.log(self.mean) - sigma_squared / 2  # so that the mean is kept
        drawn = rng.lognormal(mu, math.sqrt(sigma_squared), count)
        return np.clip(np.rint(drawn), 1, MAX_TOKENS).astype(np.int64)


@dataclass(frozen=True)
class Empirical:
    """Recorded (prompt, output) pairs; whole pairs are drawn, so their correlation is kept.

    >>> Empirical(((100, 10), (300, 30))).mean_prompt_tokens
    200.0
    """

    pairs: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.pairs:
            raise InputError("an empirical length distribution needs at least one (prompt, output)")
        for prompt, output in self.pairs:
            checked_tokens("prompt_tokens", prompt)
            checked_tokens("output_tokens", output)

    @property
    def mean_prompt_tokens(self) -> float:
        """Mean prompt length."""
        return float(np.mean([prompt for prompt, _ in self.pairs]))

    @property
    def mean_output_tokens(self) -> float:
        """Mean output length."""
        return float(np.mean([output for _, output in self.pairs]))


def load_lengths(path: str | Path) -> Empirical:
    """Read (prompt, output) pairs from a CSV with a header, or from JSON lines.

    Columns are ``prompt_tokens`` and ``output_tokens`` (also ``input_tokens``, ``isl``, …).

    Raises:
        SpecError: the file does not read, has no such columns, or a row has no whole number.
    """
    file = Path(path)
    text = read_text(file, most_bytes=MAX_FILE_BYTES, what="lengths")
    rows: list[tuple[int, dict[str, object]]] = []
    if file.suffix.lower() in (".jsonl", ".ndjson", ".json"):
        for line_number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise SpecError(f"{file}:{line_number}: no JSON object on this line") from None
            if not isinstance(row, dict):
                raise SpecError(f"{file}:{line_number}: need an object, got {type(row).__name__}")
            rows.append((line_number, row))
    else:
        try:
            reader = csv.DictReader(text.splitlines(), strict=True)
            rows = [(reader.line_num, dict(row)) for row in reader]
        except csv.Error as error:
            raise SpecError(f"{file}: no CSV: {error}") from None
    if not rows:
        raise SpecError(f"{file}: no rows; need a header and (prompt_tokens, output_tokens) rows")
    pairs = tuple(
        (
            _length(file, number, row, _PROMPT_COLUMNS),
            _length(file, number, row, _OUTPUT_COLUMNS),
        )
        for number, row in rows
    )
    return Empirical(pairs)


def _length(file: Path, line: int, row: dict[str, object], columns: tuple[str, ...]) -> int:
    known = {str(key).strip().lower(): value for key, value in row.items()}
    for column in columns:
        if column in known:
            value = known[column]
            try:
                number = float(value) if isinstance(value, str) else value
                return checked_tokens(column, number)
            except ValueError as error:
                raise SpecError(f"{file}:{line}: {column} {value!r}: {error}") from None
    raise SpecError(f"{file}:{line}: no column {columns[0]}; found {', '.join(sorted(known)[:8])}")


def longest(value: int | LogNormal | None) -> int:
    """Length that 99.9 % of the requests stay below."""
    if isinstance(value, LogNormal):
        sigma_squared = math.log1p(value.variation**2)
        quantile = 3.09  # of the standard normal at 99.9 %
        return math.ceil(
            value.mean * math.exp(quantile * math.sqrt(sigma_squared) - sigma_squared / 2)
        )
    return int(value or 0)


def draw(value: int | LogNormal | None, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw lengths; all alike where they are fixed."""
    if isinstance(value, LogNormal):
        return value.draw(count, rng)
    return np.full(count, int(value or 0), dtype=np.int64)
