"""Ranks: joining the process group that torchrun started, and starting one when nobody did.

Limits   One group over all ranks: NCCL on GPUs, gloo on CPUs. NCCL's own settings (NVLink
         multicast, algorithms) are the caller's environment and are left as they are.
Sources  [1] PyTorch, torchrun (environment of a rank).
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from roofline.errors import InputError, RooflineError
from roofline.measure.framework import INSTALL_LINE, distributed, installed, torch

_TIMEOUT = timedelta(seconds=120)


@dataclass(frozen=True)
class Ranks:
    """This process among its peers.

    Args:
        rank, count: this one and how many.
        device: this rank's, as torch names it.
        group: the process group, None when alone.
    """

    rank: int
    count: int
    device: Any
    group: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this rank writes and prints."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait for all."""
        if self.group is not None:
            distributed.barrier(group=self.group)

    def least(self, value: float) -> float:
        """The smallest of all ranks' values: what all can agree on."""
        if self.group is None:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=self.device)
        distributed.all_reduce(shared, op=distributed.ReduceOp.MIN, group=self.group)
        return float(shared.item())


def under_torchrun() -> bool:
    """Whether torchrun (or somebody who sets the same variables) started this process [1]."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


@contextmanager
def joined(device: str = "") -> Iterator[Ranks]:
    """Join the group of this run; alone outside torchrun.

    Args:
        device: ``cuda`` or ``cpu``; empty: a GPU when there is one.

    Raises:
        InputError: fewer GPUs than ranks on this node.
    """
    kind = device.split(":")[0] or ("cuda" if torch.cuda.is_available() else "cpu")
    if not under_torchrun():
        yield Ranks(0, 1, torch.device(device or kind))
        return
    local = int(os.environ.get("LOCAL_RANK", os.environ["RANK"]))
    if kind == "cuda":
        if local >= torch.cuda.device_count():
            raise InputError(
                f"rank {local} of this node has no GPU; there are {torch.cuda.device_count()}"
            )
        torch.cuda.set_device(local)
        own = torch.device("cuda", local)
        distributed.init_process_group("nccl", timeout=_TIMEOUT, device_id=own)
    else:
        own = torch.device("cpu")
        distributed.init_process_group("gloo", timeout=_TIMEOUT)
    try:
        group = distributed.group.WORLD
        yield Ranks(distributed.get_rank(), distributed.get_world_size(), own, group)
    finally:
        distributed.destroy_process_group()


def start_ranks(count: int, arguments: Sequence[str], *, timeout_s: float | None = None) -> None:
    """Run ``python -m roofline.measure`` with these arguments on ``count`` ranks of this node.

    Raises:
        InputError: fewer than two ranks.
        MissingPackageError: torch is not installed.
        RooflineError: a rank failed.
    """
    if isinstance(count, bool) or count < 2:
        raise InputError(f"a collective needs 2 ranks or more, got {count}")
    if not installed("torch"):
        from roofline.errors import MissingPackageError

        raise MissingPackageError(f"torch is not installed; {INSTALL_LINE}")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        f"--nproc-per-node={count}", "-m", "roofline.measure", *arguments,
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    try:
        done = subprocess.run(command, env=environment, check=False, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise RooflineError(f"{count} ranks did not end within {timeout_s} s") from None
    if done.returncode:
        raise RooflineError(f"{count} ranks ended with exit code {done.returncode}; see above")
