"""The recorded cases on which calculators went wrong, by id."""

import json
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "data" / "cases.jsonl"


@pytest.fixture(scope="session")
def cases():
    lines = CASES.read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}
