"""The page of theory against measurement: its lines against the record and a count of the trace."""

import pytest

from roofline.errors import MissingDataError
from roofline.hardware.measurement import load_measurement
from roofline.report.theory import reading, theory_report

TRACE = "measurements/traces/h200-TinyLlama-1.1B_b1.json.gz"


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.49, "near the roof"), (1.5, "memory-bound"), (4, "one order"), (6.1, "overhead rules")],
)
def test_readings(ratio, words):
    """Limits of the issue's reading: 1.5, 3 and 6."""
    assert words in reading(ratio)


def test_page_of_eager_tinyllama(request):
    page = theory_report(
        "h200-sxm-141gb", "tinyllama-1.1b", mode="transformers",
        traces=[request.config.rootpath / TRACE],
    )  # fmt: skip
    lines = {row.what.split(" [")[0]: row for row in page.rows}
    assert lines["linear calls a step"].theory == lines["linear calls a step"].measured == "155"
    assert lines["kernels a step"].measured == "924"  # counted in the runs of November 2026
    assert lines["device busy"].measured == "2.8%"
    record = load_measurement("h200-sxm-141gb")
    assert record.device.name in page.title
    decode = next(row for row in page.rows if row.what.startswith("TPOT, batch 1,"))
    assert "overhead rules" in decode.why


def test_values_are_in_base_units_and_graphs_come_first():
    """The reference rows: Llama-3.1-8B, batch 1: the bound is 15.0 GB of weights over 4.8 TB/s."""
    page = theory_report("h200-sxm-141gb", "llama-3.1-8b")
    assert "(bf16, graph)" in page.title
    decode = next(row for row in page.to_dict()["rows"] if row["what"].startswith("TPOT, batch 1,"))
    values = decode["values"]
    assert values["theory_s"] == pytest.approx(15.0e9 / 4.8e12, rel=0.02)  # KV adds a percent
    assert values["ratio"] == pytest.approx(values["measured_s"] / values["theory_s"])
    assert values["expected_low_s"] < values["expected_mid_s"] < values["expected_high_s"]


def test_compiled_steps_are_beside_the_others():
    """The runs of the tool measured TinyLlama as a graph, eager and compiled."""
    page = theory_report("h200-sxm-141gb", "tinyllama-1.1b", mode="eager")
    compiled = [row for row in page.rows if row.what.startswith("compiled TPOT")]
    eager = [row for row in page.rows if row.what.startswith("TPOT")]
    assert compiled
    assert compiled[0].values["measured_s"] < eager[0].values["measured_s"]


def test_two_records_side_by_side():
    page = theory_report("h200-sxm-141gb", "llama-3.1-8b", before="h200-sxm-141gb", mode="graph")
    assert page.columns[-1] == "before"
    decode = next(row for row in page.rows if row.what.startswith("TPOT"))
    assert decode.measured.startswith(decode.before)


def test_missing_rows_say_what_is_there():
    with pytest.raises(MissingDataError, match=r"no decoder rows of llama-3\.1-405b"):
        theory_report("h200-sxm-141gb", "llama-3.1-405b")
