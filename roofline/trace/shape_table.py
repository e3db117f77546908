"""Shape table: shapes of operator calls, decoded when they are asked for."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from roofline.trace.events import Shapes


def _decoded(value: Any) -> Any:
    """A raw piece of JSON, decoded when it is needed; None when there is none."""
    if value is None or isinstance(value, (list, str)):
        return value
    raw = bytes(value)
    return json.loads(raw) if raw else None


class ShapeTable(Mapping[int, Shapes]):
    """Shapes of operator calls by external id, decoded when they are asked for."""

    def __init__(self, raw: dict[int, tuple[str, Any]]) -> None:
        self._raw = raw

    def __getitem__(self, key: int) -> Shapes:
        return _shapes(*self._raw[key])

    def __iter__(self) -> Iterator[int]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __contains__(self, key: object) -> bool:
        return key in self._raw


def _shapes(name: str, arguments: Any) -> Shapes:
    dims, types, inputs = (_decoded(_raw(arguments, f)) for f in ("dims", "types", "inputs"))
    return Shapes(
        name,
        tuple(dims) if isinstance(dims, list) else (),
        tuple(str(entry) for entry in types) if isinstance(types, list) else (),
        tuple(str(entry) for entry in inputs) if isinstance(inputs, list) else (),
    )


def _raw(arguments: Any, field: str) -> Any:
    return None if arguments is None else getattr(arguments, field)
