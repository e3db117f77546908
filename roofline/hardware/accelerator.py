"""Accelerators: find a spec by its id or its file, read it, and refuse what cannot be right.

One YAML file is one exact variant. Keys are the attribute names, values the datasheet's own text
with its unit, and every group of figures names its source. To describe your own, save this and
pass the file's path wherever an accelerator is asked for, or put it into a folder that
``ROOFLINE_SPEC_PATH`` names and use its id (``roofline specs check FILE`` says what is wrong)::

    id: my-accelerator
    name: My accelerator 96GB
    vendor: ACME
    kind: gpu
    device_names: [ACME X1]
    memory:
      type: HBM3
      marketed_bytes: 96 GB
      usable_bytes: 95.1 GiB
      bytes_per_s: 4 TB/s
      source: ACME X1 datasheet, 2026-05, page 2
    compute:
      flop_per_s: {bf16: 500 TFLOP/s, fp16: 500 TFLOP/s, fp8: 1 PFLOP/s}
      source: ACME X1 datasheet, 2026-05, page 3 (dense)
    link:
      kind: ACME fabric
      bytes_per_s: 400 GB/s
      domain: 8
      source: ACME X1 datasheet, 2026-05, page 4 (per direction)
    power:
      tdp_w: 600 W
      source: ACME X1 datasheet, 2026-05, page 4

Limits   What is left out is unknown: the spec loads, and what needs the figure refuses.
"""

import re
from pathlib import Path

from roofline.errors import SpecError, UnknownNameError, unknown_name
from roofline.hardware.facts_file import SUFFIXES, facts_problems, read_facts, yaml_files
from roofline.hardware.folders import data_folders
from roofline.hardware.spec import Accelerator, Compute, Link, Memory, Pcie, Power

__all__ = [
    "Accelerator",
    "Compute",
    "Link",
    "Memory",
    "Pcie",
    "Power",
    "accelerator_ids",
    "accelerator_problems",
    "load_accelerator",
    "read_accelerator",
]

_VENDOR_WORDS = {
    "nvidia", "amd", "intel", "tesla", "instinct", "geforce", "google", "aws", "huawei", "cloud",
    "gpu",
}  # fmt: skip


def accelerator_ids() -> tuple[str, ...]:
    """List the ids of all accelerators that can be loaded, sorted.

    >>> "h200-sxm-141gb" in accelerator_ids()
    True
    """
    return tuple(sorted(yaml_files("gpu_specs")))


def load_accelerator(accelerator: str | Path | Accelerator) -> Accelerator:
    """Load an accelerator by its id, from a YAML file, or take it as it is.

    Case does not matter, vendor words may be there, and a name that fits exactly one variant is
    taken (``b200``, ``NVIDIA L40S``); one that fits several is refused with their ids. A measured
    record (its file, or the id of a measured CPU) stands for its device, with measured roofs.

    Raises:
        UnknownNameError: no such id, or a name that several variants share.
        SpecError: the file does not load; the message has file, line and what to write.

    >>> load_accelerator("t4").memory_bandwidth()
    320000000000.0
    >>> load_accelerator("h100")
    Traceback (most recent call last):
    ...
    roofline.errors.UnknownNameError: 'h100' is several variants; write one of h100-nvl-94gb,
    h100-pcie-80gb, h100-sxm5-80gb
    """
    if isinstance(accelerator, Accelerator):
        return accelerator
    if isinstance(accelerator, Path):
        return read_accelerator(accelerator)
    if not isinstance(accelerator, str):
        raise UnknownNameError(
            f"an accelerator is an id, a path to a YAML file or an Accelerator, "
            f"not {type(accelerator).__name__}"
        )
    key = accelerator.strip().lower()
    if (path := _find_file(key)) is not None:
        return _load_by_id(key, path)
    if key.startswith("cpu-") or key.endswith(".json"):
        return _measured(accelerator)
    if key.endswith(SUFFIXES) or "/" in accelerator or "\\" in accelerator:
        return read_accelerator(Path(accelerator).expanduser())
    files = yaml_files("gpu_specs")
    found = _resolve(accelerator, files)
    return _load_by_id(found, files[found])


def read_accelerator(path: Path) -> Accelerator:
    """Read one spec file.

    Raises:
        SpecError: the file does not load; the message has file, line and what to write.
    """
    return read_facts(path, Accelerator, "spec")


def accelerator_problems(path: Path) -> tuple[str, ...]:
    """Everything that is wrong with a spec file, one line each with file and line; empty: good."""
    return facts_problems(path, Accelerator, "spec")


def _load_by_id(spec_id: str, path: Path) -> Accelerator:
    accelerator = read_accelerator(path)
    if accelerator.id != spec_id:
        raise SpecError(f"{path}: holds id {accelerator.id!r}; id and file name must agree")
    return accelerator


def _measured(record: str) -> Accelerator:
    from roofline.hardware.measured import measured_accelerator  # only for devices without a spec
    from roofline.hardware.measurement import load_measurement

    return measured_accelerator(load_measurement(record))


def _find_file(spec_id: str) -> Path | None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,79}", spec_id):
        return None
    for folder in data_folders("gpu_specs"):
        for suffix in SUFFIXES:
            path = folder / f"{spec_id}{suffix}"
            if path.is_file():
                return path
    return None


def _resolve(given: str, files: dict[str, Path]) -> str:
    """Find the one id that a looser name means, or say which ones it may mean."""
    matches = [spec_id for spec_id in sorted(files) if _fits(given, spec_id)]
    if len(matches) == 1:
        return matches[0]
    plain = " ".join(given.split()).casefold()
    for spec_id in sorted(files):
        accelerator = _load_by_id(spec_id, files[spec_id])
        names = (accelerator.name, *accelerator.device_names)
        vendored = [f"{accelerator.vendor} {name}" for name in names]
        if plain and plain in {name.casefold() for name in (*names, *vendored)}:
            return spec_id
    if matches:
        shown = given if len(given) <= 80 else given[:77] + "..."
        raise UnknownNameError(f"{shown!r} is several variants; write one of {', '.join(matches)}")
    raise unknown_name("accelerator", given, files)


def _fits(given: str, spec_id: str) -> bool:
    """Whether every word of a name is in an id, the chip's own word among them."""
    words = set(re.findall(r"[a-z0-9]+", given.lower())) - _VENDOR_WORDS
    parts = spec_id.split("-")
    chip = next((part for part in parts if any(map(str.isdigit, part))), parts[0])
    forms = set(parts) | {part.rstrip("0123456789") for part in parts if part.startswith("sxm")}
    return chip in words and words <= forms
