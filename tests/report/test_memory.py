"""The bar of memory: its data, and that a file is written whole."""

import pytest

from roofline.errors import InputError
from roofline.hardware.accelerator import load_accelerator
from roofline.models.architecture import LLAMA_3_8B
from roofline.report.memory import memory_figure, memory_rows, save_memory_figure, segments
from roofline.serving.budget import budget
from roofline.serving.engines import Engine
from roofline.serving.placement import Placement


@pytest.fixture
def memories():
    return {
        name: budget(Placement(LLAMA_3_8B, load_accelerator(name), engine=Engine("vllm")), 8, 8192)
        for name in ("h100-sxm5-80gb", "t4")
    }


def test_segments_fill_the_card_or_run_past_it(memories):
    fitting, missing = memories["h100-sxm5-80gb"], memories["t4"]
    total = {name: sum(size for _, size in segments(m)) for name, m in memories.items()}
    assert total["h100-sxm5-80gb"] == pytest.approx(fitting.usable_bytes)
    assert total["t4"] == pytest.approx(missing.usable_bytes + missing.missing_bytes)


def test_rows_beside_the_figure(memories):
    rows = memory_rows(memories)
    assert [row["fits"] for row in rows] == [True, False]
    assert rows[0]["weights (bytes)"] == 2 * 8_030_261_248


def test_bars_and_their_words(memories):
    axes = memory_figure(memories).axes[0]
    words = [text.get_text() for text in axes.texts]
    assert words[0] == "fits"
    assert "GiB too much" in words[1]
    heights = [patch.get_height() for patch in axes.patches[:2]]
    assert heights == pytest.approx([14.958, 14.958], abs=0.001)  # GiB of weights in either


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files(memories, tmp_path, suffix):
    path = tmp_path / f"bar{suffix}"
    save_memory_figure(memories, path)
    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("path", "words"),
    [("bar.exe", "written as .png, .svg or .pdf"), ("no/bar.png", "cannot write")],
)
def test_files_that_cannot_be(memories, tmp_path, path, words):
    with pytest.raises(InputError, match=words):
        save_memory_figure(memories, tmp_path / path)


def test_nothing_to_draw():
    with pytest.raises(InputError, match="at least one deployment"):
        memory_figure({})
