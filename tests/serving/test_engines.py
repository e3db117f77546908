"""Engines: names and settings."""

import pytest

from roofline.errors import InputError, UnknownNameError
from roofline.serving.engines import ENGINE_NAMES, Engine, find_engine


@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_every_name_stands_for_itself(name):
    assert find_engine(name) == Engine(name)
    assert find_engine(name.upper()).name == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("vLLM", "vllm"), ("trtllm", "tensorrt-llm"), ("hf", "transformers"),
     ("llama-cpp", "llama.cpp"), ("none", "ideal")],
)  # fmt: skip
def test_usual_spellings(spelling, name):
    assert find_engine(spelling).name == name


def test_an_engine_comes_back_as_it_is():
    engine = Engine("vllm", memory_fraction=0.8)
    assert find_engine(engine) is engine


@pytest.mark.parametrize("name", ["vlm", "", "tgi", 3, None, True])
def test_unknown_names(name):
    with pytest.raises((UnknownNameError, InputError)):
        find_engine(name)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.0001, 90, float("nan"), float("inf"), True, "0.9"])
def test_fractions_that_cannot_be(fraction):
    with pytest.raises(InputError, match="memory_fraction is a share above 0 and at most 1"):
        Engine("vllm", memory_fraction=fraction)


@pytest.mark.parametrize("name", ["ideal", "plain", "transformers", "llama.cpp", "gpt-fast"])
def test_engines_without_a_fraction_refuse_one(name):
    with pytest.raises(InputError, match="takes no memory fraction; vllm, sglang, tensorrt-llm do"):
        Engine(name, memory_fraction=0.9)


@pytest.mark.parametrize("field", ["chunk_tokens", "max_sequences", "page_tokens",
                                   "max_context_tokens"])  # fmt: skip
@pytest.mark.parametrize("value", [0, -1, 1.5, True, 2**40, float("nan")])
def test_counts_that_cannot_be(field, value):
    with pytest.raises(InputError, match=field):
        Engine("vllm", **{field: value})


@pytest.mark.parametrize(
    ("text", "release"),
    [("0.19", (0, 19)), ("v0.11.2", (0, 11, 2)), ("0.6.3.post2.dev308", (0, 6, 3))],
)
def test_versions_compare(text, release):
    assert Engine("vllm", version=text).release == release


@pytest.mark.parametrize("given", ["no", 1, 0])
def test_graphs_are_on_or_off(given):
    with pytest.raises(InputError, match="cuda_graphs is true or false, got"):
        Engine("vllm", cuda_graphs=given)


@pytest.mark.parametrize("text", ["newest", "", "main", True, 0.19])
def test_versions_that_are_none(text):
    with pytest.raises(InputError, match="an engine version is text like"):
        Engine("vllm", version=text)
