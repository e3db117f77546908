"""The catalogue against totals that were published, and its names."""

import json
from pathlib import Path

import pytest

from roofline.errors import RooflineError, UnknownNameError
from roofline.models.catalogue import load_named, model_names, resolve
from roofline.models.config import load_model

DATA = Path(__file__).parents[1] / "data"
TOTALS = json.loads((DATA / "published_totals.json").read_text())


@pytest.mark.parametrize("name", sorted(TOTALS))
def test_published_totals(name):
    """Totals of model cards and of the hub's safetensors metadata, without router biases.

    DeepSeek-V3's card has 671,026,419,200, GLM-4.5's 352,797,829,024, dots.llm1's 142,774,381,696:
    these count a bias for each expert besides.
    """
    assert load_named(name).parameters == TOTALS[name]


@pytest.mark.parametrize(
    ("name", "billions", "digits"),
    [
        ("qwen3.5-397b-a17b", 397, 0.005),
        ("ministral-3-3b", 3.4, 0.02),
        ("ministral-3-14b", 13.5, 0.005),
        ("glm-4.6", 353, 0.005),
        ("nemotron-4-340b", 340, 0.01),
        ("exaone-4.0-32b", 32, 0.01),
        ("jamba-large-1.5", 398, 0.005),
        ("apertus-70b", 70.6, 0.005),
        ("recurrentgemma-2b", 2.68, 0.005),
        ("qwen2-57b-a14b", 57.4, 0.005),
        ("mpt-30b", 30, 0.01),
        ("kimi-k3", 2800, 0.02),
        ("step-3.7-flash", 196, 0.01),
    ],
)
def test_sizes_on_the_card(name, billions, digits):
    """Model cards that give a rounded size only; tolerance: as many digits as the card has."""
    assert load_named(name).parameters / 1e9 == pytest.approx(billions, rel=digits)


@pytest.mark.parametrize("name", model_names())
def test_every_entry_loads(name):
    model = load_named(name)
    assert model.name == name
    assert model.source.startswith("https://huggingface.co/")
    assert model.max_context_tokens is None or model.max_context_tokens >= 1024
    assert not any("unmodelled" in line for line in model.assumptions if name != "kimi-k3")


def test_there_are_enough():
    assert len(model_names()) >= 60


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama--Meta-Llama-3.1-8B", "llama-3.1-8b"),
        ("Llama-2-7B", "llama-2-7b"),
        ("Llama 3.1 8B Instruct", "llama-3.1-8b"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1"),
        ("GPT-J-6B", "gpt-j-6b"),
    ],
)
def test_names_of_the_hub(given, name):
    assert resolve(given) == name


def test_unknown_names_have_neighbours():
    with pytest.raises(UnknownNameError, match=r"no model 'lama-3.1-8b'; did you mean llama-3"):
        load_model("lama-3.1-8b")


@pytest.mark.parametrize("given", ["", " ", "x" * 10_000, "../..\0", "no/such/model"])
def test_strange_names(given):
    with pytest.raises(RooflineError, match=r"no model|no such file|cannot be read"):
        load_model(given)


def test_active_parameters_on_the_card():
    """Cards: Mixtral 12.9B, Qwen3-30B 3.3B, gpt-oss-120b 5.1B and 20b 3.6B active.

    OpenAI counts the unembedding and not the embedding: 0.58B less than here.
    """
    assert load_named("mixtral-8x7b").active_parameters / 1e9 == pytest.approx(12.9, rel=0.005)
    assert load_named("qwen3-30b-a3b").active_parameters / 1e9 == pytest.approx(3.35, rel=0.02)
    for name, billions in (("gpt-oss-120b", 5.13), ("gpt-oss-20b", 3.61)):
        model = load_named(name)
        active = model.active_parameters - model.embedding_parameters
        assert active / 1e9 == pytest.approx(billions, rel=0.005)


def test_gemma_3_with_its_tower():
    """Hub metadata of google/gemma-3-4b-it: 4,300,079,472 in all."""
    model = load_named("gemma-3-4b")
    assert model.parameters + sum(tower.parameters for tower in model.towers) == 4_300_079_472
