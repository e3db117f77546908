"""Record check: does the device itself reach what its kind usually reaches?

    copy     best large read, add or copy ÷ datasheet bandwidth       below 0.70 is slow
    matmul   best bf16 (or fp16) product ÷ dense datasheet peak       below 0.45 is slow

Sources  [1] Published matmul runs of 28 devices reach 51 to 99 % of the dense bf16 datasheet rate
             (measurements/published/peaks.csv); an H200 reads 0.92 of its bandwidth.
"""

from roofline.diagnose.alone import BRANCH
from roofline.diagnose.verdict import Verdict
from roofline.hardware.accelerator import load_accelerator
from roofline.hardware.measurement import Measurement, load_measurement
from roofline.trace.rates import roofs_of
from roofline.units import number, show

_LEAST_MEMORY = 0.70
_LEAST_COMPUTE = 0.45


def record_verdicts(machine: "str | Measurement", accelerator: str | None) -> list[Verdict]:
    """Compare a record's own roofs with the datasheet of its device.

    >>> record_verdicts("h200-sxm-141gb", None)
    []
    """
    record = load_measurement(machine)
    spec_id = accelerator or record.device.spec_id
    if spec_id is None:
        return []
    spec, roofs = load_accelerator(spec_id), roofs_of(record)
    found = []
    peak, reached = spec.memory.bytes_per_s, roofs.bytes_per_s
    if peak and reached and reached < _LEAST_MEMORY * peak:
        found.append(
            _slow("memory", f"{show(reached, 'B/s')} of {show(peak, 'B/s')}", peak / reached,
                  "memory clock, ECC, a MIG slice, other processes; repeat with buffers of 1 GiB")
        )  # fmt: skip
    for kind in ("bf16", "fp16"):
        top, rate = spec.compute.flop_per_s.get(kind), roofs.flop_per_s.get(kind)
        if top and rate:
            if rate < _LEAST_COMPUTE * top:
                found.append(
                    _slow(f"{kind} matmul", f"{show(rate, 'FLOP/s')} of {show(top, 'FLOP/s')}",
                          top / rate, "SM clock under load, power limit, temperature, library")
                )  # fmt: skip
            break
    return found


def _slow(what: str, rates: str, factor: float, look: str) -> Verdict:
    return Verdict(
        branch=BRANCH,
        cause=f"the device itself is slow: {what}",
        statement=f"the record's {what} reaches {rates}, less than devices of this kind do",
        evidence=(f"{what} {rates} (record against datasheet)",),
        confidence="medium",
        refuted_by="another device of this kind gives the same rate",
        next_step=f"look at {look}; run roofline baseline and compare with its fleet",
        gain=f"up to {number(factor, 2)} × where {what} binds",
        gain_factor=factor,
    )
