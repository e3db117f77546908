"""The same shapes run by transformers, eager: what a framework adds to the decoder's work.

Units    Seconds of the host's clock around one synchronised step.
Limits   Llama-like dense models and Mixtral-like experts, with random weights, sdpa attention.
"""

import inspect
import time
from collections.abc import Iterator
from typing import Any

from roofline.errors import MissingPackageError
from roofline.hardware.measured_rows import DecoderRow
from roofline.measure.bench import summarise, synchronise, time_wall
from roofline.measure.decoder_shape import DecoderShape, decoder_shape
from roofline.measure.device import Target, release_memory
from roofline.measure.framework import installed, torch
from roofline.measure.model_run import ModelPlan
from roofline.models.architecture import Architecture


def transformers_model(shape: DecoderShape, device: Any, dtype: Any) -> Any:
    """Build the shape in transformers with random weights.

    Raises:
        MissingPackageError: transformers is not installed.
    """
    if not installed("transformers"):
        raise MissingPackageError("transformers is not installed; pip install transformers")
    from transformers import AutoModelForCausalLM, LlamaConfig, MixtralConfig

    common = {
        "hidden_size": shape.hidden, "num_hidden_layers": shape.n_layers,
        "num_attention_heads": shape.n_heads, "num_key_value_heads": shape.n_kv_heads,
        "head_dim": shape.head_dim, "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocab, "tie_word_embeddings": False,
        "max_position_embeddings": 131072,
    }  # fmt: skip
    if shape.n_experts:
        config: Any = MixtralConfig(
            **common, num_local_experts=shape.n_experts, num_experts_per_tok=shape.n_active,
            sliding_window=None,
        )  # fmt: skip
    else:
        config = LlamaConfig(**common)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    finally:
        torch.set_default_dtype(before)


def transformers_rows(
    target: Target, architecture: Architecture, plan: ModelPlan, *, steps: int = 16
) -> Iterator[DecoderRow]:
    """Prefill and decode of each batch and prompt of the plan, one token at a time.

    Raises:
        MissingPackageError: transformers is not installed.
        UnsupportedError: a shape that the measured decoder does not run either.
    """
    shape = decoder_shape(architecture)
    device = target.torch_device
    kinds = {"fp32": torch.float32, "fp16": torch.float16}
    dtype = kinds.get(plan.weights, torch.bfloat16)
    name = plan.weights if plan.weights in kinds else "bf16"
    model = transformers_model(shape, device, dtype)
    parameters = sum(value.numel() for value in model.parameters())
    value_bytes = torch.empty((), dtype=dtype).element_size()
    facts = {
        "model": shape.name, "weights": name, "mode": "transformers", "parameters": parameters,
        "weights_bytes": parameters * value_bytes,
    }  # fmt: skip
    for batch in plan.batches:
        for tokens in plan.contexts:
            ids = torch.randint(0, shape.vocab, (batch, tokens), device=device)
            yield from _rows(target, model, ids, steps, facts)
    del model
    release_memory()


def _rows(
    target: Target, model: Any, ids: Any, steps: int, facts: dict[str, Any]
) -> Iterator[DecoderRow]:
    device = target.torch_device
    batch, tokens = ids.shape
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    timing = time_wall(
        device, lambda: model(ids, use_cache=True, logits_to_keep=1), min_runs=3, max_runs=5
    )
    peak = int(torch.cuda.max_memory_allocated(device)) if on_gpu else None
    yield DecoderRow(
        phase="prefill", batch=batch, context_tokens=tokens, peak_memory_bytes=peak, **facts,
        **timing.row(),
    )  # fmt: skip
    times = []
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    from transformers import DynamicCache

    # one release renamed the argument; the cache itself is filled in place
    taken = inspect.signature(type(model).forward).parameters
    name = "cache" if "cache" in taken else "past_key_values"
    held = {name: DynamicCache(config=model.config), "use_cache": True, "logits_to_keep": 1}
    with torch.inference_mode():
        nearest = model(ids, **held).logits[:, -1:].argmax(-1)
        for _ in range(steps):
            synchronise(device)
            begin = time.perf_counter()
            nearest = model(nearest, **held).logits[:, -1:].argmax(-1)
            synchronise(device)
            times.append(time.perf_counter() - begin)
    peak = int(torch.cuda.max_memory_allocated(device)) if on_gpu else None
    yield DecoderRow(
        phase="decode", batch=batch, context_tokens=tokens, peak_memory_bytes=peak, **facts,
        **summarise(times[2:], "wall").row(),
    )  # fmt: skip
