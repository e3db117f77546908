"""A row of the comparison for serving: one accelerator predicted for one workload.

Units    base units; rates of one accelerator where the field says so.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from roofline.api.closed_loop import SPREAD, in_flight, later_than_simulated, widened
from roofline.api.comparison import Row
from roofline.api.predict import predict
from roofline.api.prediction import Prediction
from roofline.economics.cost import (
    gpu_hours_per_million_tokens,
    token_prices,
    usd_per_terabyte_per_s_hour,
    usd_per_tflop_hour,
)
from roofline.errors import MissingDataError, UnsupportedError
from roofline.hardware.accelerator import Accelerator
from roofline.planning.candidate import Candidate
from roofline.planning.lane import lane_of
from roofline.planning.pricing import Charge, charge
from roofline.serving.inverse import fewest_accelerators
from roofline.serving.traffic import Traffic
from roofline.timing.interval import Interval
from roofline.timing.parallel import Parallel
from roofline.units import show

if TYPE_CHECKING:
    from roofline.api.compare import Setting


def serving_row(setting: "Setting", device: Accelerator) -> tuple[Row, list[str], list[str]]:
    """Predict a workload on one accelerator and put a price on it.

    Returns:
        The row, its assumptions, its warnings.

    Raises:
        RooflineError: the accelerator lacks what the workload needs.
    """
    workload = setting.workload
    batch = workload.batch or workload.concurrency or 1
    words: list[str] = []
    if workload.batch is None and workload.concurrency is None:
        words.append("batch 1: neither batch nor concurrency was given")
    prediction = _predict(setting, device, setting.parallel or Parallel(), batch)
    if setting.parallel is None and not prediction.fits:
        held = _fewest(setting, prediction, batch)
        if held is None and workload.concurrency is not None:
            held = _fewest(setting, prediction, 1)  # the others wait
        if held is None:
            raise UnsupportedError(
                f"batch {batch} of {workload.tokens:,} tokens does not fit up to {setting.most} "
                f"accelerators (one lacks {show(prediction.memory.missing_bytes, 'GiB')})"
            )
        prediction = _predict(setting, device, held, batch)
    if workload.concurrency is not None and workload.output_tokens > 1:
        return _concurrent(setting, device, prediction, workload.concurrency, words)
    prefill, decode = prediction.prefill, prediction.decode
    total = prediction.total_s.mid
    share = prediction.ttft_s.mid / total
    return _row(
        setting, device, prediction,
        tokens=prediction.output_tokens_per_s,
        bound_tokens=prediction.bound.output_tokens_per_s,
        ttft=prediction.ttft_s,
        tpot=prediction.tpot_s,
        prefill_share=float(share),
        limited_by=prefill.limited_by if share > 0.5 else decode.limited_by,
        words=words,
    )  # fmt: skip


def _predict(setting: "Setting", device: Accelerator, parallel: Parallel, batch: int) -> Prediction:
    return predict(
        setting.arch,
        device,
        prompt_tokens=setting.workload.prompt_tokens,
        output_tokens=setting.workload.output_tokens,
        batch=batch,
        parallel=parallel,
        weights=setting.weights,
        kv=setting.kv,
        engine=setting.engine,
        machine=setting.machine.get(device.id),
    )


def _fewest(setting: "Setting", prediction: Prediction, batch: int) -> Parallel | None:
    """The plan of the fewest accelerators that hold a batch; None: not up to the most."""
    workload = setting.workload
    held = fewest_accelerators(
        prediction.placement, batch, workload.tokens, workload.prompt_tokens, most=setting.most
    )
    return None if held is None else held.parallel


def _concurrent(
    setting: "Setting",
    device: Accelerator,
    prediction: Prediction,
    concurrency: int,
    words: list[str],
) -> tuple[Row, list[str], list[str]]:
    """Requests in flight: a closed loop, simulated; the running batch follows from it."""
    workload = setting.workload
    traffic = Traffic(
        requests_per_s=1.0,
        prompt_tokens=workload.prompt_tokens,
        output_tokens=workload.output_tokens,
    )
    candidate = Candidate(
        prediction.deployment, prediction.placement, prediction.memory.kv_pool_bytes
    )
    each = max(round(concurrency / candidate.lanes), 1)
    found = {
        end: in_flight(lane_of(candidate, traffic, times=end), each)
        for end in ("low", "mid", "high")
    }
    rate = Interval(*(found[end][0] * candidate.lanes for end in ("high", "mid", "low")))
    tokens = rate.scaled(float(workload.output_tokens))
    engine = prediction.deployment.engine.name
    ttft = widened(Interval(*(found[end][1] for end in ("low", "mid", "high"))), engine)
    words += [line for line in (later_than_simulated(engine),) if line]
    tpot = Interval(*(found[end][2] for end in ("low", "mid", "high")))
    running = found["mid"][3] * candidate.lanes
    most = prediction.max_batch
    at_once = max(min(round(found["mid"][3]), concurrency if most is None else most), 1)
    prediction = _predict(setting, device, prediction.parallel, at_once)
    lane = lane_of(candidate, traffic)
    share = lane.prefill_share(float(rate.mid) / candidate.lanes)
    words.append(
        f"{device.id}: {concurrency} requests in flight, of which {running:.1f} decode on "
        "average (closed loop, simulated, without its first wave); prefill chunks share the steps; "
        f"lengths within {SPREAD:.0%} of their means"
    )
    parts = prediction.prefill if share > 0.5 else prediction.decode
    return _row(
        setting, device, prediction, tokens=tokens,
        bound_tokens=prediction.bound.output_tokens_per_s, ttft=ttft, tpot=tpot,
        prefill_share=share, limited_by=parts.limited_by, words=words,
    )  # fmt: skip


def _row(
    setting: "Setting",
    device: Accelerator,
    prediction: Prediction,
    *,
    tokens: Interval,
    bound_tokens: float,
    ttft: Interval,
    tpot: Interval | None,
    prefill_share: float,
    limited_by: str,
    words: list[str],
) -> tuple[Row, list[str], list[str]]:
    deployment = prediction.deployment
    parallel, used = deployment.parallel, deployment.compute_used
    count = parallel.accelerators
    prefill = prediction.prefill.flop / float(prediction.prefill.estimate_s.mid)
    decode = prediction.decode.flop / float(prediction.decode.estimate_s.mid)
    moved = prediction.decode.bytes / float(prediction.decode.estimate_s.mid)
    rate = float(tokens.mid)
    charged, warnings = price_of(setting, device, count)
    tdp = device.power.tdp_w
    row = Row(
        accelerator=device.id,
        name=device.name,
        plan=str(parallel) if count > 1 else "one accelerator",
        accelerators=count,
        fits=prediction.fits,
        tokens_per_s=tokens,
        bound_tokens_per_s=bound_tokens,
        ttft_s=ttft,
        tpot_s=tpot,
        limited_by=limited_by,
        compute=used,
        peak_flop_per_s=deployment.roofs.flop_per_s[used],
        bytes_per_s=deployment.roofs.bytes_per_s,
        effective_flop_per_s=prefill,
        decode_flop_per_s=decode,
        effective_bytes_per_s=moved,
        reached_flop_per_s=(
            deployment.terms.device.matmul[used].flop_per_s
            if deployment.terms.measured and used in deployment.terms.device.matmul
            else None
        ),
        gpu_hours_per_million_tokens=float(gpu_hours_per_million_tokens(count, rate)),
        power_w=None if tdp is None else tdp * count,
        tokens_per_joule=None if tdp is None else rate / (tdp * count),
    )
    if charged is not None:
        prices = token_prices(
            charged.usd_per_hour,
            requests_per_s=rate / setting.workload.output_tokens,
            input_tokens=setting.workload.prompt_tokens,
            output_tokens=setting.workload.output_tokens,
            prefill_share=min(max(prefill_share, 0.0), 1.0),
        )
        row = replace(
            with_price(row, charged),
            usd_per_decode_tflop_hour=_each(charged, count, decode),
            usd_per_effective_tb_per_s_hour=float(
                usd_per_terabyte_per_s_hour(charged.usd_per_hour / count, moved)
            ),
            usd_per_million_tokens=prices.all_on_output_usd,
            usd_per_million_input_tokens=prices.input_usd,
            usd_per_million_output_tokens=prices.output_usd,
        )
        words += charged.assumptions
    words += [f"{device.id}: {line}" for line in prediction.assumptions if device.id not in line]
    words += [line for line in prediction.assumptions if device.id in line]
    return row, words, warnings


def _each(charged: Charge, count: int, flop_per_s: float) -> float:
    return float(usd_per_tflop_hour(charged.usd_per_hour / count, flop_per_s))


def with_price(row: Row, charged: Charge) -> Row:
    """Put a price on a row: nominal and effective cost of its compute."""
    return replace(
        row,
        usd_per_hour=charged.usd_per_hour,
        price_basis=charged.basis,
        usd_per_nominal_tflop_hour=_each(charged, row.accelerators, row.peak_flop_per_s),
        usd_per_effective_tflop_hour=_each(charged, row.accelerators, row.effective_flop_per_s),
    )


def price_of(
    setting: "Setting", device: Accelerator, count: int
) -> tuple[Charge | None, list[str]]:
    """Price a replica; None and a warning where nobody has a price."""
    try:
        charged = charge(setting.pricing, device, count)
    except MissingDataError as error:
        return None, [str(error)]
    return charged, list(charged.warnings)
