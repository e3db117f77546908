"""Training plan: everything about a training run that is not the model or the machine.

A plan says what is trained (``method``), in which types (``precision``), with which optimiser, how
much goes through in a step, what is recomputed, and how it is spread over accelerators.

Shapes   One step takes ``micro_batch`` × ``micro_batches`` sequences on each of ``dp`` replicas.
Units    Sequences, tokens, ranks.
Limits   ``ep`` partitions the ranks, it never multiplies them; accelerators = tp · pp · cp · dp.
         ZeRO shards over the dp · cp ranks that hold the same parameters.
Sources  [1] Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054 (stages 1, 2, 3; 3 is FSDP).
         [2] Narayanan et al. 2021, arXiv:2104.04473 (tp, pp, interleaving).
         [3] Korthikanti et al. 2022, arXiv:2205.05198 (sequence parallelism, recomputation).
         [4] Hu et al. 2021, LoRA, arXiv:2106.09685; Dettmers et al. 2023, QLoRA, arXiv:2305.14314.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from roofline.errors import InputError, UnsupportedError, unknown_name
from roofline.models.architecture import Architecture

Method = Literal["full", "partial", "lora", "qlora"]
Precision = Literal["amp", "bf16", "mixed", "fp32"]
Optimiser = Literal["adam", "adam8bit", "adafactor", "sgd", "momentum", "muon"]
Recompute = Literal["none", "selective", "full"]
Framework = Literal["transformers", "megatron"]
Offload = Literal["optimiser", "parameters", "activations"]

LARGEST = 2**31


@dataclass(frozen=True)
class TrainingPlan:
    """How a model is trained.

    Args:
        sequence_tokens: tokens of one sequence.
        micro_batch: sequences that pass through the model together on one replica.
        micro_batches: micro-batches a replica runs before the optimiser (gradient accumulation;
            the micro-batches of a pipeline).
        method: ``full``, ``partial`` (the last ``trainable_layers`` and an untied head), ``lora``,
            ``qlora`` (LoRA over nf4 weights with double quantisation).
        precision: ``amp`` (fp32 parameters, bf16 autocast), ``bf16`` (everything bf16), ``mixed``
            (16-bit parameters beside fp32 master weights), ``fp32``.
        optimiser: adam, adam8bit, adafactor, sgd (no state), momentum, muon.
        recompute: activations made again in the backward pass: none, selective (attention's
            scores), full.
        framework: whose kernels and saved tensors: ``transformers`` (eager), ``megatron`` (fused).
        flash_attention: attention without a score matrix in memory.
        dropout: dropout masks are kept (GPT-3's training; none since).
        gradient_bytes: bytes of a stored gradient value; 0: what the precision usually has.
        lora_rank, adapter_bytes: rank of the adapters, bytes of one of their values.
        trainable_layers: of method ``partial``.
        tp, pp, cp, dp, ep: ranks of tensor, pipeline, context, data and expert parallelism.
        zero_stage: 0 nothing sharded, 1 optimiser states, 2 and gradients, 3 and parameters (FSDP).
        sequence_parallel: norms and dropouts are divided over the tp ranks too [3].
        interleave: model chunks on each pipeline rank [2]; 1: plain 1F1B.
        offload: what lives in host memory.
        overlap: the gradient exchange runs behind the backward pass.
        overlap_layers: so do the exchanges of tensor and expert parallelism behind their layer's
            compute (asynchronous tensor parallelism, two micro-batches in turn).
        fused_loss: the loss never holds the logits of all tokens (chunked cross-entropy).

    >>> TrainingPlan(micro_batch=1, micro_batches=8, tp=8, pp=8).accelerators
    64
    """

    sequence_tokens: int = 2048
    micro_batch: int = 1
    micro_batches: int = 1
    method: Method = "full"
    precision: Precision = "amp"
    optimiser: Optimiser = "adam"
    recompute: Recompute = "none"
    framework: Framework = "transformers"
    flash_attention: bool = True
    dropout: bool = False
    gradient_bytes: int = 0
    lora_rank: int = 16
    adapter_bytes: int = 4
    trainable_layers: int = 0
    tp: int = 1
    pp: int = 1
    cp: int = 1
    dp: int = 1
    ep: int = 1
    zero_stage: int = 0
    sequence_parallel: bool = False
    interleave: int = 1
    offload: tuple[Offload, ...] = ()
    overlap: bool = True
    overlap_layers: bool = False
    fused_loss: bool = False

    def __post_init__(self) -> None:
        for name in (
            "sequence_tokens", "micro_batch", "micro_batches", "lora_rank", "tp", "pp", "cp",
            "dp", "ep", "interleave",
        ):  # fmt: skip
            _whole(name, getattr(self, name), least=1)
        _whole("trainable_layers", self.trainable_layers, least=0)
        for name, kind in (
            ("method", Method), ("precision", Precision), ("optimiser", Optimiser),
            ("recompute", Recompute), ("framework", Framework),
        ):  # fmt: skip
            if getattr(self, name) not in get_args(kind):
                raise unknown_name(name, str(getattr(self, name)), get_args(kind))
        for name in self.offload:
            if name not in get_args(Offload):
                raise unknown_name("offload", str(name), get_args(Offload))
        if self.zero_stage not in (0, 1, 2, 3) or isinstance(self.zero_stage, bool):
            raise InputError(f"zero_stage is 0, 1, 2 or 3, got {self.zero_stage!r}")
        if self.gradient_bytes not in (0, 2, 4) or self.adapter_bytes not in (2, 4):
            raise InputError(
                "gradient_bytes is 0, 2 or 4 and adapter_bytes 2 or 4, got "
                f"{self.gradient_bytes!r} and {self.adapter_bytes!r}"
            )
        if self.sequence_tokens % self.cp:
            raise InputError(f"cp = {self.cp} does not divide {self.sequence_tokens} tokens")
        if (self.tp * self.pp * self.cp * self.dp) % self.ep:
            raise InputError(
                f"ep = {self.ep} does not divide the {self.accelerators} accelerators; ep "
                "partitions them and never adds any"
            )
        if self.interleave > 1 and self.pp == 1:
            raise InputError(f"interleave = {self.interleave} needs a pipeline; pp is 1")
        if "parameters" in self.offload and self.zero_stage != 3:
            raise InputError("offloading parameters needs zero_stage=3 (they are fetched by layer)")
        if self.method in ("lora", "qlora") and self.optimiser in ("adafactor", "muon"):
            raise UnsupportedError(
                f"{self.optimiser} on adapters is not modelled; use adam, adam8bit, sgd or momentum"
            )

    @property
    def accelerators(self) -> int:
        """Accelerators of the run."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def shards(self) -> int:
        """Ranks that hold the same parameters, over which ZeRO divides."""
        return self.dp * self.cp

    @property
    def micro_tokens(self) -> int:
        """Tokens of one micro-batch, on all cp ranks together."""
        return self.micro_batch * self.sequence_tokens

    @property
    def global_batch(self) -> int:
        """Sequences of a step, over all replicas."""
        return self.micro_batch * self.micro_batches * self.dp

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a step, over all replicas."""
        return self.global_batch * self.sequence_tokens

    @property
    def adapters(self) -> bool:
        """Whether only low-rank adapters are trained."""
        return self.method in ("lora", "qlora")

    def with_(self, **changes: object) -> "TrainingPlan":
        """The same plan with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


def _whole(name: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} is a whole number of at least {least}, got {value!r}")
    if not least <= value < LARGEST:
        raise InputError(f"{name} is a whole number of at least {least} (below 2**31), got {value}")


def check_plan(arch: Architecture, plan: TrainingPlan) -> None:
    """Refuse a plan that cannot be laid over this model.

    Raises:
        InputError: more stages than layers, heads that tp does not divide, no experts for ep.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> check_plan(LLAMA_3_8B, TrainingPlan(tp=3))
    Traceback (most recent call last):
    ...
    roofline.errors.InputError: tp = 3 does not divide the 32 query heads of llama-3-8b
    """
    if plan.pp * plan.interleave > arch.n_layers:
        raise InputError(
            f"pp × interleave = {plan.pp * plan.interleave} is more than the {arch.n_layers} "
            f"layers of {arch.name}"
        )
    if plan.trainable_layers > arch.n_layers:
        raise InputError(
            f"trainable_layers = {plan.trainable_layers}; {arch.name} has {arch.n_layers} layers"
        )
    for group in arch.layers:
        heads = group.query_heads
        if heads and heads % plan.tp:
            raise InputError(
                f"tp = {plan.tp} does not divide the {heads} query heads of {arch.name}"
            )
    experts = [group.experts.n_experts for group in arch.layers if group.experts is not None]
    if plan.ep > 1 and not experts:
        raise InputError(f"ep = {plan.ep}: {arch.name} has no routed experts")
    if experts and min(experts) % plan.ep:
        raise InputError(
            f"ep = {plan.ep} does not divide the {min(experts)} experts of {arch.name}"
        )
