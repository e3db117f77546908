"""Optimiser states, gradients and master weights: bytes beside the parameters.

Shapes   Sums over matrices: factored and matrix-wise optimisers depend on shapes, not counts alone.
Units    Bytes of all trained values of a model, on all ranks together unless said otherwise.
Limits   State kept between steps. Workspace inside an optimiser's step is in ``memory``.
Sources  [1] Kingma & Ba 2015, arXiv:1412.6980 (two moments a value).
         [2] Dettmers et al. 2022, 8-bit optimizers, arXiv:2110.02861 (one byte a moment; an fp32
             maximum per block of 2,048 values; embeddings stay 32-bit).
         [3] Shazeer & Stern 2018, Adafactor, arXiv:1804.04235 (a row and a column sum a matrix).
         [4] Jordan et al. 2024, Muon (one momentum for the blocks' matrices, Adam for the rest).
         [5] Micikevicius et al. 2018, arXiv:1710.03740 (fp32 master weights).
         [6] Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1: 2 + 2 + 12 bytes a value.
"""

from dataclasses import dataclass

from roofline.models.architecture import Architecture
from roofline.training.parameters import Share
from roofline.training.plan import TrainingPlan

BLOCK_VALUES = 2048  # values that share one fp32 maximum in 8-bit states [2]


@dataclass(frozen=True)
class ValueBytes:
    """Bytes that one trained value takes, by role.

    Args:
        parameter: the copy that the forward pass uses.
        gradient: the stored gradient.
        master: the fp32 copy that the optimiser updates; 0: the parameter itself.
        state: one moment of the optimiser.
    """

    parameter: float
    gradient: float
    master: float
    state: float


def value_bytes(plan: TrainingPlan) -> ValueBytes:
    """Bytes of a trained value in the plan's precision.

    >>> value_bytes(TrainingPlan(precision="mixed", gradient_bytes=2))  # ZeRO's 2 + 2 + 12 [6]
    ValueBytes(parameter=2, gradient=2, master=4, state=4)
    """
    if plan.adapters:
        each = plan.adapter_bytes
        return ValueBytes(each, each, 0, each)
    match plan.precision:
        case "amp" | "fp32":
            usual = ValueBytes(4, 4, 0, 4)
        case "bf16":
            usual = ValueBytes(2, 2, 0, 2)
        case "mixed":
            usual = ValueBytes(2, 4, 4, 4)
    gradient = plan.gradient_bytes or usual.gradient
    return ValueBytes(usual.parameter, gradient, usual.master, usual.state)


def factored_fraction(arch: Architecture) -> float:
    """Row and column sums over values: what Adafactor keeps of each matrix [3].

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> factored_fraction(LLAMA_3_8B) < 0.001
    True
    """
    sums = values = 0.0
    for group in arch.layers:
        for linear in group.linears:
            sums += group.n_layers * (
                linear.n_in + linear.n_out + linear.parameters - linear.values
            )
            values += group.n_layers * linear.parameters
        if group.experts is not None:
            for linear in group.experts.linears:
                count = group.n_layers * group.experts.n_experts
                sums += count * (linear.n_in + linear.n_out)
                values += count * linear.values
        sums += group.n_layers * group.small_parameters
        values += group.n_layers * group.small_parameters
    sums += arch.vocab_size + arch.hidden_size + arch.small_parameters
    values += arch.embedding_parameters + arch.small_parameters
    if arch.lm_head is not None and not arch.tied:
        sums += arch.lm_head.n_in + arch.lm_head.n_out
        values += arch.lm_head.parameters
    return sums / values


def state_bytes(arch: Architecture, plan: TrainingPlan, trained: Share) -> float:
    """Bytes of optimiser state of these trained values.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> from roofline.training.parameters import trainable_share
    >>> for name in ("adam", "adam8bit", "muon", "momentum", "adafactor", "sgd"):
    ...     plan = TrainingPlan(optimiser=name)
    ...     share = trainable_share(LLAMA_3_8B, plan)
    ...     print(f"{name:9} {state_bytes(LLAMA_3_8B, plan, share) / share.base:.2f}")
    adam      8.00
    adam8bit  2.40
    muon      4.52
    momentum  4.00
    adafactor 0.00
    sgd       0.00
    """
    each = value_bytes(plan).state
    values = trained.base + trained.adapters
    tables = trained.embedding + (trained.head if arch.tied else 0.0)
    match plan.optimiser:
        case "adam":
            return 2 * each * values
        case "adam8bit":
            block = 1 + 4 / BLOCK_VALUES
            return 2 * block * (values - tables) + 2 * 4 * tables
        case "adafactor":
            return 4 * factored_fraction(arch) * values
        case "momentum":
            return each * values
        case "muon":
            matrices = trained.matrices + trained.experts
            return each * matrices + 2 * each * (values - matrices)
        case "sgd":
            return 0.0


def master_bytes(plan: TrainingPlan, trained: Share) -> float:
    """Bytes of fp32 master weights [5].

    >>> master_bytes(TrainingPlan(precision="mixed"), Share(matrices=10))
    40.0
    """
    return value_bytes(plan).master * (trained.base + trained.adapters)
