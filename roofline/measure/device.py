"""The device to measure: what it is, what state it is in, and which spec it is exactly.

Detection takes the names that torch and NVML give and the memory that the driver shows; a name that
fits with a memory that does not is another variant, so it is unknown.

Units    Bytes, hertz, watts, degrees Celsius.
Limits   Host name, serial number and UUID are read by nobody and stored nowhere.
Sources  [1] NVIDIA, NVML API reference (clocks, power limit, clocks event reasons).
"""

import gc
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from roofline.errors import InputError, RooflineError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.hardware.measurement import Conditions, Device, Environment
from roofline.hardware.names import identify
from roofline.measure.framework import installed, torch

_MHZ = 1e6
_MILLIWATT = 1e-3
_THROTTLE = {  # bits of NVML's clocks event reasons [1]
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_HARMLESS = ("power limit",)  # what a board does under sustained load


@dataclass(frozen=True)
class Target:
    """A device ready to be measured.

    Args:
        torch_device: where torch puts tensors.
        device: what the record says about it.
        spec: its spec, None when unknown.
        handle: NVML's handle, None without NVML.
    """

    torch_device: Any
    device: Device
    spec: Accelerator | None
    handle: Any = None

    @property
    def cache_bytes(self) -> float:
        """The last cache before memory: operands rotate through several times this."""
        return float(self.device.llc_bytes or self.device.l2_bytes or 0)

    def peak_flop_per_s(self, compute: str) -> float | None:
        """The spec's peak, None where there is none."""
        if self.spec is None:
            return None
        return self.spec.compute.flop_per_s.get(compute)

    def peak_bytes_per_s(self) -> float | None:
        """The spec's memory bandwidth, None where there is none."""
        return None if self.spec is None else self.spec.memory.bytes_per_s

    def free_bytes(self) -> float:
        """Memory that can be taken now."""
        if self.torch_device.type == "cuda":
            return float(torch.cuda.mem_get_info(self.torch_device)[0])
        return _cpu_memory("MemAvailable") or 0.5 * self.device.memory_bytes


def find_target(device: str = "", spec_id: str | None = None) -> Target:
    """Find the device: ``cuda``, ``cuda:1``, ``cpu``; empty: a GPU when there is one.

    Args:
        device: torch's name of the device.
        spec_id: the spec that it is, when the names do not say.

    Raises:
        InputError: there is no such device.
        UnknownNameError: no such spec.
    """
    asked = device or ("cuda" if torch.cuda.is_available() else "cpu")
    kind = asked.split(":")[0]
    if kind not in ("cuda", "cpu"):
        raise InputError(f"can measure cuda and cpu, not {device!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError("this torch sees no CUDA device; measure the CPU with --device cpu")
    return _cpu(spec_id) if kind == "cpu" else _cuda(asked, spec_id)


def release_memory() -> None:
    """Give back what tensors that are gone still hold of the device's memory."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def describe_unknown(device: Device) -> str:
    """Say what to do when no spec fits, in one line."""
    return (
        f"unknown device {device.name!r} with {device.memory_bytes} bytes of memory"
        + (f" and {device.sm_count} multiprocessors" if device.sm_count else "")
        + "; name its spec with --spec ID, or describe it in a YAML file (roofline specs --help) "
        "in a folder that ROOFLINE_SPEC_PATH names"
    )


def _cuda(asked: str, spec_id: str | None) -> Target:
    index = int(asked.split(":")[1]) if ":" in asked else torch.cuda.current_device()
    if index >= torch.cuda.device_count():
        raise InputError(f"no device {asked!r}; there are {torch.cuda.device_count()}")
    properties = torch.cuda.get_device_properties(index)
    handle = _nvml_handle(index, properties)
    nvml_name = _nvml(handle, "nvmlDeviceGetName")
    memory_bytes = int(properties.total_memory)
    limit = _nvml(handle, "nvmlDeviceGetEnforcedPowerLimit")
    found = _spec_id([properties.name, nvml_name], memory_bytes, spec_id)
    device = Device(
        name=properties.name,
        nvml_name=nvml_name if isinstance(nvml_name, str) else None,
        kind="rocm" if torch.version.hip else "cuda",
        spec_id=found,
        memory_bytes=memory_bytes,
        sm_count=properties.multi_processor_count,
        l2_bytes=getattr(properties, "L2_cache_size", None),
        compute_capability=f"{properties.major}.{properties.minor}",
        power_limit_w=limit * _MILLIWATT if limit else None,
        max_sm_clock_hz=_clock(handle, "nvmlDeviceGetMaxClockInfo", 1),
        max_memory_clock_hz=_clock(handle, "nvmlDeviceGetMaxClockInfo", 2),
    )
    spec = None if found is None else load_accelerator(found)
    return Target(torch.device("cuda", index), device, spec, handle)


def _spec_id(names: list[Any], memory_bytes: int, asked: str | None) -> str | None:
    if asked is not None:
        return _asked_spec(asked, is_cpu=False).id
    for name in names:
        if isinstance(name, str):
            with suppress(RooflineError):
                if found := identify(name, memory_bytes):
                    return found
    return None


def _cpu(spec_id: str | None) -> Target:
    spec = None if spec_id is None else _asked_spec(spec_id, is_cpu=True)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    device = Device(
        name=_cpu_name(),
        kind="cpu",
        spec_id=None if spec is None else spec.id,
        memory_bytes=int(_cpu_memory("MemTotal") or 2**33),
        sm_count=cores or 1,
        l2_bytes=_cpu_cache(2),
        llc_bytes=_cpu_cache(3),
    )
    return Target(torch.device("cpu"), device, spec)


def _asked_spec(spec_id: str, *, is_cpu: bool) -> Accelerator:
    """Load the spec that the device is said to be.

    Raises:
        InputError: it is of another kind of device.
    """
    spec = load_accelerator(spec_id)
    if (spec.kind == "cpu") != is_cpu:
        asked, given = ("the CPU", "--device cuda") if is_cpu else ("a GPU", "--device cpu")
        raise InputError(f"{spec.id} is a {spec.kind}, and {asked} is measured; use {given}")
    return spec


def _cpu_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()[:200] or "CPU"
    return platform.processor() or platform.machine() or "CPU"


def _cpu_memory(key: str) -> float | None:
    kibibyte = 1024
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(key + ":"):
                return float(line.split()[1]) * kibibyte
    return None


def _cpu_cache(level: int) -> int | None:
    scales = {"K": 2**10, "M": 2**20}
    with suppress(OSError, ValueError, KeyError):
        for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
            if (folder / "level").read_text().strip() == str(level):
                text = (folder / "size").read_text().strip()
                return int(text[:-1]) * scales[text[-1]]
    return None


@lru_cache(maxsize=1)
def _pynvml() -> Any:
    if not installed("pynvml"):
        return None
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _nvml_handle(index: int, properties: Any) -> Any:
    library = _pynvml()
    if library is None:
        return None
    with suppress(Exception):
        return library.nvmlDeviceGetHandleByUUID(f"GPU-{properties.uuid}")
    with suppress(Exception):
        return library.nvmlDeviceGetHandleByIndex(index)
    return None


def _nvml(handle: Any, name: str, *arguments: Any) -> Any:
    """Ask NVML one thing; None where it does not answer."""
    library = _pynvml()
    if library is None or handle is None:
        return None
    try:
        answer = getattr(library, name)(handle, *arguments)
    except (AttributeError, library.NVMLError):
        return None
    return answer.decode() if isinstance(answer, bytes) else answer


def _clock(handle: Any, name: str, domain: int) -> float | None:
    found = _nvml(handle, name, domain)
    return found * _MHZ if found else None


def conditions(target: Target) -> Conditions:
    """Read clocks, temperature, power, use and throttling now; empty without NVML.

    >>> conditions(find_target("cpu")).sm_clock_hz is None
    True
    """
    handle = target.handle
    if handle is None:
        return Conditions()
    power = _nvml(handle, "nvmlDeviceGetPowerUsage")
    use = _nvml(handle, "nvmlDeviceGetUtilizationRates")
    memory = _nvml(handle, "nvmlDeviceGetMemoryInfo")
    processes = _nvml(handle, "nvmlDeviceGetComputeRunningProcesses")
    reasons = _nvml(handle, "nvmlDeviceGetCurrentClocksEventReasons")
    if reasons is None:
        reasons = _nvml(handle, "nvmlDeviceGetCurrentClocksThrottleReasons")
    temperature = _nvml(handle, "nvmlDeviceGetTemperature", 0)
    others = None
    if processes is not None:
        others = sum(1 for process in processes if process.pid != os.getpid())
    return Conditions(
        sm_clock_hz=_clock(handle, "nvmlDeviceGetClockInfo", 1),
        memory_clock_hz=_clock(handle, "nvmlDeviceGetClockInfo", 2),
        temperature_c=None if temperature is None else float(temperature),
        power_w=power * _MILLIWATT if power else None,
        utilisation=None if use is None else use.gpu / 100,
        memory_used_bytes=None if memory is None else int(memory.used),
        other_processes=others,
        throttle=tuple(word for bit, word in _THROTTLE.items() if (reasons or 0) & bit),
    )


def doubts_before(state: Conditions) -> tuple[str, ...]:
    """What makes a device unfit to be measured now: other work on it, slowed clocks.

    >>> doubts_before(Conditions(utilisation=0.4, throttle=("power limit", "power brake")))
    ('device busy before the run: 40 % in use', 'clocks throttled: power brake')
    """
    flags = []
    busy_from = 0.10
    if state.utilisation is not None and state.utilisation > busy_from:
        flags.append(f"device busy before the run: {state.utilisation * 100:.0f} % in use")
    return (*flags, *doubts_during(state))


def doubts_during(state: Conditions) -> tuple[str, ...]:
    """What makes a result doubtful while measuring: others' work, clocks slowed by heat or power.

    >>> doubts_during(Conditions(utilisation=1.0, other_processes=1, throttle=("power limit",)))
    ('other processes on the device: 1',)
    """
    flags = []
    if state.other_processes:
        flags.append(f"other processes on the device: {state.other_processes}")
    slowed = [word for word in state.throttle if word not in _HARMLESS]
    if slowed:
        flags.append(f"clocks throttled: {', '.join(slowed)}")
    return tuple(flags)


def environment() -> Environment:
    """Versions of what runs, and no names of machines or people."""
    return Environment(
        roofline=_package_version("roofline"),
        torch=str(torch.__version__),
        cuda=torch.version.cuda or torch.version.hip,
        cudnn=str(torch.backends.cudnn.version() or "") or None,
        nccl=_nccl_version(),
        triton=_package_version("triton"),
        transformers=_package_version("transformers"),
        driver=_driver_version(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        threads=int(torch.get_num_threads()),
    )


def _nccl_version() -> str | None:
    if not torch.cuda.is_available():
        return None
    with suppress(Exception):
        return ".".join(str(part) for part in torch.cuda.nccl.version())
    return None


def _driver_version() -> str | None:
    library = _pynvml()
    if library is None:
        return None
    with suppress(Exception):
        found = library.nvmlSystemGetDriverVersion()
        return found.decode() if isinstance(found, bytes) else str(found)
    return None


def _package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
