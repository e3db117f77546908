"""Measured rates against datasheet roofs: nothing reaches more than a roof.

    flop_rate   matmuls and prefill attention, by compute type
    byte_rate   streams of weights, of caches and of plain copies

Units    FLOP/s and bytes/s.
Limits   Collectives depend on the algorithm and are not compared here.
Sources  measurements/published/peaks.csv, a source in each line.
"""

from collections.abc import Callable
from dataclasses import dataclass

from roofline.errors import RooflineError
from roofline.hardware.accelerator import load_accelerator
from roofline.units import parse
from roofline.validation.names import accelerator_named
from roofline.validation.published import table_lines
from roofline.validation.scores import Point

Line = dict[str, str]

_COMPUTE = {
    "bf16": "bf16", "bfloat16": "bf16", "half": "fp16", "fp8": "fp8", "fp8_block": "fp8",
    "nvfp4": "fp4", "int8_wo": "bf16", "int4_wo": "bf16",
}  # fmt: skip
_MATMUL = ("matmul", "matmul_max", "prefill_attention_causal", "mha_prefill",
           "sparse_prefill_mla", "decode_attention_mla")  # fmt: skip
_STREAM = (
    "gemm_weight_stream", "decode_attention_kv_stream", "stream_write", "stream_read",
    "stream_triad", "stream_scale", "stream_read_write", "copy_local", "gemv_stream",
)  # fmt: skip
_MORE_LABELS = {"B300 SXM 288GB": "b300-hgx", "GB300": "gb300-nvl72", "GB200": "gb200-nvl72",
                "B200 SXM 180GB": "b200-hgx", "L40 48GB": "l40", "H800 SXM5": "h800-sxm5-80gb",
                "MI210 64GB": "mi210", "MI355X": "mi355x", "MI325X": "mi325x",
                "Intel Gaudi 2": "gaudi2", "Intel Gaudi 3": "gaudi3"}  # fmt: skip


@dataclass(frozen=True)
class NoRoof:
    """A reason why a measured rate has no roof to be compared with."""

    name: str
    reason: str
    holds: Callable[[Line], bool]


NO_ROOF = (
    NoRoof("not a rate of the device", "collectives, host links and latencies",
           lambda line: line["kind"] not in _MATMUL + _STREAM),
    NoRoof("from cache", "the source's buffers fit in the last-level cache, or were warm there",
           lambda line: "above datasheet" in line["flag"]),
    NoRoof("no accelerator", "no spec of exactly this accelerator",
           lambda line: spec_of(line) is None),
)  # fmt: skip


def spec_of(line: Line) -> str | None:
    """The spec that a line's accelerator is.

    >>> spec_of({"gpu": "GB300"})
    'gb300-nvl72'
    """
    return _MORE_LABELS.get(line["gpu"].strip()) or accelerator_named(line["gpu"]).id


def peak_points() -> tuple[tuple[Point, ...], dict[tuple[str, str], int], int]:
    """Points of the table, rows left out by name and reason, and rows in all.

    >>> points, left, total = peak_points()
    >>> len(points) + sum(left.values()) == total
    True
    """
    points: list[Point] = []
    left: dict[tuple[str, str], int] = {}
    lines = table_lines("peaks")
    for line in lines:
        excluded = next((each for each in NO_ROOF if each.holds(line)), None)
        if excluded is not None:
            key = (excluded.name, excluded.reason)
            left[key] = left.get(key, 0) + 1
            continue
        try:
            points.append(_point(line))
        except RooflineError as error:
            key = ("refused", str(error).split("; ")[0])
            left[key] = left.get(key, 0) + 1
    return tuple(points), left, len(lines)


def _point(line: Line) -> Point:
    accelerator = load_accelerator(spec_of(line) or "")
    if line["kind"] in _STREAM:
        quantity, roof = "byte_rate", accelerator.memory_bandwidth()
        measured = parse(f"{line['value']} GB/s", "B/s")
    else:
        compute = _COMPUTE.get(line["dtype"], line["dtype"])
        quantity, roof = "flop_rate", accelerator.peak_flop_per_s(compute)
        measured = parse(f"{line['value']} TFLOP/s", "FLOP/s")
    return Point(
        id=line["id"], dataset="peaks", group=line["kind"], source=line["source"],
        engine=line["software"].split()[0].rstrip(","), accelerator=accelerator.id, model="",
        quantity=quantity, setting=f"{line['kind']} {line['dtype']} {line['size']}",
        measured=measured, bound=roof, over_bound=roof / measured,
    )  # fmt: skip
