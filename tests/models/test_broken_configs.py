"""Broken and hostile configs: one clear error or a model that is finite; never a traceback."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import RooflineError, SpecError
from roofline.models.config import load_model

DATA = Path(__file__).parents[1] / "data"
REFERENCE = json.loads((DATA / "reference_counts.json").read_text())
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.one_of(st.integers(-4, 4), st.text(max_size=4), st.none()), max_size=4),
    st.dictionaries(st.text(max_size=4), st.integers(-4, 4), max_size=3),
)


def check(config):
    try:
        model, refusal = load_model(config), ""
    except RooflineError as error:
        model, refusal = None, str(error)
    assert "\n" not in refusal
    assert len(refusal) < 1000
    if model is None:
        return
    assert model.parameters >= 0
    assert math.isfinite(model.active_parameters)
    for group in (*model.layers, *model.prediction_layers):
        assert group.n_layers > 0
        assert group.small_parameters >= 0
        assert all(linear.n_in >= 0 and linear.n_out >= 0 for linear in group.linears)
        if group.recurrent is not None:
            assert group.recurrent.state_values >= 0
            assert math.isfinite(group.recurrent.flop_per_token)
    for tower in model.towers:
        assert tower.parameters > 0


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_one_field_is_junk(data):
    model_type = data.draw(st.sampled_from(sorted(REFERENCE)))
    config = REFERENCE[model_type]["config"]
    nested = [key for key, value in config.items() if isinstance(value, dict)]
    key = data.draw(st.sampled_from(sorted(config)))
    if nested and data.draw(st.booleans()):
        outer = data.draw(st.sampled_from(nested))
        inner = data.draw(st.sampled_from(sorted(config[outer])))
        check({**config, outer: {**config[outer], inner: data.draw(JUNK)}})
    else:
        check({**config, key: data.draw(JUNK)})


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_fields_are_missing(data):
    model_type = data.draw(st.sampled_from(sorted(REFERENCE)))
    config = REFERENCE[model_type]["config"]
    kept = data.draw(st.sets(st.sampled_from(sorted(config))))
    check({key: config[key] for key in kept})


QUANT = st.fixed_dictionaries(
    {},
    optional={
        "quant_method": st.sampled_from(
            ["fp8", "mxfp4", "modelopt", "compressed-tensors", "gptq", "awq", "bitsandbytes", "x"]
        ),
        "quant_algo": st.sampled_from(["FP8", "NVFP4", "MIXED_PRECISION", "W9"]),
        "bits": st.one_of(st.sampled_from([2, 4, 8]), JUNK),
        "group_size": st.one_of(st.sampled_from([-1, 32, 128]), JUNK),
        "weight_block_size": st.one_of(st.just([128, 128]), JUNK),
        "modules_to_not_convert": st.one_of(
            st.lists(st.sampled_from(["lm_head", "re:.*mlp.*", "*", "re:(a+)+$", "layers.0*"])),
            JUNK,
        ),
        "ignore": JUNK,
        "config_groups": st.one_of(
            st.just({"g": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}}), JUNK
        ),
        "quantized_layers": JUNK,
        "kv_cache_quant_algo": st.one_of(st.sampled_from(["FP8", "NONE"]), JUNK),
        "load_in_4bit": JUNK,
    },
)


@settings(max_examples=300, deadline=None)
@given(block=QUANT)
def test_formats_are_junk(block):
    check({**REFERENCE["qwen3_moe"]["config"], "quantization_config": block})


@settings(max_examples=100, deadline=None)
@given(config=st.dictionaries(st.text(max_size=20), JUNK, max_size=8))
def test_anything(config):
    check(config)


@pytest.mark.parametrize("family", ["deepseek_v3", "deepseek_v4", "glm4_moe"])
def test_a_billion_prediction_layers_are_refused(family):
    """No model has more layers of any kind than a few hundred; they are never built."""
    config = {**REFERENCE[family]["config"], "num_nextn_predict_layers": 10**9}
    with pytest.raises(SpecError, match="num_nextn_predict_layers' is 1000000000; more than"):
        load_model(config)
