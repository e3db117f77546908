"""Accelerators out of measured records: their roofs are the record's best, and so named."""

from datetime import UTC, datetime

import pytest

import roofline
from roofline.errors import InputError, MissingDataError, SpecError
from roofline.hardware.accelerator import load_accelerator
from roofline.hardware.measured import measured_accelerator
from roofline.hardware.measurement import (
    CopyRow,
    Device,
    MatmulRow,
    Measurement,
    load_measurement,
    save_measurement,
)

MIB = 2**20


def copy(buffer_bytes, median_s, op="copy"):
    return CopyRow(
        op=op, buffer_bytes=buffer_bytes, moved_bytes=2 * buffer_bytes, median_s=median_s
    )


def record(**changes):
    rows = {
        "copy_rows": (
            copy(8 * MIB, 8 * MIB / 100e9),  # in the cache: 200 GB/s
            copy(512 * MIB, 512 * MIB / 10e9),  # in memory: 20 GB/s
            copy(1024 * MIB, 1024 * MIB / 9e9),
        ),
        "matmul_rows": (
            MatmulRow(compute="fp32", m=1000, n=1000, k=1000, shape="square", median_s=0.01),
            MatmulRow(compute="fp32", m=2000, n=1000, k=1000, shape="square", median_s=0.01),
            MatmulRow(compute="bf16", m=1000, n=1000, k=1000, shape="square", median_s=0.1),
        ),
    }
    device = Device(name="AMD EPYC", kind="cpu", memory_bytes=2**34, sm_count=2, llc_bytes=32 * MIB)
    return Measurement(
        device=device, date=datetime(2026, 11, 1, tzinfo=UTC), level="full", **{**rows, **changes}
    )


def test_roofs_are_the_best_rows_outside_caches():
    """By hand: 2 × 2·10⁹ / 10 ms = 400 GFLOP/s; 2 × 512 MiB in 53.7 ms = 20 GB/s."""
    cpu = measured_accelerator(record())
    assert cpu.kind == "cpu"
    assert cpu.is_measured
    assert cpu.peak_flop_per_s("fp32") == pytest.approx(400e9)
    assert cpu.peak_flop_per_s("bf16") == pytest.approx(20e9)  # slower than fp32, and no slip
    assert cpu.memory_bandwidth() == pytest.approx(20e9)
    assert cpu.usable_memory() == (2**34, None)
    assert "measured 2026-11-01" in cpu.memory.source[0]


def test_a_record_file_stands_for_its_device(tmp_path):
    path = save_measurement(record(), tmp_path)
    cpu = load_accelerator(str(path))
    assert cpu.id == "cpu-amd-epyc-2-cores"
    assert cpu.peak_flop_per_s("fp32") == pytest.approx(400e9)


def test_records_without_roofs_are_refused():
    with pytest.raises(MissingDataError, match="no copy rows"):
        measured_accelerator(record(copy_rows=()))
    with pytest.raises(MissingDataError, match="no matmul rows"):
        measured_accelerator(record(matmul_rows=()))
    with pytest.raises(SpecError, match="makes no accelerator: bytes_per_s"):
        measured_accelerator(record(copy_rows=(copy(512 * MIB, 1e9),)))


def test_measured_specs_are_below_the_datasheet():
    spec = load_accelerator("h200-sxm-141gb")
    measured = measured_accelerator(load_measurement(spec.id))
    assert measured.memory_bandwidth() < spec.memory_bandwidth()
    for name in measured.compute_types:
        assert measured.peak_flop_per_s(name) < spec.peak_flop_per_s(name)


@pytest.mark.parametrize("named", ["by its record", "generic-cpu"])
def test_a_cpu_is_predicted_from_its_record(tmp_path, named):
    """TinyLlama without its embedding table is 1,034,512,384 values: 2.07 GB at 20 GB/s."""
    path = save_measurement(record(), tmp_path)
    accelerator = named if named == "generic-cpu" else str(path)
    prediction = roofline.predict(
        "tinyllama-1.1b", accelerator, prompt_tokens=8, output_tokens=8, machine=str(path)
    )
    assert prediction.decode.bound_s == pytest.approx(2 * 1_034_512_384 / 20e9, rel=0.01)
    assert any("measured roof, not a limit" in line for line in prediction.assumptions)


def test_a_cpu_takes_no_record_of_an_accelerator():
    """The generic CPU has no figures of its own, and an H200's are not a CPU's."""
    with pytest.raises(InputError, match="the record is of NVIDIA H200, not of a CPU"):
        roofline.predict("tinyllama-1.1b", "generic-cpu", machine="h200-sxm-141gb")
