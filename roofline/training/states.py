"""Model states: parameters, master weights, optimiser states and gradients of one rank under ZeRO.

Shapes   One rank: the fullest pipeline stage.
Units    Bytes.
Limits   Sharded evenly; routed experts over the ranks that hold the same ones.
Sources  [1] Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054, section 3 and figure 1.
         [2] Dettmers et al. 2023, QLoRA, arXiv:2305.14314, section 3 (nf4, 0.127 bit of scales).
"""

from dataclasses import dataclass

from roofline.dtypes import Dtype
from roofline.models.architecture import Architecture
from roofline.training.activations import SIXTEEN_BIT
from roofline.training.optimisers import master_bytes, state_bytes, value_bytes
from roofline.training.parameters import Share, rank_share, trainable_share
from roofline.training.plan import TrainingPlan, check_plan


@dataclass(frozen=True)
class States:
    """Bytes that a rank holds the whole step, gradients when complete."""

    parameters: float
    master: float
    optimiser: float
    gradients: float

    @property
    def total(self) -> float:
        """All four."""
        return self.parameters + self.master + self.optimiser + self.gradients


def parameter_bytes(share: Share, plan: TrainingPlan) -> float:
    """Bytes of a rank's parameters before ZeRO.

    >>> parameter_bytes(Share(matrices=64), TrainingPlan(method="qlora"))  # nf4, 4.127 bit
    33.016
    """
    if not plan.adapters:
        return value_bytes(plan).parameter * share.base
    blocks = Dtype.NF4.bytes_per_value if plan.method == "qlora" else float(SIXTEEN_BIT)
    frozen = blocks * (share.matrices + share.experts)
    rest = SIXTEEN_BIT * (share.embedding + share.head + share.small)
    return frozen + rest + plan.adapter_bytes * share.adapters


def model_states(arch: Architecture, plan: TrainingPlan) -> States:
    """Parameters, master weights, optimiser states and gradients of a rank under ZeRO [1].

        stage 1: (master + optimiser) / shards;  2: gradients too;  3: parameters too

    Raises:
        InputError: the plan cannot be laid over this model.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> plan = TrainingPlan(precision="mixed", gradient_bytes=2, dp=64, zero_stage=3)
    >>> model_states(LLAMA_3_8B, plan).total / LLAMA_3_8B.parameters * 64
    16.0
    """
    check_plan(arch, plan)
    held, trained = rank_share(arch, plan), trainable_share(arch, plan)
    each = value_bytes(plan)
    values = trained.base + trained.adapters
    stage = plan.zero_stage
    parameters = parameter_bytes(held, plan)
    master = master_bytes(plan, trained)
    optimiser = state_bytes(arch, plan, trained)
    gradients = each.gradient * values
    routed = held.experts / held.base if held.base else 0.0
    divide = _divisor(plan, routed)
    return States(
        parameters=parameters / (divide if stage >= 3 else 1.0),
        master=master / (divide if stage >= 1 else 1.0),
        optimiser=optimiser / (divide if stage >= 1 else 1.0),
        gradients=gradients / (divide if stage >= 2 else 1.0),
    )


def _divisor(plan: TrainingPlan, routed: float) -> float:
    """Ranks that share each value: fewer for experts, of which ep ranks hold different ones."""
    dense = plan.shards
    if plan.ep == 1:
        return float(dense)
    same_experts = max(plan.tp * plan.cp * plan.dp // plan.ep, 1)
    return 1.0 / ((1 - routed) / dense + routed / same_experts)
