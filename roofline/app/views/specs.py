"""Specs and models: every fact with its source; add an accelerator of your own."""

from functools import lru_cache

import streamlit as st

from roofline.app.fields import OWN_PREFIX
from roofline.app.scenario import Scenario, config_file
from roofline.app.showing import Closing, close, show_table
from roofline.app.uploads import accelerator_faults, accelerator_of, own_name, text_of
from roofline.app.words import escaped
from roofline.errors import RooflineError
from roofline.hardware.accelerator import accelerator_ids, load_accelerator
from roofline.hardware.folders import data_folders
from roofline.hardware.links import link_names, load_link
from roofline.hardware.yaml_file import MAX_BYTES
from roofline.models.catalogue import load_named, model_names
from roofline.report.answer import Answer, Table
from roofline.report.model_answer import model_answer, model_summary
from roofline.report.sources import accelerator_sources
from roofline.report.spec_answer import accelerator_answer, link_answer
from roofline.units import show

ABOUT = "What is known of the scenario's accelerator and model, where it is from, and what else is."


def show_page(scenario: Scenario, side: str) -> None:
    """Show the scenario's accelerator and model, the catalogues, and the form for one's own."""
    tabs = st.tabs(["Accelerator", "Model", "All accelerators", "All models", "Links", "Your own"])
    device, arch = scenario.device(), scenario.architecture()
    of_device = accelerator_answer(device)
    of_model = model_answer(arch, scenario.model_word())
    with tabs[0]:
        _facts(of_device)
    with tabs[1]:
        _facts(of_model)
    with tabs[2]:
        show_table(all_accelerators(), height=500)
    with tabs[3]:
        show_table(all_models(), height=500)
    with tabs[4]:
        name = st.selectbox("Link", link_names(), key=f"link_name{side}")
        _facts(link_answer(load_link(name)))
    with tabs[5]:
        _own(scenario, side)
    config = config_file(scenario)
    close(
        Closing(
            answer=Answer(
                "specs", {"accelerator": scenario.accelerator_word(),
                          "model": scenario.model_word()},
                {"accelerator": of_device.results, "model": of_model.results},
                [*of_device.tables, *of_model.tables], [*of_device.lines, *of_model.lines],
                [*of_device.assumptions, *of_model.assumptions],
            ),
            python=f"roofline.load_accelerator({scenario.accelerator_word()!r})\n"
            f"roofline.load_model({scenario.model_python()})",
            shell=f"roofline specs show {scenario.accelerator_word()}\n"
            f"roofline models show {scenario.model_word()}",
            name="specs",
            sources=Table("Sources", ("what", "source"), [
                *accelerator_sources(device), (arch.name, arch.source)]),
            files=[("config.json", "config.json", lambda: config)] if config else [],
        ),
        side,
    )  # fmt: skip


def _facts(answer: Answer) -> None:
    st.markdown("  \n".join(escaped(line) for line in answer.lines))
    for table in answer.tables:
        show_table(table)


@lru_cache(maxsize=1)
def all_accelerators() -> Table:
    """The catalogue of accelerators with its main figures."""
    rows = []
    for spec_id in accelerator_ids():
        try:
            spec = load_accelerator(spec_id)
        except RooflineError:
            continue  # a user's own folder may hold a broken file; specs check says what is wrong
        peaks = {kind: spec.peak_flop_per_s(kind) for kind in spec.compute_types}
        sixteen = max((peaks[kind] for kind in ("bf16", "fp16") if kind in peaks), default=None)
        rows.append((
            spec.id, spec.name, show(spec.memory.marketed_bytes, "B"),
            show(spec.memory.bytes_per_s, "B/s"), show(sixteen, "FLOP/s"),
            show(peaks.get("fp8"), "FLOP/s"), show(spec.link.bytes_per_s, "B/s"),
            show(spec.power.tdp_w, "W"), spec.confidence or "–",
        ))  # fmt: skip
    columns = ("id", "name", "memory", "bandwidth", "16-bit, dense", "fp8, dense", "link",
               "power", "confidence")  # fmt: skip
    return Table(f"{len(rows)} accelerators", columns, rows)


@lru_cache(maxsize=1)
def all_models() -> Table:
    """The catalogue of models with its main figures."""
    rows = []
    for name in model_names():
        model = model_summary(load_named(name))
        rows.append((
            name, f"{model['parameters']:,}", f"{model['active_parameters']:,}",
            model["n_layers"], show(model["weights_bytes"], "B"),
            show(model["kv_bytes_per_token"], "B"), model["max_context_tokens"],
        ))  # fmt: skip
    columns = ("name", "parameters", "active", "layers", "weights", "KV per token",
               "longest context")  # fmt: skip
    return Table(f"{len(rows)} models", columns, rows)


def spec_text(spec_id: str) -> str:
    """The file of an accelerator, to begin one's own with."""
    for folder in data_folders("gpu_specs"):
        path = folder / f"{spec_id}.yaml"
        if spec_id in accelerator_ids() and path.is_file():
            return path.read_text(encoding="utf-8")
    return ""


def _own(scenario: Scenario, side: str) -> None:
    st.markdown("Write it as a datasheet does, with units and a source for every group. It stays "
                "in this session; save the scenario as YAML to keep it.")  # fmt: skip
    upload = st.file_uploader("An accelerator's YAML", type=["yaml", "yml"],
                              key=f"spec_file{side}", max_upload_size=1)  # fmt: skip
    name = "your text"
    if upload is None:
        begin = scenario.spec or spec_text(scenario.accelerator)
        text = st.text_area("Or edit one; this is the scenario's", begin, height=320,
                            max_chars=MAX_BYTES, key=f"spec_text{side}")  # fmt: skip
    else:
        text, name = text_of(upload, MAX_BYTES), own_name(upload.name)
    if st.button("Check and add", key=f"spec_add{side}", icon=":material/add:"):
        _add(text, name)
    for line in st.session_state.get("own_specs", {}):
        st.caption(f"Added: {escaped(line)}; choose it under Accelerator in the sidebar.")


def _add(text: str, name: str) -> None:
    faults = accelerator_faults(text, name)
    if faults:
        st.error("  \n".join(escaped(line) for line in faults), icon=":material/error:")
        return
    spec = accelerator_of(text, name)
    st.session_state.setdefault("own_specs", {})[OWN_PREFIX + spec.id] = text
    st.rerun()
