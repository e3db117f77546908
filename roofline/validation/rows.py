"""Published rows of both tables, with the running batch of each run.

Rows of one run share what the run measured besides; a running batch follows from that by Little's
law (``row`` has the definitions).

Sources  [1] Little 1961, Operations Research 9(3), 383-387: mean number in a system = rate × time.
"""

import functools
from dataclasses import replace

from roofline.validation.published import table_lines
from roofline.validation.row import Row
from roofline.validation.row_lines import engine_line_rows, serving_row

__all__ = ["Row", "all_rows", "engine_rows", "running_batch", "serving_rows"]

_OWN = ("id", "metric", "value", "unit", "scope", "flag")


def _runs(lines: tuple[dict[str, str], ...]) -> list[int]:
    """Number the runs: lines alike in all but the metric; a repeated metric starts another."""
    seen: dict[tuple[str, ...], int] = {}
    numbers: dict[tuple[tuple[str, ...], int], int] = {}
    runs = []
    for line in lines:
        key = tuple(cell for name, cell in line.items() if name not in _OWN)
        with_metric = (*key, line["metric"])
        seen[with_metric] = seen.get(with_metric, 0) + 1
        runs.append(numbers.setdefault((key, seen[with_metric]), len(numbers)))
    return runs


def _with_batch(rows: list[Row]) -> list[Row]:
    """Give every row of one run what the run measured beside it, and its running batch."""
    values = {row.quantity: row.value for row in rows}
    ttft_s, tpot_s, rate = (values.get(name) for name in ("ttft", "tpot", "output_rate"))
    return [
        replace(
            row,
            running_batch=batch,
            batch_basis=basis,
            run_ttft_s=ttft_s,
            run_tpot_s=tpot_s,
            run_output_rate=rate,
        )
        for row in rows
        for batch, basis in (running_batch(row, ttft_s, tpot_s, rate),)
    ]


def running_batch(
    row: Row, ttft_s: float | None, tpot_s: float | None, output_rate: float | None
) -> tuple[float, str]:
    """Sequences that were decoded together, and how that is known.

        cap × decode / (decode + TTFT), decode = TPOT × (output − 1)     or     output rate × TPOT

    whichever is smaller: a cap need not be reached, and not all requests last to the end.

    >>> from dataclasses import replace
    >>> row = replace(serving_rows()[0], load="concurrency", batch=64.0, output_tokens=101.0)
    >>> running_batch(row, 1.0, 0.03, None)  # 3 s of decode beside 1 s of waiting and prefill
    (48.0, 'little')
    """
    if row.disaggregated and row.dataset == "engines":
        return 1.0, "least"  # over how many decode workers the requests spread is not stated
    if row.load in ("single_stream", "fixed_batch") and row.batch:
        return row.batch, "stated"
    if row.load == "concurrency" and row.batch == 1:
        return 1.0, "stated"
    found: list[tuple[float, str]] = []
    if row.load == "concurrency" and row.batch and ttft_s and tpot_s and row.output_tokens:
        decode_s = tpot_s * max(row.output_tokens - 1, 1)
        found.append((row.batch * decode_s / (decode_s + ttft_s), "little"))
    if row.batch and tpot_s and output_rate:
        found.append((min(output_rate * tpot_s, row.batch), "rate"))
    if found and row.load in ("concurrency", "all_at_once"):
        batch, basis = min(found)
        return max(batch, 1.0), basis
    return 1.0, "least"


def _joined(rows: list[Row]) -> tuple[Row, ...]:
    runs: dict[int, list[Row]] = {}
    for row in rows:
        runs.setdefault(row.run, []).append(row)
    return tuple(row for run in runs.values() for row in _with_batch(run))


@functools.lru_cache(maxsize=1)
def serving_rows() -> tuple[Row, ...]:
    """Rows of the table of end-to-end measurements, about 20 engines on 40 families.

    >>> len(serving_rows())
    5263
    """
    lines = table_lines("serving")
    numbered = zip(lines, _runs(lines), strict=True)
    return _joined([serving_row(line, run) for line, run in numbered])


@functools.lru_cache(maxsize=1)
def engine_rows() -> tuple[Row, ...]:
    """TTFT and TPOT rows of vLLM, SGLang and TensorRT-LLM by concurrency.

    >>> len(engine_rows()) // 2  # a TTFT and a TPOT of each run, where both are there
    2137
    """
    lines = table_lines("engines")
    return _joined([row for run, line in enumerate(lines) for row in engine_line_rows(line, run)])


def all_rows() -> tuple[Row, ...]:
    """Rows of both tables."""
    return serving_rows() + engine_rows()
