"""Explain: the formulas behind a prediction, with its numbers in them.

Limits   Words for readers; the numbers are those of the prediction, nothing is computed anew but
         sums that the formula shows.
"""

from roofline.api.prediction import Prediction
from roofline.api.step_time import StepTime
from roofline.units import number, show
from roofline.work.weights import own_format


def explain(prediction: Prediction) -> list[str]:
    """Write each formula with its numbers, a line each.

    >>> from roofline.api.predict import predict
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> prediction = predict(LLAMA_3_8B, "h200-sxm-141gb", prompt_tokens=2048, output_tokens=256)
    >>> print(explain(prediction)[0])
    weights = 8,030,261,248 parameters in bf16 = 16.1 GB as stored
    """
    deployment, arch = prediction.deployment, prediction.deployment.arch
    read = prediction.decode.bytes
    lines = [
        f"weights = {arch.parameters:,} parameters in {prediction.deployment.weights_dtype}"
        f"{_mixed(prediction)} = {show(prediction.weights_bytes, 'B')} as stored",
        f"KV cache = {number(prediction.kv_bytes_per_token, 6)} B per token and sequence in "
        f"{deployment.formats.kv} (Σ layers of what attention caches)",
        f"ridge = {prediction.ridge}",
    ]
    lines += _table_line(prediction)
    for name, step in (("prefill", prediction.prefill), ("decode", prediction.decode)):
        lines += _step_lines(name, step)
    lines.append(
        f"decode reads {show(read, 'B')} on a rank: weights but the input embedding table, and the "
        f"cache of {prediction.batch:,} sequences at "
        f"{prediction.prompt_tokens + prediction.output_tokens / 2:,g} tokens (mid-output)"
    )
    if prediction.decode.expected_experts_s > prediction.decode.bound_s * 1.001:
        lines.append(
            "with the experts that even routing is expected to touch, E (1 − (1 − k/E)^N), in "
            "place of the k that no step avoids: "
            f"{show(prediction.decode.expected_experts_s, 's')}, no bound"
        )
    lines.append(
        f"estimate = {deployment.terms.device.origin}; engine {deployment.engine.name}; "
        "operator time = t0 + ((bytes/B)^q + (FLOP/P)^q)^(1/q)"
    )
    if prediction.bound.tpot_s is not None and prediction.tpot_s is not None:
        lines.append(
            f"total = TTFT + (output − 1) · TPOT = {show(float(prediction.ttft_s.mid), 's')} + "
            f"{prediction.output_tokens - 1:,} · {show(float(prediction.tpot_s.mid), 's')} = "
            f"{show(float(prediction.total_s.mid), 's')}"
        )
    return lines


def _mixed(prediction: Prediction) -> str:
    arch = prediction.deployment.arch
    if prediction.deployment.formats.weights is None and own_format(arch) != arch.dtype:
        return f" ({arch.quantisation or 'as the checkpoint mixes them'})"
    return ""


def _table_line(prediction: Prediction) -> list[str]:
    arch, roofs = prediction.deployment.arch, prediction.deployment.roofs
    whole = prediction.weights_bytes / prediction.parallel.tp / roofs.bytes_per_s
    if arch.tied or not arch.embedding_parameters or prediction.parallel.pp > 1:
        return []
    return [
        f"counting the embedding table too, all {show(prediction.weights_bytes, 'B')} over "
        f"{show(roofs.bytes_per_s, 'B/s')} would be {show(whole, 's')}: only one row of the table "
        "is read per token"
    ]


def _step_lines(name: str, step: StepTime) -> list[str]:
    parts = ", ".join(
        f"{resource} {show(time, 's')}" for resource, time in step.by_resource.items()
    )
    return [
        f"{name} bound = max({parts}) = {show(step.bound_s, 's')}, limited by {step.limited_by}",
        f"{name}: {show(step.flop, 'FLOP')} over {show(step.bytes, 'B')} = "
        f"{number(step.intensity_flop_per_byte)} FLOP/B",
    ]
