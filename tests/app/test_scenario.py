"""A scenario's file comes back as it went, and one that is wrong, huge or hostile is refused."""

from dataclasses import fields as fields_of

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.app.fields import ASKED, BY_NAME
from roofline.app.scenario import Scenario, scenario_of
from roofline.app.scenario_file import from_yaml, to_yaml
from roofline.app.uploads import content, own_name, suffix_of
from roofline.app.words import escaped
from roofline.errors import RooflineError, SpecError

BEGIN = "roofline_scenario: 1\nscenario:\n"


class Upload:
    """What Streamlit hands in, with the size that a browser declares."""

    def __init__(self, name, data, size=None):
        self.name, self.data, self.size = name, data, len(data) if size is None else size

    def getvalue(self):
        return self.data


def test_declared_fields_are_the_scenarios():
    declared = {field.name for field in ASKED} | {"config", "spec", "record"}
    assert {field.name for field in fields_of(Scenario)} == declared
    assert len(BY_NAME) == len(set(BY_NAME))


def test_every_default_can_be():
    for field in BY_NAME.values():
        assert field.checked(field.default) == field.default


def test_file_comes_back_as_it_went():
    values = {"model": "qwen3-8b", "batch": 7, "memory_fraction": 0.9, "tied": True,
              "against": ["t4", "l4"], "hub": "yes: no", "config": '{"a":\n 1}'}  # fmt: skip
    del values["config"]
    assert from_yaml(to_yaml(values), "a.yaml") == (values, None)
    first, second = from_yaml(to_yaml(values, {"batch": 8}), "a.yaml")
    assert (first, second) == (values, {"batch": 8})


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries({
    "batch": st.integers(1, 2**31), "prompt_tokens": st.integers(1, 2**31),
    "usd_per_hour": st.floats(0.001, 1e6), "hub": st.text(max_size=200),
}))  # fmt: skip
def test_any_values_come_back(values):
    text = to_yaml(values)
    try:
        first, _ = from_yaml(text, "a.yaml")
    except SpecError:  # a text that YAML cannot hold as it is, such as a control character
        assert not values["hub"].isprintable() or len(values["hub"]) > 200
    else:
        assert first == values


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("just text", "no scenario of roofline"),
        ("roofline_scenario: 2\nscenario: {}", "no scenario of roofline"),
        (BEGIN + "  batch: 0", "batch"),
        (BEGIN + "  batch: true", "batch"),
        (BEGIN + "  batch: .nan", "finite"),
        (BEGIN + "  batch: 1e999", "finite"),
        (BEGIN + "  model: /etc/passwd", "no model"),
        (BEGIN + "  model: [1]", "no model"),
        (BEGIN + "  accelerator: own/x", "spec"),
        (BEGIN + "  accelerator: ../../x.yaml", "no accelerator"),
        (BEGIN + "  colour: red", "no field"),
        (BEGIN + "  batch: 1\n  batch: 2", "twice"),
        (BEGIN + "  a: &a [x]\n  b: *a", "anchors"),
        (BEGIN + "  config: |\n    {}", "config"),
        (BEGIN + "  config: 7", "config"),
        (BEGIN + "  spec: |\n    id: x", ""),
        ("roofline_scenario: 1\nscenario: [1]", "mapping"),
        ("roofline_scenario: 1\nscenario: {}\nother: 1", "other"),
        ("{" * 3000, ""),
    ],
)
def test_file_that_is_wrong_is_refused_in_one_line(text, words):
    with pytest.raises(RooflineError) as error:
        from_yaml(text, "a.yaml")
    assert words in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_bomb_of_anchors_is_refused_at_once(opened):
    """The billion laughs: nine levels of ten references would be a billion words."""
    bomb = "a0: &a0 [lol]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
    )
    at = opened()
    at.file_uploader(key="scenario_file").set_value(("b.yaml", bomb.encode(), "x/yaml")).run()
    assert not at.exception
    assert "anchors" in at.error[0].value
    assert at.metric


def test_loading_a_file_sets_the_page(opened):
    text = to_yaml({"model": "qwen3-8b", "batch": 3}, {"model": "qwen3-8b", "batch": 4})
    at = opened()
    at.file_uploader(key="scenario_file").set_value(("s.yaml", text.encode(), "x/yaml")).run()
    assert not at.exception
    assert at.number_input(key="batch").value == 3
    assert at.number_input(key="batch_b").value == 4
    assert at.selectbox(key="model").value == "qwen3-8b"
    assert at.toggle(key="two").value is True


def test_uploaded_config_is_the_model(opened):
    """TinyLlama-1.1B: 1,100,048,384 parameters (its checkpoint)."""
    config = b"""{"model_type": "llama", "num_hidden_layers": 22, "hidden_size": 2048,
        "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632,
        "vocab_size": 32000, "tie_word_embeddings": false}"""
    at = opened(model_from="upload")
    assert "no config" in at.error[0].value
    at.file_uploader(key="config_file").set_value(("config.json", config, "x/json")).run()
    said = "".join(one.value.replace("\\", "") for one in at.markdown)
    assert "1,100,048,384" in said
    at.file_uploader(key="config_file").set_value(("config.json", b"{}", "x/json")).run()
    assert at.error


def test_two_gigabytes_are_refused_unread():
    upload = Upload("big.json", b"x", size=2 * 10**9)
    with pytest.raises(SpecError, match=r"big.json: 1.86 GiB; at most 16.0 MiB are read"):
        content(upload)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/abs/path.json", "path.json"),
        ("..", "upload"),
        ("<script>x</script>.json", "script_.json"),
        ("a\0b.json", "a_b.json"),
        ("x" * 500 + ".json", "x" * 55 + ".json"),
    ],
)
def test_name_of_an_upload_is_no_path(name, safe):
    assert own_name(name) == safe


def test_suffix_is_one_of_ours():
    assert suffix_of("a.JSON.GZ") == ".json.gz"
    assert suffix_of("a.exe") == ".txt"


def test_text_from_outside_is_no_markup():
    for text in ("<b>", "[a](http://x)", "![a](http://x)", ":red[x]", "$x$", "`x`", "# x"):
        shown = escaped(text)
        assert "](" not in shown
        assert not shown.startswith(("<", "#", "$", "`", ":", "!", "["))


def test_values_of_a_scenario_that_are_missing_are_defaults():
    assert scenario_of({}).batch == BY_NAME["batch"].default
