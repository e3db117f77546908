"""Published training tables beside predictions: Megatron-LM, Llama, ZeRO, QLoRA.

Limits   What a table leaves out is assumed and said in the row's ``assumption``. Where it was
         chosen knowing the row (Llama), the row shows consistency and says nothing of coverage.
Sources  measurements/published/training_*.csv, row by row.
"""

import csv
import functools
from collections.abc import Iterator

from roofline.api.train import train
from roofline.api.training_result import Training
from roofline.errors import SpecError
from roofline.models.architecture import Architecture, dense_decoder
from roofline.training.flop import flop_by_operator, rule_of_thumb_flop
from roofline.training.memory import training_memory
from roofline.training.plan import TrainingPlan
from roofline.training.shapes import megatron_gpt
from roofline.training.stage_activations import activation_bytes
from roofline.training.states import model_states
from roofline.units import GIB, SECONDS_PER_HOUR
from roofline.validation.published import published_folder
from roofline.validation.training_rows import TrainingRowJudged

MEGATRON_ACCELERATOR = "a100-sxm4-80gb"
TFLOP = 1e12


def published_training() -> tuple[TrainingRowJudged, ...]:
    """Judge every published training row.

    Raises:
        MissingDataError: this installation has no published tables.
        SpecError: a table that does not load.
    """
    return (
        *_activations(), *_iterations(), *_megatron(), *_llama(), *_zero(), *_qlora()
    )  # fmt: skip


@functools.lru_cache(maxsize=16)
def _table(name: str) -> tuple[dict[str, str], ...]:
    path = published_folder() / f"training_{name}.csv"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = tuple(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"{path.name} does not load: {error}") from error
    for number, row in enumerate(rows, start=2):
        if None in row or not (row.get("source") or "").strip():
            raise SpecError(f"{path.name}:{number} lacks a cell or its source")
    return rows


def _gpt(row: dict[str, str]) -> Architecture:
    return megatron_gpt(
        row["model"],
        n_layers=int(row["n_layers"]),
        hidden=int(row["hidden"]),
        n_heads=int(row["n_heads"]),
    )


def _megatron_plan(row: dict[str, str], **settings: object) -> TrainingPlan:
    plan = TrainingPlan(
        framework="megatron", precision="mixed", flash_attention=False, dropout=True,
        tp=int(row["tp"]), pp=int(row["pp"]), overlap=False,
    )  # fmt: skip
    return plan.with_(**settings)


def _activations() -> Iterator[TrainingRowJudged]:
    for row in _table("korthikanti_memory"):
        plan = _megatron_plan(
            row, interleave=int(row["interleave"]), micro_batch=int(row["micro_batch"]),
            micro_batches=512, recompute=row["recompute"],
            sequence_parallel=row["sequence_parallel"] == "true",
        )  # fmt: skip
        yield TrainingRowJudged(
            "activations", f"{row['model']} {row['recompute']}",
            float(row["activation_gib"]) * GIB, activation_bytes(_gpt(row), plan), "B",
            source=row["source"],
        )  # fmt: skip


def _iterations() -> Iterator[TrainingRowJudged]:
    for row in _table("korthikanti_time"):
        dp = int(row["gpus"]) // (int(row["tp"]) * int(row["pp"]))
        micro = int(row["micro_batch"])
        plan = _megatron_plan(
            row, interleave=int(row["interleave"]), micro_batch=micro, dp=dp,
            micro_batches=int(row["global_batch"]) // micro // dp, recompute=row["recompute"],
            sequence_parallel=row["sequence_parallel"] == "true",
        )  # fmt: skip
        result = train(_gpt(row), MEGATRON_ACCELERATOR, plan=plan)
        seconds, step = float(row["iteration_s"]), result.step
        yield TrainingRowJudged(
            "iteration time", f"{row['model']} {row['recompute']}", seconds,
            float(step.step_s.mid), "s", source=row["source"],
        )  # fmt: skip
        if row["mfu"]:
            peak = step.peak_flop_per_s * step.accelerators
            yield TrainingRowJudged(
                "MFU of a published time", row["model"], float(row["mfu"]),
                step.every_pair_flop / peak / seconds, "share",
                assumption="masked pairs counted, as the paper does", source=row["source"],
            )  # fmt: skip


def _megatron() -> Iterator[TrainingRowJudged]:
    for row in _table("megatron_2021"):
        gpus, batch = int(row["gpus"]), int(row["global_batch"])
        dp = gpus // (int(row["tp"]) * int(row["pp"]))
        arch, reached = _gpt(row), float(row["tflop_per_s_per_gpu"]) * TFLOP
        results = []
        for micro in (1, 2, 4, 8):
            if batch % (dp * micro):
                continue
            plan = _megatron_plan(
                row, dp=dp, micro_batch=micro, micro_batches=batch // dp // micro, recompute="full"
            )
            result = train(arch, MEGATRON_ACCELERATOR, plan=plan)
            if result.fits:
                results.append(result)
        best = min(results, key=lambda result: float(result.step_s.mid))
        # the paper counts the recomputed forward pass of the layers, masked pairs included
        again = best.step.hardware_flop - best.step.model_flop
        layers = best.step.every_pair_flop + again * _every_pair_ratio(best)
        predicted = layers / float(best.step_s.mid) / gpus
        yield TrainingRowJudged(
            "TFLOP/s of Megatron-LM", row["model"], reached, predicted, "FLOP/s",
            assumption=f"micro-batch {best.plan.micro_batch}: fastest that fits, no interleaving",
            source=row["source"],
        )  # fmt: skip


def _every_pair_ratio(result: Training) -> float:
    """Layers' FLOPs with masked pairs over those without."""

    def layers(causal: bool) -> float:
        rows = flop_by_operator(result.arch, result.plan, causal=causal)
        return sum(row.again for row in rows)

    return layers(False) / layers(True)


def _llama_model(name: str) -> Architecture:
    layers, hidden, heads, kv_heads, width, vocab = {
        "llama-3.1-405b": (126, 16384, 128, 8, 53248, 128256),
        "llama-2-7b": (32, 4096, 32, 32, 11008, 32000),
        "llama-2-13b": (40, 5120, 40, 40, 13824, 32000),
        "llama-2-70b": (80, 8192, 64, 8, 28672, 32000),
        "llama-65b": (80, 8192, 64, 64, 22016, 32000),
    }[name]
    return dense_decoder(
        name, n_layers=layers, hidden=hidden, n_heads=heads, n_kv_heads=kv_heads, head_dim=128,
        intermediate=width, vocab=vocab, source="the report's table of sizes",
    )  # fmt: skip


def _llama() -> Iterator[TrainingRowJudged]:
    for row in _table("llama"):
        arch = _llama_model(row["model"])
        if row["mfu"]:
            plan = TrainingPlan(
                framework="megatron", precision="mixed", tp=int(row["tp"]), cp=int(row["cp"]),
                pp=int(row["pp"]), dp=int(row["dp"]), sequence_tokens=int(row["sequence_tokens"]),
                micro_batches=int(row["sequences_per_replica"]), interleave=7,
                sequence_parallel=True, zero_stage=2,
            )  # fmt: skip
            result = train(arch, row["accelerator"], plan=plan)
            reached = float(row["mfu"])
            mfu = result.mfu
            yield TrainingRowJudged(
                "MFU of Llama 3", f"{row['gpus']} GPUs, cp {row['cp']}", reached, float(mfu.mid),
                "share",
                assumption="interleaving is not published: 7 chunks, chosen knowing the rows "
                "(1 chunk: MFU 0.33, 0.25, 0.23)", source=row["source"],
            )  # fmt: skip
            continue
        hours, tokens = float(row["gpu_hours"]), float(row["tokens"])
        plan = TrainingPlan(
            framework="megatron", precision="mixed", sequence_tokens=4096, tp=8, dp=32,
            micro_batch=2, micro_batches=16, sequence_parallel=True, zero_stage=1,
            recompute="full",
        )  # fmt: skip
        result = train(arch, row["accelerator"], plan=plan, tokens=tokens)
        if result.run is None:
            continue
        spent = result.run.seconds.scaled(plan.accelerators / SECONDS_PER_HOUR)
        yield TrainingRowJudged(
            "GPU-hours of Llama 2", row["model"], hours, float(spent.mid), "h",
            assumption="no plan is published: tp 8, full recomputation, 4 M tokens, chosen "
            "knowing the rows",
            source=row["source"],
        )  # fmt: skip
        peak = result.step.peak_flop_per_s * hours * SECONDS_PER_HOUR
        yield TrainingRowJudged(
            "6·N beside exact FLOPs", row["model"],
            rule_of_thumb_flop(arch.parameters, tokens) / peak, result.run.model_flop / peak,
            "share", assumption="MFU of the reported hours, by both counts", source=row["source"],
        )  # fmt: skip


def _zero() -> Iterator[TrainingRowJudged]:
    for row in _table("zero_memory"):
        count = int(row["parameters"])
        arch = Architecture(
            name=row["model"], layers=_llama_model("llama-2-7b").layers, source="a count alone"
        )
        rest = count - arch.parameters
        arch = Architecture(
            name=row["model"], layers=arch.layers, source="a count alone", hidden_size=4096,
            embedding_parameters=rest,
        )  # fmt: skip
        plan = TrainingPlan(
            precision="mixed", gradient_bytes=2, dp=int(row["dp"]), zero_stage=int(row["stage"])
        )
        yield TrainingRowJudged(
            "ZeRO's example", f"stage {row['stage']}", float(row["gb"]) * 1e9,
            model_states(arch, plan).total, "B", source=row["source"],
        )  # fmt: skip


def _qlora() -> Iterator[TrainingRowJudged]:
    for row in _table("qlora"):
        arch, limit = _llama_model(row["model"]), float(row["limit_bytes"])
        if row["method"] == "qlora":
            plan = TrainingPlan(
                method="qlora", precision="bf16", recompute="full", sequence_tokens=512,
                lora_rank=64, adapter_bytes=2, optimiser="adam8bit",
            )  # fmt: skip
            needed = training_memory(arch, plan).needed_bytes
            inside = needed <= limit
        else:  # the paper counts 2 + 2 + 8 bytes a value
            plan = TrainingPlan(precision="mixed", gradient_bytes=2, sequence_tokens=512)
            states = model_states(arch, plan)
            needed = states.total - states.master
            inside = needed > limit
        yield TrainingRowJudged(
            "QLoRA's limits", f"{row['model']} {row['method']}", limit, needed, "B", inside=inside,
            assumption="a limit, not a value: inside says on which side", source=row["source"],
        )  # fmt: skip
