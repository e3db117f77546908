"""Models of the published rows: the catalogue's, and a few that only old or rare rows need.

``measurements/published/models.json`` holds the configs of the latter, each with its address; a
model that the catalogue has is taken from there.
"""

import functools
import json
from typing import Any

from roofline.errors import MissingDataError, SpecError
from roofline.models.architecture import Architecture
from roofline.models.catalogue import model_names
from roofline.models.config import load_model
from roofline.validation.published import published_folder


@functools.lru_cache(maxsize=256)
def row_model(name: str) -> Architecture:
    """Load a model by the name that the rows' labels are mapped to.

    Raises:
        UnknownNameError: neither the catalogue nor the tables have it.

    >>> row_model("open-llama-3b").parameters  # 26 layers of 3,200
    3426473600
    """
    if name in model_names():
        return load_model(name)
    extra = _extra()
    if name in extra:
        return load_model(extra[name]["config"]).renamed(name)
    return load_model(name)


@functools.cache
def _extra() -> dict[str, dict[str, Any]]:
    try:
        path = published_folder() / "models.json"
        found = json.loads(path.read_text(encoding="utf-8"))
    except MissingDataError:
        return {}
    except (OSError, ValueError) as error:
        raise SpecError(f"models.json does not load: {str(error)[:120]}") from None
    if not isinstance(found, dict) or not all("config" in entry for entry in found.values()):
        raise SpecError("models.json: every model needs a source and a config")
    return found
