"""Terms: curves found again in records of known numbers, and what each lookup falls back to."""

from datetime import UTC, datetime

import numpy as np
import pytest

from roofline import predict
from roofline.calibration.engines import is_early
from roofline.calibration.lookup import find_terms
from roofline.calibration.machine import fit_machine
from roofline.calibration.store import read_calibration
from roofline.calibration.typical import device_class, typical_terms
from roofline.errors import InputError, SpecError
from roofline.hardware.accelerator import accelerator_ids, load_accelerator
from roofline.hardware.measurement import CopyRow, Device, LaunchRow, MatmulRow, Measurement
from roofline.serving.engines import ENGINE_NAMES


def record(**rows):
    device = Device(name="test", memory_bytes=10**11, sm_count=100, spec_id="h200-sxm-141gb")
    return Measurement(device=device, date=datetime(2026, 11, 1, tzinfo=UTC), level="full", **rows)


def matmul_rows(start_s, bytes_per_s, flop_per_s, softness):
    rows = []
    for m in (1, 8, 64, 256, 1024, 4096):
        for k, n in ((2048, 2048), (4096, 14336), (8192, 8192)):
            moved, flop = 2 * (k * n + m * k + m * n), 2 * m * n * k
            parts = (moved / bytes_per_s) ** softness + (flop / flop_per_s) ** softness
            time_s = start_s + parts ** (1 / softness)
            rows.append(MatmulRow(compute="bf16", m=m, n=n, k=k, shape="skinny", median_s=time_s))
    return tuple(rows)


@pytest.mark.parametrize("numbers", [(4e-6, 4.1e12, 8e14, 3.0), (9e-6, 1.2e12, 2e14, 1.5)])
def test_a_curve_is_found_again(numbers):
    """Rows are made from the formula with these four numbers; the fit must return them."""
    fit = fit_machine(record(matmul_rows=matmul_rows(*numbers)), load_accelerator("h200-sxm-141gb"))
    curve = fit.terms.matmul["bf16"]
    found = (curve.start_s, curve.bytes_per_s, curve.flop_per_s, curve.softness)
    assert found == pytest.approx(numbers, rel=0.02)
    assert fit.residuals[0].worst < 1e-3


def test_what_was_not_measured_falls_back_by_name():
    fit = fit_machine(
        record(copy_rows=(CopyRow(op="add", buffer_bytes=2**30, moved_bytes=3 * 2**30,
                                  median_s=1e-3),)),
        load_accelerator("h200-sxm-141gb"),
    )  # fmt: skip
    assert any("matmul was not measured" in line for line in fit.assumptions)
    assert fit.terms.matmul == typical_terms(load_accelerator("h200-sxm-141gb")).matmul


def test_host_operators_are_taken_from_the_record():
    rows = tuple(
        LaunchRow(what=name, mode="eager", median_s=time_s)
        for name, time_s in (("host_add", 1e-5), ("host_silu", 2e-5), ("host_cat", 3e-5))
    )
    fit = fit_machine(record(launch_rows=rows), load_accelerator("h200-sxm-141gb"))
    assert fit.terms.host_operator_s == pytest.approx(2e-5)  # the median


@pytest.mark.parametrize("spec", accelerator_ids())
def test_every_accelerator_has_typical_terms_or_says_why(spec):
    accelerator = load_accelerator(spec)
    if accelerator.memory.bytes_per_s is None or not accelerator.compute_types:
        pytest.skip("no sourced bandwidth or peak")
    terms = typical_terms(accelerator)
    for kind, curve in terms.matmul.items():
        assert curve.flop_per_s <= accelerator.peak_flop_per_s(kind)
        assert curve.bytes_per_s <= accelerator.memory_bandwidth()


def test_classes_keep_data_centre_and_workstation_apart():
    names = {spec: device_class(load_accelerator(spec)).name
             for spec in ("a100-sxm4-80gb", "a40", "rtx-3090", "h20-96gb", "b200-hgx")}  # fmt: skip
    assert len(set(names.values())) == 5


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_every_engine_has_terms_and_an_interval(engine):
    terms = find_terms(load_accelerator("h100-sxm5-80gb"), engine)
    spread = terms.engine.spread_decode
    assert 0 < spread.low <= 1 <= spread.high
    assert terms.assumptions


def test_an_engine_without_rows_is_wide_and_says_so():
    terms = find_terms(load_accelerator("rtx-4090"), "cuda-graph")
    assert terms.engine.spread_decode.high / terms.engine.spread_decode.low > 2
    assert any("wide interval" in line for line in terms.assumptions)


def test_ideal_claims_no_coverage_and_costs_no_host():
    p = predict("llama-3.1-8b", "h200-sxm-141gb", machine="h200-sxm-141gb")
    assert any("no engine assumed" in line for line in p.assumptions)
    assert p.decode.estimate_s.low == p.decode.estimate_s.mid == p.decode.estimate_s.high
    assert all(row.kind not in ("host", "small") for row in p.decode.operators)


def test_a_record_of_another_device_is_refused():
    with pytest.raises(InputError, match="is a record of h200-sxm-141gb, not of a40"):
        find_terms(load_accelerator("a40"), "vllm", "h200-sxm-141gb")


@pytest.mark.parametrize("version", ["0.4.2", "v0.6.3", "vLLM 0.6.3", "2024"])
def test_early_releases(version):
    assert is_early("vllm", version)
    assert not is_early("llama.cpp", version)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"schema_version": "x"}', "\x00"])
def test_broken_calibration_files_give_one_line(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(SpecError, match="no calibration"):
        read_calibration(path)


def test_eager_steps_are_the_longer_of_host_and_device():
    """Thousands of launches of 30 µs hide a small model's device time entirely."""
    p = predict("tinyllama-1.1b", "h100-sxm5-80gb", engine="transformers", weights="bf16")
    calls = sum(row.calls for row in p.decode.operators if row.kind != "host")
    per_kernel = p.deployment.terms.engine.eager_kernel_s
    assert float(p.decode.estimate_s.mid) == pytest.approx(
        calls * per_kernel + p.deployment.terms.engine.step_s, rel=0.02
    )
    assert np.isclose(calls, 924, rtol=0.15)  # kernels a step, counted in a trace
