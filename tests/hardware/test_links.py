"""Links: every file loads, rates are per direction, and a wrong file is refused with its line."""

import pytest

from roofline.errors import SpecError, UnknownNameError
from roofline.hardware.accelerator import accelerator_ids, load_accelerator
from roofline.hardware.links import link_names, load_link

GOOD = """\
id: wire-1
name: Wire 1
category: scale-out
bytes_per_s: 400 Gb/s
total_bytes_per_s: 100 GB/s
achieved_fraction: 0.9
achieved_basis: nccl-tests, 2026
latency_s: 2 us
source: Wire datasheet, 2026
"""


@pytest.mark.parametrize("name", link_names())
def test_every_link_loads(name):
    link = load_link(name)
    assert link.id == name
    assert load_link(link.name) == link
    assert link.total_bytes_per_s == pytest.approx(2 * link.bytes_per_s)
    assert link.source


def test_all_kinds_are_there():
    assert len(link_names()) >= 50
    assert {load_link(name).category for name in link_names()} == {
        "host", "scale-up", "switch", "scale-out",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "gb_per_s"),
    [
        ("InfiniBand NDR", 50), ("infiniband-hdr", 25), ("400gbe", 50), ("EFA v2", 50),
        ("nvlink 4", 450), ("PCIe 4", 31.5), ("nvlink-4-h800", 200), ("ethernet-25gbe", 3.125),
    ],
)  # fmt: skip
def test_rates_by_name(given, gb_per_s):
    """InfiniBand NDR is 4 × 100 Gb/s; a P5 node has 32 × 100 Gb/s for 8 GPUs (AWS)."""
    assert load_link(given).bytes_per_s == gb_per_s * 1e9


def test_links_of_accelerators_agree_with_the_links():
    """Two files, two sources: an accelerator's NVLink is at most the rate of its generation."""
    for spec_id in accelerator_ids():
        link = load_accelerator(spec_id).link
        words = (link.kind or "").split()
        if words[:1] == ["NVLink"] and link.bytes_per_s:
            assert link.bytes_per_s <= load_link(f"nvlink-{words[1]}").bytes_per_s
    for spec_id in accelerator_ids():
        pcie = load_accelerator(spec_id).pcie
        if pcie.generation and pcie.lanes == 16:
            assert pcie.bytes_per_s == load_link(f"pcie-{pcie.generation}.0-x16").bytes_per_s


def test_names_that_fit_none_or_several():
    with pytest.raises(UnknownNameError, match="'nvlink' is several links; write one of nvlink-1"):
        load_link("nvlink")
    with pytest.raises(UnknownNameError, match="no link 'token ring'"):
        load_link("token ring")
    with pytest.raises(UnknownNameError, match="not int"):
        load_link(4)  # type: ignore[arg-type]


def test_the_good_file_loads(tmp_path):
    path = tmp_path / "wire.yaml"
    path.write_text(GOOD)
    link = load_link(path)
    assert (link.bytes_per_s, link.achieved_bytes_per_s, link.latency_s) == (50e9, 45e9, 2e-6)
    assert load_link(link) is link


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("400 Gb/s", "100 GB/s", r"wire.yaml:5: total_bytes_per_s .*both directions are 1 × one"),
        ("400 Gb/s", "400", r"wire.yaml:4: .*has no unit"),
        ("source: Wire datasheet, 2026\n", "", r"source is missing"),
        ("Wire datasheet, 2026", "[]", r"wire.yaml:9: .*a link needs a source"),
        ("0.9", "1.9", r"wire.yaml:6: achieved_fraction cannot be 1.9"),
        ("achieved_basis: nccl-tests, 2026\n", "", r"wire.yaml:6: .*say what was measured"),
        ("2 us", "2 GB", r"wire.yaml:8: .*'GB' is no unit here"),
        ("2 us", "20 s", r"wire.yaml:8: .*check the unit"),
        ("name: Wire 1", "nane: Wire 1", r"wire.yaml:2: nane is no field"),
        ("scale-out", "wireless", r"wire.yaml:3: category cannot be 'wireless'"),
    ],
)
def test_a_slip_is_named_with_its_line(tmp_path, old, new, message):
    path = tmp_path / "wire.yaml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(SpecError, match=message):
        load_link(path)


def test_the_users_link_comes_first(tmp_path, monkeypatch):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "wire-1.yaml").write_text(GOOD)
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    assert load_link("wire-1").name == "Wire 1"
    assert "nvlink-4" in link_names()
