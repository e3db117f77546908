"""Candidates: the ways to put one replica of a model on accelerators, and why others are out.

    tp   powers of two up to the scale-up domain (a host of eight without one), or as asked
    pp   1; 2, 4 and 8 only where one stage does not hold the model, or as asked
    ep   1 and tp for models with experts; with data-parallel attention ep = dp

Limits   Pipeline stages are taken to be linked as the ranks of a domain are, unless a network is
         named.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from roofline.dtypes import Dtype
from roofline.errors import MissingDataError, RooflineError
from roofline.hardware.accelerator import Accelerator
from roofline.hardware.measurement import Measurement
from roofline.models.architecture import Architecture
from roofline.serving.budget import budget
from roofline.serving.deployment import Deployment, deploy
from roofline.serving.engines import Engine, find_engine
from roofline.serving.inverse import HOST_ACCELERATORS
from roofline.serving.placement import Placement
from roofline.timing.parallel import Parallel
from roofline.units import show

DEFAULT_MOST = 16
"""Accelerators of one replica that a search tries at most when nobody says otherwise."""


@dataclass(frozen=True)
class Space:
    """What a search may vary.

    Args:
        tp, pp, ep, dp: degrees to try; None: see the module's head.
        weights, kv: formats to try; None among them is the checkpoint's own.
        engines: engines to try.
        machine: measured record that every estimate takes, or a mapping of spec id to one.
        network: link between nodes.
        most: accelerators of one replica at most.
    """

    tp: tuple[int, ...] | None = None
    pp: tuple[int, ...] | None = None
    ep: tuple[int, ...] | None = None
    dp: tuple[int, ...] | None = None
    weights: tuple[str | Dtype | None, ...] = (None,)
    kv: tuple[str | Dtype | None, ...] = (None,)
    engines: tuple[str | Engine, ...] = ("vllm",)
    machine: "dict[str, str | Path | Measurement] | None" = None
    network: str | None = None
    most: int = DEFAULT_MOST


@dataclass(frozen=True)
class Candidate:
    """One replica: what is deployed and how its memory is divided."""

    deployment: Deployment
    placement: Placement
    pool_bytes: float

    @property
    def parallel(self) -> Parallel:
        """The plan of one replica."""
        return self.deployment.parallel

    @property
    def lanes(self) -> int:
        """Independent running batches: a micro-batch per stage, a batch per dp rank."""
        return self.parallel.pp * self.parallel.dp


@dataclass(frozen=True)
class Excluded:
    """What is out, and why in words."""

    accelerator: str
    plan: str
    reason: str

    def __str__(self) -> str:
        return f"{self.accelerator} {self.plan}: {self.reason}".replace(" :", ":")


def candidates(
    arch: Architecture, accelerator: Accelerator, space: Space, longest_tokens: int
) -> tuple[list[Candidate], list[Excluded]]:
    """List the replicas that hold at least one request of the longest length.

    Args:
        arch: the model.
        accelerator: the device.
        space: what may vary.
        longest_tokens: prompt and output of the longest request.

    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> found, out = candidates(LLAMA_3_8B, load_accelerator("t4"), Space(weights=("int4",)), 4096)
    >>> [str(one.parallel) for one in found]
    ['one accelerator', 'TP2', 'TP4', 'TP8']
    """
    found: list[Candidate] = []
    out: list[Excluded] = []
    for engine in space.engines:
        for weights in space.weights:
            for kv in space.kv:
                more, why = _of_format(
                    arch, accelerator, space, longest_tokens, find_engine(engine), weights, kv
                )
                found += more
                out += why
    return found, out


def _of_format(
    arch: Architecture,
    accelerator: Accelerator,
    space: Space,
    longest_tokens: int,
    engine: Engine,
    weights: str | Dtype | None,
    kv: str | Dtype | None,
) -> tuple[list[Candidate], list[Excluded]]:
    found: list[Candidate] = []
    out: list[Excluded] = []
    machine = (space.machine or {}).get(accelerator.id)
    for parallel in _plans(arch, accelerator, space, found):
        try:
            deployment = deploy(
                arch, accelerator, parallel=parallel, weights=weights, kv=kv, engine=engine,
                machine=machine, network=space.network,
            )  # fmt: skip
            placement = Placement(
                deployment.arch, accelerator, parallel, deployment.formats.weights,
                deployment.formats.kv, engine,
            )  # fmt: skip
            memory = budget(placement, 1, longest_tokens)
        except RooflineError as error:
            out.append(Excluded(accelerator.id, _named(parallel, weights), str(error)))
            if _same_for_all(error, accelerator):
                break
            continue
        if memory.fits:
            found.append(Candidate(deployment, placement, memory.kv_pool_bytes))
        else:
            lacking = show(memory.missing_bytes, "GiB")
            needed, has = show(memory.needed_bytes, "GiB"), show(memory.usable_bytes, "GiB")
            reason = (
                f"one request of {longest_tokens:,} tokens needs {needed} an accelerator, it has "
                f"{has} ({lacking} too little)"
            )
            out.append(Excluded(accelerator.id, _named(parallel, weights), reason))
    return found, out


def _same_for_all(error: RooflineError, accelerator: Accelerator) -> bool:
    """Whether an error is of the device itself, whatever the plan."""
    if isinstance(error, MissingDataError):
        return True
    return "does not compute in" in str(error) or f"{accelerator.id} has no" in str(error)


def _named(parallel: Parallel, weights: str | Dtype | None) -> str:
    return f"{parallel}" if weights is None else f"{parallel}, {weights}"


def _plans(
    arch: Architecture, accelerator: Accelerator, space: Space, found: Sequence[Candidate]
) -> Iterator[Parallel]:
    """Make plans, smallest first; ``found`` grows as the caller accepts them."""
    domain = _domain(accelerator)
    degrees = space.tp or tuple(n for n in (1, 2, 4, 8, 16, 32, 64) if n <= domain)
    experts = arch.has_experts
    for pp in space.pp or (1, 2, 4, 8):
        if space.pp is None and pp > 1 and found:
            return
        tried = degrees if space.pp is not None or pp == 1 else degrees[-1:]
        for tp in tried:
            for dp in space.dp or (1,):
                eps = space.ep or ((1, tp) if experts and tp > 1 else (1,))
                for ep in dict.fromkeys(eps):
                    plan = _plan(tp, pp, dp, ep)
                    if plan is not None and plan.accelerators <= space.most:
                        yield plan
    if experts and space.dp is None and space.ep is None and space.pp is None:
        for dp in (n for n in (8, 16, 32, 64) if n <= min(domain, space.most)):
            plan = _plan(1, 1, dp, dp)
            if plan is not None:
                yield plan


def _plan(tp: int, pp: int, dp: int, ep: int) -> Parallel | None:
    try:
        return Parallel(tp=tp, pp=pp, dp=dp, ep=ep)
    except RooflineError:
        return None


def _domain(accelerator: Accelerator) -> int:
    link = accelerator.link
    return link.domain if link.kind and link.domain else HOST_ACCELERATORS


def merged(excluded: Sequence[Excluded]) -> list[Excluded]:
    """Join what is out for one reason but on several plans."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for one in excluded:
        by_reason.setdefault((one.accelerator, one.reason), []).append(one.plan)
    return [
        Excluded(accelerator, "; ".join(dict.fromkeys(plans)), reason)
        for (accelerator, reason), plans in by_reason.items()
    ]
