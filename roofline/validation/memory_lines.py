"""Lines of the memory tables against the budget, one reader for each kind of log.

Units    GiB, as the logs have it; several print "GB" and divide by 2³⁰.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from roofline.errors import MissingDataError
from roofline.hardware.accelerator import Accelerator, Memory, load_accelerator
from roofline.models.architecture import Architecture
from roofline.models.config import load_model
from roofline.serving.activation import forward_bytes
from roofline.serving.budget import budget
from roofline.serving.extras import Extras
from roofline.serving.pages import logged_pool_bytes
from roofline.serving.placement import Placement
from roofline.timing.parallel import Parallel
from roofline.units import GIB
from roofline.validation.memory_names import (
    CARDS,
    CONFIGS,
    OTHER_CARDS,
    POOLS_IN_NOTES,
    cache_format_of,
    format_of,
    line_engine,
    model_of,
)
from roofline.validation.published import published_folder
from roofline.work.gguf_mix import mix_bytes, mix_names, table_bytes
from roofline.work.kv_cache import bytes_per_token, cache_bytes, state_bytes
from roofline.work.weights import stored_bytes

Line = dict[str, str]


@dataclass(frozen=True)
class MemoryRow:
    """One logged figure and what the budget says.

    Args:
        id: the line's id in its table.
        group: one of the module's groups.
        quantity: such as ``weights`` or ``KV cache``.
        model, setting: what the line is about, in words.
        predicted, measured: in GiB.
        role: ``judged``, ``fit`` or ``not judged``.
        reason: why the error is larger than 5 %, or why the row is not judged.
    """

    id: str
    group: str
    quantity: str
    model: str
    setting: str
    predicted: float
    measured: float
    role: str = "judged"
    reason: str = ""

    @property
    def error(self) -> float:
        """Relative error of the prediction, signed."""
        return (self.predicted - self.measured) / abs(self.measured)


def line_rows(line: Line) -> Iterator[MemoryRow]:
    """Compare what one line states with the budget.

    Raises:
        RooflineError: the line names something that is not known here.
    """
    group = line.get("source_group", "startup")
    reader: Callable[[Line], Iterator[MemoryRow]] = {
        "llamacpp_gpu_logs_llama2": _llama_cpp_rows,
        "qwen_hf_memory": _transformers_rows,
        "gguf_sizes": _file_rows,
        "llamacpp_github": _cache_rows,
    }.get(group, _engine_rows)
    return reader(line)


def _engine_rows(line: Line) -> Iterator[MemoryRow]:
    """Weights and pool of an engine that takes a fraction of the memory."""
    arch, own = _architecture(line)
    placement = Placement(
        arch,
        _card(line),
        Parallel(tp=int(line["tp"] or 1)),
        None if own else format_of(line["weight_dtype"]),
        cache_format_of(line.get("kv_dtype", "")),
        line_engine(line),
        Extras(towers=True),
    )
    memory = budget(placement, 1, 1)
    loaded_too = ("rotary", "padding", "encoders")
    loaded = memory.weights_bytes + sum(
        part.bytes for part in memory.parts if part.name.startswith(loaded_too)
    )
    stated = ("gpu_memory_utilization", "gpu", "tp")
    complete = all(line[column] for column in stated)
    group = "engine pools" if complete else "loaded weights"
    setting = f"{placement.parallel}, {memory.rule.split(':')[0]}, {placement.fraction:g}"
    about = (line["model"], f"{line['gpu'] or 'card not stated'}, {setting}")
    if line["weights_gib_per_gpu"] and line["tp"]:
        yield MemoryRow(line["id"], group, "weights", *about, loaded / GIB,
                        _number(line, "weights_gib_per_gpu"))  # fmt: skip
    logged = _logged_pool(line, placement)
    if complete and logged is not None:
        pool = memory.kv_pool_bytes - memory.pool_shortfall_bytes
        yield MemoryRow(line["id"], group, "KV cache", *about, pool / GIB, logged)
    if line["kv_tokens"] and line["kv_available_gib_per_gpu"]:
        held = _bytes_of_tokens(placement, _number(line, "kv_tokens"))
        yield MemoryRow(line["id"], "logged tokens", "their cache", *about, held / GIB,
                        _number(line, "kv_available_gib_per_gpu"))  # fmt: skip


def _logged_pool(line: Line, placement: Placement) -> float | None:
    """The pool per card in GiB: as logged, or the logged tokens' bytes."""
    if line["kv_available_gib_per_gpu"]:
        return _number(line, "kv_available_gib_per_gpu")
    if line["id"] in POOLS_IN_NOTES:
        return POOLS_IN_NOTES[line["id"]]
    if not line["kv_tokens"]:
        return None
    return _bytes_of_tokens(placement, _number(line, "kv_tokens")) / GIB


def _bytes_of_tokens(placement: Placement, tokens: float) -> float:
    """The cache of tokens as an engine counts them: by pages where the layers are mixed."""
    if placement.groups is not None:
        return logged_pool_bytes(placement.groups, int(tokens))
    return tokens * bytes_per_token(placement.rank, placement.kv_format)


def _number(line: Line, column: str) -> float:
    try:
        return float(line[column])
    except ValueError:
        raise MissingDataError(f"the line states no {column}") from None


def _architecture(line: Line) -> tuple[Architecture, bool]:
    """The line's model, and whether its formats are the checkpoint's own."""
    if line["model"] not in CONFIGS:
        return load_model(model_of(line)), False
    arch = load_model(published_folder() / "configs" / CONFIGS[line["model"]])
    return arch, line["weight_dtype"] in ("nvfp4", "fp8")


def _card(line: Line) -> Accelerator:
    total = _number(line, "total_gpu_gib") * GIB if line["total_gpu_gib"] else None
    label = line["gpu"]
    if label in OTHER_CARDS:
        other = OTHER_CARDS[label]
        return _stand_in(other.name, other.vendor, other.usable_bytes, other.source)
    if label not in CARDS:
        return _stand_in(label or "a card", "NVIDIA", total or 1e13, "the line's own log")
    card = load_accelerator(CARDS[label])
    if total is None:
        return card
    shown = card.memory.model_copy(update={"usable_bytes": total})
    return card.model_copy(update={"memory": shown})


def _stand_in(name: str, vendor: str, usable_bytes: float, source: str) -> Accelerator:
    """A card without a spec: only what its driver shows is known."""
    return Accelerator(
        id="-".join(name.lower().split()).replace("(", "").replace(")", ""),
        name=name,
        vendor=vendor,
        kind="gpu",
        memory=Memory(usable_bytes=usable_bytes, source=(source,)),
    )


def _llama_cpp_rows(line: Line) -> Iterator[MemoryRow]:
    arch = load_model(model_of(line))
    context = int(_number(line, "context_tokens"))
    gguf = line["weight_dtype"].removeprefix("gguf-")
    size = mix_bytes(arch, gguf) if gguf in mix_names() else stored_bytes(arch)
    kv = format_of(line["kv_dtype"])
    cache = float(cache_bytes(arch, context, kv or arch.dtype))
    placement = Placement(arch, _card({**line, "gpu": "", "total_gpu_gib": ""}),
                          engine=line_engine(line))  # fmt: skip
    table = table_bytes(arch, gguf) if gguf in mix_names() else _table_bytes(arch)
    buffer = budget(placement, 1, context).activation_bytes
    about = (line["model"], f"{line['weight_dtype']}, context {context}")
    if line["process_total_gib"]:
        yield MemoryRow(line["id"], "llama.cpp", "total", *about,
                        (size - table + cache + buffer) / GIB,
                        _number(line, "process_total_gib"))  # fmt: skip
    if line["kv_mib"]:
        yield MemoryRow(line["id"], "llama.cpp", "KV cache", *about, cache / GIB,
                        _number(line, "kv_mib") / 1024)  # fmt: skip
    if line["file_size_gib"]:
        yield MemoryRow(line["id"], "files", "file", *about, size / GIB,
                        _number(line, "file_size_gib"))  # fmt: skip


def _table_bytes(arch: Architecture) -> float:
    """The token table in 16 bit, which llama.cpp keeps in host memory."""
    return arch.embedding_parameters * arch.dtype.bytes_per_value


def _cache_rows(line: Line) -> Iterator[MemoryRow]:
    arch = load_model(model_of(line))
    context = int(_number(line, "context_tokens"))
    kv = format_of(line["kv_dtype"])
    cache = float(cache_bytes(arch, context, kv or arch.dtype)) + state_bytes(arch)
    yield MemoryRow(line["id"], "llama.cpp", "KV cache", line["model"], f"context {context}",
                    cache / GIB, _number(line, "kv_mib") / 1024)  # fmt: skip


_GENERATED = 2048
_WITH_ACTIVATION = "speed_benchmark.rst"
"""The page of 2024-11; on that of 2025-05 weights and cache alone fill the figure."""


def _transformers_rows(line: Line) -> Iterator[MemoryRow]:
    """Peak of torch's allocator: weights, cache of all tokens, activations of the prompt.

    Each device of several has its own peak of activations; the page of 2025 states none.
    """
    arch = load_model(model_of(line))
    context = int(_number(line, "context_tokens"))
    prompt = max(context - _GENERATED, 1)
    kv = format_of(line["kv_dtype"])
    step = float(forward_bytes(arch, prompt, residuals=4)) * _number(line, "n_gpu")
    peak = (
        stored_bytes(arch, format_of(line["weight_dtype"]))
        + float(cache_bytes(arch, context, kv or arch.dtype))
        + (step if _WITH_ACTIVATION in line["source"] else 0.0)
    )
    yield MemoryRow(line["id"], "transformers", "peak", line["model"],
                    f"{line['weight_dtype']}, context {context}", peak / GIB,
                    _number(line, "process_total_gib"))  # fmt: skip


def _file_rows(line: Line) -> Iterator[MemoryRow]:
    gguf = line["weight_dtype"].removeprefix("gguf-")
    arch, _ = _architecture(line)
    if gguf in mix_names():
        size = mix_bytes(arch, gguf)
    elif gguf in ("f16", "bf16"):
        size = stored_bytes(arch, format_of("bf16"))
    else:
        raise MissingDataError(f"no table of tensor types for the mix {gguf!r}")
    yield MemoryRow(line["id"], "files", "file", line["model"], line["weight_dtype"], size / GIB,
                    _number(line, "file_size_gib"))  # fmt: skip
