"""Builders of small traces, in the fields that torch.profiler writes."""

import gzip
import json
from pathlib import Path

import pytest

TRACES = Path(__file__).resolve().parents[2] / "measurements" / "traces"


class Builder:
    """Collects events; times in microseconds after 1,000,000,000."""

    def __init__(self):
        self.events = []
        self.head = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "Test GPU"}],
        }
        self._correlation = 0

    def event(self, category, name, start, length, *, tid=1, pid=1, zero=1e9, **args):
        entry = {
            "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
            "ts": zero + start, "dur": length, "args": args,
        }  # fmt: skip
        self.events.append(entry)
        return entry

    def kernel(self, name, start, length, *, launched=None, took=2.0, stream=7, device=0, **args):
        """A kernel, with its launch call unless ``launched`` is None."""
        self._correlation += 1
        number = args.pop("correlation", self._correlation)
        if launched is not None:
            self.event("cuda_runtime", "cudaLaunchKernel", launched, took, correlation=number)
        return self.event(
            "kernel", name, start, length, pid=device, tid=stream, device=device, stream=stream,
            correlation=number, **args,
        )  # fmt: skip

    def step(self, number, start, length):
        self.event("user_annotation", f"ProfilerStep#{number}", start, length)
        self.event("gpu_user_annotation", f"ProfilerStep#{number}", start, length, pid=0, tid=7)

    def document(self):
        return {**self.head, "traceEvents": self.events}

    def save(self, path):
        text = json.dumps(self.document())
        if str(path).endswith(".gz"):
            Path(path).write_bytes(gzip.compress(text.encode()))
        else:
            Path(path).write_text(text)
        return path


@pytest.fixture
def builder():
    return Builder()


@pytest.fixture
def new_builder():
    return Builder


@pytest.fixture
def traces():
    return TRACES
