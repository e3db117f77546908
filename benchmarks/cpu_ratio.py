"""Predict a small model's decode step from this CPU's own record, run it, and print the ratio.

    python benchmarks/cpu_ratio.py

Nothing is judged: a machine that others use is as slow as they leave it. The record is written to a
temporary folder.
"""

import tempfile
from pathlib import Path

import roofline
from roofline.hardware.measured import measured_accelerator
from roofline.measure.case import Level
from roofline.measure.device import find_target
from roofline.measure.model_run import ModelPlan, model_rows
from roofline.measure.session import measure, summary
from roofline.models.architecture import dense_decoder
from roofline.units import number, show

SMALL = dense_decoder(
    "small-90m", n_layers=6, hidden=1024, n_heads=16, n_kv_heads=4, head_dim=64,
    intermediate=2816, vocab=16384, source="made for this check",
)  # fmt: skip
CONTEXT_TOKENS = 256
"""Tokens in the cache: the prediction's decode step stands at prompt + output / 2."""


def main() -> None:
    """Measure, predict, run, compare."""
    cpu = find_target("cpu")
    with tempfile.TemporaryDirectory() as folder:
        record, path = measure(
            cpu, Level.QUICK, sections=("copy", "matmul", "attention", "launch"),
            folder=Path(folder), command="roofline measure --quick",
        )  # fmt: skip
        for name, value in summary(record):
            print(f"{name:32} {value}")
        for batch in (1, 4):
            predicted = roofline.predict(
                SMALL, measured_accelerator(record), prompt_tokens=CONTEXT_TOKENS - 1,
                output_tokens=2, batch=batch, weights="fp32", kv="fp32", machine=path,
            ).decode  # fmt: skip
            plan = ModelPlan(
                weights="fp32", batches=(batch,), contexts=(CONTEXT_TOKENS,), prompts=(),
                modes=("eager",), three_ways=False,
            )  # fmt: skip
            (row,) = model_rows(cpu, SMALL, plan)
            mid = float(predicted.estimate_s.mid)
            print(
                f"{SMALL.name} fp32, batch {batch}, context {CONTEXT_TOKENS}: predicted "
                f"{show(mid, 's')} ({predicted.limited_by}), measured {show(row.median_s, 's')}, "
                f"predicted / measured {number(mid / row.median_s)}"
            )


if __name__ == "__main__":
    main()
