"""The accelerator as data: what one exact variant has, each group of facts with its source.

Units    Base units inside: byte, byte per second, FLOP per second, hertz, watt. GB = 10⁹ byte,
         GiB = 2³⁰ byte; caches are binary. Rates of links and PCIe are per direction.
Limits   All peaks are dense. ``flop_per_s`` is the highest matmul rate with 32-bit accumulation;
         ``flop_per_s_fp16_accumulate`` is what GeForce boards reach with 16-bit accumulation;
         ``flop_per_s_vector`` is the rate outside the matrix units where the two differ.
         A figure that nobody has sourced is None, and what needs it refuses; ``unsourced_types``
         are compute types that the device has and whose peak is such a figure.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from roofline.dtypes import COMPUTE_TYPES
from roofline.errors import MissingDataError, UnsupportedError, unknown_name
from roofline.hardware.consistency import inconsistencies, usable_ratio
from roofline.hardware.quantity import (
    CacheBytes,
    Facts,
    FlopPerSecond,
    Hertz,
    LinkBytesPerSecond,
    MemoryBytes,
    MemoryBytesPerSecond,
    Sources,
    Watts,
)

Kind = Literal["gpu", "cpu", "tpu", "npu"]
Confidence = Literal["datasheet", "datasheet-quoted", "derived", "secondary", "measured"]
Count = Annotated[int, Field(gt=0, le=1_000_000)]
Word = Annotated[str, Field(min_length=1, max_length=120)]
Named = TypeVar("Named", dict[str, float], tuple[str, ...])


class SourcedFacts(Facts):
    """A group of facts: where any is given, its source is too."""

    source: Sources = ()

    @model_validator(mode="after")
    def _has_source(self) -> "SourcedFacts":
        given = [name for name in self.model_fields_set if name != "source"]
        if any(getattr(self, name) not in (None, {}, ()) for name in given) and not self.source:
            raise PydanticCustomError(
                "no_source", "has figures and no source; add 'source: title, date, address'"
            )
        return self


class Memory(SourcedFacts):
    """Device memory; ``usable_bytes`` is what the driver shows, None when unknown."""

    type: Word | None = None
    marketed_bytes: MemoryBytes | None = None
    usable_bytes: MemoryBytes | None = None
    bytes_per_s: MemoryBytesPerSecond | None = None


class Compute(SourcedFacts):
    """Dense peaks by compute type, cores, clock and caches."""

    flop_per_s: dict[str, FlopPerSecond] = Field(default_factory=dict)
    flop_per_s_fp16_accumulate: dict[str, FlopPerSecond] = Field(default_factory=dict)
    flop_per_s_vector: dict[str, FlopPerSecond] = Field(default_factory=dict)
    unsourced_types: tuple[str, ...] = ()
    sm_count: Count | None = None
    boost_clock_hz: Hertz | None = None
    flop_per_clock_per_sm: Count | None = None
    l2_bytes: CacheBytes | None = None
    llc_bytes: CacheBytes | None = None

    @field_validator(
        "flop_per_s", "flop_per_s_fp16_accumulate", "flop_per_s_vector", "unsourced_types"
    )
    @classmethod
    def _known_types(cls, named: Named) -> Named:
        for name in named:
            if name not in COMPUTE_TYPES:
                raise ValueError(f"no compute type {name!r}; there are: {', '.join(COMPUTE_TYPES)}")
        return named


class Link(SourcedFacts):
    """The scale-up link; ``bytes_per_s`` is per direction and accelerator, None without a link."""

    kind: Word | None = None
    bytes_per_s: LinkBytesPerSecond | None = None
    domain: Count | None = None
    largest_domain: Count | None = None


class Pcie(SourcedFacts):
    """The host link; ``bytes_per_s`` is per direction."""

    generation: Annotated[int, Field(ge=1, le=8)] | None = None
    lanes: Annotated[int, Field(ge=1, le=64)] | None = None
    bytes_per_s: LinkBytesPerSecond | None = None


class Power(SourcedFacts):
    """Board power as sold; ``range`` says in words how far it can be set."""

    tdp_w: Watts | None = None
    range: Word | None = None


class Accelerator(Facts):
    """One exact variant of an accelerator.

    >>> t4 = Accelerator(id="t4", name="T4", vendor="NVIDIA", kind="gpu", compute=Compute(
    ...     flop_per_s={"fp16": 65e12, "int8": 130e12}, source="T4 datasheet"))
    >>> t4.peak_flop_per_s("bf16")
    Traceback (most recent call last):
    ...
    roofline.errors.UnsupportedError: t4 has no bf16; it has fp16, int8
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,79}$")]
    name: Word
    vendor: Word
    kind: Kind
    architecture: Word | None = None
    compute_capability: Word | None = None
    form_factor: Word | None = None
    release_year: Annotated[int, Field(ge=1990, le=2100)] | None = None
    confidence: Confidence | None = None
    confidence_note: str | None = None
    as_of: Word | None = None
    device_names: tuple[Word, ...] = ()
    notes: tuple[str, ...] = ()
    memory: Memory = Memory()
    compute: Compute = Compute()
    link: Link = Link()
    pcie: Pcie = Pcie()
    power: Power = Power()

    @model_validator(mode="after")
    def _is_consistent(self) -> "Accelerator":
        for path, message in inconsistencies(self):
            raise PydanticCustomError("inconsistent", "{message}", {"message": message, "at": path})
        return self

    def __hash__(self) -> int:
        """Hash by id: equal specs have equal ids."""
        return hash(self.id)

    @property
    def is_measured(self) -> bool:
        """Whether its roofs are measured ones, so that nothing made from them is a bound."""
        return self.confidence == "measured"

    @property
    def compute_types(self) -> tuple[str, ...]:
        """The types that it has a peak for, in the order of ``dtypes.COMPUTE_TYPES``."""
        return tuple(
            name
            for name in COMPUTE_TYPES
            if name in self.compute.flop_per_s or name in self.compute.flop_per_s_fp16_accumulate
        )

    def peak_flop_per_s(self, compute_type: str) -> float:
        """Dense peak of one compute type, with 32-bit accumulation where the device has it.

        Raises:
            UnknownNameError: no such compute type.
            UnsupportedError: the device has no such type.
            MissingDataError: the device has it, and nobody has sourced its peak.
        """
        if compute_type not in COMPUTE_TYPES:
            raise unknown_name("compute type", str(compute_type), COMPUTE_TYPES)
        for rates in (self.compute.flop_per_s, self.compute.flop_per_s_fp16_accumulate):
            if compute_type in rates:
                return rates[compute_type]
        if compute_type in self.compute.unsourced_types:
            raise MissingDataError(
                f"{self.id} has {compute_type}, but nobody has sourced its peak; there are "
                f"{', '.join(self.compute_types)}; {self._remedy}"
            )
        if not self.compute_types:
            raise MissingDataError(f"{self.id} has no sourced peak; {self._remedy}")
        raise UnsupportedError(
            f"{self.id} has no {compute_type}; it has {', '.join(self.compute_types)}"
        )

    def peak_assumption(self, compute_type: str) -> str | None:
        """Say what is special about a peak: the line for ``assumptions``, or None."""
        rates = self.compute.flop_per_s_fp16_accumulate
        if compute_type in rates and compute_type not in self.compute.flop_per_s:
            return f"{compute_type} of {self.id} is its rate with 16-bit accumulation; no other is"
        return None

    def memory_bandwidth(self) -> float:
        """Bytes per second of the device memory.

        Raises:
            MissingDataError: nobody has sourced it.
        """
        if self.memory.bytes_per_s is None:
            raise MissingDataError(f"{self.id} has no sourced memory bandwidth; {self._remedy}")
        return self.memory.bytes_per_s

    def usable_memory(self) -> tuple[float, str | None]:
        """Bytes that the driver shows, and the assumption in words where a rule gave them.

            usable = marketed × (median usable / marketed of its kind in the catalogue)

        Raises:
            MissingDataError: neither usable nor marketed memory is known.
        """
        if self.memory.usable_bytes is not None:
            return self.memory.usable_bytes, None
        if self.memory.marketed_bytes is None:
            raise MissingDataError(f"{self.id} has no sourced memory size; {self._remedy}")
        ratio, rule = usable_ratio(self.vendor, self.memory.type, self.memory.marketed_bytes)
        usable = float(int(self.memory.marketed_bytes * ratio))
        marketed_gb = self.memory.marketed_bytes / 1e9
        return usable, (
            f"usable memory of {self.id} is not known: {ratio:.4g} × the {marketed_gb:g} GB "
            f"on the box ({rule})"
        )

    def link_bandwidth(self) -> float:
        """Bytes per second and direction of the scale-up link of one accelerator.

        Raises:
            UnsupportedError: it has no scale-up link.
            MissingDataError: it has one, and nobody has sourced its rate.
        """
        if self.link.bytes_per_s is not None:
            return self.link.bytes_per_s
        if self.link.kind is None:
            raise UnsupportedError(f"{self.id} has no scale-up link; its peers are behind PCIe")
        raise MissingDataError(f"{self.id}: the rate of its {self.link.kind} is not sourced")

    @property
    def _remedy(self) -> str:
        if self.kind == "cpu":
            return "a CPU takes its roofs from a measured record (roofline measure, machine=)"
        return "copy its YAML, add the figure with its source, and pass the file"
