"""Figures of diagnosis draw, and hold the numbers of what they show."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from roofline.diagnose.fabric_reader import read_fabric
from roofline.hardware.node_record import NodeRecord, Probe
from roofline.report.trace_figures import fabric_figure, fleet_figure, trace_figure
from roofline.trace import summarise

ROOT = Path(__file__).resolve().parents[2]


def test_trace_figure_bars_add_up_to_the_window():
    summary = summarise(ROOT / "measurements/traces/h200-TinyLlama-1.1B_b1.json.gz")
    figure = trace_figure(summary)
    timeline, bars = figure.axes
    device = summary.only.summary
    idle = sum(
        bar.get_width()
        for bar, label in zip(bars.patches, bars.get_yticklabels(), strict=True)
        if label.get_text().startswith("idle")
    )
    assert idle == pytest.approx(1e3 * device.idle_s)
    # the stacked timeline holds all kernel time: Σ share · slice
    drawn = sum(patch.get_height() * patch.get_width() for patch in timeline.patches) / 100
    assert drawn == pytest.approx(1e3 * sum(device.part_s.values()), rel=1e-6)
    figure.canvas.draw()


def test_figure_of_a_cpu_trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": []}')
    assert "no device events" in trace_figure(summarise(path)).axes[0].texts[0].get_text()


def test_fabric_figure():
    figure = fabric_figure(read_fabric(ROOT / "examples/diagnosis/topology_bridged_pairs.txt"))
    shown = figure.axes[0].images[0].get_array()
    assert shown[0, 2] == pytest.approx(56.25)
    assert np.ma.getmaskarray(shown)[0, 0] or np.isnan(shown[0, 0])


def test_fleet_figure():
    def node(name, rate):
        probe = Probe(name="copy", device=0, unit="B/s", work=rate, median_s=1.0)
        return NodeRecord(node=name, date=datetime(2026, 11, 1, tzinfo=UTC), probes=(probe,))

    figure = fleet_figure([node("a", 100.0), node("b", 100.0), node("c", 50.0)])
    points = [line.get_xdata()[0] for line in figure.axes[0].lines[:3]]
    assert points == [100.0, 100.0, 50.0]
    figure.canvas.draw()
