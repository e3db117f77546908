"""Errors of a spec file, in one line each: file, line, field, what is wrong and what to write."""

import difflib
from typing import Any

from pydantic import BaseModel, ValidationError

from roofline.errors import SpecError
from roofline.hardware.yaml_file import Document, FieldPath

_TYPES = {
    "string_type": "needs text; write it in quotes",
    "int_type": "needs a whole number",
    "float_type": "needs a number",
    "dict_type": "needs a mapping of names and values",
    "model_type": "needs a mapping of fields",
    "tuple_type": "needs a list",
    "bool_type": "needs true or false",
}


def spec_error(document: Document, model: type[BaseModel], error: ValidationError) -> SpecError:
    """Turn the findings of pydantic into one error with the line of the first."""
    findings = sorted(
        (_finding(document, model, entry) for entry in error.errors(include_url=False)),
        key=lambda finding: ("is missing" in finding[1], finding[0]),  # a slip explains a gap
    )
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return SpecError(findings[0][1] + more)


def spec_problems(
    document: Document, model: type[BaseModel], error: ValidationError
) -> tuple[str, ...]:
    """All findings of pydantic, one line each, in the order of the file."""
    findings = [_finding(document, model, entry) for entry in error.errors(include_url=False)]
    return tuple(dict.fromkeys(message for _, message in sorted(findings)))


def _finding(document: Document, model: type[BaseModel], entry: Any) -> tuple[int, str]:
    context = entry.get("ctx") or {}
    path: FieldPath = tuple(context.get("at") or entry["loc"])
    path = tuple(part for part in path if part != "[key]")
    where = document.where(path)
    field = ".".join(str(part) for part in path) or "the spec"
    return int(where.rpartition(":")[2]), f"{where}: {field} {_words(model, path, entry)}"


def _words(model: type[BaseModel], path: FieldPath, entry: Any) -> str:
    kind, context, given = entry["type"], entry.get("ctx") or {}, entry["input"]
    if kind == "extra_forbidden":
        return _unknown_field(model, path)
    if kind == "missing":
        return "is missing"
    if kind in _TYPES:
        return f"{_TYPES[kind]}, not {_shown(given)}"
    if kind == "inconsistent":
        return f"cannot be: {context['message']}"
    if kind == "value_error":
        return f"cannot be read: {context['error']}"
    if kind == "no_source":
        return str(entry["msg"])
    return f"cannot be {_shown(given)}: {str(entry['msg'])[:1].lower()}{str(entry['msg'])[1:]}"


def _unknown_field(model: type[BaseModel], path: FieldPath) -> str:
    owner: Any = model
    for part in path[:-1]:
        owner = getattr(owner, "model_fields", {}).get(part)
        owner = getattr(owner, "annotation", None)
    known = [name for name in getattr(owner, "model_fields", {}) if not name.startswith("_")]
    name = str(path[-1])
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    sparse = "; sparse figures are not kept, peaks are dense" if "spars" in name.lower() else ""
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    return f"is no field of a spec{sparse}; {hint}"


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else text[:57] + "..."
