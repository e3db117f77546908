"""Symptoms: what a user sees, as numbers; from a file, a mapping or torch's out-of-memory message.

Units    bytes, seconds, watts; shares between 0 and 1 (nvidia-smi's and DCGM's percent divided).
Sources  [1] PyTorch, CUDACachingAllocator, text of the out-of-memory error (torch 2.1 to 2.11).
         [2] NVIDIA, DCGM documentation, profiling metrics (PROF_* are shares of time).
         [3] NVIDIA, nvidia-smi manual: GPU utilisation is the share of time in which one or more
             kernels ran.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from roofline.errors import SpecError
from roofline.files import read_text
from roofline.hardware.measured_rows import first_problem
from roofline.hardware.yaml_file import read_yaml
from roofline.units import MIB, parse

_LARGEST = 4 * MIB
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Text = Annotated[str, Field(max_length=2000)]


class _Frozen(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class OutOfMemory(_Frozen):
    """An allocation that failed."""

    requested_bytes: Positive
    total_bytes: Positive | None = None
    free_bytes: NotNegative
    allocated_bytes: NotNegative | None = None
    reserved_unallocated_bytes: NotNegative = 0.0


class Counters(_Frozen):
    """Activity counters of one device, as DCGM or nvidia-smi shows them."""

    utilisation: Share | None = None
    sm_active: Share | None = None
    sm_occupancy: Share | None = None
    tensor_active: Share | None = None
    dram_active: Share | None = None
    power_w: Positive | None = None
    power_limit_w: Positive | None = None
    sm_clock_hz: Positive | None = None
    max_sm_clock_hz: Positive | None = None


class Scaling(_Frozen):
    """One point of a scaling series; time of a step, or a rate of the whole job."""

    devices: Annotated[int, Field(ge=1)]
    step_s: Positive | None = None
    tokens_per_s: Positive | None = None


class DeviceStep(_Frozen):
    """The same step on one kind of device."""

    accelerator: Text
    step_s: Positive


class Change(_Frozen):
    """Before and after one change (another weight format, another engine version)."""

    what: Text
    before_step_s: Positive
    after_step_s: Positive
    before_weights_bytes: Positive | None = None
    after_weights_bytes: Positive | None = None
    kv_bytes_read: NotNegative | None = None


class LoadPoint(_Frozen):
    """A benchmark at one load."""

    concurrency: Positive
    tpot_s: Positive | None = None
    ttft_s: Positive | None = None
    itl_p99_s: Positive | None = None
    itl_median_s: Positive | None = None
    output_tokens_per_s: Positive | None = None
    preemptions: NotNegative | None = None
    running: Positive | None = None


class BatchPoint(_Frozen):
    """Time of a step at one batch size."""

    batch: Annotated[int, Field(ge=1)]
    step_s: Positive


class Symptoms(_Frozen):
    """What is seen; everything is optional."""

    note: Text = ""
    source: Text = ""
    out_of_memory: OutOfMemory | None = None
    counters: Counters | None = None
    scaling: tuple[Scaling, ...] = ()
    devices: tuple[DeviceStep, ...] = ()
    change: Change | None = None
    load: tuple[LoadPoint, ...] = ()
    batches: tuple[BatchPoint, ...] = ()
    captured_batches: tuple[int, ...] = ()
    host_to_device_bytes_per_s: Positive | None = None
    pcie_bytes_per_s: Positive | None = None
    rank_devices: tuple[int, ...] = ()
    tp: Annotated[int, Field(ge=1)] | None = None
    step_s: Positive | None = None
    bound_s: Positive | None = None
    estimate_s: Positive | None = None


def read_symptoms(source: "str | Path | Mapping[str, Any] | Symptoms") -> Symptoms:
    """Read symptoms from a mapping, a JSON or YAML file, a DCGM text or an out-of-memory message.

    Raises:
        SpecError: no such file, or something in it that is not known.

    >>> read_symptoms({"scaling": [{"devices": 1, "step_s": 0.006}]}).scaling[0].devices
    1
    """
    if isinstance(source, Symptoms):
        return source
    if isinstance(source, Mapping):
        return _validated(dict(source), "symptoms")
    text, name = _text(source)
    if "out of memory" in text.lower():
        return Symptoms(out_of_memory=parse_out_of_memory(text))
    if "DCGM_FI_" in text:
        return Symptoms(counters=parse_dcgm(text))
    if name.endswith((".yaml", ".yml")):
        return _validated(read_yaml(Path(source)).value, name)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise SpecError(
            f"{name[:80]!r}: neither JSON, YAML, an out-of-memory message nor DCGM metrics"
        ) from None
    return _validated(data, name)


def _text(source: "str | Path") -> tuple[str, str]:
    if isinstance(source, str) and ("\n" in source or len(source) > 300 or "{" in source):
        return source, "symptoms"
    path = Path(source)
    return read_text(path, most_bytes=_LARGEST, what="symptoms"), path.name


def _validated(data: Any, name: str) -> Symptoms:
    try:
        return Symptoms.model_validate(_tuples(data))
    except ValidationError as error:
        known = ", ".join(sorted(Symptoms.model_fields))
        hint = f"; known: {known}" if error.errors()[0]["type"] == "extra_forbidden" else ""
        raise SpecError(f"{name}: {first_problem(error, 'symptoms')}{hint}") from None


def _tuples(value: Any) -> Any:
    """JSON's lists as tuples, whole numbers as they are: strict models take both."""
    if isinstance(value, Mapping):
        return {key: _tuples(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_tuples(item) for item in value)
    return value


_SIZE = r"([\d.]+\s*(?:[KMGT]i?B|bytes))"
_OOM = {
    "requested_bytes": rf"Tried to allocate {_SIZE}",
    "total_bytes": rf"total capacity of {_SIZE}|{_SIZE} total capacity",
    "free_bytes": rf"of which {_SIZE} is free|{_SIZE} free",
    "allocated_bytes": rf"{_SIZE} is allocated by PyTorch|{_SIZE} already allocated",
    "reserved_unallocated_bytes": rf"{_SIZE} is reserved by PyTorch but unallocated",
}


def parse_out_of_memory(text: str) -> OutOfMemory:
    """Read torch's out-of-memory message.

    Raises:
        SpecError: the message lacks the size asked for or the free memory.

    >>> parse_out_of_memory("CUDA out of memory. Tried to allocate 384.00 MiB. GPU 0 has a total "
    ...     "capacity of 19.53 GiB of which 329.87 MiB is free. 402.27 MiB is reserved by PyTorch "
    ...     "but unallocated.").requested_bytes / 2**20
    384.0
    """
    found: dict[str, float] = {}
    for name, pattern in _OOM.items():
        match = re.search(pattern, text)
        if match is not None:
            given = next(group for group in match.groups() if group)
            found[name] = parse(given.replace("bytes", "B"), "B")
    reserved = re.search(rf"{_SIZE} reserved in total", text)
    if reserved is not None and "allocated_bytes" in found:
        total = parse(reserved[1], "B")
        found["reserved_unallocated_bytes"] = max(total - found["allocated_bytes"], 0.0)
    if "requested_bytes" not in found or "free_bytes" not in found:
        raise SpecError(
            "the out-of-memory message lacks 'Tried to allocate …' or '… is free'; give all of it"
        )
    try:
        return OutOfMemory(**found)
    except ValidationError as error:
        raise SpecError(f"out-of-memory message, {first_problem(error)}") from None


_DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": ("utilisation", 0.01),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active", 1.0),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("sm_occupancy", 1.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active", 1.0),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dram_active", 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", 1.0),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_hz", 1e6),
}
_METRIC = re.compile(r"^(DCGM_FI_\w+)(?:\{[^}]*\})?[\s,]+([\d.eE+-]+)", re.MULTILINE)


def parse_dcgm(text: str) -> Counters:
    """Read DCGM metrics in Prometheus' text form; several devices or samples are averaged.

    Raises:
        SpecError: none of the metrics that are used is in it.

    >>> parse_dcgm('DCGM_FI_PROF_DRAM_ACTIVE{gpu="0"} 0.42').dram_active
    0.42
    """
    values: dict[str, list[float]] = {}
    for name, given in _METRIC.findall(text):
        if name in _DCGM:
            ours, scale = _DCGM[name]
            try:
                values.setdefault(ours, []).append(float(given) * scale)
            except ValueError:
                raise SpecError(f"{name}: {given!r} is no number") from None
    if not values:
        raise SpecError(f"none of {', '.join(_DCGM)} is in it")
    averages = {name: sum(found) / len(found) for name, found in values.items()}
    try:
        return Counters(**averages)
    except ValidationError as error:
        raise SpecError(f"DCGM {first_problem(error)}") from None
