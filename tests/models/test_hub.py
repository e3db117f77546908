"""Models by hub id: the cache first, clear words without a network, gated and missing models."""

import json
import threading
import types
from pathlib import Path

import pytest

from roofline.errors import InputError, MissingDataError, UnknownNameError
from roofline.models import hub
from roofline.models.config import load_model

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "reference_counts.json").read_text())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--someone--My-Model" / "snapshots" / "0123"
    folder.mkdir(parents=True)
    folder.joinpath("config.json").write_text(json.dumps(REFERENCE["qwen3"]["config"]))
    return folder


def test_the_cache_is_read_without_a_network(cache):
    model = hub.load_hub("someone/My-Model", offline=True)
    assert model.parameters == REFERENCE["qwen3"]["parameters"]
    assert model.name == "my-model"
    assert load_model("someone/My-Model").parameters == model.parameters


def test_weights_in_the_cache(cache):
    header = b'{"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}'
    cache.joinpath("model.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + bytes(4)
    )
    assert hub.hub_checkpoint("someone/My-Model", offline=True).by_dtype == {"bf16": 4}


def test_offline_and_not_in_the_cache(cache):
    with pytest.raises(MissingDataError, match="offline was asked for"):
        hub.load_hub("someone/Other", offline=True)
    with pytest.raises(MissingDataError, match="offline was asked for"):
        hub.hub_checkpoint("someone/Other", offline=True)


@pytest.mark.parametrize("text", ["llama", "a/b/c", "../b", "a/..", "", "a b/c", "x/" + "y" * 200])
def test_what_is_no_id(text):
    with pytest.raises(InputError, match="owner/name"):
        hub.load_hub(text)


def fake(monkeypatch, error):
    """Stand in for huggingface_hub with errors of its names."""
    names = ("GatedRepoError", "RepositoryNotFoundError", "LocalEntryNotFoundError",
             "NotASafetensorsRepoError", "EntryNotFoundError")  # fmt: skip
    errors = types.SimpleNamespace(**{name: type(name, (Exception,), {}) for name in names})

    def fail(*arguments, **options):
        raise getattr(errors, error)("no") if hasattr(errors, error) else OSError("unreachable")

    package = types.ModuleType("huggingface_hub")
    package.errors = errors
    package.hf_hub_download = package.get_safetensors_metadata = fail
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", package)
    return package


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        ("GatedRepoError", MissingDataError, "is gated: accept its licence"),
        ("RepositoryNotFoundError", UnknownNameError, "the hub has no model a/b"),
        ("LocalEntryNotFoundError", MissingDataError, "no network"),
        ("EntryNotFoundError", MissingDataError, "no config.json"),
        ("NotASafetensorsRepoError", MissingDataError, "no safetensors files"),
        ("Other", MissingDataError, "did not answer .*unreachable"),
    ],
)
def test_errors_of_the_hub(cache, monkeypatch, error, kind, words):
    fake(monkeypatch, error)
    with pytest.raises(kind, match=words):
        hub.load_hub("a/b")
    with pytest.raises(kind, match=words):
        hub.hub_checkpoint("a/b")


def test_a_hub_that_hangs(cache, monkeypatch):
    """Nobody waits half a minute without a network."""
    package = fake(monkeypatch, "Other")
    released = threading.Event()
    package.hf_hub_download = lambda *arguments, **options: released.wait(60)
    monkeypatch.setattr(hub, "PATIENCE_S", 0.1)
    try:
        with pytest.raises(MissingDataError, match="no answer from the hub"):
            hub.load_hub("a/b")
        assert not released.is_set()  # the answer came while the hub still hung
    finally:
        released.set()


def test_headers_from_the_hub(cache, monkeypatch):
    package = fake(monkeypatch, "Other")
    info = types.SimpleNamespace(dtype="BF16", shape=[2, 3], data_offsets=(0, 12))
    part = types.SimpleNamespace(tensors={"a": info})
    package.get_safetensors_metadata = lambda *arguments, **options: types.SimpleNamespace(
        files_metadata={"model.safetensors": part}
    )
    total = hub.hub_checkpoint("a/b")
    assert (total.by_dtype, total.parameters) == ({"bf16": 12}, 6)


def test_config_from_the_hub(cache, monkeypatch):
    package = fake(monkeypatch, "Other")

    def download(model_id, name, **options):
        if name != "config.json":
            raise package.errors.EntryNotFoundError(name)
        return str(cache / name)

    package.hf_hub_download = download
    assert hub.load_hub("a/b").parameters == REFERENCE["qwen3"]["parameters"]
