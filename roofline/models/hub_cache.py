"""Hub cache: models that huggingface_hub has fetched before, found without it or a network.

Sources  Hugging Face, huggingface_hub, documentation of the cache and of environment variables
         (2026-11).
"""

import os
import re
from pathlib import Path

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_hub_id(text: str) -> bool:
    """Whether a text has the form ``owner/name``.

    >>> is_hub_id("meta-llama/Llama-3.1-8B"), is_hub_id("llama"), is_hub_id("a/../b")
    (True, False, False)
    """
    return _ID.fullmatch(text) is not None and ".." not in text


def cache_folder() -> Path:
    """Find the cache of huggingface_hub as its own rules have it."""
    given = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if given:
        return Path(given).expanduser()
    home = os.environ.get("HF_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface") / "hub"


def cached_folder(model_id: str) -> Path | None:
    """Find a model's newest snapshot with a config in the local cache; None: there is none."""
    if not is_hub_id(model_id):
        return None
    snapshots = cache_folder() / f"models--{model_id.replace('/', '--')}" / "snapshots"
    try:
        found = [folder for folder in snapshots.iterdir() if (folder / "config.json").is_file()]
        return max(found, key=lambda folder: folder.stat().st_mtime, default=None)
    except OSError:
        return None
