"""Hub: a model by its Hugging Face id, from the local cache first, from the network when asked.

``load_hub`` and ``hub_checkpoint`` fetch a few kilobytes (config, headers of weight files)
with the ``hub`` extra, and give up in seconds when there is no network.

Limits   Public or accessible models; a gated one needs an accepted licence and ``hf auth login``.
Sources  Hugging Face, huggingface_hub, documentation of the cache and of environment variables
         (2026-11).
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from roofline.errors import InputError, MissingDataError, MissingPackageError, UnknownNameError
from roofline.models.architecture import Architecture
from roofline.models.checkpoint import CheckpointBytes, read_checkpoint, summarise
from roofline.models.config import load_model
from roofline.models.fields import show
from roofline.models.hub_cache import cache_folder, cached_folder, is_hub_id
from roofline.models.safetensors import NAMES, Tensor

PATIENCE_S = 10.0
"""Seconds that a question to the hub may take."""

FILES = ("config.json", "hf_quant_config.json")
_ANSWER = TypeVar("_ANSWER")


def load_hub(model_id: str, *, offline: bool = False) -> Architecture:
    """Load a model by its id: from the cache, else from the hub unless ``offline``.

    Raises:
        InputError: no id of the form owner/name.
        MissingPackageError: it is not in the cache and huggingface_hub is not installed.
        MissingDataError: it is gated, there is no network, or ``offline`` and not in the cache.
        UnknownNameError: the hub has no such model.
    """
    folder = cached_folder(_checked(model_id))
    if folder is None:
        if offline:
            raise MissingDataError(f"{model_id} is not in {cache_folder()}; offline was asked for")
        folder = Path(_ask(model_id, lambda hub: _download(hub, model_id)))
    return load_model(folder).renamed(model_id.rsplit("/", 1)[-1].lower())


def hub_checkpoint(model_id: str, *, offline: bool = False) -> CheckpointBytes:
    """Read the exact bytes of a model's weight files: from the cache, else their headers only.

    Raises:
        as ``load_hub``; SpecError: the cache's files cannot be right.
    """
    folder = cached_folder(_checked(model_id))
    if folder is not None and any(folder.glob("*.safetensors")):
        return read_checkpoint(folder)
    if offline:
        raise MissingDataError(
            f"no weights of {model_id} in {cache_folder()}; offline was asked for"
        )
    meta = _ask(model_id, lambda hub: hub.get_safetensors_metadata(model_id, timeout=PATIENCE_S))
    tensors = []
    for part in meta.files_metadata.values():
        for name, info in part.tensors.items():
            begin, end = info.data_offsets
            dtype = NAMES.get(info.dtype, str(info.dtype).lower())
            tensors.append(Tensor(name, dtype, tuple(info.shape), end - begin))
    return summarise(tensors, tuple(meta.files_metadata), f"https://huggingface.co/{model_id}")


def _checked(model_id: str) -> str:
    if not is_hub_id(model_id):
        raise InputError(f"{show(model_id)} is no Hugging Face id; it has the form owner/name")
    return model_id


def _download(hub: Any, model_id: str) -> str:
    """Fetch the small files; the folder of the first is the model's."""
    path = hub.hf_hub_download(model_id, FILES[0], etag_timeout=PATIENCE_S / 2)
    for name in FILES[1:]:
        try:
            hub.hf_hub_download(model_id, name, etag_timeout=PATIENCE_S / 2)
        except hub.errors.EntryNotFoundError:
            continue
    return str(Path(path).parent)


def _ask(model_id: str, question: Callable[[Any], _ANSWER]) -> _ANSWER:
    """Ask the hub, for ``PATIENCE_S`` at most: its own retries wait for half a minute."""
    try:
        import huggingface_hub as hub
    except ImportError:
        raise MissingPackageError(
            f"{model_id} is not in the local cache; to fetch it: pip install 'roofline[hub]'"
        ) from None
    answers: list[_ANSWER] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            answers.append(question(hub))
        except Exception as error:  # noqa: BLE001 - handed to the asking thread, see below
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if answers:
        return answers[0]
    if not failures:
        raise MissingDataError(
            f"{model_id}: no answer from the hub in {PATIENCE_S:.0f} s; no network?"
        )
    raise _explained(hub, model_id, failures[0]) from None


def _explained(hub: Any, model_id: str, error: Exception) -> Exception:
    errors = hub.errors
    if isinstance(error, errors.GatedRepoError):
        return MissingDataError(
            f"{model_id} is gated: accept its licence at https://huggingface.co/{model_id}, "
            "then run 'hf auth login'"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return UnknownNameError(f"the hub has no model {model_id} (or it is private)")
    if isinstance(error, errors.LocalEntryNotFoundError):
        return MissingDataError(
            f"{model_id}: not in the cache and no answer from the hub; no network?"
        )
    if isinstance(error, errors.NotASafetensorsRepoError):
        return MissingDataError(f"{model_id} has no safetensors files")
    if isinstance(error, errors.EntryNotFoundError):
        return MissingDataError(f"{model_id} has no config.json")
    first = str(error).strip().splitlines()
    return MissingDataError(
        f"{model_id}: the hub did not answer ({first[0][:200] if first else error!r})"
    )
