"""Baseline: the health of this node in a few minutes, as one record to compare later ones with.

    python -m roofline.measure.baseline --output FOLDER [--node NAME]

Under srun or torchrun one process a node measures (local rank 0) and the others leave; each node
writes its own file, and ``roofline baseline compare`` merges them.

Units    Those of ``roofline.hardware.node_record``.
Limits   Probes take seconds each: they find what is broken, they do not replace the sweeps of
         ``roofline measure``. Without nvidia-smi clocks, power and links stay unknown.
Sources  [1] NVIDIA, nvidia-smi manual (``--query-gpu``, ``topo -m``, ``nvlink -s``).
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roofline.errors import InputError, RooflineError
from roofline.hardware.node_record import (
    DeviceHealth,
    NodeRecord,
    Probe,
    save_node_record,
    without_identifiers,
)
from roofline.hardware.smi import OLDER_NAMES, QUERY_FIELDS, parse_query
from roofline.measure import probes
from roofline.measure.framework import torch

_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
_SETTINGS = (
    "CUDA_VISIBLE_DEVICES", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_IB_DISABLE", "NCCL_ALGO",
    "NCCL_PROTO", "NCCL_NVLS_ENABLE", "NCCL_SOCKET_IFNAME", "NCCL_NET_GDR_LEVEL",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "CUDA_DEVICE_ORDER", "OMP_NUM_THREADS",
)  # fmt: skip
_TIMEOUT_S = 30.0


def run_tool(*command: str) -> str:
    """What a tool prints; empty when it is missing, fails or hangs."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def device_states() -> tuple[DeviceHealth, ...]:
    """State of every device by nvidia-smi; empty without it."""
    text, fields = _query(QUERY_FIELDS)
    try:
        return parse_query(text, fields) if text else ()
    except InputError:
        return ()


def _query(fields: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Query all fields; where a driver does not know one, only those that it knows."""
    text = _smi(fields)
    if text:
        return text, fields
    older = tuple(OLDER_NAMES.get(name, name) for name in fields)
    text = _smi(older)
    if text:
        return text, older
    known = tuple(name for name in older if _smi((name,)))
    return (_smi(known), known) if known else ("", ())


def _smi(fields: tuple[str, ...]) -> str:
    return run_tool(
        "nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"
    )


def measure_baseline(
    *, node: str = "", device: str = "auto", say: Callable[[str], None] = lambda _: None
) -> NodeRecord:
    """Measure this node.

    Args:
        node: its name; the host's own when empty.
        device: "cuda", "cpu" or "auto", CUDA when there is one.
        say: told what runs.

    Raises:
        MissingPackageError: torch is not installed.
        InputError: device "cuda" without one.
    """
    began = time.perf_counter()
    if device not in ("auto", "cuda", "cpu"):
        raise InputError(f"no device {device!r}; use auto, cuda or cpu")
    has_cuda = bool(torch.cuda.is_available())
    if device == "cuda" and not has_cuda:
        raise InputError("no CUDA device here; use device='cpu' or run it on the server")
    use_cuda = has_cuda and device != "cpu"
    count = int(torch.cuda.device_count()) if use_cuda else 1
    found: list[Probe] = []
    warnings: list[str] = []
    states = device_states() if use_cuda else ()
    for index in range(count):
        place = torch.device(f"cuda:{index}" if use_cuda else "cpu")
        _collect(found, warnings, f"device {index}", _device_probes(place, index), say)
    peers: list[tuple[int, int]] = []
    if use_cuda and count > 1:
        peers = [
            (i, j)
            for i in range(count)
            for j in range(count)
            if i != j and torch.cuda.can_device_access_peer(i, j)
        ]
        _collect(found, warnings, "peer to peer", probes.peer_probes(count), say)
        _collect(found, warnings, "all-reduce", probes.all_reduce_probes(count), say)
    if use_cuda and not states:
        warnings.append("nvidia-smi gave no state: clocks, power, ECC and links are unknown")
        states = tuple(_from_torch(index) for index in range(count))
    return NodeRecord(
        node=(node or platform.node() or "node")[:300],
        date=datetime.now(UTC).replace(microsecond=0),
        command="python -m roofline.measure.baseline",
        software=_software(use_cuda),
        runtime_path=_runtime_path(use_cuda),
        host=_host(),
        devices=states,
        peer_access=tuple(peers),
        topology_text=without_identifiers(run_tool("nvidia-smi", "topo", "-m")),
        nvlink_text=without_identifiers(run_tool("nvidia-smi", "nvlink", "-s")),
        probes=tuple(found),
        duration_s=round(time.perf_counter() - began, 1),
        warnings=tuple(warnings),
    )


def _device_probes(place: Any, index: int) -> Iterator[Probe]:
    def under_load() -> DeviceHealth | None:
        if place.type != "cuda":
            return None
        states = device_states()
        return states[index] if index < len(states) else None

    yield from probes.memory_probes(place, index)
    yield from probes.compute_probes(place, index, under_load)
    yield probes.launch_probe(place, index)
    yield from probes.host_probes(place, index)
    if place.type == "cuda":
        torch.cuda.empty_cache()


def _collect(
    found: list[Probe],
    warnings: list[str],
    what: str,
    source: Iterator[Probe],
    say: Callable[[str], None],
) -> None:
    """Take probes until one fails; a device that is too broken to finish still gets a record."""
    say(f"probing {what}")
    try:
        found.extend(source)
    except RuntimeError as error:  # torch raises it for every fault of a device
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else "failed"
        warnings.append(f"{what}: stopped by {type(error).__name__}: {reason}"[:300])


def _from_torch(index: int) -> DeviceHealth:
    shown = torch.cuda.get_device_properties(index)
    return DeviceHealth(index=index, name=str(shown.name), memory_bytes=int(shown.total_memory))


def _software(use_cuda: bool) -> dict[str, str]:
    versions = {"python": platform.python_version(), "torch": str(torch.__version__)}
    versions["kernel"] = platform.release()
    if use_cuda:
        versions["cuda"] = str(torch.version.cuda or torch.version.hip)
        versions["cudnn"] = str(torch.backends.cudnn.version())
        try:
            versions["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        except (RuntimeError, AttributeError):
            versions["nccl"] = "not there"
        driver = run_tool("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        if driver:
            versions["driver"] = driver.splitlines()[0].strip()
    return versions


def _runtime_path(use_cuda: bool) -> dict[str, str]:
    path = {name: os.environ[name][:300] for name in _SETTINGS if name in os.environ}
    if use_cuda:
        backends = torch.backends.cuda
        path["attention"] = ", ".join(
            name
            for name, enabled in (
                ("flash", backends.flash_sdp_enabled()),
                ("memory-efficient", backends.mem_efficient_sdp_enabled()),
                ("cudnn", backends.cudnn_sdp_enabled()),
                ("math", backends.math_sdp_enabled()),
            )
            if enabled
        )
        path["tf32"] = str(bool(backends.matmul.allow_tf32))
        path["matmul library"] = str(backends.preferred_blas_library()).rsplit(".", 1)[-1]
    return path


def _host() -> dict[str, str]:
    found = {"machine": platform.machine(), "cpus": str(os.cpu_count())}
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                found["cpu"] = line.split(":", 1)[1].strip()[:300]
                break
        nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
        found["numa_nodes"] = str(len(nodes))
        total = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()[0].split()[1]
        found["memory_bytes"] = str(int(total) * 1024)
    except (OSError, IndexError, ValueError):
        pass
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure this node and write its record."""
    parser = argparse.ArgumentParser(
        prog="python -m roofline.measure.baseline", description=__doc__
    )
    parser.add_argument("--output", default=".", help="a .json file, or a folder")
    parser.add_argument("--node", default="", help="name of this node")
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "cpu"))
    given = parser.parse_args(arguments)
    for name in _LOCAL_RANKS:
        if os.environ.get(name, "0") not in ("", "0"):
            print(f"{name}={os.environ[name]}: local rank 0 measures this node", file=sys.stderr)
            return 0
    try:
        record = measure_baseline(
            node=given.node, device=given.device, say=lambda text: print(text, file=sys.stderr)
        )
        path = save_node_record(record, given.output)
    except RooflineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
