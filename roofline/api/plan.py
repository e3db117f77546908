"""plan: how many of which accelerator carry a load within its targets, and what they cost.

Units    base units; USD.
Limits   See ``planning.search``; estimates carry the interval of their engine and device.
Sources  ``planning.search`` (search), ``serving.simulation`` (percentiles), ``economics`` (money).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from roofline.api.closed_loop import later_than_simulated
from roofline.api.plan_result import Plan
from roofline.dtypes import Dtype, find_dtype
from roofline.economics.price_row import TERMS, Price
from roofline.economics.prices import PriceTable, price_table
from roofline.errors import InputError, RooflineError, UnsupportedError, unknown_name
from roofline.hardware.accelerator import Accelerator, accelerator_ids, load_accelerator
from roofline.hardware.links import load_link
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.planning.candidate import DEFAULT_MOST, Excluded, Space
from roofline.planning.finalists import best_of_each, fastest_of, points, replicas_at_ends
from roofline.planning.machines import Record, machines_by_spec
from roofline.planning.option import Option
from roofline.planning.pareto import pareto
from roofline.planning.pricing import Pricing
from roofline.planning.proposal import propose
from roofline.planning.recommendation import recommend
from roofline.planning.search import Question, size_all
from roofline.planning.split import Split, best_splits
from roofline.serving.engines import Engine, find_engine
from roofline.serving.lengths import checked, checked_tokens
from roofline.serving.speculation import Speculation
from roofline.serving.traffic import Slo, Traffic

FINALISTS = 5
CONTINUOUS = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "ideal")
"""Engines with continuous batching, which the serving model describes."""
MOST_REQUESTS = (20, 1_000_000)
"""Fewest and most requests of a simulated load."""


def plan(
    model: str | Path | dict[str, Any] | Architecture,
    traffic: Traffic,
    slo: Slo | None = None,
    accelerators: Iterable[str | Path | Accelerator] | None = None,
    *,
    exclude: Iterable[str] = (),
    own: Mapping[str, int] | None = None,
    weights: str | Dtype | Sequence[str | Dtype | None] | None = None,
    kv: str | Dtype | Sequence[str | Dtype | None] | None = None,
    engine: str | Engine | Sequence[str | Engine] = "vllm",
    tp: int | Sequence[int] | None = None,
    pp: int | Sequence[int] | None = None,
    ep: int | Sequence[int] | None = None,
    dp: int | Sequence[int] | None = None,
    most: int = DEFAULT_MOST,
    machine: Record | Iterable[Record] | Mapping[str, Record] | None = None,
    network: str | None = None,
    prices: str | Path | Mapping[str, float] | Sequence[Price] | PriceTable | None = None,
    term: str = "on_demand",
    provider: str | None = None,
    region: str | None = None,
    speculation: Speculation | None = None,
    api_usd_per_million: tuple[float, float] | None = None,
    disaggregate: bool = False,
    times: str = "mid",
    rack_limit_w: float | None = None,
    finalists: int = FINALISTS,
    requests: int = 1500,
    seed: int = 0,
) -> Plan:
    """Plan the deployments that carry a traffic within its targets, cheapest first.

    Args:
        model: catalogue name, path, dict or Architecture.
        traffic: rate or users, lengths, prefix share, peak factor, growth.
        slo: targets, percentile, spare replicas, headroom; none: throughput alone.
        accelerators: what to try; None: the whole catalogue.
        exclude: ids that are left out.
        own: how many there are of a kind; with no ``accelerators`` only these are tried.
        weights, kv, engine: one or several to try; None: the checkpoint's own formats.
        tp, pp, ep, dp: degrees to try; None: those that make sense.
        most: accelerators of one replica at most.
        machine: measured record, several, or records by spec id: their roofs replace the
            datasheet's.
        network: link between nodes.
        prices: own prices: a file, a table, or USD per accelerator and hour by spec id.
        term: basis of the prices: on_demand, spot, reserved, 1y, 3y, owned, …
        provider, region: only their offers.
        speculation: draft and acceptance of speculative decoding.
        api_usd_per_million: USD per million input and output tokens of an API to compare with.
        disaggregate: whether to size separate prefill and decode pools beside the whole replicas.
        times: end of the estimates' interval to plan with: low, mid or high.
        rack_limit_w: power of one rack.
        finalists: accelerators that are simulated at least.
        requests, seed: of each simulated load.

    Raises:
        RooflineError: an unknown name or a value that cannot be. Accelerators that do not do are
            in ``excluded`` instead.

    >>> found = plan("llama-3.1-8b", Traffic(requests_per_s=20, prompt_tokens=1000,
    ...              output_tokens=200), Slo(ttft_s=0.5, tpot_s=0.03), ["h200-sxm-141gb", "l4"],
    ...              requests=300)
    >>> found.cheapest.accelerator, found.met
    ('h200-sxm-141gb', True)
    """
    if times not in ("low", "mid", "high"):
        raise InputError(f"times is low, mid or high, got {times!r}")
    if isinstance(finalists, bool) or finalists < 1:
        raise InputError(f"finalists needs to be at least 1, got {finalists!r}")
    checked_tokens("requests", requests, least=MOST_REQUESTS[0])
    if requests > MOST_REQUESTS[1]:
        raise InputError(f"requests of a simulated load: at most {MOST_REQUESTS[1]:,}")
    traffic.sample(1, seed=seed)  # refuses a seed that is none
    check_names(term, _several(weights), _several(kv), _several(engine), network, batching=True)
    arch = load_model(model)
    targets = slo or Slo()
    devices, excluded = _devices(accelerators, exclude, own)
    question = Question(
        traffic,
        targets,
        Pricing(price_table(prices), term, provider, region),
        own=own,
        speculation=speculation,
        api_usd_per_million=_api_price(api_usd_per_million),
        times=times,
        requests=requests,
        seed=seed,
    )
    space = Space(
        tp=_degrees("tp", tp),
        pp=_degrees("pp", pp),
        ep=_degrees("ep", ep),
        dp=_degrees("dp", dp),
        weights=_several(weights),
        kv=_several(kv),
        engines=_several(engine),
        machine=machines_by_spec(machine) or None,
        network=network,
        most=most,
    )
    sized, out = size_all(arch, devices, space, question)
    best, more = best_of_each(sized, finalists=finalists)
    excluded += out + more
    options = tuple(propose(one, rack_limit_w=rack_limit_w) for one in best)
    first = fastest_of(sized)
    fastest = None if first is None else propose(first, rack_limit_w=rack_limit_w)
    found = points(sized)
    ends = replicas_at_ends(best[0]) if best else (None, None)
    words, warnings = _words(options, question)
    warnings = (*_too_long(arch, traffic), *warnings)
    splits: tuple[Split, ...] = ()
    if disaggregate:
        shown = [option.accelerator for option in options[:finalists]]
        splits = tuple(best_splits(sized, network, shown))
        words += tuple(line for split in splits for line in split.assumptions)
    return Plan(
        model=arch.name,
        traffic=traffic,
        slo=targets,
        options=options,
        fastest=fastest,
        front=pareto(found),
        points=tuple(found),
        excluded=tuple(excluded),
        splits=splits,
        replicas_over_interval=ends,
        recommendation=recommend(options, fastest, excluded, targets, ends, splits),
        assumptions=words,
        warnings=warnings,
    )


def _api_price(given: tuple[float, float] | None) -> tuple[float, float] | None:
    if given is None:
        return None
    prices = tuple(checked("API price", value) for value in given)
    if len(prices) != 2 or sum(prices) <= 0:
        raise InputError(f"an API price is USD per million input and output tokens, got {given!r}")
    return prices[0], prices[1]


def check_names(
    term: str,
    weights: Sequence[str | Dtype | None],
    kv: Sequence[str | Dtype | None],
    engines: Sequence[str | Engine],
    network: str | None = None,
    *,
    batching: bool = False,
) -> None:
    """Refuse a name that is wrong for every accelerator, instead of excluding them one by one.

    Raises:
        UnknownNameError: no such price term, format, engine or link.
        UnsupportedError: with ``batching``, an engine that runs static batches only.
    """
    if term not in TERMS:
        raise unknown_name("price term", str(term), TERMS)
    for name in (*weights, *kv):
        if name is not None:
            find_dtype(name)
    for engine in engines:
        name = find_engine(engine).name
        if batching and name not in CONTINUOUS:
            raise UnsupportedError(
                f"{name} does not batch continuously; plan with {', '.join(CONTINUOUS)}"
            )
    if network is not None:
        load_link(network)


def _devices(
    accelerators: Iterable[str | Path | Accelerator] | None,
    exclude: Iterable[str],
    own: Mapping[str, int] | None,
) -> tuple[list[Accelerator], list[Excluded]]:
    if isinstance(accelerators, str | Path | Accelerator):
        accelerators = [accelerators]
    names: list[str | Path | Accelerator] = (
        list(accelerators) if accelerators is not None
        else list(own) if own
        else list(accelerator_ids())
    )  # fmt: skip
    for owned, count in (own or {}).items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"own: how many {owned} are there? got {count!r}")
    left_out = {load_accelerator(name).id for name in exclude}
    devices: list[Accelerator] = []
    excluded: list[Excluded] = []
    for name in names:
        try:
            device = load_accelerator(name)
        except RooflineError:
            if accelerators is not None:
                raise
            continue
        if device.id in left_out:
            excluded.append(Excluded(device.id, "", "left out as asked"))
        elif accelerators is None and device.kind == "cpu":
            excluded.append(Excluded(device.id, "", "a CPU has no datasheet roofs; name it"))
        else:
            devices.append(device)
    if not devices:
        raise InputError("no accelerator is left to plan with")
    return list({device.id: device for device in devices}.values()), excluded


def _several(value: Any) -> tuple[Any, ...]:
    if value is None or isinstance(value, str | Dtype | Engine):
        return (value,)
    found = tuple(value)
    if not found:
        raise InputError("an empty list of formats or engines leaves nothing to try")
    return found


def _degrees(name: str, value: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    values = (value,) if isinstance(value, int) else tuple(value)
    for one in values:
        if isinstance(one, bool) or not isinstance(one, int) or one < 1:
            raise InputError(f"{name} must be a whole number of at least 1, got {one!r}")
    return values


def _too_long(arch: Architecture, traffic: Traffic) -> tuple[str, ...]:
    made_for, longest = arch.max_context_tokens, traffic.longest_tokens()
    if made_for is None or longest <= made_for:
        return ()
    return (
        f"the longest requests have {longest:,} tokens, the model was made for {made_for:,}: "
        "an engine refuses them",
    )


def _words(
    options: Sequence[Option], question: Question
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    traffic = question.traffic
    words = [
        f"load planned for: {traffic.peak_per_s:g} requests/s = mean {traffic.mean_per_s:g} × peak "
        f"factor {traffic.peak_factor:g} × {1 + traffic.growth:g} for growth"
    ]
    warnings: list[str] = []
    shown = options[:FINALISTS]
    for engine in dict.fromkeys(one.candidate.deployment.engine.name for one in shown):
        words += [line for line in (later_than_simulated(engine),) if line]
    for option in shown:
        for line in option.assumptions:
            everywhere = all(line in other.assumptions for other in shown)
            named = everywhere or option.accelerator in line
            words.append(line if named else f"{option.accelerator}: {line}")
        warnings += option.warnings
    return tuple(dict.fromkeys(words)), tuple(dict.fromkeys(warnings))
