"""The measured training step: a small transformer with random weights, trained for a few steps.

Builds a Llama- or Qwen2-shaped model with transformers, trains it on random tokens in each mode
(``amp``, ``bf16``, ``lora``; with and without recomputation) and writes peak memory and step times
as a training record.

    python -m roofline.measure.training --output DIR

Shapes   Each row: ``micro_batch`` sequences of ``sequence_tokens`` random tokens, no padding, SDPA.
Units    Bytes of torch's allocator; seconds of the host clock around synchronised steps.
Limits   One device. Steps include forward, loss, backward, fused AdamW and zero_grad; data loading
         is not in them. Random weights: time and memory do not depend on the values.
"""

import argparse
import gc
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roofline.errors import InputError, MissingPackageError, RooflineError
from roofline.hardware.measurement import Device, Environment
from roofline.hardware.training_record import (
    Mode,
    ModelShape,
    TrainingRecord,
    TrainingRow,
    save_training_record,
)

QWEN_0_5B = ModelShape(
    name="qwen2.5-0.5b", n_layers=24, hidden=896, n_heads=14, n_kv_heads=2, head_dim=64,
    intermediate=4864, vocab=151936, tied=True, qkv_bias=True,
)  # fmt: skip
QWEN_1_5B = ModelShape(
    name="qwen2.5-1.5b", n_layers=28, hidden=1536, n_heads=12, n_kv_heads=2, head_dim=128,
    intermediate=8960, vocab=151936, tied=True, qkv_bias=True,
)  # fmt: skip
TINYLLAMA = ModelShape(
    name="tinyllama-1.1b", n_layers=22, hidden=2048, n_heads=32, n_kv_heads=4, head_dim=64,
    intermediate=5632, vocab=32000, tied=False,
)  # fmt: skip
SMALL = ModelShape(
    name="small", n_layers=2, hidden=64, n_heads=4, n_kv_heads=2, head_dim=16, intermediate=128,
    vocab=256, tied=True,
)  # fmt: skip
"""Small enough for a CPU: shows that the run works, measures nothing."""

RUNS: tuple[tuple[ModelShape, int, int], ...] = (
    (QWEN_0_5B, 4, 2048),
    (TINYLLAMA, 4, 2048),
    (QWEN_1_5B, 4, 1024),
    (QWEN_0_5B, 1, 1024),
)
"""Shape, micro-batch and sequence length of each run, the most wanted first."""

LORA_RANK = 16
WARM_STEPS, TIMED_STEPS = 2, 4


def _import(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError(
            f"the training run needs {name}; install it with: pip install torch transformers peft"
        ) from None


def build(shape: ModelShape, mode: Mode, *, recompute: bool, device: str) -> Any:
    """Make the model with random weights in the types of its mode.

    Raises:
        MissingPackageError: torch, transformers or peft is not installed.
    """
    torch, transformers = _import("torch"), _import("transformers")
    dimensions = {
        "hidden_size": shape.hidden, "num_hidden_layers": shape.n_layers,
        "num_attention_heads": shape.n_heads, "num_key_value_heads": shape.n_kv_heads,
        "head_dim": shape.head_dim, "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocab, "tie_word_embeddings": shape.tied,
        "max_position_embeddings": 32768, "use_cache": False,
    }  # fmt: skip
    if shape.qkv_bias:
        config = transformers.Qwen2Config(**dimensions)
    else:
        config = transformers.LlamaConfig(**dimensions)
    dtype = torch.float32 if mode == "amp" else torch.bfloat16
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation="sdpa"
        )
    model.train()
    if recompute:
        model.gradient_checkpointing_enable()
    if mode == "lora":
        peft = _import("peft")
        if recompute:
            model.enable_input_require_grads()
        model = peft.get_peft_model(
            model,
            peft.LoraConfig(
                r=LORA_RANK, lora_alpha=2 * LORA_RANK, lora_dropout=0.0,
                target_modules="all-linear", task_type="CAUSAL_LM",
            ),
        )  # fmt: skip
    return model.to(device)


def measure_row(
    shape: ModelShape,
    mode: Mode,
    *,
    recompute: bool,
    micro_batch: int,
    sequence_tokens: int,
    device: str = "cuda",
) -> TrainingRow:
    """Train a few steps and give what they took.

    Raises:
        MissingPackageError: torch, transformers or peft is not installed.
    """
    torch = _import("torch")
    on_gpu = device != "cpu"
    model = build(shape, mode, recompute=recompute, device=device)
    trainable = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(trainable, lr=1e-5, fused=True)
    tokens = torch.randint(0, shape.vocab, (micro_batch, sequence_tokens), device=device)

    def step() -> None:
        with torch.autocast("cuda" if on_gpu else "cpu", torch.bfloat16, enabled=mode == "amp"):
            loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if on_gpu:
            torch.cuda.synchronize()

    for _ in range(WARM_STEPS):
        step()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(TIMED_STEPS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    middle = statistics.median(times)
    return TrainingRow(
        model=shape,
        mode=mode,
        recompute=recompute,
        micro_batch=micro_batch,
        sequence_tokens=sequence_tokens,
        lora_rank=LORA_RANK if mode == "lora" else None,
        parameters=sum(weight.numel() for weight in model.parameters()),
        trainable=sum(weight.numel() for weight in trainable),
        peak_allocated_bytes=float(torch.cuda.max_memory_allocated()) if on_gpu else 1.0,
        reserved_bytes=float(torch.cuda.max_memory_reserved()) if on_gpu else 1.0,
        median_s=middle,
        spread=(max(times) - min(times)) / middle,
        times_s=tuple(times),
        timer="wall",
        flags=() if on_gpu else ("no device: memory was not measured",),
    )


def describe_device(device: str) -> Device:
    """Say which device this is, without anything that names the host."""
    torch = _import("torch")
    if device == "cpu":
        return Device(name="CPU", kind="cpu", memory_bytes=1)
    properties = torch.cuda.get_device_properties(0)
    return Device(
        name=properties.name,
        kind="rocm" if torch.version.hip else "cuda",
        spec_id="h200-sxm-141gb" if properties.name == "NVIDIA H200" else None,
        memory_bytes=int(properties.total_memory),
        sm_count=int(properties.multi_processor_count),
    )


def run(*, device: str, limit_s: float, small: bool = False) -> TrainingRecord:
    """Measure every run until the time is up, the most wanted first."""
    torch, transformers = _import("torch"), _import("transformers")
    runs = ((SMALL, 2, 32),) if small else RUNS
    started, rows, finished = time.monotonic(), [], True
    for shape, micro_batch, sequence_tokens in runs:
        modes: tuple[Mode, ...] = ("amp", "bf16", "lora")
        for mode in modes:
            for recompute in (False, True):
                if time.monotonic() - started > limit_s:
                    finished = False
                    continue
                row = measure_row(
                    shape, mode, recompute=recompute, micro_batch=micro_batch,
                    sequence_tokens=sequence_tokens, device=device,
                )  # fmt: skip
                rows.append(row)
                again = " with recomputation" if recompute else ""
                print(f"{shape.name} {mode}{again}: {row.median_s:.4f} s", file=sys.stderr)
                gc.collect()
                if device != "cpu":
                    torch.cuda.empty_cache()
    return TrainingRecord(
        device=describe_device(device),
        environment=Environment(
            torch=torch.__version__,
            cuda=torch.version.cuda,
            transformers=transformers.__version__,
            python=".".join(str(part) for part in sys.version_info[:3]),
        ),
        date=datetime.now(UTC).replace(microsecond=0),
        command="python -m roofline.measure.training",
        finished=finished,
        training_rows=tuple(rows),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; 0 done, 1 error."""
    parser = argparse.ArgumentParser(prog="roofline.measure.training", description=__doc__)
    parser.add_argument("--output", required=True, help="folder that the record is written to")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--limit-s", type=float, default=100.0, help="start no row after this")
    parser.add_argument("--small", action="store_true", help="one tiny model: shows that it works")
    options = parser.parse_args(arguments)
    try:
        if options.device == "cuda" and not _import("torch").cuda.is_available():
            raise InputError("no CUDA device here; --device cpu --small shows that the run works")
        record = run(device=options.device, limit_s=options.limit_s, small=options.small)
        stamp = record.date.strftime("%Y-%m-%dT%H%M%SZ")
        path = save_training_record(record, Path(options.output) / f"{stamp}-training.json")
    except RooflineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
