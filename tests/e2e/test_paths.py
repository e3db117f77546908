"""The main paths in a real browser; expected numbers are the library's and the command's."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from roofline.app.desk import VIEWS
from roofline.app.scenario import predicted, scenario_of
from roofline.cli.main import run
from roofline.units import show


def tpot(**given):
    return show(predicted(scenario_of(given)).bound.tpot_s, "s")


def test_choose_and_read(visit):
    visit.open()
    assert visit.metric("TPOT · bound") == tpot()
    page = visit.page
    page.get_by_role("combobox", name="Accelerator").click()
    page.keyboard.type("b200-hgx")
    page.keyboard.press("Enter")
    visit.settle()
    assert visit.metric("TPOT · bound") == tpot(accelerator="b200-hgx")
    page.get_by_label("Batch (sequences of a replica)").fill("8")
    page.keyboard.press("Enter")
    visit.settle()
    assert visit.metric("TPOT · bound") == tpot(accelerator="b200-hgx", batch=8)
    assert "accelerator=b200-hgx" in page.url
    assert "batch=8" in page.url
    assert visit.own_complaints() == []


def test_a_link_reproduces_the_view_on_every_page(visit):
    visit.open("?model=qwen3-8b&batch=4&engine=vllm")
    wanted = tpot(model="qwen3-8b", batch=4, engine="vllm")
    assert visit.metric("TPOT · bound") == wanted
    visit.page.get_by_role("link", name="Roofline").click()
    visit.settle()
    visit.page.get_by_role("link", name="Predict").click()
    visit.settle()
    assert visit.metric("TPOT · bound") == wanted
    assert "model=qwen3-8b" in visit.page.url
    link = visit.page.url.removeprefix(visit.address + "/")
    visit.open(link)
    assert visit.metric("TPOT · bound") == wanted


def test_settings_of_a_page_are_there_on_return(visit):
    visit.open("plan?requests_per_s=7")
    visit.page.get_by_role("link", name="Predict").click()
    visit.settle()
    visit.page.get_by_role("link", name="Plan").click()
    visit.settle()
    assert visit.page.get_by_label("Requests per second").input_value() == "7"


def test_download_is_what_the_command_says(visit, capsys, tmp_path):
    visit.open("?batch=8")
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name="JSON").click()
    file = tmp_path / "predict.json"
    waiting.value.save_as(file)
    line = ["predict", "llama-3.1-8b", "h200-sxm-141gb", "--batch", "8", "--format", "json",
            "--prompt-tokens", "2048", "--output-tokens", "256"]  # fmt: skip
    assert run(line) == 0
    assert json.loads(file.read_text()) == json.loads(capsys.readouterr().out)


def test_other_downloads(visit, tmp_path):
    visit.open()
    begins = {"CSV": b",bound,", "PNG": b"\x89PNG\r\n", "Markdown": b"# roofline predict"}
    for name, beginning in begins.items():
        with visit.page.expect_download() as waiting:
            visit.page.get_by_role("button", name=name, exact=True).click()
        file = tmp_path / name
        waiting.value.save_as(file)
        assert file.read_bytes().startswith(beginning)


def test_a_scenario_is_saved_and_loaded(visit, tmp_path):
    visit.open("?model=qwen3-8b&batch=5")
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name="Save as YAML").click()
    file = tmp_path / "scenario.yaml"
    waiting.value.save_as(file)
    visit.open()
    visit.page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(file)
    visit.page.get_by_text("scenario.yaml is loaded").wait_for()
    visit.settle()
    assert visit.metric("TPOT · bound") == tpot(model="qwen3-8b", batch=5)
    assert "batch=5" in visit.page.url


def test_a_hostile_upload_is_one_line(visit, tmp_path):
    bomb = tmp_path / "<img src=x onerror=alert(1)>.yaml"
    bomb.write_text("a: &a [x, x]\nb: [*a, *a]\n")
    visit.open()
    visit.page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(bomb)
    error = visit.page.get_by_test_id("stAlert").filter(has_text="anchors")
    error.wait_for()
    assert visit.page.locator("img[src=x]").count() == 0
    assert visit.metric("TPOT · bound") == tpot()
    assert visit.own_complaints() == []


def test_an_upload_that_is_too_large_is_refused(visit, tmp_path):
    large = tmp_path / "large.yaml"
    large.write_bytes(b"a" * (2 * 2**20))
    visit.open()
    visit.page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(large)
    visit.page.get_by_text("1.0MB").or_(visit.page.get_by_text("exceed")).first.wait_for()
    assert visit.metric("TPOT · bound") == tpot()


def test_two_declared_gigabytes_are_refused_unread(visit, tmp_path):
    small = tmp_path / "small.yaml"
    small.write_text("a: 1\n")
    visit.open()
    with visit.page.expect_request("**/upload_file/**") as waiting:
        visit.page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(small)
    sent = waiting.value
    headers = {**sent.all_headers(), "content-length": str(2 * 10**9)}
    where = urlsplit(sent.url)
    link = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
    link.putrequest(sent.method, where.path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        if not name.startswith(":"):
            link.putheader(name, value)
    link.endheaders()
    assert link.getresponse().status == 413
    link.close()


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_page_asks_nobody_and_complains_of_nothing(visit, view):
    paths = {"predict": "", "roofline": "roofline?two=true"}  # the first page has no path
    visit.open(paths.get(view.name, view.name))
    assert visit.page.locator("h1").inner_text() == view.title
    strangers = [url for url in visit.requests
                 if not url.startswith((visit.address, "data:", "blob:"))]  # fmt: skip
    assert strangers == []
    assert visit.own_complaints() == []
    assert visit.page.get_by_text("Traceback").count() == 0


def test_charts_have_words(visit):
    visit.open("roofline")
    chart = visit.page.get_by_test_id("stVegaLiteChart").first
    assert "limited by" in chart.get_attribute("aria-label")


def test_narrow_page_has_no_side_scroll(narrow):
    narrow.open()
    width = narrow.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    assert narrow.metric("TPOT · bound") == tpot()


def test_keyboard_reaches_the_scenario(visit):
    visit.open()
    batch = visit.page.get_by_label("Batch (sequences of a replica)")
    batch.focus()
    visit.page.keyboard.press("ArrowUp")
    visit.page.keyboard.press("Enter")
    visit.settle()
    assert visit.metric("TPOT · bound") == tpot(batch=33)
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.tagName") in ("INPUT", "BUTTON", "DIV")


def test_sessions_share_nothing(browser, visit, address):
    visit.open("?batch=3")
    context = browser.new_context()
    other = type(visit)(context.new_page(), address)
    other.open()
    assert other.metric("TPOT · bound") == tpot()
    assert visit.metric("TPOT · bound") == tpot(batch=3)
    context.close()
