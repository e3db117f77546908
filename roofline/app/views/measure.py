"""Measure: a record beside the datasheet, somebody's or this machine's own."""

from typing import Any

import streamlit as st

from roofline.app.charts import bars, draw
from roofline.app.measuring import DEVICES, LEVELS, Job, start
from roofline.app.scenario import Scenario
from roofline.app.showing import Closing, close, show_table
from roofline.app.uploads import own_name, record_of, text_of
from roofline.app.words import escaped
from roofline.errors import RooflineError
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.hardware.measured_rows import SECTIONS
from roofline.hardware.measurement import Measurement, load_measurement, measured_ids, to_json
from roofline.report.answer import Answer, Table
from roofline.report.record_rows import nominal_and_measured, nominal_table, section_table
from roofline.report.theory import theory_report
from roofline.units import show

ABOUT = "What a machine really reached, beside its datasheet. Every number here is measured."
_MEGABYTES = 16


def show_page(scenario: Scenario, side: str) -> None:
    """Show a record: one of those that are here, an upload, or a sweep of this machine."""
    found = _chosen(scenario, side)
    _sweep(side)
    if found is None:
        st.info("Choose a record, hand one in, or measure this machine.", icon=":material/info:")
        return
    record, name = found
    accelerator = _accelerator(record)
    st.markdown(
        f"**{escaped(record.device.name)}**, {record.date:%Y-%m-%d}, level {escaped(record.level)}"
        f"{'' if record.finished else ', **interrupted**'}; "
        + ("no datasheet of it is here" if accelerator is None else
           f"datasheet of {escaped(accelerator.name)}")
    )  # fmt: skip
    for line in (*record.flags, *(f"{what}: {why}" for what, why in record.errors.items())):
        st.warning(escaped(line), icon=":material/warning:")
    rows = nominal_and_measured(record, accelerator)
    _chart(rows, side)
    show_table(nominal_table(rows))
    theory = _theory(record, scenario)
    _sections(record, side)
    _close(record, name, accelerator, rows, theory, side)


def _chosen(scenario: Scenario, side: str) -> tuple[Measurement, str] | None:
    ids = measured_ids()
    own = st.session_state.get(f"record{side}", "")
    number = st.session_state.get(f"record_number{side}", 0)
    options = [*(("your record",) if own else ()), *ids]
    left, right = st.columns(2)
    with left:
        same = [place for place, one in enumerate(options) if one == scenario.accelerator]
        index = 0 if own else (same[0] if same else None)
        choice = st.selectbox("Record", options, index=index, key=f"record_choice{side}-{number}",
                              placeholder="none is chosen")  # fmt: skip
    with right:
        upload = st.file_uploader("Hand in a record", type=["json"], key=f"record_file{side}",
                                  max_upload_size=_MEGABYTES)  # fmt: skip
    if upload is not None and st.session_state.get(f"record_seen{side}") != upload.file_id:
        text = text_of(upload)
        record_of(text, own_name(upload.name))
        _take(text, side)
        st.session_state[f"record_seen{side}"] = upload.file_id
        st.rerun()
    if choice == "your record":
        st.caption("Set Machine to “uploaded” in the sidebar to predict with it.")
        return record_of(own), "record.json"
    return None if choice is None else (load_measurement(choice), choice)


def _take(text: str, side: str) -> None:
    st.session_state[f"record{side}"] = text
    number = f"record_number{side}"  # a fresh box, which begins with the new record
    st.session_state[number] = st.session_state.get(number, 0) + 1


def _sweep(side: str) -> None:
    if side:
        return  # a machine is measured once
    with st.expander("Measure this machine", expanded="job" in st.session_state):
        st.fragment(_job, run_every=1.0 if _runs() else None)()


def _runs() -> bool:
    job: Job | None = st.session_state.get("job")
    return job is not None and not job.finished


def _job() -> None:
    job: Job | None = st.session_state.get("job")
    if job is None:
        st.markdown(
            "Runs `roofline measure` in a process of its own; a quick CPU sweep takes about a "
            "minute. The record stays in this session."
        )
        level = st.selectbox("Level", LEVELS, key="sweep_level")
        device = st.selectbox("Device", DEVICES, key="sweep_device")
        if st.button("Measure", key="sweep_start", icon=":material/play_arrow:"):
            try:
                st.session_state["job"] = start(level, device)
            except RooflineError as error:
                st.error(escaped(error))
            else:
                st.rerun()
        return
    if not job.finished:
        share, words = job.progress()
        st.progress(share, text=escaped(words))
        if st.button("Stop", key="sweep_stop", icon=":material/stop:"):
            job.stop()
            st.rerun()
        return
    _end(job)


def _end(job: Job) -> None:
    path, trouble = job.record_file(), job.trouble()
    text = "" if path is None else path.read_text(encoding="utf-8")
    del st.session_state["job"]
    job.clear()
    if not text:
        st.error(escaped(trouble))
        return
    _take(text, "")
    st.rerun()


def _accelerator(record: Measurement) -> Accelerator | None:
    if record.device.spec_id is None:
        return None
    try:
        return load_accelerator(record.device.spec_id)
    except RooflineError:
        return None


def _chart(rows: list[dict[str, Any]], side: str) -> None:
    shown = [
        {"what": row["what"], "share of nominal": row["share"],
         "words": f"{row['share']:.0%}, {show(row['measured'], row['unit'])}"}
        for row in rows if row["share"] is not None
    ]  # fmt: skip
    if not shown:
        st.caption("There is no datasheet to compare with: the table has what was reached.")
        return
    st.markdown("**Share of the datasheet that was reached · measured**")
    draw(bars(shown, "share of nominal", "what", "measured ÷ nominal", text="words"),
         "Bars of measured over nominal: " + "; ".join(
             f"{row['what']} {row['words']}" for row in shown), f"nominal{side}")  # fmt: skip


def _theory(record: Measurement, scenario: Scenario) -> Table | None:
    if not record.decoder_rows or record.device.spec_id is None:
        return None
    models = list(dict.fromkeys(row.model for row in record.decoder_rows))
    model = scenario.model if scenario.model in models else models[0]
    try:
        report = theory_report(record, model)
    except RooflineError as error:
        st.caption(escaped(error))
        return None
    table = Table(f"Theory, expected, measured: {report.title}", report.columns, report.cells())
    show_table(table)
    return table


def _sections(record: Measurement, side: str) -> None:
    present = [name for name in SECTIONS if record.rows(name)]
    if not present:
        return
    section = st.selectbox("Rows of", present, key=f"section{side}")
    show_table(section_table(record, section), height=300)


def _close(record: Measurement, name: str, accelerator: Accelerator | None,
           rows: list[dict[str, Any]], theory: Table | None, side: str) -> None:  # fmt: skip
    tables = [
        Table("Nominal and measured, base units",
              ("what", "unit", "nominal", "measured", "share"),
              [tuple(row.values()) for row in rows]),
        nominal_table(rows), *([] if theory is None else [theory]),
    ]  # fmt: skip
    origins = [(f"{one.section}: {one.file}", f"measured {one.date:%Y-%m-%d}")
               for one in record.origins]  # fmt: skip
    spec = f"datasheet: {accelerator.id}" if accelerator is not None else ""
    close(
        Closing(
            answer=Answer("measure", {"record": name}, {"rows": rows}, tables,
                          [f"{record.device.name}, {record.date:%Y-%m-%d}"], record.assumptions),
            python=f"roofline.load_measurement({name!r})",
            shell="roofline measure --quick" if record.level == "quick" else
            "roofline measure --full",
            name="measure",
            formulas=[f"{row['what']}: {show(row['measured'], row['unit'])} ÷ "
                      f"{show(row['nominal'], row['unit'])} = {row['share']:.1%}"
                      for row in rows if row["share"] is not None],
            sources=Table("Sources", ("what", "source"), [
                *(origins or [(name, f"{record.source}, {record.date:%Y-%m-%d}")]),
                *([(spec, "; ".join(accelerator.memory.source))] if accelerator else [])]),
            files=[("Record", "record.json", lambda: to_json(record))],
        ),
        side,
    )  # fmt: skip
