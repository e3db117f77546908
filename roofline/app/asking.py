"""Asking: the widgets of fields, their values in address, session and file, and both scenarios.

A widget's key is its field's name with the side's suffix, and the key is its name in the address
bar. What was given on a page is kept for the session, so that it is there on return.

Limits   Nothing is shared between sessions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from roofline.app.fields import (
    ASKED,
    BY_NAME,
    HARDWARE,
    MODEL,
    OWN_PREFIX,
    SETTINGS,
    Field,
)
from roofline.app.scenario import Scenario, hub_model, scenario_of
from roofline.app.scenario_file import from_yaml, to_yaml
from roofline.app.uploads import LARGEST_CONFIG_BYTES, model_of, own_name, text_of
from roofline.app.words import escaped
from roofline.errors import RooflineError
from roofline.hardware.yaml_file import MAX_BYTES
from roofline.models.hub import load_hub
from roofline.models.hub_cache import is_hub_id

SIDES = ("", "_b")
TITLES = {"": "Scenario A", "_b": "Scenario B"}
_MEGABYTE = 1


def ask(field: Field, side: str = "", extra: Sequence[str] = ()) -> Any:
    """Show a field and give its value."""
    key = field.name + side
    kept = st.session_state.setdefault("kept", {})
    options = [*field.options(), *extra]
    if key not in st.session_state and key in kept and _possible(field, kept[key], options):
        st.session_state[key] = kept[key]
    given: dict[str, Any] = {"key": key, "bind": "query-params", "help": field.help or None}
    match field.kind:
        case "choice":
            index = options.index(field.default)
            value = st.selectbox(field.label, options, index=index, **given)
        case "choices":
            value = st.multiselect(field.label, options, default=field.default, **given)
        case "yes":
            value = st.checkbox(field.label, value=field.default, **given)
        case "text":
            value = st.text_input(field.label, field.default, max_chars=200, **given)
        case "whole":
            value = st.number_input(
                field.label, _whole(field.least), _whole(field.most), field.default, 1, **given
            )
        case _:
            value = st.number_input(
                field.label,
                _real(field.least),
                _real(field.most),
                field.default,
                format="%.6g",
                **given,
            )
    kept[key] = value
    return value


def _whole(end: float | None) -> int | None:
    return None if end is None else int(end)


def _real(end: float | None) -> float | None:
    return None if end is None else float(end)


def _possible(field: Field, value: Any, options: Sequence[str]) -> bool:
    if field.kind == "choice":
        return value in options
    return field.kind != "choices" or all(one in options for one in value)


def ask_all(fields: Sequence[Field], side: str, columns: int) -> dict[str, Any]:
    """Show fields in columns, fewer where two scenarios share the width, and give their values.

    A field of several choices has the whole width.
    """
    values: dict[str, Any] = {}
    for field in fields:
        if field.kind == "choices":
            values[field.name] = ask(field, side)
    rest = [field for field in fields if field.name not in values]
    count = min(columns, 2) if st.session_state.get("two") else columns
    _in_columns(rest, values, side, count)
    return {field.name: values[field.name] for field in fields}


def ask_scenarios() -> dict[str, Scenario]:
    """Show both scenarios in the sidebar and give what was asked, by side."""
    with st.sidebar:
        two = st.toggle(
            "Two scenarios side by side", key="two", bind="query-params", on_change=_copy_first
        )
        if not two:
            asked = {"": _ask_one("")}
        else:
            tabs = st.tabs([TITLES[side] for side in SIDES])
            asked = {}
            for tab, side in zip(tabs, SIDES, strict=True):
                with tab:
                    asked[side] = _ask_one(side)
        _files(asked)
    return asked


def _copy_first() -> None:
    """Begin the second scenario as the first one is, as far as it was not given yet."""
    kept = st.session_state.setdefault("kept", {})
    for name in BY_NAME:
        if name in kept:
            kept.setdefault(name + SIDES[1], kept[name])
    for text in ("config", "record"):
        if text in st.session_state:
            st.session_state.setdefault(text + SIDES[1], st.session_state[text])


def _ask_one(side: str) -> Scenario:
    own: dict[str, str] = st.session_state.setdefault("own_specs", {})
    fields = {field.name: field for field in ASKED}
    values: dict[str, Any] = {"model_from": ask(fields["model_from"], side)}
    values |= _ask_model(values["model_from"], side)
    values["accelerator"] = ask(fields["accelerator"], side, tuple(own))
    _in_columns([field for field in SETTINGS if field.name in ("batch",)], values, side, 1)
    _in_columns(_named("prompt_tokens", "output_tokens"), values, side, 2)
    _in_columns(_named("tp", "pp", "dp", "ep"), values, side, 2)
    _in_columns(_named("weights", "kv"), values, side, 2)
    _in_columns(_named("engine", "machine"), values, side, 2)
    with st.expander("More: network, compute type, engine settings, price"):
        rest = ("network", "compute", "engine_version", "memory_fraction", "usd_per_hour")
        _in_columns(_named(*rest), values, side, 1)
    spec = own.get(values["accelerator"], "")
    texts = {name: st.session_state.get(name + side, "") for name in ("config", "record")}
    return scenario_of(values, spec=spec, **texts)


def _named(*names: str) -> list[Field]:
    by_name = {field.name: field for field in (*HARDWARE, *SETTINGS)}
    return [by_name[name] for name in names]


def _in_columns(fields: Sequence[Field], values: dict[str, Any], side: str, count: int) -> None:
    """Show fields row by row, so that they keep their order where columns stack."""
    for begin in range(0, len(fields), count):
        row = fields[begin : begin + count]
        for column, field in zip(st.columns(count), row, strict=False):
            with column:
                values[field.name] = ask(field, side)


def _ask_model(source: str, side: str) -> dict[str, Any]:
    fields = {field.name: field for field in MODEL}
    if source == "form":
        values: dict[str, Any] = {}
        _in_columns([field for field in MODEL if field.name not in
                     ("model_from", "model", "hub")], values, side, 2)  # fmt: skip
        return values
    if source == "upload":
        upload = st.file_uploader(
            "config.json of the model", type=["json"], key=f"config_file{side}",
            max_upload_size=4 * _MEGABYTE,
        )  # fmt: skip
        if upload is not None:
            _take_config(upload, side)
        return {}
    if source == "hub":
        found = ask(fields["hub"], side)
        _offer_to_fetch(found, side)
        return {"hub": found}
    return {"model": ask(fields["model"], side)}


def _offer_to_fetch(model_id: str, side: str) -> None:
    """For an id that is not known here: a button, the only thing that asks the network."""
    try:
        hub_model(model_id)
    except RooflineError:
        if not is_hub_id(model_id):
            return
        if st.button("Ask huggingface.co for its config.json", key=f"fetch{side}",
                     icon=":material/cloud_download:", width="stretch"):  # fmt: skip
            try:
                with st.spinner("Asking huggingface.co …", show_time=True):
                    load_hub(model_id)
            except RooflineError as error:
                st.error(escaped(error))


def _take_config(upload: Any, side: str) -> None:
    try:
        text = text_of(upload, LARGEST_CONFIG_BYTES)
        model_of(text, own_name(upload.name))
    except RooflineError as error:
        st.error(escaped(error))
    else:
        st.session_state[f"config{side}"] = text


def _files(asked: Mapping[str, Scenario]) -> None:
    kept = st.session_state["kept"]  # a download is made outside the session: it gets the values
    st.download_button(
        "Save as YAML", data=lambda: _as_yaml(asked, kept), file_name="scenario.yaml",
        mime="application/yaml", on_click="ignore", icon=":material/download:", width="stretch",
    )  # fmt: skip
    st.file_uploader(
        "Load a saved scenario", type=["yaml", "yml"], key="scenario_file", on_change=_load,
        max_upload_size=_MEGABYTE,
    )  # fmt: skip
    kind, message = st.session_state.get("load_message", ("", ""))
    if kind == "error":
        st.error(escaped(message))
    elif kind:
        st.success(escaped(message))


def _as_yaml(asked: Mapping[str, Scenario], kept: Mapping[str, Any]) -> str:
    documents = [
        {name: kept[name + side] for name in BY_NAME if name + side in kept}
        | {"config": scenario.config, "spec": scenario.spec}
        for side, scenario in asked.items()
    ]
    return to_yaml(*documents)


def _load() -> None:
    """Take a scenario's file: before the page is made, so that the widgets show it."""
    upload = st.session_state.get("scenario_file")
    if upload is None:
        st.session_state.pop("load_message", None)
        return
    name = own_name(upload.name)
    try:
        first, second = from_yaml(text_of(upload, MAX_BYTES), name)
    except RooflineError as error:
        st.session_state["load_message"] = ("error", str(error))
        return
    for side, values in zip(SIDES, (first, second), strict=True):
        if values is not None:
            put(values, side)
    st.session_state["two"] = second is not None
    st.session_state["load_message"] = ("done", f"{name} is loaded")


def put(values: Mapping[str, Any], side: str) -> None:
    """Set the widgets of one side; what is not given takes its default."""
    kept = st.session_state.setdefault("kept", {})
    for name, field in BY_NAME.items():
        value = values.get(name, field.default)
        st.session_state[name + side] = kept[name + side] = value
    st.session_state[f"config{side}"] = values.get("config", "")
    if values.get("spec"):
        own_id = str(values["accelerator"])
        if not own_id.startswith(OWN_PREFIX):
            own_id = OWN_PREFIX + own_id
            st.session_state["accelerator" + side] = kept["accelerator" + side] = own_id
        st.session_state.setdefault("own_specs", {})[own_id] = values["spec"]


def remember_link() -> None:
    """Keep what the address asked for when this session began."""
    if "link" not in st.session_state:
        st.session_state["link"] = st.query_params.to_dict()


def link_doubts() -> list[str]:
    """What the link asked for and no widget took: unknown keys and values, in words."""
    if "link_doubts" not in st.session_state:
        kept = {**st.session_state.get("kept", {}), "two": st.session_state.get("two")}
        known = {name + side for name in BY_NAME for side in SIDES} | {"two"}
        doubts = []
        for key, asked in st.session_state.get("link", {}).items():
            if key not in known:
                doubts.append(f"{key[:60]} is no setting")
            elif key in kept and not _same(asked, kept[key]):
                doubts.append(f"{key} = {asked[:60]} is no value that it can have")
        st.session_state["link_doubts"] = doubts
    found: list[str] = st.session_state["link_doubts"]
    return found


def _same(asked: str, value: Any) -> bool:
    if isinstance(value, list):
        return True  # several values stand in the address several times
    try:
        return float(asked) == float(value)
    except (TypeError, ValueError):
        return asked.casefold() == str(value).casefold()
