"""Speed: predict, sweep and start-up beside a bare numpy loop of the same formula, in one run.

    python benchmarks/speed.py           full: 50 million configurations
    python benchmarks/speed.py --short   what CI runs: 4 million

The bare loop computes the decode bound of a dense model with numbers typed in: it is the limit of
what numpy does in one process, without names, memory checks or reduction. Ratios of one run
compare; absolute times are this machine's of this minute. Installed peers are timed too.
"""

import argparse
import importlib.util
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

import roofline
from roofline.api.sweep.run import sweep

PEERS = ("servcalc", "ridgepoint", "llm_cal", "aiconfigurator")
MODELS = ["llama-3.1-8b", "qwen2.5-7b"]
ACCELERATORS = ["h200-sxm-141gb", "h100-sxm5-80gb"]


def bare_loop(n_batch: int, n_context: int, cells: int) -> float:
    """The decode bound of Llama-3.1-8B on an H200, top one, with the chunks a sweep would take."""
    begin = time.perf_counter()
    batch = np.arange(1.0, n_batch + 1)[:, None]
    context = np.linspace(128, 32_768, n_context)[None, :]
    for _ in range(cells):
        best = np.inf
        step = max(16 * 2**20 // (160 * n_context), 1)
        for first in range(0, n_batch, step):
            part = batch[first : first + step]
            memory_s = (15.01e9 + 131_072 * part * context) / 4.8e12
            compute_s = (15.01e9 * part + 524_288 * part * context) / 989.4e12
            best = min(best, float(np.maximum(memory_s, compute_s).min()))
    return time.perf_counter() - begin


def space(n_batch: int, n_context: int) -> dict:
    contexts = np.unique(np.linspace(128, 32_768, n_context).round().astype(int)).tolist()
    return {
        "models": MODELS,
        "accelerators": ACCELERATORS,
        "batch": {"from": 1, "to": n_batch},
        "prompt_tokens": contexts,
        "output_tokens": [256],
    }


def timed(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def shell(command: list[str], runs: int) -> float:
    return statistics.median(
        timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
        for _ in range(runs)
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--short", action="store_true")
    short = arguments.parse_args().short
    n_batch, n_context = (40, 25_000) if short else (500, 25_000)
    cells = len(MODELS) * len(ACCELERATORS)
    rows = cells * n_batch * n_context
    limit_s = bare_loop(n_batch, n_context, cells)
    print(f"{'bare numpy loop':34} {rows / limit_s / 1e6:8.1f} M/s    1.00 of the loop")
    for keep in ("top 10 by decode_bound_s", "top 10 by decode_s", "pareto"):
        sweep(space(2, 50), keep)  # names are resolved once
        took_s = timed(lambda keep=keep: sweep(space(n_batch, n_context), keep))
        rate = rows / took_s / 1e6
        print(f"sweep, {keep:27} {rate:8.1f} M/s    {limit_s / took_s:.2f} of the loop")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{'peak memory of this process':34} {peak / 1e6:8.0f} MB")
    count = 50 if short else 500
    roofline.predict("llama-3.1-8b", "h200-sxm-141gb", batch=32)
    each = [
        timed(lambda: roofline.predict("llama-3.1-8b", "h200-sxm-141gb", batch=32))
        for _ in range(count)
    ]
    print(f"{'predict, median':34} {statistics.median(each) * 1e3:8.2f} ms")
    runs = 3 if short else 9
    bare = shell([sys.executable, "-c", "pass"], runs)
    imported = shell([sys.executable, "-c", "import roofline"], runs)
    print(f"{'import roofline, over bare python':34} {(imported - bare) * 1e3:8.0f} ms")
    job = "import sys; from roofline.cli.main import run; sys.exit(run(sys.argv[1:]))"
    line = [sys.executable, "-c", job, "predict", "llama-3.1-8b", "h200-sxm-141gb"]
    print(f"{'roofline predict from the shell':34} {shell(line, runs) * 1e3:8.0f} ms")
    for peer in PEERS:
        if importlib.util.find_spec(peer) is None:
            print(f"{peer:34} not installed")
        else:
            took_s = shell([sys.executable, "-c", f"import {peer}"], runs)
            print(f"{'import ' + peer:34} {took_s * 1e3:8.0f} ms")


if __name__ == "__main__":
    main()
