"""Train: does it fit, what a step takes, what limits it, and what a run costs."""

import shlex
from typing import Any

import streamlit as st

from roofline.api.train import MODES, train
from roofline.api.training_result import Training
from roofline.app.scenario import Scenario
from roofline.app.showing import Closing, close, metric_row, png, show_table
from roofline.app.words import between, escaped
from roofline.report.training import training_figure
from roofline.report.training_answer import headline, tables, training_answer
from roofline.units import show

TITLE, ICON, PATH = "Train", ":material/model_training:", "train"
ABOUT = "Memory by moment and part, step time with its bound, and the days and cost of a run."
RECOMPUTE = ("none", "selective", "full")
OPTIMISERS = ("adam", "adam8bit", "adafactor", "sgd", "momentum", "muon")


def show_page(scenario: Scenario, side: str) -> None:
    """Show what training one scenario's model takes."""
    settings = _ask(scenario, side)
    model, accelerator = scenario.architecture(), scenario.device()
    tokens = settings.pop("tokens") or None
    price = scenario.usd_per_hour if tokens else None
    result = train(model, accelerator, tokens=tokens, usd_per_hour=price, **settings)
    lines = headline(result)
    st.markdown("  \n".join(escaped(line) for line in lines[:-1]))
    if result.fits:
        st.success(escaped(lines[-1][:1].upper() + lines[-1][1:]), icon=":material/check_circle:")
    else:
        st.error(escaped(lines[-1]), icon=":material/cancel:")
    metric_row(_metrics(result))
    st.image(png(training_figure(result)), caption="; ".join(lines[:2]))
    for table in tables(result):
        show_table(table)
    words = {name: value for name, value in settings.items() if value is not None}
    close(
        Closing(
            answer=training_answer(result, model.name, accelerator.id, {"tokens": tokens}),
            python=_python(model.name, accelerator.id, {**words, "tokens": tokens}),
            shell=_shell(model.name, accelerator.id, {**words, "tokens": tokens}),
            name="training",
            figure=lambda: training_figure(result),
        ),
        side,
    )


def _ask(scenario: Scenario, side: str) -> dict[str, Any]:
    """What only training asks; model, accelerator and parallelism are the sidebar's."""
    first, second, third, fourth = st.columns(4)
    mode = first.selectbox("Trained", MODES, key=f"train-mode{side}")
    recompute = second.selectbox("Recomputed", RECOMPUTE, key=f"train-recompute{side}")
    optimiser = third.selectbox("Optimiser", OPTIMISERS, key=f"train-optimiser{side}")
    stage = fourth.selectbox("ZeRO stage", (0, 1, 2, 3), key=f"train-zero{side}")
    first, second, third, fourth = st.columns(4)
    sequence = first.number_input(
        "Tokens of a sequence", 1, 2**24, 2048, key=f"train-sequence{side}"
    )
    micro = second.number_input("Micro-batch", 1, 2**16, 1, key=f"train-micro{side}")
    batches = third.number_input("Micro-batches", 1, 2**16, 1, key=f"train-batches{side}")
    tokens = fourth.number_input(
        "Tokens of the run (0: not asked)", 0.0, 1e18, 0.0, format="%.6g", key=f"train-run{side}"
    )
    return {
        "mode": mode, "recompute": recompute, "optimiser": optimiser, "zero_stage": int(stage),
        "sequence_tokens": int(sequence), "micro_batch": int(micro),
        "micro_batches": int(batches), "tp": scenario.tp, "pp": scenario.pp, "dp": scenario.dp,
        "ep": scenario.ep, "network": scenario.inputs()["network"], "tokens": float(tokens),
    }  # fmt: skip


def _metrics(result: Training) -> list[tuple[str, str, str]]:
    step = result.step
    rows = [
        ("Peak memory", show(result.peak_bytes, "GiB"), result.memory.peak_moment),
        ("Step · bound", show(step.bound.seconds, "s"), f"limited by {step.bound.limited_by}"),
        ("Step · estimate", show(float(step.step_s.mid), "s"), between(step.step_s, "s")),
        ("Tokens/s · estimate", show(float(step.tokens_per_s.mid), ""),
         between(step.tokens_per_s, "")),
        ("MFU · estimate", f"{float(step.mfu.mid):.0%}", f"HFU {float(step.hfu.mid):.0%}"),
    ]  # fmt: skip
    run = result.run
    if run is not None:
        rows.append(
            ("Run · estimate", show(float(run.seconds.mid), "s"), between(run.seconds, "s"))
        )
        if run.usd is not None:
            rows.append(("USD · estimate", show(float(run.usd.mid), ""), between(run.usd, "")))
    return rows


def _python(model: str, accelerator: str, settings: dict[str, Any]) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items() if value is not None)
    return f"roofline.train({model!r}, {accelerator!r}, {given})"


def _shell(model: str, accelerator: str, settings: dict[str, Any]) -> str:
    """The command; it has the size of a whole step where the page has micro-batches."""
    given = dict(settings)
    batches = given.pop("micro_batches")
    given["global_batch"] = given["micro_batch"] * batches * given["dp"]
    words = ["roofline", "train", model, accelerator]
    for name, value in given.items():
        if value is not None:
            words += ["--" + name.replace("_", "-"), str(value)]
    return shlex.join(words)
