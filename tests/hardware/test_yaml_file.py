"""The YAML reader: what it reads, with which lines, and what it refuses."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.errors import SpecError
from roofline.hardware.yaml_file import MAX_BYTES, parse_yaml, read_yaml

HERE = Path("some.yaml")


def test_scalars_are_those_of_yaml_1_2():
    """YAML 1.2.2, section 10.3: no octal, no sexagesimal, no yes/no, no dates."""
    text = (
        "a: 12\nb: 1e3\nc: no\nd: 2026-08-22\ne: '5'\nf: true\ng: ~\nh: 0777\ni: 12:30\nj: [1, x]\n"
    )
    assert parse_yaml(text, HERE).value == {
        "a": 12, "b": 1000.0, "c": "no", "d": "2026-08-22", "e": "5", "f": True, "g": None,
        "h": 777, "i": "12:30", "j": (1, "x"),
    }  # fmt: skip


def test_each_field_has_its_line():
    document = parse_yaml("a: 1\nb:\n  c:\n    - x\n    - y: 2\n", HERE)
    assert document.where(("b", "c", 1, "y")) == "some.yaml:5"
    assert document.where(("b", "c", 0)) == "some.yaml:4"
    assert document.where(("b", "gone")) == "some.yaml:2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", r"some.yaml:2: 'a' is there twice; first in line 1"),
        ("x:\n  a: 1\n  a: 1", r"some.yaml:3: 'a' is there twice"),
        ("a: &x [1]\nb: *x", r"some.yaml:1: anchors and aliases"),
        ("a: *x", r"some.yaml:1: anchors and aliases"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]", r"some.yaml:2: tag .* is refused"),
        ("a: !custom 1", r"tag .* is refused"),
        ("a:\n  <<: {b: 1}", r"some.yaml:2: merge keys"),
        ("a: 1\nb: .inf", r"some.yaml:2: .inf is not finite"),
        ("a: .nan", "not finite"),
        ("a: 1e999", "not finite"),
        ("? [a]\n: 1", "a key must be a plain word"),
        ("'': 1", "a key must be a plain word"),
        ("a: 1\n---\nb: 2", "second document"),
        ("", "empty"),
        ("# only a comment", "empty"),
        ("a: [1, 2", r"some.yaml:\d+: no valid YAML"),
        ("a: b: c", "some.yaml:1: no valid YAML"),
        ("a: \x00", "no valid YAML"),
        ("a:\n\t- b", "no valid YAML"),
        ("[" * 5000, "nested deeper than 20 levels"),
        ("a: " + "{b: " * 3000, "nested deeper than 20 levels"),
    ],
)
def test_refused(text, message):
    with pytest.raises(SpecError, match=message):
        parse_yaml(text, HERE)


def test_an_alias_bomb_is_refused_at_its_first_anchor():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    with pytest.raises(SpecError, match=r"some.yaml:1: anchors"):
        parse_yaml("\n".join(lines), HERE)


def test_files_that_are_none(tmp_path):
    with pytest.raises(SpecError, match=r"cannot read .*gone.yaml: No such file"):
        read_yaml(tmp_path / "gone.yaml")
    with pytest.raises(SpecError, match="is a folder"):
        read_yaml(tmp_path)
    with pytest.raises(SpecError, match="no file name"):
        read_yaml(Path("a\x00b"))
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"a: " + b"x" * MAX_BYTES)
    with pytest.raises(SpecError, match="larger than 256 KiB"):
        read_yaml(huge)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: 1\nb: \xff\xfe")
    with pytest.raises(SpecError, match=r"binary.yaml:2: not UTF-8"):
        read_yaml(binary)


@given(st.text(alphabet=st.sampled_from("ab:-[]{},&*!|>'\"%@`#? \n\t01.e~<"), max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text):
    said = ""
    try:
        parse_yaml(text, HERE)
    except SpecError as error:
        said = str(error)
    assert "\n" not in said
