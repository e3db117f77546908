"""A measured record for readers: nominal against measured with the reason.

Units    Base units.
Limits   The reasons say what kind of kernel can reach a roof; they are no diagnosis of one run.
Sources  [1] Williams, Waterman, Patterson 2009, Roofline, CACM 52(4), figure 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from roofline.errors import MissingDataError
from roofline.hardware.accelerator import load_accelerator
from roofline.hardware.batch_curve import BatchCurve, curves
from roofline.hardware.measured_rows import CopyRow
from roofline.hardware.measurement import Measurement
from roofline.hardware.spec import Accelerator
from roofline.units import show

_CACHED = "cache"
_COPY_WHY = {
    "read": "kernels that stream and hardly write reach it: decode attention, matmuls of few rows",
    "write": "fills only; no kernel of a model writes without reading",
    "copy": "elementwise kernels of one operand; reads and writes share the bus, which must turn",
    "add": "elementwise kernels of two operands, such as residuals",
    "triad": "elementwise kernels of two operands with a factor",
    "copy_engine": "large copies between buffers only; kernels never take this way",
}


@dataclass(frozen=True)
class RoofLine:
    """One roof: what is sold, what was reached, and who can reach it.

    Args:
        what: the resource.
        unit: of both rates.
        nominal: the datasheet's; None: none.
        measured: the best row.
        why: which kernels can reach it, which never will.
    """

    what: str
    unit: str
    nominal: float | None
    measured: float
    why: str

    @property
    def share(self) -> float | None:
        """Measured over nominal."""
        return None if not self.nominal else self.measured / self.nominal


def spec_of(record: Measurement) -> Accelerator | None:
    """The record's accelerator; None for a device without a spec."""
    return None if record.device.spec_id is None else load_accelerator(record.device.spec_id)


def memory_rows(record: Measurement) -> list[CopyRow]:
    """Copy rows of buffers that no cache holds."""
    return [row for row in record.copy_rows if not any(_CACHED in flag for flag in row.flags)]


def roof_lines(record: Measurement) -> list[RoofLine]:
    """The table nominal, measured, percent, why.

    >>> from roofline.hardware.measurement import load_measurement
    >>> lines = {line.what: line for line in roof_lines(load_measurement("h200-sxm-141gb"))}
    >>> round(lines["memory, write"].share, 2), lines["bf16 matmul, sustained"].share < 0.7
    (0.98, True)
    """
    spec = spec_of(record)
    memory = None if spec is None else spec.memory.bytes_per_s
    large = memory_rows(record)
    lines = []
    for op, why in _COPY_WHY.items():
        rows = [row for row in large if row.op == op]
        if op == "copy_engine" and rows:
            biggest = max(row.buffer_bytes for row in rows)
            rows = [row for row in rows if row.buffer_bytes == biggest]
        if rows:
            best = max(row.bytes_per_s for row in rows)
            lines.append(RoofLine(f"memory, {op.replace('_', ' ')}", "B/s", memory, best, why))
    lines += _matmul_lines(record, spec)
    lines += _attention_lines(record, spec)
    lines += _link_lines(record, spec)
    return lines


def _matmul_lines(record: Measurement, spec: Accelerator | None) -> Iterable[RoofLine]:
    top = record.device.max_sm_clock_hz
    for mode in ("burst", "sustained"):
        for compute in dict.fromkeys(row.compute for row in record.matmul_rows):
            rows = [
                row for row in record.matmul_rows
                if (row.compute, row.mode, row.shape, row.data)
                == (compute, mode, "square", "random")
            ]  # fmt: skip
            if not rows:
                continue
            best = max(rows, key=lambda row: row.flop_per_s)
            nominal = None if spec is None else spec.compute.flop_per_s.get(compute)
            why = f"square matmuls of {best.n} for milliseconds, before power limits the clock"
            if mode == "sustained" and best.sm_clock_hz:
                clock = show(best.sm_clock_hz, "Hz", 4)
                of = f" of {show(top, 'Hz', 4)}" if top else ""
                why = f"seconds of load: {show(best.power_w, 'W')} hold the clock at {clock}{of}"
                why += "; prefill and training run here"
            elif record.device.kind == "cpu":
                why = f"square matmuls of {best.n}"
            yield RoofLine(f"{compute} matmul, {mode}", "FLOP/s", nominal, best.flop_per_s, why)


def _attention_lines(record: Measurement, spec: Accelerator | None) -> Iterable[RoofLine]:
    decode = [row for row in record.attention_rows if row.phase == "decode"]
    if decode:
        best = max(decode, key=lambda row: row.bytes_per_s)
        memory = None if spec is None else spec.memory.bytes_per_s
        why = f"{best.backend}, batch {best.batch}, context {best.context_tokens}, "
        why += f"{best.n_kv_heads} KV heads; few sequences and short contexts stay far below"
        yield RoofLine("decode attention", "B/s", memory, best.bytes_per_s, why)
    for backend in dict.fromkeys(row.backend for row in record.attention_rows):
        rows = [
            row for row in record.attention_rows
            if row.phase == "prefill" and row.backend == backend
        ]  # fmt: skip
        if rows:
            fast = max(rows, key=lambda row: row.flop_per_s)
            nominal = None if spec is None else spec.compute.flop_per_s.get(fast.compute)
            why = f"causal, {fast.context_tokens} tokens; softmax is no matmul, and half is masked"
            yield RoofLine(f"prefill attention, {backend}", "FLOP/s", nominal, fast.flop_per_s, why)


def _link_lines(record: Measurement, spec: Accelerator | None) -> Iterable[RoofLine]:
    pcie = None if spec is None else spec.pcie.bytes_per_s
    for direction in ("host_to_device", "device_to_host"):
        for pinned in (True, False):
            rows = [
                row for row in record.host_link_rows
                if (row.direction, row.pinned) == (direction, pinned)
            ]  # fmt: skip
            if rows:
                why = "pinned memory, copies of megabytes" if pinned else (
                    "pageable memory goes through a staging copy by the host"
                )  # fmt: skip
                name = f"{direction.replace('_', ' ')}, {'pinned' if pinned else 'pageable'}"
                yield RoofLine(name, "B/s", pcie, max(row.bytes_per_s for row in rows), why)
    link = None if spec is None else spec.link.bytes_per_s
    for op in dict.fromkeys(row.op for row in record.collective_rows):
        collectives = [row for row in record.collective_rows if row.op == op]
        most = max(collectives, key=lambda row: row.bus_bytes_per_s)
        why = f"{most.n_ranks} ranks, {show(most.bytes, 'B')}; bus bandwidth as nccl-tests count it"
        yield RoofLine(op.replace("_", "-"), "B/s", link, most.bus_bytes_per_s, why)


def measured_pair(record: Measurement, compute: str) -> tuple[float, float | None, float]:
    """Burst and sustained matmul rate of a type, and the best bandwidth of reads and writes.

    Raises:
        MissingDataError: the record lacks one of them.
    """
    best: dict[str, float] = {}
    for row in record.matmul_rows:
        if row.shape == "square" and row.compute == compute and row.data == "random":
            best[row.mode] = max(best.get(row.mode, 0.0), row.flop_per_s)
    moved = [row.bytes_per_s for row in memory_rows(record) if row.op in ("add", "triad", "copy")]
    if not best or not moved:
        raise MissingDataError(f"the record lacks {compute} matmuls or large copies")
    peak = best.get("burst") or best["sustained"]
    return peak, best.get("sustained"), max(moved)


def record_curves(record: Measurement, roofs: Measurement, compute: str = "") -> list[BatchCurve]:
    """Batch curves of the record's models, on the roofs that ``roofs`` reached."""
    found: list[BatchCurve] = []
    for weights in dict.fromkeys(row.weights for row in record.decoder_rows):
        used = compute or (weights if weights in ("fp8", "fp32", "fp16") else "bf16")
        peak, sustained, memory = measured_pair(roofs, used)
        rows = [row for row in record.decoder_rows if row.weights == weights]
        found += curves(rows, flop_per_s=sustained or peak, bytes_per_s=memory)
    return found
