"""A scenario's file: YAML with the values of one scenario or two, written and read back.

Limits   A measured record that was uploaded is not written into it.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from roofline.app.fields import BY_NAME, OWN_PREFIX
from roofline.app.uploads import accelerator_of, model_of
from roofline.errors import SpecError, unknown_name
from roofline.hardware.yaml_file import parse_yaml

FILE_VERSION = 1
_TEXTS = ("config", "spec")


def to_yaml(values: Mapping[str, Any], beside: Mapping[str, Any] | None = None) -> str:
    """Write one scenario, or two, as a file."""
    document: dict[str, Any] = {"roofline_scenario": FILE_VERSION, "scenario": _plain(values)}
    if beside is not None:
        document["beside"] = _plain(beside)
    text = io.StringIO()
    yaml = YAML()
    yaml.width = 200
    yaml.dump(document, text)
    return text.getvalue()


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in _TEXTS:
            if value:
                found[name] = LiteralScalarString(value.rstrip() + "\n")
        elif isinstance(value, str) and not value.isprintable():
            found[name] = DoubleQuotedScalarString(value)  # escapes line breaks of any kind
        elif value is not None and not isinstance(value, list | tuple):
            found[name] = value
        elif value:
            found[name] = list(value)
    return found


def from_yaml(text: str, name: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Read a scenario's file: the values of one scenario, and of the second if there is one.

    Raises:
        SpecError: no such file of ours: broken, of another version, an unknown key, a value that
            cannot be, an anchor, or too large.

    >>> from_yaml("roofline_scenario: 1\\nscenario:\\n  batch: 8", "a.yaml")
    ({'batch': 8}, None)
    """
    document = parse_yaml(text, Path(name)).value
    if not isinstance(document, dict) or document.get("roofline_scenario") != FILE_VERSION:
        raise SpecError(
            f"{name}: no scenario of roofline; one begins with roofline_scenario: {FILE_VERSION}"
        )
    extra = set(document) - {"roofline_scenario", "scenario", "beside"}
    if extra:
        raise unknown_name(f"key in {name}", sorted(extra)[0], ("scenario", "beside"))
    first = _checked(document.get("scenario"), name)
    second = document.get("beside")
    return first, None if second is None else _checked(second, name)


def _checked(given: Any, name: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise SpecError(f"{name}: a scenario is a mapping of fields, such as batch: 8")
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key in _TEXTS:
            if not isinstance(value, str):
                raise SpecError(f"{name}: {key} is a block of text")
            values[key] = value
        elif key == "accelerator" and isinstance(value, str) and value.startswith(OWN_PREFIX):
            values[key] = value
        elif key not in BY_NAME:
            raise unknown_name(f"field in {name}", str(key), (*BY_NAME, *_TEXTS))
        else:
            values[key] = BY_NAME[key].checked(value)
    _check_texts(values, name)
    return values


def _check_texts(values: Mapping[str, Any], name: str) -> None:
    if values.get("config"):
        model_of(values["config"])
    if values.get("spec"):
        accelerator_of(values["spec"])
    elif str(values.get("accelerator", "")).startswith(OWN_PREFIX):
        raise SpecError(f"{name}: {values['accelerator']} needs its text under spec")
