"""Refit everything that is shipped: ``python -m roofline.validation.fitting [machine ...]``.

Writes measurements/calibration/engines.json and one file per machine named, and prints the error of
each group, so that a change of a term or a new record is judged by the same rows as before.
"""

import sys
from pathlib import Path

import numpy as np

from roofline.calibration.store import Calibration, write_calibration
from roofline.validation.exclusions import judged_rows
from roofline.validation.fitting.engines import fit_engine
from roofline.validation.fitting.machine import calibrate

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "gpt-fast", "transformers")
FOLDER = Path(__file__).resolve().parents[3] / "measurements" / "calibration"


def fit_engines() -> Calibration:
    """Fit every engine that published rows judge, and print the held-out errors."""
    engines = {}
    for name in ENGINES:
        engines[name], held = fit_engine(name, judged_rows(engine=name))
        for quantity in ("tpot", "e2e", "ttft"):
            rows = [item for item in held if item.parts.row.quantity == quantity]
            if rows:
                error = np.abs([1 / item.ratio - 1 for item in rows])
                print(
                    f"{name:14} {quantity:5} {len(rows):5} rows   held out: "
                    f"median {np.median(error):.1%}   p90 {np.quantile(error, 0.9):.1%}"
                )
    return Calibration(
        1, "", "published rows in measurements/published, as their sources date them", None, engines
    )


def main(machines: list[str]) -> None:
    """Fit engines and the machines named, and write the files."""
    print(write_calibration(fit_engines(), FOLDER / "engines.json"))
    for machine in machines:
        calibration = calibrate(machine)
        for what, rows, mean, worst, words in calibration.residuals:
            print(f"{what:42} {rows:4} rows   mean {mean:.1%}   p90 {worst:.1%}   {words}")
        print(write_calibration(calibration, FOLDER / f"{machine}.json"))


if __name__ == "__main__":
    main(sys.argv[1:])
