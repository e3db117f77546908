"""Memory: an allocation that fails while memory is free.

Free memory has two owners: the driver (free) and torch's cache (reserved, not allocated). A block
must be whole in one of them, so their sum says nothing.

Units    bytes.
"""

from roofline.diagnose.symptoms import OutOfMemory, Symptoms
from roofline.diagnose.verdict import Verdict
from roofline.units import show

BRANCH = "memory"


def memory_verdicts(symptoms: Symptoms) -> list[Verdict]:
    """Say why an allocation failed."""
    failed = symptoms.out_of_memory
    if failed is None:
        return []
    unused = failed.free_bytes + failed.reserved_unallocated_bytes
    if failed.requested_bytes > unused:
        return [_too_little(failed, unused)]
    if failed.requested_bytes <= failed.free_bytes:
        return [_should_have_fitted(failed)]
    return [_fragmented(failed, unused)]


def _evidence(failed: OutOfMemory, unused: float) -> tuple[str, ...]:
    lines = [
        f"asked for {show(failed.requested_bytes, 'GiB', 4)} (message)",
        f"{show(failed.free_bytes, 'GiB', 4)} free with the driver (message)",
        f"{show(failed.reserved_unallocated_bytes, 'GiB', 4)} reserved by torch and not allocated "
        "(message)",
        f"{show(unused, 'GiB', 4)} unused in all (sum)",
    ]
    if failed.allocated_bytes is not None:
        lines.append(f"{show(failed.allocated_bytes, 'GiB', 4)} allocated by torch (message)")
    return tuple(lines)


def _fragmented(failed: OutOfMemory, unused: float) -> Verdict:
    return Verdict(
        branch=BRANCH,
        cause="fragmentation",
        statement=(
            f"{show(unused, 'GiB', 4)} are unused but no piece of "
            f"{show(failed.requested_bytes, 'GiB', 4)} is whole: the driver has "
            f"{show(failed.free_bytes, 'GiB', 4)} and the rest lies in torch's cache in smaller "
            "blocks"
        ),
        evidence=_evidence(failed, unused),
        confidence="high",
        refuted_by="torch.cuda.memory_snapshot() shows a free block of this size in the cache",
        next_step=(
            "set PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before "
            "torch 2.9), or keep a reserve as large as the largest temporary; "
            "torch.cuda.empty_cache() before it helps once"
        ),
        gain=f"makes up to {show(failed.reserved_unallocated_bytes, 'GiB', 4)} usable",
    )


def _too_little(failed: OutOfMemory, unused: float) -> Verdict:
    short = failed.requested_bytes - unused
    unknown = failed.allocated_bytes is not None and failed.total_bytes is not None
    elsewhere = ""
    if unknown and failed.total_bytes is not None and failed.allocated_bytes is not None:
        other = failed.total_bytes - failed.allocated_bytes - unused
        if other > 0.02 * failed.total_bytes:
            elsewhere = (
                f"; {show(other, 'GiB', 4)} belong to neither: contexts, NCCL, graphs or other "
                "processes"
            )
    return Verdict(
        branch=BRANCH,
        cause="too little memory",
        statement=f"{show(short, 'GiB', 4)} are lacking, however memory is arranged{elsewhere}",
        evidence=_evidence(failed, unused),
        confidence="high",
        refuted_by="nvidia-smi shows another process that holds the difference",
        next_step=(
            "fewer sequences or a shorter context, weights or KV in 8 bit, or more tensor "
            "parallelism; roofline predict shows what fits"
        ),
        gain="fits",
    )


def _should_have_fitted(failed: OutOfMemory) -> Verdict:
    return Verdict(
        branch=BRANCH,
        cause="limit of the process",
        statement=(
            f"{show(failed.free_bytes, 'GiB', 4)} are free with the driver, more than asked for: a "
            "limit stopped it, not the device"
        ),
        evidence=_evidence(failed, failed.free_bytes + failed.reserved_unallocated_bytes),
        confidence="medium",
        refuted_by="torch.cuda.get_per_process_memory_fraction() is 1 and no MIG slice is in use",
        next_step=(
            "look for set_per_process_memory_fraction, a MIG slice, an engine's memory fraction, "
            "and for a peak that was over when the message was written"
        ),
        gain="the whole device becomes usable",
    )
