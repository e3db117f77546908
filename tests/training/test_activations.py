"""Saved activations against what PyTorch saves, counted by its own hooks."""

import pytest

from roofline.models.config import load_model
from roofline.training.activations import eager_layer, fused_layer
from roofline.training.plan import TrainingPlan
from roofline.training.shapes import megatron_gpt

FAMILIES = ("Llama", "Qwen2", "Qwen3", "Mistral", "Gemma", "Olmo2", "Starcoder2")
TOKENS, BATCH = 64, 2
DIMENSIONS = {
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 160, "vocab_size": 64, "use_cache": False, "tie_word_embeddings": False,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def saved_by_torch(config, mode):
    """Bytes of distinct storages that autograd keeps, parameters and their casts left out."""
    import torch
    import transformers

    dtype = torch.float32 if mode == "amp" else torch.bfloat16
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=dtype, attn_implementation="sdpa"
    )
    model.train()
    if mode == "lora":
        import peft

        settings = peft.LoraConfig(
            r=16, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        model = peft.get_peft_model(model, settings)
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    tokens = torch.randint(0, config.vocab_size, (BATCH, TOKENS))
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        is_cast = mode == "amp" and tensor.dim() == 2 and tensor.shape[0] != BATCH * TOKENS
        if storage.data_ptr() not in own and not is_cast:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=mode == "amp"),
    ):
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    del loss
    return sum(size for size, _ in kept.values())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["bf16", "amp", "lora"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_layer_keeps_what_autograd_keeps(family, mode):
    """transformers on a CPU, two layers more: the difference is two layers' saved tensors."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("peft")
    kind = getattr(transformers, f"{family}Config")
    few, more = (kind(**DIMENSIONS, num_hidden_layers=layers) for layers in (2, 4))
    measured = (saved_by_torch(more, mode) - saved_by_torch(few, mode)) / 2 / (BATCH * TOKENS)
    arch = load_model(more.to_dict())
    plan = TrainingPlan(
        sequence_tokens=TOKENS, micro_batch=BATCH,
        method="lora" if mode == "lora" else "full",
        precision="amp" if mode == "amp" else "bf16",
    )  # fmt: skip
    # LayerNorm's two statistics a row are the only difference seen
    assert eager_layer(arch, arch.layers[0], plan).total == pytest.approx(measured, rel=0.006)


@pytest.mark.parametrize(
    ("tp", "sequence_parallel", "recompute", "coefficients"),
    [
        pytest.param(1, False, "none", (34, 5), id="no parallelism"),
        pytest.param(8, False, "none", (10 + 24 / 8, 5 / 8), id="tensor"),
        pytest.param(8, True, "none", (34 / 8, 5 / 8), id="tensor and sequence"),
        pytest.param(8, True, "selective", (34 / 8, 0), id="and selective recomputation"),
    ],
)
def test_gpt_keeps_as_published(tp, sequence_parallel, recompute, coefficients):
    """Korthikanti et al. 2022, table 2: bytes of a layer over s·b·h, a second term in a·s/h."""
    hidden, heads, tokens = 6144, 64, 2048
    arch = megatron_gpt("22B", n_layers=48, hidden=hidden, n_heads=heads)
    plan = TrainingPlan(
        framework="megatron", precision="mixed", flash_attention=False, dropout=True, tp=tp,
        sequence_parallel=sequence_parallel, recompute=recompute, sequence_tokens=tokens,
    )  # fmt: skip
    saved = fused_layer(arch, arch.layers[0], plan)
    kept = saved.total - (saved.scores if recompute == "selective" else 0)
    linear, square = coefficients
    assert kept / hidden == pytest.approx(linear + square * heads * tokens / hidden)
