"""Figures and page of a plan: what is drawn, by its data."""

import pytest

from roofline.api.compare import compare
from roofline.api.plan import plan
from roofline.errors import InputError
from roofline.report.one_page import html_report, markdown_report, question, write_report
from roofline.report.plan_figures import MOST_LINES, cost_figure, fronts, pareto_figure
from roofline.serving.traffic import Slo, Traffic, Workload

TRAFFIC = Traffic(requests_per_s=20, prompt_tokens=1000, output_tokens=150)


@pytest.fixture(scope="module")
def found():
    return plan(
        "llama-3.1-8b", TRAFFIC, Slo(ttft_s=0.5, tpot_s=0.03, spare_replicas=1),
        ["l40s", "mi300x"], requests=300,
    )  # fmt: skip


def test_each_accelerator_has_its_own_front(found):
    lines = fronts(found)
    assert list(lines) == ["l40s", "mi300x"]
    assert len(lines) <= MOST_LINES
    axes = pareto_figure(found).axes[0]
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert list(drawn["l40s"]) == [point.tokens_per_s_per_accelerator for point in lines["l40s"]]
    for points in lines.values():
        users = [point.tokens_per_s_per_user for point in points]
        devices = [point.tokens_per_s_per_accelerator for point in points]
        assert users == sorted(users, reverse=True)
        assert devices == sorted(devices)


def test_cost_bars_are_the_comparison_s_numbers():
    table = compare("llama-3.1-8b", Workload(1024, 128, batch=8), ["l40s", "h100-sxm5-80gb"])
    axes = cost_figure(table).axes[0]
    widths = sorted(patch.get_width() for patch in axes.patches)
    numbers = sorted(
        value for row in table.rows
        for value in (row.usd_per_nominal_tflop_hour, row.usd_per_effective_tflop_hour)
    )  # fmt: skip
    assert widths == pytest.approx(numbers)


def test_a_comparison_without_prices_says_so():
    table = compare("llama-3.1-8b", Workload(1024, 128, batch=8), ["mi300x"])
    assert cost_figure(table).axes[0].texts[0].get_text() == "no accelerator here has a price"


def test_the_page_holds_question_answer_and_grounds(found):
    text, page = markdown_report(found), html_report(found)
    for line in (*question(found), found.recommendation[0]):
        assert line in text
    assert found.options[0].launch in text
    assert page.count("<tr>") == 1 + len(found.options)
    assert "doubt: mi300x has no on_demand price" in page
    assert "with 1 spare replicas" in text


def test_a_page_of_nothing(tmp_path):
    none = plan("llama-3.1-8b", TRAFFIC, Slo(ttft_s=1e-5), ["l40s"], requests=20)
    assert "nothing that was tried meets the target" in html_report(none)
    with pytest.raises(InputError, match=r"written as \.md, \.html"):
        write_report(none, tmp_path / "page.pdf")
    with pytest.raises(InputError, match="cannot write"):
        write_report(none, tmp_path / "no" / "page.md")
    assert list(tmp_path.iterdir()) == []


def test_names_are_escaped(found):
    from dataclasses import replace

    hostile = replace(found, model="<script>alert(1)</script>")
    assert "<script>" not in html_report(hostile)
