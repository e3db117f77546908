"""Weights: the bytes a model takes in store, and the bytes of them that a step must read.

A storage format asked for by name covers the linear layers of the blocks, experts included;
embeddings, lm_head, norms, routers and biases keep the model's own type, unless the checkpoint says
otherwise matrix by matrix. Asking for the format that the checkpoint already has changes nothing.

Units    bytes of the whole model, or of one rank's share when given a sharded architecture.
Limits   Per-tensor scales are not counted (4 bytes a matrix).
Sources  [1] Expected distinct experts E(1 − (1 − k/E)^N): N tokens that each pick k of E experts at
         random, independently; skewed routing touches fewer.
"""

import numpy as np

from roofline.dtypes import Dtype
from roofline.models.architecture import Architecture, Experts, LayerGroup, Linear
from roofline.units import Numeric


def own_format(arch: Architecture) -> Dtype:
    """Find the storage format that covers most of a checkpoint's matrices.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> own_format(LLAMA_3_8B).name
    'bf16'
    """
    values: dict[Dtype, float] = {}
    for group in arch.layers:
        for linear, count in _matrices(group):
            dtype = linear.dtype or arch.dtype
            values[dtype] = values.get(dtype, 0.0) + group.n_layers * count * linear.values
    return max(values, key=lambda dtype: values[dtype]) if values else arch.dtype


def _matrices(group: LayerGroup) -> list[tuple[Linear, int]]:
    dense = [(linear, 1) for linear in group.linears]
    if group.experts is None:
        return dense
    return dense + [(linear, group.experts.n_experts) for linear in group.experts.linears]


def linear_dtype(linear: Linear, arch: Architecture, weights: Dtype | None) -> Dtype:
    """Say what a matrix is stored in when ``weights`` is asked for (None: as the checkpoint is)."""
    if weights is None:
        return linear.dtype or arch.dtype
    return weights if linear.quantisable else arch.dtype


def linear_bytes(linear: Linear, arch: Architecture, weights: Dtype | None) -> float:
    """Bytes of one matrix with its biases, which stay in the model's own type."""
    matrix = linear.values * linear_dtype(linear, arch, weights).bytes_per_value
    return matrix + (linear.n_out * arch.dtype.bytes_per_value if linear.bias else 0.0)


def chosen_format(arch: Architecture, weights: Dtype | None) -> Dtype | None:
    """Reduce a request for the checkpoint's own format to None: its layout is kept."""
    return None if weights is not None and weights == own_format(arch) else weights


def group_bytes(group: LayerGroup, arch: Architecture, weights: Dtype | None) -> float:
    """Bytes of one layer of a group, all experts included."""
    total = group.small_parameters * arch.dtype.bytes_per_value
    total += sum(linear_bytes(linear, arch, weights) for linear in group.linears)
    if group.experts is not None:
        total += group.experts.n_experts * expert_bytes(group.experts, arch, weights)
    return total


def expert_bytes(experts: Experts, arch: Architecture, weights: Dtype | None) -> float:
    """Bytes of one routed expert."""
    extra = experts.expert_biases * arch.dtype.bytes_per_value
    return extra + sum(linear_bytes(linear, arch, weights) for linear in experts.linears)


def stored_bytes(
    arch: Architecture, weights: Dtype | None = None, *, prediction_layers: bool = False
) -> float:
    """Bytes that the weights take.

    Args:
        arch: the model.
        weights: storage format of the blocks' linear layers; None: the checkpoint's own.
        prediction_layers: whether multi-token-prediction layers are held too.

    >>> from roofline.models.architecture import LLAMA_3_8B
    >>> stored_bytes(LLAMA_3_8B) / 2  # two bytes each of 8,030,261,248
    8030261248.0
    """
    weights = chosen_format(arch, weights)
    groups = arch.layers + (arch.prediction_layers if prediction_layers else ())
    total = sum(group.n_layers * group_bytes(group, arch, weights) for group in groups)
    total += (arch.embedding_parameters + arch.small_parameters) * arch.dtype.bytes_per_value
    if arch.lm_head is not None and not arch.tied:
        total += linear_bytes(arch.lm_head, arch, weights)
    return total


def distinct_experts(experts: Experts, tokens: Numeric) -> Numeric:
    """Expect this many of the held experts to be picked by at least one of ``tokens`` tokens [1].

        E_held (1 − (1 − k/E)^N)

    >>> from roofline.models.architecture import Experts
    >>> round(float(distinct_experts(Experts(128, 8, ()), 16)), 1)
    82.4
    >>> round(float(distinct_experts(Experts(16, 8, (), n_routed=128), 16)), 1)  # of 8 ranks
    10.3
    """
    missed = (1 - experts.mean_active / experts.routed) ** (
        np.asarray(tokens, dtype=float) * experts.n_sources
    )
    return experts.n_experts * (1 - missed)


def least_experts(experts: Experts, tokens: Numeric) -> Numeric:
    """Count the experts that a step reads at the very least: those that one token picks.

    On a rank that holds a share of the experts, the share of them: over all ranks the mean cannot
    be less. Identity experts could take every pick.
    """
    fewest = max(experts.n_active - experts.n_identity, 0)
    share = experts.n_experts / experts.routed
    return np.where(np.asarray(tokens, dtype=float) > 0, fewest * share, 0.0)
