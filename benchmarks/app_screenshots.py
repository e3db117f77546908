"""Pictures of every page, light, dark and on a telephone, for the README and for looking at.

    python benchmarks/app_screenshots.py [--folder docs/screenshots] [--only plan,compare]

Needs Debian's chromium and playwright, as tests/e2e does. Pictures have 256 colours at most, to
be small.
"""

import argparse
import importlib.util
import io
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "diagnosis"
TRACE = ROOT / "measurements" / "traces" / "h200-TinyLlama-1.1B_b1.json.gz"
PAGES = {
    "predict": ("?two=true&engine=vllm&engine_b=vllm&accelerator_b=b200-hgx&weights_b=fp8", 1500),
    "roofline": ("roofline?batch=8&machine=recorded", 1400),
    "plan": ("plan?requests_per_s=20&prompt_tokens=1000&output_tokens=200", 1700),
    "compare": ("compare", 1500),
    "measure": ("measure", 1600),
    "diagnose": ("diagnose?accelerator=v100-sxm2-32gb&weights=fp16", 1700),
    "accuracy": ("accuracy", 1700),
    "training": ("training?mode=lora&recompute=full&tokens=1e9&usd_per_hour=3.5", 1600),
    "specs": ("specs", 1300),
}
LOOKS = {"light": (1280, "light"), "dark": (1280, "dark"), "narrow": (390, "light")}
COLOURS = 256


def shoot(browser: Browser, visits: type, address: str, name: str, look: str) -> bytes:
    path, height = PAGES[name]
    width, scheme = LOOKS[look]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    visit = visits(context.new_page(), address).open(path)
    if name == "diagnose":
        boxes = visit.page.get_by_test_id("stFileUploaderDropzoneInput")
        boxes.nth(1).set_input_files(TRACE)  # the first is the sidebar's
        visit.settle()
        boxes.nth(3).set_input_files(EXAMPLES / "topology_v100_two_links_down.txt")
        visit.settle()
    visit.page.wait_for_timeout(3000)
    raw = visit.page.screenshot()
    context.close()
    picture = Image.open(io.BytesIO(raw)).convert("RGB").quantize(COLOURS)
    small = io.BytesIO()
    picture.save(small, format="PNG", optimize=True)
    return small.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "screenshots")
    parser.add_argument("--only", default=",".join(PAGES))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    spec = importlib.util.spec_from_file_location("e2e", ROOT / "tests" / "e2e" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    e2e = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(e2e)
    port = 8765
    server = subprocess.Popen(
        e2e.server_command(port, open_browser=False),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=str(e2e.CHROMIUM), args=e2e.ARGUMENTS
            )
            for name in given.only.split(","):
                for look in LOOKS:
                    data = shoot(browser, e2e.Visit, f"http://127.0.0.1:{port}", name, look)
                    (given.folder / f"{name}-{look}.png").write_bytes(data)
                    print(f"{name}-{look}.png {len(data) / 1000:.0f} kB")
            browser.close()
    finally:
        server.terminate()
        server.wait(timeout=20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
