"""The result of predict: every number of a static batch, each bound, estimated or of memory.

Units    Base units; a bound is a number, an estimate an interval.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from roofline.api.step_time import StepTime
from roofline.hardware.accelerator import Accelerator
from roofline.serving.deployment import Deployment
from roofline.serving.inverse import max_batch, max_context_tokens
from roofline.serving.memory import Memory
from roofline.serving.placement import Placement
from roofline.serving.turning_points import TurningPoints, turning_points
from roofline.timing.interval import Interval
from roofline.timing.parallel import Parallel
from roofline.timing.roofs import ridge_words
from roofline.work.kv_cache import bytes_per_token, cache_bytes, state_bytes
from roofline.work.weights import stored_bytes

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class BoundTimes:
    """Bounds of a whole request.

    Args:
        ttft_s: least time to the first token.
        tpot_s: least mean time per further token; None for one output token.
        total_s: least time from first to last.
        output_tokens_per_s: most tokens per second, of all replicas.
    """

    ttft_s: float
    tpot_s: float | None
    total_s: float
    output_tokens_per_s: float


@dataclass(frozen=True)
class Cost:
    """What tokens cost at this batch, at full load.

    Args:
        gpu_hours_per_million_output_tokens: accelerator-hours, low to high.
        usd_per_hour: price of one accelerator that was given; None: no price, no money.
        usd_per_million_output_tokens: low to high; None without a price.
    """

    gpu_hours_per_million_output_tokens: Interval
    usd_per_hour: float | None
    usd_per_million_output_tokens: Interval | None


@dataclass(frozen=True)
class Prediction:
    """What a model can and will do on an accelerator.

    Args:
        deployment: model, accelerators, formats, engine and terms.
        prompt_tokens, output_tokens, batch: the request; batch is per data-parallel replica.
        prefill, decode: the two steps; decode at mid-output context.
        bound: bounds of the whole request.
        ttft_s, tpot_s, total_s, output_tokens_per_s: estimates of it.
        memory: of one accelerator, the one that holds most.
        cost: per million output tokens.
        assumptions: every default and inference that was made, in words.
    """

    deployment: Deployment
    prompt_tokens: int
    output_tokens: int
    batch: int
    prefill: StepTime
    decode: StepTime
    bound: BoundTimes
    ttft_s: Interval
    tpot_s: Interval | None
    total_s: Interval
    output_tokens_per_s: Interval
    memory: Memory
    cost: Cost
    assumptions: tuple[str, ...]

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.deployment.arch.name

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator."""
        return self.deployment.accelerator

    @property
    def parallel(self) -> Parallel:
        """The plan."""
        return self.deployment.parallel

    @property
    def weights_bytes(self) -> float:
        """Bytes of the whole model's weights as stored."""
        return stored_bytes(self.deployment.arch, self.deployment.formats.weights)

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes that one more token of one sequence adds, as long as no window is full."""
        return bytes_per_token(self.deployment.arch, self.deployment.formats.kv)

    @property
    def kv_cache_bytes(self) -> float:
        """Bytes of cache and state that the batch holds at its end, over a whole replica."""
        arch, kv = self.deployment.arch, self.deployment.formats.kv
        tokens = float(self.prompt_tokens + self.output_tokens)
        return self.batch * (float(cache_bytes(arch, tokens, kv)) + state_bytes(arch))

    @property
    def fits(self) -> bool:
        """Whether the batch fits with prompt and output in the cache."""
        return self.memory.fits

    @cached_property
    def placement(self) -> Placement:
        """What is placed where, for questions about memory."""
        return _placement(self.deployment)

    @cached_property
    def max_batch(self) -> int | None:
        """Most sequences per replica that fit at prompt + output; None: memory is no limit."""
        tokens = self.prompt_tokens + self.output_tokens
        return max_batch(self.placement, tokens, self.prompt_tokens)

    @cached_property
    def max_context_tokens(self) -> int | None:
        """Longest context that fits at this batch; None: memory does not limit it."""
        longest = max_context_tokens(self.placement, self.batch, self.output_tokens)
        started = self.deployment.engine.max_context_tokens
        known = [count for count in (longest, started) if count is not None]
        return min(known) if known else None

    @property
    def ridge_flop_per_byte(self) -> float:
        """Ridge point of the blocks' compute type on the datasheet's roofs."""
        return self.deployment.roofs.ridge_flop_per_byte(self.deployment.compute_used)

    @property
    def ridge(self) -> str:
        """The ridge point in words, with compute type and roofs named."""
        return ridge_words(self.deployment.roofs, self.deployment.compute_used)

    @cached_property
    def turning_points(self) -> TurningPoints:
        """Batch, prompt and context at which a step changes the side of the roofline."""
        return turning_points(self.deployment, self.prompt_tokens + self.output_tokens / 2)

    def to_dict(self) -> dict[str, Any]:
        """Everything in base units, with units in the keys."""
        d = self.deployment
        return {
            "model": d.arch.name,
            "accelerator": d.accelerator.id,
            "accelerators": d.parallel.accelerators,
            "engine": d.engine.name,
            "compute_type": d.compute_used,
            "weights_format": d.weights_dtype.name,
            "kv_format": d.formats.kv.name,
            "parameters": d.arch.parameters,
            "active_parameters": d.arch.active_parameters,
            "weights_bytes": self.weights_bytes,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "kv_cache_bytes": self.kv_cache_bytes,
            "ridge_flop_per_byte": self.ridge_flop_per_byte,
            "fits": self.fits,
            "max_batch": self.max_batch,
            "max_context_tokens": self.max_context_tokens,
            "memory": self.memory.to_dict(),
            "bound": {
                "ttft_s": self.bound.ttft_s,
                "tpot_s": self.bound.tpot_s,
                "total_s": self.bound.total_s,
                "output_tokens_per_s": self.bound.output_tokens_per_s,
            },
            "estimate": {
                "ttft_s": self.ttft_s.to_dict(),
                "tpot_s": None if self.tpot_s is None else self.tpot_s.to_dict(),
                "total_s": self.total_s.to_dict(),
                "output_tokens_per_s": self.output_tokens_per_s.to_dict(),
                "measured_machine": d.terms.measured,
            },
            "prefill": self.prefill.to_dict(),
            "decode": self.decode.to_dict(),
            "turning_points": {
                "decode_batch": self.turning_points.decode_batch,
                "prefill_tokens": self.turning_points.prefill_tokens,
                "context_cache_equals_weights_tokens": (
                    self.turning_points.context_cache_equals_weights
                ),
            },
            "cost": {
                "gpu_hours_per_million_output_tokens": (
                    self.cost.gpu_hours_per_million_output_tokens.to_dict()
                ),
                "usd_per_hour": self.cost.usd_per_hour,
                "usd_per_million_output_tokens": (
                    None
                    if self.cost.usd_per_million_output_tokens is None
                    else self.cost.usd_per_million_output_tokens.to_dict()
                ),
            },
        }

    def to_frame(self) -> "pandas.DataFrame":
        """Operators of both steps as a table, a row each."""
        import pandas

        rows = [
            {"step": name, **vars(row)}
            for name, step in (("prefill", self.prefill), ("decode", self.decode))
            for row in step.operators
        ]
        return pandas.DataFrame(rows)


def _placement(deployment: Deployment) -> Placement:
    return Placement(
        deployment.arch,
        deployment.accelerator,
        deployment.parallel,
        deployment.formats.weights,
        deployment.formats.kv,
        deployment.engine,
    )
