"""Rows of a measured record: one timed thing each, with its raw times and what is wrong with it.

Shapes   A matmul row is [m, k] × [k, n]. A decode-attention row reads ``context_tokens`` of keys
         and values for each of ``batch`` sequences; a prefill row scores its tokens causally.
Units    Bytes, seconds, hertz, watts, degrees Celsius. ``bytes`` of a collective is nccl-tests'
         size column: the whole buffer, so n_ranks times one rank's part for all-gather.
Limits   ``spread`` is what the record's ``spread_definition`` says; rows that a tool without raw
         times produced have an empty ``times_s``.
Sources  [1] NVIDIA nccl-tests, doc/PERFORMANCE.md (algorithm and bus bandwidth).
"""

from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from roofline.errors import InputError, SpecError

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Word = Annotated[str, Field(min_length=1, max_length=200)]

VALUE_BYTES = {
    "fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp4": 0.5,
    "int4": 0.5, "fp6": 0.75,
}  # fmt: skip
"""Bytes that an operand of each compute type takes in memory."""

_MEASURED = {
    "median_s", "spread", "times_s", "min_s", "max_s", "flags", "timer", "sm_clock_hz", "power_w",
    "temperature_c", "alg_bytes_per_s", "bus_bytes_per_s", "parameters", "peak_memory_bytes",
    "weights_bytes", "tpot_by_s", "note", "least_flop", "least_bytes",
}  # fmt: skip


class Frozen(BaseModel):
    """Strict, frozen, with no key that is not known."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


Record = TypeVar("Record", bound=BaseModel)


def first_problem(error: ValidationError, whole: str = "") -> str:
    """Say where a record is wrong first, and how; ``whole`` names the record itself.

    >>> try:
    ...     HostLinkRow.model_validate_json("{}")
    ... except ValidationError as error:
    ...     first_problem(error)
    'median_s: Field required'
    """
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or whole
    return f"{where}: {first['msg']}" if where else first["msg"]


def parse_record(kind: type[Record], text: str, name: str, what: str, whole: str = "") -> Record:
    """Read a record of a kind from JSON; ``name`` and ``what`` say in errors which one it was.

    Raises:
        SpecError: no JSON, or no such record.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise SpecError(f"{name}: no {what}: {first_problem(error, whole)}") from None


class Row(Frozen):
    """What every timed row has.

    Args:
        median_s: median time of one run.
        spread: scatter of the runs over the median, as the record defines it.
        times_s: the raw times.
        min_s, max_s: extremes, kept where raw times are not.
        timer: ``kernel`` (device events, no host work inside) or ``wall`` (host clock around
            synchronised work); never mixed in one row.
        flags: what makes the row doubtful, in words; empty: nothing was seen.
    """

    SECTION: ClassVar[str] = ""

    median_s: Positive
    spread: NotNegative = 0.0
    times_s: tuple[NotNegative, ...] = ()
    min_s: Positive | None = None
    max_s: Positive | None = None
    timer: Annotated[str, Field(pattern=r"^(kernel|wall)$")] = "kernel"
    flags: tuple[str, ...] = ()

    def identity(self) -> tuple[tuple[str, object], ...]:
        """What was timed, without what came out: the key by which a sweep resumes."""
        return tuple(
            (name, getattr(self, name)) for name in type(self).model_fields if name not in _MEASURED
        )


class CopyRow(Row):
    """Moving memory.

    >>> CopyRow(op="add", buffer_bytes=2**30, moved_bytes=3 * 2**30, median_s=0.00074).bytes_per_s
    4353007394594.59
    """

    SECTION: ClassVar[str] = "copy"

    op: Annotated[str, Field(pattern=r"^(copy|read|write|add|triad|copy_engine)$")]
    buffer_bytes: Count
    moved_bytes: Count

    @property
    def bytes_per_s(self) -> float:
        """Bytes read and written in a second."""
        return self.moved_bytes / self.median_s


class MatmulRow(Row):
    """One matrix product; ``grouped``: ``m`` rows over ``experts`` matrices of [k, n].

    >>> row = MatmulRow(compute="bf16", m=8192, n=8192, k=8192, shape="square", median_s=1.399e-3)
    >>> row.flop, row.flop_per_s / 1e12
    (1099511627776.0, 785.9)
    """

    SECTION: ClassVar[str] = "matmul"

    compute: Annotated[str, Field(pattern=r"^(fp64|fp32|tf32|bf16|fp16|fp8|int8|fp6|fp4|int4)$")]
    m: Count
    n: Count
    k: Count
    shape: Annotated[str, Field(pattern=r"^(square|skinny|grouped)$")]
    experts: Count = 1
    mode: Annotated[str, Field(pattern=r"^(burst|sustained)$")] = "burst"
    data: Annotated[str, Field(pattern=r"^(random|zeros)$")] = "random"
    sm_clock_hz: Positive | None = None
    power_w: Positive | None = None
    temperature_c: float | None = None

    @property
    def flop(self) -> float:
        """A multiplication and an addition per value of k."""
        return 2.0 * self.m * self.n * self.k

    @property
    def flop_per_s(self) -> float:
        """Rate reached."""
        return self.flop / self.median_s

    @property
    def bytes(self) -> float:
        """Both operands read and the 16-bit (or wider) result written, each once."""
        operand = VALUE_BYTES[self.compute]
        result = 4.0 if self.compute == "int8" else max(operand, 2.0)
        weights = self.experts * self.k * self.n
        return operand * (self.k * self.m + weights) + result * self.m * self.n


class AttentionRow(Row):
    """Attention alone, without projections."""

    SECTION: ClassVar[str] = "attention"

    phase: Annotated[str, Field(pattern=r"^(prefill|decode)$")]
    backend: Word
    batch: Count
    context_tokens: Count
    n_heads: Count
    n_kv_heads: Count
    head_dim: Count
    compute: Annotated[str, Field(pattern=r"^(fp32|bf16|fp16|fp8)$")] = "bf16"

    @property
    def kv_bytes(self) -> float:
        """Keys and values of all sequences, read once."""
        values = 2.0 * self.batch * self.context_tokens * self.n_kv_heads * self.head_dim
        return values * VALUE_BYTES[self.compute]

    @property
    def flop(self) -> float:
        """Scores and weighted sum; prefill counts the causal half, s²/2 pairs."""
        pairs = self.context_tokens if self.phase == "decode" else self.context_tokens**2 / 2
        return 4.0 * self.batch * self.n_heads * self.head_dim * pairs

    @property
    def bytes_per_s(self) -> float:
        """Keys and values over time: what decode is judged by."""
        return self.kv_bytes / self.median_s

    @property
    def flop_per_s(self) -> float:
        """Rate reached: what prefill is judged by."""
        return self.flop / self.median_s


class LaunchRow(Row):
    """The cost of starting something small, per item.

    ``what``: ``kernel`` (one small kernel), ``event_gap`` (two events with nothing between),
    ``operator``, ``operator_inference_mode``, ``linear``, ``module``, ``python`` (framework costs
    on the host), ``synchronise``.
    """

    SECTION: ClassVar[str] = "launch"

    what: Word
    mode: Annotated[str, Field(pattern=r"^(eager|graph)$")]


class HostLinkRow(Row):
    """A copy between host and device memory."""

    SECTION: ClassVar[str] = "host_link"

    direction: Annotated[str, Field(pattern=r"^(host_to_device|device_to_host)$")]
    pinned: bool
    bytes: Count

    @property
    def bytes_per_s(self) -> float:
        """Rate in this direction."""
        return self.bytes / self.median_s


class LinkRow(Frozen):
    """One cell of an imported bandwidth or latency matrix; such tools give no times."""

    SECTION: ClassVar[str] = "link"

    test: Word
    source: Word
    target: Word
    bytes_per_s: Positive | None = None
    latency_s: Positive | None = None
    flags: tuple[str, ...] = ()

    def identity(self) -> tuple[tuple[str, object], ...]:
        """What was measured."""
        return (("test", self.test), ("source", self.source), ("target", self.target))


COLLECTIVE_OPS = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast", "reduce",
    "gather", "scatter", "hypercube",
)  # fmt: skip
CollectiveOp = Annotated[str, Field(pattern=f"^({'|'.join(COLLECTIVE_OPS)})$")]


def bus_factor(op: str, n_ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth [1].

        all-reduce 2(n − 1)/n;  all-gather, reduce-scatter, all-to-all, gather, scatter (n − 1)/n;
        broadcast, reduce, send 1

    Raises:
        InputError: no such collective, or fewer than one rank.

    >>> bus_factor("all_reduce", 8), bus_factor("all_gather", 2), bus_factor("send_recv", 2)
    (1.75, 0.5, 1.0)
    """
    if op not in COLLECTIVE_OPS:
        raise InputError(f"no collective {op!r}; there are {', '.join(COLLECTIVE_OPS)}")
    if isinstance(n_ranks, bool) or n_ranks < 1:
        raise InputError(f"a collective needs at least one rank, got {n_ranks}")
    others = (n_ranks - 1) / n_ranks
    if op == "all_reduce":
        return 2 * others
    return 1.0 if op in ("broadcast", "reduce", "send_recv") else others


class CollectiveRow(Row):
    """One collective over ``n_ranks`` devices; ``bytes`` is nccl-tests' size."""

    SECTION: ClassVar[str] = "collective"

    op: CollectiveOp
    n_ranks: Count
    bytes: Count
    mode: Annotated[str, Field(pattern=r"^(eager|graph)$")]
    in_place: bool = False
    dtype: Word = "bf16"
    redop: Word = "sum"
    alg_bytes_per_s: NotNegative
    bus_bytes_per_s: NotNegative


class DecoderRow(Row):
    """One step of a whole model with random weights.

    Args:
        model: the architecture's name.
        tp: ranks of tensor parallelism.
        weights: storage format of the blocks' matrices.
        context_tokens: tokens of KV that a decode step reads, or tokens of the prompt.
        mode: how it was started.
        parameters: values that the decoder holds (its own count, embeddings untied).
        peak_memory_bytes: highest allocation during the row.
        weights_bytes: bytes that the weights take.
        tpot_by_s: the same decode step by three methods, where they were all run.
        least_flop, least_bytes: what the step must compute and read at least (weights once, the
            cache once; of experts the expected number), as the decoder counts it.
    """

    SECTION: ClassVar[str] = "decoder"

    phase: Annotated[str, Field(pattern=r"^(decode|prefill)$")]
    model: Word
    tp: Count = 1
    weights: Word
    batch: Count
    context_tokens: Count
    mode: Annotated[str, Field(pattern=r"^(graph|eager|compiled|transformers)$")]
    parameters: Count | None = None
    peak_memory_bytes: Count | None = None
    weights_bytes: Count | None = None
    tpot_by_s: dict[str, float] = Field(default_factory=dict)
    least_flop: Positive | None = None
    least_bytes: Positive | None = None
    note: str = ""

    @property
    def tokens_per_s(self) -> float:
        """New tokens (decode) or prompt tokens (prefill) a second, of all sequences."""
        tokens = self.batch * (1 if self.phase == "decode" else self.context_tokens)
        return tokens / self.median_s


ROW_TYPES: dict[str, type[Row] | type[LinkRow]] = {
    "copy": CopyRow, "matmul": MatmulRow, "attention": AttentionRow, "launch": LaunchRow,
    "host_link": HostLinkRow, "link": LinkRow, "collective": CollectiveRow, "decoder": DecoderRow,
}  # fmt: skip
SECTIONS = tuple(ROW_TYPES)
