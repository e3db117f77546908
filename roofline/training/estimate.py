"""Estimate of training: the time of a step with its interval, the bound, and how well work is used.

    MFU = model FLOP of the step / (accelerators × peak × time)     HFU: recomputation counted too

Shapes   One plan on one kind of accelerator.
Units    Seconds, FLOP, tokens per second; MFU and HFU are shares of the datasheet's dense peak.
Limits   The interval covers the device and the framework, not stragglers, failures or data loading.
Sources  [1] Chowdhery et al. 2022, PaLM, arXiv:2204.02311, appendix B (MFU).
         [2] measurements/published/training_*.csv: 18 rows of A100 clusters give the interval of
             tuned, fused frameworks; measurements/training: 24 rows of one H200 that of eager ones.
"""

from dataclasses import dataclass

from roofline.hardware.accelerator import Accelerator
from roofline.models.architecture import Architecture
from roofline.timing.collectives import least_all_reduce_volume
from roofline.timing.interval import Interval, around
from roofline.timing.terms import DeviceTerms, Spread
from roofline.training.activations import SIXTEEN_BIT
from roofline.training.communication import Network
from roofline.training.flop import hardware_flop_per_token, model_flop_per_token
from roofline.training.layer_time import compute_kind
from roofline.training.optimisers import value_bytes
from roofline.training.parameters import rank_share, trainable_share
from roofline.training.plan import TrainingPlan
from roofline.training.states import parameter_bytes
from roofline.training.step_time import Host, StepParts, step_parts

FUSED_SPREAD = Spread(0.88, 1.12, 18, "Megatron's tables, A100 clusters")
EAGER_SPREAD = Spread(0.80, 1.30, 24, "one H200, transformers eager")
FAST_HOST = 0.25
"""Host cost of a fast host over the one that was measured: the interval's low end."""


@dataclass(frozen=True)
class StepBound:
    """Least time of a step: no schedule of this plan beats it.

    Args:
        compute_s, memory_s, link_s: demand on each resource over its nominal rate.
    """

    compute_s: float
    memory_s: float
    link_s: float

    @property
    def seconds(self) -> float:
        """The largest."""
        return max(self.compute_s, self.memory_s, self.link_s)

    @property
    def limited_by(self) -> str:
        """The resource that it comes from."""
        return max(
            (("compute", self.compute_s), ("memory", self.memory_s), ("link", self.link_s)),
            key=lambda pair: pair[1],
        )[0]


@dataclass(frozen=True)
class StepEstimate:
    """A training step: its bound, its interval, where its time goes.

    Args:
        bound: least time.
        step_s: interval of the estimate.
        parts: where the middle comes from.
        model_flop, hardware_flop: FLOPs of a step over all accelerators, masked pairs left out.
        every_pair_flop: model FLOPs by the convention that counts masked pairs (Megatron's).
        peak_flop_per_s: datasheet peak of one accelerator in the compute type used.
        compute: that compute type.
    """

    bound: StepBound
    step_s: Interval
    parts: StepParts
    model_flop: float
    hardware_flop: float
    every_pair_flop: float
    peak_flop_per_s: float
    compute: str
    tokens: int
    accelerators: int

    @property
    def tokens_per_s(self) -> Interval:
        """Tokens a second over all accelerators."""
        return self.step_s.inverted(float(self.tokens))

    @property
    def mfu(self) -> Interval:
        """Model FLOPs utilisation."""
        return self.step_s.inverted(self.model_flop / self._peak)

    @property
    def hfu(self) -> Interval:
        """Hardware FLOPs utilisation."""
        return self.step_s.inverted(self.hardware_flop / self._peak)

    @property
    def _peak(self) -> float:
        return self.peak_flop_per_s * self.accelerators


def step_bound(
    arch: Architecture, plan: TrainingPlan, accelerator: Accelerator, kind: str
) -> StepBound:
    """Least time of a step on the datasheet's roofs.

        compute   model FLOP, masked pairs and recomputation left out, over the peak
        memory    parameters read once, moments and master weights read and written once
        links     gradients over the data-parallel ranks, activations over the tensor-parallel ones

    Raises:
        UnsupportedError: the device has no such compute type.
        MissingDataError: the spec has no bandwidth.
    """
    flop = model_flop_per_token(arch, plan, causal=True) * plan.tokens_per_step
    compute_s = flop / plan.accelerators / accelerator.peak_flop_per_s(kind)
    held, trained = rank_share(arch, plan), trainable_share(arch, plan)
    each = value_bytes(plan)
    values = (trained.base + trained.adapters) / (plan.shards if plan.zero_stage else 1)
    moments = {"adam": 2.0, "muon": 1.0, "momentum": 1.0}.get(plan.optimiser, 0.0)
    updated = 2 * values * (moments * each.state + (each.master or each.parameter))
    read = parameter_bytes(held, plan) / (plan.shards if plan.zero_stage == 3 else 1)
    memory_s = (read + updated) / accelerator.memory_bandwidth()
    return StepBound(compute_s, memory_s, _link_s(arch, plan, accelerator))


def _link_s(arch: Architecture, plan: TrainingPlan, accelerator: Accelerator) -> float:
    rate = accelerator.link.bytes_per_s or accelerator.pcie.bytes_per_s
    if rate is None or plan.accelerators == 1:
        return 0.0
    trained = trainable_share(arch, plan)
    sent = float(
        least_all_reduce_volume(SIXTEEN_BIT * (trained.base + trained.adapters), plan.shards)
    )
    if plan.tp > 1:
        message = SIXTEEN_BIT * plan.micro_tokens / plan.cp * arch.hidden_size
        layers = arch.n_layers / plan.pp
        passes = 2 * 2 * layers * plan.micro_batches  # two exchanges, forward and backward
        sent += passes * float(least_all_reduce_volume(message, plan.tp))
    return sent / rate


def training_step(
    arch: Architecture,
    plan: TrainingPlan,
    accelerator: Accelerator,
    device: DeviceTerms,
    network: Network,
    *,
    host: Host | None = None,
) -> StepEstimate:
    """Estimate a training step.

    Raises:
        InputError: the plan cannot be laid over this model.
        UnsupportedError: the device cannot compute in the plan's type.
        MissingDataError: the spec lacks what the bound needs.

    >>> from roofline.calibration.typical import typical_terms
    >>> from roofline.hardware.accelerator import load_accelerator
    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> from roofline.training.network import cluster_network
    >>> h100, plan = load_accelerator("h100-sxm5-80gb"), TrainingPlan(dp=8, zero_stage=3)
    >>> terms = typical_terms(h100)
    >>> step = training_step(LLAMA_3_8B, plan, h100, terms, cluster_network(h100, terms, plan)[0])
    >>> step.bound.limited_by, step.bound.seconds < step.step_s.low
    ('compute', True)
    """
    kind = compute_kind(plan, device)
    bound = step_bound(arch, plan, accelerator, kind)
    parts = step_parts(arch, plan, device, network, host)
    fused = plan.framework == "megatron"
    spread = FUSED_SPREAD if fused else EAGER_SPREAD
    middle = max(parts.total, bound.seconds)
    interval = around(middle, spread, bound.seconds)
    if parts.host > 0:
        quick = Host(Host().python_kernel_s * FAST_HOST, Host().autograd_kernel_s * FAST_HOST)
        least = step_parts(arch, plan, device, network, quick).total * spread.low
        interval = Interval(max(least, bound.seconds), interval.mid, interval.high)
    tokens = plan.tokens_per_step
    return StepEstimate(
        bound=bound,
        step_s=interval,
        parts=parts,
        model_flop=model_flop_per_token(arch, plan, causal=True) * tokens,
        hardware_flop=hardware_flop_per_token(arch, plan, causal=True) * tokens,
        every_pair_flop=model_flop_per_token(arch, plan, causal=False) * tokens,
        peak_flop_per_s=accelerator.peak_flop_per_s(kind),
        compute=kind,
        tokens=tokens,
        accelerators=plan.accelerators,
    )
