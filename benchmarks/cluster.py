"""A hundred million configurations on two local Dask workers, one of them killed half-way.

    python benchmarks/cluster.py [--rows 100000000]

Prints the rate in this process and on the cluster, and whether both gave the same rows.
"""

import argparse
import os
import signal
import threading
import time

from distributed import Client, LocalCluster

from roofline.api.sweep.run import sweep


def space(rows: int) -> dict:
    batches = 200
    contexts = max(rows // (batches * 20), 1)
    return {
        "models": ["llama-3.1-8b", "qwen2.5-7b", "qwen2.5-32b", "mistral-7b", "llama-3.1-70b"],
        "accelerators": ["h200-sxm-141gb", "h100-sxm5-80gb", "a100-sxm4-80gb", "l40s"],
        "batch": {"from": 1, "to": batches},
        "prompt_tokens": {"from": 1, "to": contexts},
        "output_tokens": [128],
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=100_000_000)
    asked = space(arguments.parse_args().rows)
    keep = "top 100 by decode_bound_s"
    begin = time.perf_counter()
    here = sweep(asked, keep)
    alone_s = time.perf_counter() - begin
    rate = here.n_rows / alone_s / 1e6
    print(f"in process   {here.n_rows:,} rows in {alone_s:.1f} s, {rate:.1f} M/s")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(alone_s / 4, os.kill, (victim, signal.SIGKILL))
        timer.start()
        begin = time.perf_counter()
        there = sweep(asked, keep, client.get_executor())
        took_s = time.perf_counter() - begin
        timer.cancel()
    print(f"two workers  {there.n_rows:,} rows in {took_s:.1f} s, one of them killed")
    same = here.configurations() == there.configurations()
    print(f"same rows: {same}")
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
