"""Diagnose: why a run is slow, from traces, benchmarks, node records and link tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from roofline.app.scenario import Scenario, predicted
from roofline.app.showing import Closing, close, show_table
from roofline.app.uploads import held_all, own_name, without_folder
from roofline.app.words import escaped
from roofline.diagnose import diagnose, read_fabric
from roofline.diagnose.verdict import Diagnosis
from roofline.errors import RooflineError
from roofline.report.answer import Answer
from roofline.report.diagnosis_answer import diagnosis_answer
from roofline.report.trace_answer import trace_answer
from roofline.report.trace_figures import fabric_figure, trace_figure
from roofline.report.validation_answer import beside_answer
from roofline.trace.reader import read_trace
from roofline.trace.result import TraceSummary, summarise
from roofline.units import MIB
from roofline.validation.beside import beside

ABOUT = "Hand in what you have; nothing leaves this machine. Every verdict has its evidence."
LARGEST_UNPACKED = 512 * MIB
_KINDS = (
    ("trace", "Profiler traces (one a rank)", ["json", "gz"], True, 200),
    ("benchmark", "Serving benchmark files", ["json", "jsonl", "csv", "gz"], True, 64),
    ("topology", "nvidia-smi topo -m, nvlink -s, NCCL or ibstat", ["txt", "log"], True, 8),
    ("symptoms", "Symptoms, DCGM text, out-of-memory message", ["json", "yaml", "yml", "txt",
                                                                 "log", "prom"], True, 4),
    ("baseline", "Record of the node", ["json"], False, 64),
    ("earlier", "Earlier record of the node", ["json"], False, 64),
    ("fleet", "Records of other nodes", ["json", "jsonl"], True, 64),
)  # fmt: skip


def show_page(scenario: Scenario, side: str) -> None:
    """Take uploads and show what they say."""
    uploads: dict[str, list[Any]] = {}
    columns: list[Any] = []
    for kind, label, types, many, megabytes in _KINDS:
        columns = columns or list(st.columns(2))  # a row of its own for each two
        with columns.pop(0):
            given = st.file_uploader(
                label, type=types, key=f"{kind}_file{side}", accept_multiple_files=many,
                max_upload_size=megabytes,
            )  # fmt: skip
        uploads[kind] = [one for one in (given if many else [given]) if one is not None]
    wants = st.checkbox(
        "Expect what the scenario in the sidebar predicts", key=f"expect{side}",
        help="Its model, accelerator and load: a trace's step is set beside the prediction.",
    )  # fmt: skip
    if not any(uploads.values()):
        st.info("Nothing is handed in yet.", icon=":material/upload_file:")
        return
    with st.spinner("Reading …", show_time=True):
        _answer(scenario, uploads, wants, side)


def _answer(scenario: Scenario, uploads: dict[str, list[Any]], wants: bool, side: str) -> None:
    with held_all(uploads) as files:
        folder = str(next(iter(files.values()))[0].parents[1])
        machine = scenario.machine_argument()
        traces = [_summary(path, machine) for path in files.get("trace", ())]
        fabric = read_fabric(*files["topology"]) if "topology" in files else None
        found = diagnose(
            prediction=predicted(scenario) if wants else None,
            machine=machine,
            accelerator=None if scenario.spec else scenario.accelerator,
            trace=traces or None,
            benchmark=files.get("benchmark", ()),
            baseline=_first(files, "baseline"),
            earlier=_first(files, "earlier"),
            fleet=files.get("fleet", ()),
            topology=fabric,
            symptoms=files.get("symptoms"),
        )
        answers = [trace_answer(one, {"files": [one.source]}) for one in traces]
        answers += _beside(files.get("benchmark", ()), scenario)
        figures: list[Any] = [lambda one=one: trace_figure(one) for one in traces]
        if fabric is not None:
            figures.append(lambda: fabric_figure(fabric))
        names = {kind: [own_name(one.name) for one in given] for kind, given in uploads.items()}
        whole = _public(diagnosis_answer(found, names), folder)
        answers = [_public(one, folder) for one in answers]
    _verdicts(found, folder)
    for one in answers:
        st.markdown("  \n".join(escaped(line) for line in one.lines))
        for warning in one.warnings:
            st.warning(escaped(warning))
        for table in one.tables:
            show_table(table)
    _close(scenario, whole, answers, figures, files, side)


def _summary(path: Path, machine: Any) -> TraceSummary:
    return summarise(read_trace(path, limit_bytes=LARGEST_UNPACKED), machine=machine)


def _first(files: dict[str, list[Path]], kind: str) -> Path | None:
    return files[kind][0] if files.get(kind) else None


def _beside(files: Sequence[Path], scenario: Scenario) -> list[Answer]:
    """Each benchmark file beside its prediction, where it says enough for one."""
    answers, formats = [], scenario.formats()
    for path in files:
        try:
            found = beside(path, scenario.device(), model=scenario.architecture(),
                           parallel=scenario.parallel(), machine=scenario.machine_argument(),
                           engine=scenario.engine_settings(), weights=formats["weights"],
                           kv=formats["kv"])  # fmt: skip
        except RooflineError as error:
            st.caption(f"{escaped(own_name(path.name))} is not set beside a prediction: "
                       f"{escaped(str(error).replace(str(path), path.name))}")  # fmt: skip
            continue
        answers.append(beside_answer(found, [str(path)], scenario.accelerator))
    return answers


def _public(answer: Answer, folder: str) -> Answer:
    from dataclasses import replace

    tables = [
        replace(table, rows=[[without_folder(cell, folder) for cell in row] for row in table.rows])
        for table in answer.tables
    ]
    return replace(
        answer,
        inputs=without_folder(dict(answer.inputs), folder),
        results=without_folder(answer.results, folder),
        tables=tables,
        lines=without_folder(list(answer.lines), folder),
        assumptions=without_folder(list(answer.assumptions), folder),
        warnings=without_folder(list(answer.warnings), folder),
    )


def _verdicts(found: Diagnosis, folder: str) -> None:
    headline = escaped(without_folder(found.headline, folder))
    if found.verdicts:
        st.warning(headline, icon=":material/troubleshoot:")
    else:
        st.success(headline, icon=":material/check_circle:")
    for place, verdict in enumerate(found.verdicts, 1):
        with st.container(border=True):
            st.markdown(
                f"**{place}. {escaped(verdict.cause)}** · {escaped(verdict.branch)} · confidence "
                f"**{escaped(verdict.confidence)}**"
            )
            st.markdown(escaped(without_folder(verdict.statement, folder)))
            evidence = [escaped(without_folder(line, folder)) for line in verdict.evidence]
            st.markdown("\n".join(f"- {line}" for line in evidence))
            st.markdown(
                f"Refuted by: {escaped(verdict.refuted_by)}  \n"
                f"Next: {escaped(verdict.next_step)}  \nGain: {escaped(verdict.gain)}"
            )
    with st.expander(f"Not looked at ({len(found.not_checked)})"):
        st.markdown("\n".join(f"- {escaped(line)}" for line in found.not_checked) or "Nothing.")


def _close(scenario: Scenario, whole: Answer, answers: Sequence[Answer], figures: list[Any],
           files: dict[str, list[Path]], side: str) -> None:  # fmt: skip
    shell = ["roofline diagnose", f"--accelerator {scenario.accelerator_word()}"]
    python = [f"accelerator={scenario.accelerator_word()!r}"]
    for kind, paths in files.items():
        names = [path.name for path in paths]
        python.append(f"{kind}={names if len(names) > 1 else names[0]!r}")
        shell += [f"--{kind} {name}" for name in names]
    close(
        Closing(
            answer=whole,
            python=f"from roofline.diagnose import diagnose\n\ndiagnose({', '.join(python)})",
            shell=" ".join(shell),
            name="diagnose",
            figure=figures[0] if figures else None,
            formulas=[line for one in answers for line in one.lines],
        ),
        side,
    )
