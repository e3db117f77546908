"""Estimates: the time of a step's operators on a device under an engine.

    step = max(host time, Σ operator time + small kernels + collectives) + host work
    operator = calls · (t0 + ((bytes / B)^q + (FLOP / P)^q)^(1/q))

Shapes   As the step's: every time has the shape that its fields broadcast to.
Units    seconds, of one accelerator (the fullest rank).
Limits   Terms come from calibration; nothing here knows whether they were measured or guessed. The
         middle of the interval only: its ends are the terms' spread.
Sources  [1] Williams, Waterman, Patterson 2009, Roofline, CACM 52(4).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roofline.dtypes import SIXTEEN_BIT
from roofline.models.architecture import Architecture, GroupedQuery, Latent, LayerGroup
from roofline.timing.collectives import (
    LinkTerms,
    all_reduce_s,
    all_to_all_s,
    hierarchical_all_reduce_s,
    send_s,
)
from roofline.timing.parallel import Parallel
from roofline.timing.steps import all_reduces_per_step
from roofline.timing.terms import (
    TYPICAL_HOST_OPERATOR_S,
    Curve,
    DeviceTerms,
    EngineTerms,
    SmallKernel,
)
from roofline.units import Numeric
from roofline.work.operators import ACTIVATION_BYTES, Kind, Operator, Step

FIRST_CHOICE = ("bf16", "fp16", "fp32")


@dataclass(frozen=True)
class Part:
    """One operator's share of a step.

    Args:
        name: operator.
        kind: what it is.
        calls: kernels.
        seconds: time of all calls.
    """

    name: str
    kind: str
    calls: float
    seconds: Numeric


@dataclass(frozen=True)
class StepEstimate:
    """The estimate of a step.

    Args:
        seconds: the middle.
        parts: what it is the sum of, host included.
        device_s: time that the device is busy.
        host_s: time that the host needs to launch everything, when nothing is captured.
    """

    seconds: Numeric
    parts: tuple[Part, ...]
    device_s: Numeric
    host_s: Numeric


def estimate_step(
    arch: Architecture,
    operators: Sequence[Operator],
    compute_types: Sequence[str],
    step: Step,
    *,
    device: DeviceTerms,
    engine: EngineTerms,
    parallel: Parallel,
    long_phase: bool = False,
) -> StepEstimate:
    """Estimate a step of one rank's share of a model.

    Args:
        arch: the share of a rank.
        operators: its operators in this step.
        compute_types: the compute type of each.
        step: what is decoded and prefilled.
        device: terms of the device.
        engine: terms of the engine.
        parallel: the plan.
        long_phase: whether steps like this one follow each other for seconds, so that sustained
            rates count (prefill).
    """
    rate = engine.prefill_rate if long_phase else engine.decode_rate
    parts = [
        Part(
            operator.name,
            operator.kind,
            operator.calls,
            _operator_s(operator, kind, arch, step, device, long_phase=long_phase)
            / (rate * _further_rate(operator, kind, engine)),
        )
        for operator, kind in zip(operators, compute_types, strict=True)
    ]
    parts += _small_kernels(arch, step, device, engine)
    parts += _communication(arch, step, device, engine, parallel)
    device_s: Numeric = 0.0
    calls = 0.0
    for part in parts:
        device_s = device_s + part.seconds
        calls += part.calls
    host_s = calls * engine.eager_kernel_s * (device.host_operator_s / TYPICAL_HOST_OPERATOR_S)
    seconds = np.maximum(device_s, host_s)
    waiting = engine.step_s + engine.sequence_s * np.asarray(step.logit_rows, dtype=float)
    if long_phase:
        waiting = waiting + engine.prefill_step_s
    parts.append(Part("host work", "host", 0, seconds - device_s + waiting))
    return StepEstimate(seconds + waiting, tuple(parts), device_s, host_s)


def weight_only(operator: Operator, kind: str) -> bool:
    """Whether an operator's weights are unpacked to 16 bit before they multiply."""
    return operator.storage.bits < 16 and kind in SIXTEEN_BIT and operator.kind in (
        Kind.MATMUL, Kind.EXPERTS, Kind.LM_HEAD,
    )  # fmt: skip


def _further_rate(operator: Operator, kind: str, engine: EngineTerms) -> float:
    unpacked = engine.weight_only_rate if weight_only(operator, kind) else 1.0
    return unpacked * (engine.expert_rate if operator.kind is Kind.EXPERTS else 1.0)


def _operator_s(
    operator: Operator,
    kind: str,
    arch: Architecture,
    step: Step,
    device: DeviceTerms,
    *,
    long_phase: bool,
) -> Numeric:
    calls = operator.calls
    n_bytes = operator.expected_bytes / calls
    flop = np.asarray(operator.flop, dtype=float) / calls
    match operator.kind:
        case Kind.DECODE_ATTENTION:
            group = arch.layers[operator.layers_from]
            blocks = np.multiply(operator.rows, _kv_blocks(group))
            cache = operator.cache_bytes / calls
            return calls * device.decode_attention.seconds(blocks, cache, flop, _head_dim(group))
        case Kind.PREFILL_ATTENTION:
            group = arch.layers[operator.layers_from]
            longest = np.minimum(np.add(step.prefill_tokens, step.cached_tokens), _window(group))
            return calls * device.prefill_attention.seconds(flop, longest, _head_dim(group))
        case Kind.EXPERTS:
            curve = _curve(device.experts, kind) or _curve(device.matmul, kind)
        case Kind.EMBEDDING | Kind.RECURRENT:
            curve = device.small
        case _:
            curve = _curve(device.matmul, kind)
    if curve is None:
        curve = device.matmul[next(iter(device.matmul))]
    if long_phase and operator.kind is not Kind.EMBEDDING:
        share = device.sustained.get(kind, 1.0)
        curve = Curve(curve.start_s, curve.bytes_per_s, curve.flop_per_s * share, curve.softness)
    return calls * curve.seconds(n_bytes, flop)


def _curve(curves: Mapping[str, Curve], kind: str) -> Curve | None:
    if kind in curves:
        return curves[kind]
    return next((curves[other] for other in FIRST_CHOICE if other in curves), None)


def _kv_blocks(group: LayerGroup) -> float:
    match group.attention:
        case GroupedQuery():
            return group.attention.n_kv_heads
        case _:
            return 1.0


def _head_dim(group: LayerGroup) -> int:
    match group.attention:
        case GroupedQuery():
            return group.attention.head_dim
        case Latent():
            return group.attention.kv_rank + group.attention.rope_dim
        case None:
            return 128


def _window(group: LayerGroup) -> float:
    return np.inf if group.window is None else float(group.window)


def _small_kernels(
    arch: Architecture, step: Step, device: DeviceTerms, engine: EngineTerms
) -> list[Part]:
    rows = np.asarray(step.rows, dtype=float)
    seconds: Numeric = engine.kernels_per_step * device.small.start_s
    calls = engine.kernels_per_step
    for group in arch.layers:
        for kernel in engine.small_kernels:
            if not _runs(kernel, group):
                continue
            values = _values_per_row(kernel, group, arch.hidden_size)
            moved = rows * values * ACTIVATION_BYTES / max(kernel.calls, 1e-9)
            each = device.small.seconds(moved, 0.0)
            if kernel.not_for_one:
                each = np.where(rows > 1, each, 0.0)
            if kernel.below_rows is not None:
                each = np.where(rows < kernel.below_rows, each, 0.0)
            seconds = seconds + group.n_layers * kernel.calls * each
            calls += group.n_layers * kernel.calls
    return [Part("small kernels", "small", calls, seconds)] if calls else []


def _runs(kernel: SmallKernel, group: LayerGroup) -> bool:
    match kernel.where:
        case "mixer":
            return group.attention is not None or group.recurrent is not None
        case "attention":
            return group.attention is not None
        case "dense":
            return group.experts is None and any(
                linear.name.split(".")[0] in ("mlp", "feed_forward", "ffn")
                for linear in group.linears
            )
        case "experts":
            return group.experts is not None
        case _:
            return True


def _values_per_row(kernel: SmallKernel, group: LayerGroup, hidden: int) -> float:
    query = key = 0.0
    match group.attention:
        case GroupedQuery():
            query = group.attention.query_heads * group.attention.head_dim
            key = group.attention.n_kv_heads * group.attention.head_dim
        case Latent():
            query = group.attention.n_heads * (group.attention.nope_dim + group.attention.rope_dim)
            key = group.attention.kv_rank + group.attention.rope_dim
        case None:
            pass
    inner = sum(linear.n_out for linear in group.linears if linear.fused == "gate_up") / 2
    picked = picks = 0.0
    if group.experts is not None:
        width = sum(linear.n_out for linear in group.experts.linears if linear.fused == "gate_up")
        share = group.experts.n_experts / group.experts.routed * group.experts.n_sources
        picks = group.experts.mean_active * share
        picked = picks * (width / 2)
    return (
        kernel.hidden * hidden
        + kernel.query * query
        + kernel.key * key
        + kernel.inner * inner
        + kernel.picked * picked
        + kernel.picked_hidden * picks * hidden
    )


def _communication(
    arch: Architecture,
    step: Step,
    device: DeviceTerms,
    engine: EngineTerms,
    parallel: Parallel,
) -> list[Part]:
    link = device.all_reduce
    if link is None:
        return []
    parts = []
    message = np.asarray(step.rows, dtype=float) * arch.hidden_size * ACTIVATION_BYTES
    if parallel.tp > 1:
        count = all_reduces_per_step(arch)
        each = _all_reduce_s(message, parallel.tp, link, device)
        parts.append(Part("all-reduce", "collective", count, count * each / engine.collective_rate))
    if parallel.ep > parallel.tp:
        experts = [group for group in arch.layers if group.experts is not None]
        layers = sum(group.n_layers for group in experts)
        active = max(group.experts.mean_active for group in experts if group.experts is not None)
        exchange = message * min(active, float(parallel.ep))
        over = _link_of(parallel.ep, link, device)
        each = 2 * all_to_all_s(exchange, parallel.ep, over)  # dispatch and combine
        parts.append(
            Part("all-to-all", "collective", 2 * layers, layers * each / engine.collective_rate)
        )
    if parallel.pp > 1:
        hops = parallel.pp - 1
        over = _link_of(parallel.tp * parallel.pp, link, device)
        parts.append(Part("stage to stage", "collective", hops, hops * send_s(message, over)))
    return parts


def _link_of(ranks: int, inner: LinkTerms, device: DeviceTerms) -> LinkTerms:
    """The slowest link that some of these ranks speak over."""
    outer = device.between
    leaves = device.domain is not None and ranks > device.domain
    return outer if outer is not None and leaves else inner


def _all_reduce_s(message: Numeric, ranks: int, inner: LinkTerms, device: DeviceTerms) -> Numeric:
    """An all-reduce inside a domain, or in steps inside and between domains."""
    outer = _link_of(ranks, inner, device)
    if outer is inner or device.domain is None:
        return all_reduce_s(message, ranks, inner)
    nodes = math.ceil(ranks / device.domain)
    return hierarchical_all_reduce_s(message, math.ceil(ranks / nodes), nodes, inner, outer)
