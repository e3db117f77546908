"""What a measured record holds: a device, its conditions, and rows by section.

Units    As in ``measured_rows``.
Limits   A record holds no host name, user, path, serial number or UUID: text that looks like one
         is refused.
Sources  The record itself: device, versions, command and date stand in it.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, field_validator, model_validator

from roofline.errors import unknown_name
from roofline.hardware.measured_rows import (
    ROW_TYPES,
    SECTIONS,
    AttentionRow,
    CollectiveRow,
    CopyRow,
    DecoderRow,
    Frozen,
    HostLinkRow,
    LaunchRow,
    LinkRow,
    MatmulRow,
    Positive,
    Row,
)

SCHEMA_VERSION = 1
_PRIVATE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # a UUID
    r"|(?:^|[\s='\"])(?:/(?:home|root|Users|tmp|mnt|opt|var|work|srv|data)\b|~/|[A-Za-z]:\\)"
)
Text = Annotated[str, Field(max_length=2000)]
Level = Literal["quick", "standard", "full", "model", "collectives", "import", "reference"]
FULL_LEVELS = ("full", "reference")


class Device(Frozen):
    """The device that was measured.

    Args:
        name: as torch (or the operating system) names it; ``nvml_name`` as NVML does.
        kind: ``cuda``, ``rocm`` or ``cpu``.
        spec_id: the spec that it is, exactly; None: unknown.
        memory_bytes: memory that the driver shows.
        sm_count: multiprocessors (cores of a CPU).
        llc_bytes: last-level cache, where that is not the L2.
        count: devices that took part.
    """

    name: Text
    nvml_name: Text | None = None
    kind: Literal["cuda", "rocm", "cpu"] = "cuda"
    spec_id: Text | None = None
    memory_bytes: Annotated[int, Field(ge=1)]
    sm_count: Annotated[int, Field(ge=1)] | None = None
    l2_bytes: Annotated[int, Field(ge=0)] | None = None
    llc_bytes: Annotated[int, Field(ge=0)] | None = None
    compute_capability: Text | None = None
    power_limit_w: Positive | None = None
    max_sm_clock_hz: Positive | None = None
    max_memory_clock_hz: Positive | None = None
    count: Annotated[int, Field(ge=1)] = 1

    @property
    def record_id(self) -> str:
        """Name of the folder that its records go to.

        >>> Device(name="AMD EPYC", kind="cpu", memory_bytes=2**34, sm_count=2).record_id
        'cpu-amd-epyc-2-cores'
        """
        if self.spec_id:
            return self.spec_id
        slug = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:60] or "device"
        cores = f"-{self.sm_count}-cores" if self.kind == "cpu" and self.sm_count else ""
        return f"cpu-{slug}{cores}" if self.kind == "cpu" else f"unknown-{slug}"


class Environment(Frozen):
    """Versions of what ran; None: not there or not known."""

    roofline: Text | None = None
    torch: Text | None = None
    cuda: Text | None = None
    cudnn: Text | None = None
    nccl: Text | None = None
    triton: Text | None = None
    transformers: Text | None = None
    driver: Text | None = None
    python: Text | None = None
    platform: Text | None = None
    threads: int | None = None


class Conditions(Frozen):
    """State of the device at one moment."""

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    utilisation: float | None = None
    memory_used_bytes: int | None = None
    other_processes: int | None = None
    throttle: tuple[Text, ...] = ()


class Origin(Frozen):
    """Where a section of a merged record comes from."""

    section: Text
    file: Text
    date: AwareDatetime


class Measurement(Frozen):
    """One record: a device, its conditions, and rows by section.

    Args:
        date: when it was measured (UTC).
        level: how thorough; only ``full`` and ``reference`` records answer for a spec id.
        finished: False while sections are missing because the run was interrupted.
        complete_sections: sections that ran to their end.
        cases_done: of an unfinished record, the pieces that need not run again.
        source: who made the numbers: ``roofline measure``, or an origin in words.
        spread_definition: what ``spread`` means in its rows.
        errors: sections that failed, with the reason.
        origins, assumptions: of a merged record: file and date of each section, and choices made.

    >>> from datetime import UTC, datetime
    >>> row = CopyRow(op="write", buffer_bytes=10**9, moved_bytes=10**9, median_s=0.001)
    >>> record = Measurement(
    ...     device=Device(name="x", memory_bytes=10**10), date=datetime(2026, 11, 1, tzinfo=UTC),
    ...     level="quick", copy_rows=(row,))
    >>> record.rows("copy")[0].bytes_per_s
    1000000000000.0
    """

    schema_version: Literal[1] = 1
    device: Device
    environment: Environment = Environment()
    date: AwareDatetime
    command: Text = ""
    level: Level
    finished: bool = True
    complete_sections: tuple[Text, ...] = ()
    cases_done: tuple[Text, ...] = ()
    source: Text = "roofline measure"
    spread_definition: Text = "(p90 - p10) / median of the raw times"
    before: Conditions = Conditions()
    after: Conditions = Conditions()
    flags: tuple[Text, ...] = ()
    errors: dict[Text, Text] = Field(default_factory=dict)
    origins: tuple[Origin, ...] = ()
    assumptions: tuple[Text, ...] = ()
    copy_rows: tuple[CopyRow, ...] = ()
    matmul_rows: tuple[MatmulRow, ...] = ()
    attention_rows: tuple[AttentionRow, ...] = ()
    launch_rows: tuple[LaunchRow, ...] = ()
    host_link_rows: tuple[HostLinkRow, ...] = ()
    link_rows: tuple[LinkRow, ...] = ()
    collective_rows: tuple[CollectiveRow, ...] = ()
    decoder_rows: tuple[DecoderRow, ...] = ()

    @field_validator("complete_sections")
    @classmethod
    def _sections_are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in SECTIONS:
                raise ValueError(f"no section {name!r}; there are {', '.join(SECTIONS)}")
        return value

    @model_validator(mode="after")
    def _nothing_private(self) -> "Measurement":
        texts = [self.command, self.source, self.device.name, *self.flags, *self.errors.values()]
        texts += [self.environment.platform or "", self.device.nvml_name or ""]
        for text in texts:
            if found := _PRIVATE.search(text):
                raise ValueError(
                    f"{found[0].strip()!r} looks private (a path or an identifier); records are "
                    "shared, so they hold none"
                )
        return self

    def rows(self, section: str) -> tuple[Any, ...]:
        """Rows of a section.

        Raises:
            UnknownNameError: no such section.
        """
        if section not in ROW_TYPES:
            raise unknown_name("section", section, SECTIONS)
        found: tuple[Any, ...] = getattr(self, f"{section}_rows")
        return found

    def with_rows(self, section: str, rows: Iterable[Row | LinkRow]) -> "Measurement":
        """The same record with these rows as its section."""
        return self.model_copy(update={f"{section}_rows": tuple(rows)})

    @property
    def full_sections(self) -> tuple[str, ...]:
        """Sections that may answer for the spec id."""
        if self.level not in (*FULL_LEVELS, "model", "collectives"):
            return ()
        return tuple(name for name in self.complete_sections if self.rows(name))
