"""Proposals: a sized candidate worked out in full: latencies, tokens, money, power, launch line.

Units    base units; USD per million tokens where the name says so.
Limits   Power is the boards' TDP while busy and an idle share of it else, an upper limit.
"""

import math

from roofline.economics.cost import TokenPrices, break_even_utilisation, token_prices
from roofline.economics.ownership import ownership_of, rent_or_buy_months
from roofline.economics.power import NODE_OVERHEAD_SHARE, Power, deployment_power, draw_w
from roofline.hardware.accelerator import Accelerator
from roofline.planning.launch import launch_line
from roofline.planning.option import Money, Option
from roofline.planning.search import Sized
from roofline.serving.inverse import HOST_ACCELERATORS
from roofline.serving.simulation_result import Simulation
from roofline.serving.traffic import Slo
from roofline.units import show

CONTEXT_ROUNDING = 1024


def propose(sized: Sized, *, rack_limit_w: float | None = None) -> Option:
    """Work a sized candidate out; a simulated one is simulated once more at the planned load.

    Args:
        sized: the candidate with its capacity.
        rack_limit_w: power of one rack; None: racks are not counted.
    """
    question, lane, candidate = sized.question, sized.lane, sized.candidate
    traffic, slo = question.traffic, question.slo
    working = sized.replicas - slo.spare_replicas
    per_lane = traffic.peak_per_s / (working * candidate.lanes)
    run: Simulation | None = None
    if sized.simulated:
        run = lane.serving.run(
            traffic, requests_per_s=per_lane, count=question.requests, seed=question.seed
        )
        latencies = _simulated_latencies(run, slo.percentile)
    else:
        latencies = _closed_latencies(sized, per_lane)
    rate, output = traffic.peak_per_s, traffic.mean_output_tokens
    full = sized.capacity_per_s * working
    tpot = latencies.get("p50_tpot_s")
    device = candidate.deployment.accelerator
    power, power_words = _power(sized, device, full * output, rack_limit_w)
    money, words, warnings = _money(sized, full)
    longest = traffic.longest_tokens()
    assumptions = [
        *candidate.deployment.assumptions, *words, *power_words, *_words(sized, candidate.lanes)
    ]  # fmt: skip
    return Option(
        candidate=candidate,
        replicas=sized.replicas,
        spare_replicas=slo.spare_replicas,
        capacity_per_s=sized.capacity_per_s,
        limited_by=sized.limited_by,
        requests_per_s=rate,
        mean_per_s=traffic.mean_per_s,
        latencies_s=latencies,
        tokens_per_s_per_user=None if not tpot else 1 / tpot,
        output_tokens_per_s=rate * output,
        output_tokens_per_s_at_capacity=full * output,
        max_batch=lane.max_batch * candidate.lanes,
        goodput_per_s=_goodput(run, slo, rate),
        knee_per_s=lane.knee_per_s * candidate.lanes,
        simulated=sized.simulated,
        money=money,
        power=power,
        launch=launch_line(
            candidate,
            max_context_tokens=_context(longest, candidate.deployment.arch.max_context_tokens),
            max_batch=lane.max_batch,
            draft_tokens=question.speculation.draft_tokens if question.speculation else 0,
        ),
        assumptions=tuple(dict.fromkeys(assumptions)),
        warnings=tuple(warnings),
        run=run,
    )


def _context(longest: int, made_for: int | None) -> int:
    """Context to start an engine with: rounded up, but not past what the model was made for."""
    rounded = math.ceil(longest / CONTEXT_ROUNDING) * CONTEXT_ROUNDING
    return rounded if made_for is None else max(min(rounded, made_for), longest)


def _goodput(run: Simulation | None, slo: Slo, rate: float) -> float | None:
    """Share of the simulated requests that met every target, of the planned load."""
    return None if run is None else float(run.meets(slo).mean()) * rate


def _simulated_latencies(run: Simulation, percentile: float) -> dict[str, float]:
    found = {
        f"p{percent}_{metric}": run.percentile(metric, percent)
        for metric in ("ttft_s", "tpot_s", "e2e_s")
        for percent in (50, 95, 99)
    }
    found |= {
        metric: run.percentile(metric, percentile) for metric in ("ttft_s", "tpot_s", "e2e_s")
    }
    return {key: value for key, value in found.items() if not math.isnan(value)}


def _closed_latencies(sized: Sized, per_lane: float) -> dict[str, float]:
    import numpy as np

    curve = sized.curve
    found = {
        metric: float(np.interp(per_lane, curve.requests_per_s, getattr(curve, metric)))
        for metric in ("ttft_s", "tpot_s", "e2e_s")
    }
    state, end = sized.lane.steady, sized.lane.valid
    rates = state.requests_per_s[:end]
    found["p50_ttft_s"] = float(np.interp(per_lane, rates, state.ttft_s(50)[:end]))
    found["p50_ttft_s"] += sized.lane.serving.request_s
    found["p50_tpot_s"] = float(np.interp(per_lane, rates, state.tpot_s[:end]))
    return {key: value for key, value in found.items() if math.isfinite(value)}


def _money(sized: Sized, full_per_s: float) -> tuple[Money | None, list[str], list[str]]:
    paid = sized.charge
    device = sized.candidate.deployment.accelerator.id
    if paid is None:
        term = sized.question.pricing.term
        return None, [], [f"{device} has no {term} price: ranked after those that have one"]
    traffic = sized.question.traffic

    def prices(utilisation: float) -> TokenPrices:
        return token_prices(
            paid.usd_per_hour,
            requests_per_s=full_per_s,
            input_tokens=traffic.mean_prompt_tokens,
            output_tokens=traffic.mean_output_tokens,
            prefill_share=sized.lane.prefill_share(sized.capacity_per_s / sized.candidate.lanes),
            utilisation=utilisation,
        )

    share = min(traffic.mean_per_s / full_per_s, 1.0)
    full = prices(1.0)
    money = Money(
        paid.usd_per_hour,
        paid.paid_accelerators,
        paid.basis,
        full,
        prices(share),
        _against_api(sized, full),
        _buy_after_months(sized, paid.usd_per_hour / paid.paid_accelerators),
    )
    return money, list(paid.assumptions), list(paid.warnings)


def _against_api(sized: Sized, own: TokenPrices) -> float | None:
    """Share of full load at which an API would bill as much as the hours cost."""
    api, traffic = sized.question.api_usd_per_million, sized.question.traffic
    if api is None:
        return None
    prompt, output = traffic.mean_prompt_tokens, traffic.mean_output_tokens
    blended = (api[0] * prompt + api[1] * output) / (prompt + output)
    return break_even_utilisation(own.blended_usd, blended)


def _buy_after_months(sized: Sized, rent_usd_per_hour: float) -> float | None:
    """Months after which the cheapest known purchase has cost less than this rent."""
    device, pricing = sized.candidate.deployment.accelerator, sized.question.pricing
    tdp = device.power.tdp_w
    offers = [
        offer for offer in pricing.table.offers(device.id, "owned") if offer.capex_usd is not None
    ]
    if pricing.term == "owned" or not offers or tdp is None:
        return None
    price = min(offers, key=lambda one: (one.capex_usd or 0.0) / one.gpu_count)
    owned = ownership_of(price, power_w=tdp * (1 + NODE_OVERHEAD_SHARE))
    return rent_or_buy_months(owned, rent_usd_per_hour)


def _power(
    sized: Sized, device: Accelerator, tokens_per_s: float, rack_limit_w: float | None
) -> tuple[Power | None, list[str]]:
    tdp = device.power.tdp_w
    if tdp is None:
        return None, [f"{device.id} has no sourced TDP: no power is given"]
    node = HOST_ACCELERATORS
    power = deployment_power(
        accelerators=sized.accelerators,
        draw_per_accelerator_w=draw_w(tdp),
        tdp_w=tdp,
        accelerators_per_node=node,
        rack_limit_w=rack_limit_w,
        output_tokens_per_s=tokens_per_s,
    )
    words = [
        f"power: every {device.id} at its TDP of {show(tdp, 'W')}, nodes of {node} with 0.82 of "
        "that for CPUs, fans and network: an upper limit"
    ]
    return power, words


def _words(sized: Sized, lanes: int) -> list[str]:
    traffic, slo = sized.question.traffic, sized.question.slo
    serving = sized.lane.serving
    words = [
        f"continuous batching, {serving.chunk_tokens:,} tokens a step, at most "
        f"{sized.lane.max_batch} sequences and {serving.kv_pool_tokens:,.0f} cached tokens"
        + (f" in each of {lanes} batches" if lanes > 1 else ""),
        "Poisson arrivals, dealt to replicas at random; in turn they would wait less",
    ]
    if traffic.prefix_share:
        words.append(
            f"{traffic.prefix_share:.0%} of each prompt is found in the prefix cache; it saves "
            "prefill, not cache space"
        )
    if slo.headroom:
        words.append(f"{slo.headroom:.0%} of each replica's capacity is left unused")
    speculation = sized.question.speculation
    if speculation is not None:
        words.append(
            f"speculation: {speculation.draft_tokens} drafted, {speculation.acceptance:.0%} "
            f"accepted one by one: {speculation.tokens_per_step:.2f} tokens a step"
        )
    if sized.question.times != "mid":
        words.append(f"the {sized.question.times} end of every estimate's interval")
    if not sized.simulated:
        words.append("latencies in closed form, not simulated")
    return words
