"""Decoder rows: what a record says the minimal decoder took, beside what terms predict for it.

Limits   Rows of one graph a step, and long prefills: they run eagerly, and launches hide behind the
         work. Other eager and compiled rows are judged apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roofline.calibration.engines import engine_terms
from roofline.calibration.lookup import Terms
from roofline.errors import RooflineError
from roofline.hardware.accelerator import Accelerator
from roofline.hardware.measurement import DecoderRow, Measurement
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.serving.deployment import Deployment, deploy
from roofline.timing.parallel import Parallel
from roofline.timing.terms import DeviceTerms, EngineTerms
from roofline.work.operators import Step

FIT_MODELS = ("tinyllama-1.1b", "llama-3.1-8b")
"""The only models whose decoder rows may be fitted; all others judge."""


@dataclass(frozen=True)
class DecoderCase:
    """One decoder row, ready to be predicted."""

    row: DecoderRow
    deployment: Deployment
    step: Step

    @property
    def fitted(self) -> bool:
        """Whether the row may be fitted: dense bf16 on one device of the two fit models."""
        name = self.deployment.arch.name
        return name in FIT_MODELS and self.row.weights == "bf16" and self.row.tp == 1

    @property
    def group(self) -> str:
        """What kind of run it is, for error tables."""
        if self.deployment.arch.has_experts:
            return "experts"
        if self.row.tp > 1:
            return f"{self.row.tp} devices"
        return "dense fp8" if self.row.weights == "fp8" else "dense bf16"

    def seconds(self, device: DeviceTerms, engine: EngineTerms) -> float:
        """Predict the row with these terms."""
        bits = self.deployment.weights_dtype.bits
        chosen = replace(engine, small_kernels=engine_terms(
            "cuda-graph", weights_bits=bits).small_kernels)  # fmt: skip
        terms = Terms(device, chosen, True, ())
        deployment = replace(self.deployment, terms=terms)
        long_phase = self.row.phase == "prefill"
        return float(deployment.middle(self.step, long_phase=long_phase).seconds)

    def bound_s(self) -> float:
        """The bound of the row."""
        return float(self.deployment.bound(self.step).seconds)


def decoder_cases(record: Measurement, accelerator: Accelerator) -> list[DecoderCase]:
    """Gather the graph rows of a record whose model is known."""
    cases = []
    known: dict[tuple[str, str, int], Deployment | None] = {}
    for row in record.decoder_rows:
        if not _one_graph_or_long(row):
            continue
        key = (row.model, row.weights, row.tp)
        if key not in known:
            known[key] = _deployment(*key, accelerator)
        deployment = known[key]
        if deployment is not None:
            cases.append(DecoderCase(row, deployment, _step(row)))
    return cases


LONG_PROMPT = 4096
"""Prompt tokens of a step from which launches hide behind the work, captured or not."""


def _one_graph_or_long(row: DecoderRow) -> bool:
    tokens = row.batch * row.context_tokens
    return row.mode == "graph" or (
        row.mode == "eager" and row.phase == "prefill" and tokens > LONG_PROMPT
    )


def _step(row: DecoderRow) -> Step:
    if row.phase == "decode":
        return Step(decode_sequences=float(row.batch), context_tokens=float(row.context_tokens))
    return Step(prefill_sequences=float(row.batch), prefill_tokens=float(row.context_tokens))


def _deployment(model: str, weights: str, tp: int, accelerator: Accelerator) -> Deployment | None:
    try:
        arch = bare(load_model(model))
        return deploy(
            arch, accelerator, parallel=Parallel(tp=tp), weights=weights, kv="bf16",
            engine="cuda-graph",
        )  # fmt: skip
    except RooflineError:
        return None


def bare(arch: Architecture) -> Architecture:
    """Take from a model what the minimal decoder leaves out: biases and q/k norms."""
    groups = tuple(
        replace(group, linears=tuple(replace(linear, bias=False) for linear in group.linears))
        for group in arch.layers
    )
    return replace(arch, layers=groups)


def fit_cases(cases: Sequence[DecoderCase]) -> list[DecoderCase]:
    """The cases that may be fitted."""
    return [case for case in cases if case.fitted]


def judged_cases(cases: Sequence[DecoderCase]) -> list[DecoderCase]:
    """The cases that judge: all that were not fitted."""
    return [case for case in cases if not case.fitted]
