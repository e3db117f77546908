"""Time the reading of a synthetic profiler trace of about 100 MB, with each reader.

    python benchmarks/trace_reading.py [--megabytes 100] [--folder DIR]

The trace has launches and kernels in the fields that torch.profiler writes, with operators and
shapes for every third kernel; its busy time is known and compared.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from roofline.trace.reader import read_trace
from roofline.trace.result import summarise

KERNEL_US, PERIOD_US = 4.0, 10.0


def write_trace(path, megabytes):
    """Write kernels every 10 µs that run 4 µs each; give their number."""
    written, n = 0, 0
    with path.open("w") as file:
        written += file.write('{"schemaVersion": 1, "traceEvents": [\n')
        while written < megabytes * 1e6:
            start = 5e12 + PERIOD_US * n
            kernel = {
                "ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": start, "dur": KERNEL_US,
                "name": f"nvjet_sm90_tst_{64 + n % 40}x8_64x16_4x1_v_bz_TNT",
                "args": {
                    "External id": n, "queued": 0, "device": 0, "context": 1, "stream": 7,
                    "correlation": n, "registers per thread": 168, "shared memory": 196608,
                    "blocks per SM": 0.242424, "warps per SM": 0.969697, "grid": [32, 1, 1],
                    "block": [128, 1, 1], "est. achieved occupancy %": 2,
                },
            }  # fmt: skip
            launch = {
                "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 672,
                "tid": 672, "ts": start - 6, "dur": 5.0,
                "args": {"External id": n, "cbid": 211, "correlation": n},
            }  # fmt: skip
            events = [kernel, launch]
            if n % 3 == 0:
                events.append({
                    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 672, "tid": 672,
                    "ts": start - 8, "dur": 7.5,
                    "args": {
                        "External id": n, "Concrete Inputs": ["", ""], "Ev Idx": n,
                        "Input type": ["c10::BFloat16", "c10::BFloat16"],
                        "Input Dims": [[1, 2048], [2048, 256]],
                    },
                })  # fmt: skip
            for event in events:
                written += file.write((",\n" if n or event is not kernel else "")
                                      + json.dumps(event))  # fmt: skip
            n += 1
        file.write("\n]}\n")
    return n


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "synthetic.json"
        n = write_trace(path, given.megabytes)
        print(f"{path.stat().st_size / 1e6:.1f} MB, {n:,} kernels")
        for reader in ("msgspec", "json"):
            begin = time.perf_counter()
            trace = read_trace(path, reader=reader)
            read_s = time.perf_counter() - begin
            summary = summarise(trace).only.summary
            total_s = time.perf_counter() - begin
            expected = n * KERNEL_US * 1e-6
            print(
                f"{reader:8} read {read_s:5.2f} s, with summary {total_s:5.2f} s; busy "
                f"{summary.busy_s:.6f} s, expected {expected:.6f} s"
            )


if __name__ == "__main__":
    main()
