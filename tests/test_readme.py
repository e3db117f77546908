"""The README is run: every console block's commands, and what it prints is what they print."""

import re
import shlex
from pathlib import Path

import pytest

from roofline.cli.main import run

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    return BLOCK.findall(README.read_text())


def commands(block):
    """Yield each command of a block with the lines shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = command[:-1] + more
        yield command, shown


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.split("\n")[0][:60])
def test_commands_print_what_is_shown(block, capsys, tmp_path, monkeypatch):
    root = README.parent
    monkeypatch.chdir(tmp_path)
    for name in ("tests", "examples", "measurements"):
        if (root / name).exists():
            (tmp_path / name).symlink_to(root / name)
    for command, shown in commands(block):
        words = shlex.split(command, comments=True)
        assert words[0] == "roofline", command
        code = run(words[1:])
        printed = capsys.readouterr()
        assert code in (0, 3), printed.err
        text = _folded(printed.out)
        for line in shown.splitlines():
            if line.strip() not in ("", "…", "..."):
                assert _folded(line) in text, f"{command}\nnot printed: {line}\n{printed.out}"


def _folded(text):
    return (
        re.sub(r"[ \u00a0]+", " ", text).strip()
        if "\n" not in text
        else "\n".join(_folded(line) for line in text.splitlines())
    )


def test_there_are_blocks():
    assert len(blocks()) >= 4
