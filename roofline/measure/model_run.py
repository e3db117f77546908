"""A model run: prefill (TTFT) and decode (TPOT) of the measured decoder by batch and context.

Each row is the host's clock around one step with the device idle before and after, as a graph
replay, eager, or compiled layer by layer and captured as a graph.

Units    Seconds, bytes.
Limits   A static batch; sampling is argmax. Rows that do not fit in memory are left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from roofline.dtypes import find_dtype
from roofline.errors import InputError, UnsupportedError
from roofline.hardware.measured_rows import DecoderRow
from roofline.measure.bench import synchronise, time_wall
from roofline.measure.decoder import Decoder, decode_layer, prefill_layer, random_weights
from roofline.measure.decoder_shape import DecoderShape, decoder_shape
from roofline.measure.device import Target, release_memory
from roofline.measure.framework import torch
from roofline.measure.ranks import Ranks
from roofline.measure.tpot import parting, tpot_three_ways
from roofline.models.architecture import Architecture

MODES = ("graph", "eager", "compiled")
GRAPH_PREFILL_TOKENS = 2048
"""Longer prompts are launched eagerly: their kernels are longer than their launches."""
_MEMORY_SHARE = 0.92
_LONGEST_STEP_S = 1.5


@dataclass(frozen=True)
class ModelPlan:
    """What to run of one model.

    Args:
        weights: storage format of the blocks.
        batches, contexts: of decode, every pair that fits.
        prompts, prompt_batches: of prefill.
        modes: of ``MODES``.
        three_ways: also time TPOT three ways, at the first context, first and last batch.
    """

    weights: str = "bf16"
    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    contexts: tuple[int, ...] = (256, 2048)
    prompts: tuple[int, ...] = (128, 512, 2048)
    prompt_batches: tuple[int, ...] = (1,)
    modes: tuple[str, ...] = ("graph",)
    three_ways: bool = True
    min_runs: int = 10

    def checked(self) -> "ModelPlan":
        """The plan itself, when it can be run.

        Raises:
            InputError: a batch, context or prompt below 1, or a mode that is not known.
        """
        for name in ("batches", "contexts", "prompts", "prompt_batches"):
            if any(isinstance(value, bool) or value < 1 for value in getattr(self, name)):
                raise InputError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if unknown := [mode for mode in self.modes if mode not in MODES]:
            raise InputError(f"no mode {unknown[0]!r}; there are {', '.join(MODES)}")
        return self


def model_rows(
    target: Target, architecture: Architecture, plan: ModelPlan, ranks: Ranks | None = None
) -> Iterator[DecoderRow]:
    """Build the model with random weights and measure it.

    Raises:
        UnsupportedError: an architecture or format that the decoder does not run, or weights that
            do not fit.
        InputError: a plan that cannot be run.
    """
    plan = plan.checked()
    shape = decoder_shape(architecture)
    device = target.torch_device
    ranks = ranks or Ranks(0, 1, device)
    rank = shape.sharded(ranks.count)
    value_bytes = 4 if plan.weights == "fp32" else 2
    needed = rank.block_bytes(1e9, find_dtype(plan.weights).bytes_per_value)
    needed += 2 * rank.vocab * rank.hidden * value_bytes
    free_bytes = ranks.least(target.free_bytes())
    if needed > _MEMORY_SHARE * free_bytes:
        raise UnsupportedError(
            f"{shape.name} in {plan.weights} takes {needed:.3g} bytes; {free_bytes:.3g} are free"
        )
    weights = random_weights(rank, device, plan.weights)
    decoder = Decoder(rank, weights, ranks.group)
    room = _MEMORY_SHARE * ranks.least(target.free_bytes())
    pairs = _fitting(rank, plan, room, value_bytes)
    pool = None
    if pairs:
        most = max(rank.kv_bytes(batch, tokens, 1) for tokens, batch in pairs)
        pool = torch.empty(int(most), device=device, dtype=decoder.dtype).normal_()
    note = f"left out of the architecture: {'; '.join(shape.left_out)}" if shape.left_out else ""
    facts = {
        "model": shape.name, "tp": ranks.count, "weights": plan.weights,
        "parameters": shape.parameters, "weights_bytes": weights.bytes, "note": note,
    }  # fmt: skip
    for mode in plan.modes:
        runner = _Runner(target, ranks, _in_mode(decoder, mode), mode, plan, facts, value_bytes)
        yield from runner.decode_rows(pairs, pool)
    pool = None
    release_memory()
    for mode in plan.modes:
        runner = _Runner(target, ranks, _in_mode(decoder, mode), mode, plan, facts, value_bytes)
        yield from runner.prefill_rows()
    del decoder, weights
    release_memory()


def _fitting(
    rank: DecoderShape, plan: ModelPlan, room: float, value_bytes: int
) -> list[tuple[int, int]]:
    widest = max(2 * rank.intermediate * max(rank.n_active, 1), rank.vocab)
    return [
        (tokens, batch)
        for tokens in plan.contexts
        for batch in plan.batches
        if rank.kv_bytes(batch, tokens, value_bytes) + 8.0 * value_bytes * batch * widest < room
    ]


def _in_mode(decoder: Decoder, mode: str) -> Decoder:
    if mode != "compiled":
        return replace(decoder, decode=decode_layer, prefill=prefill_layer)
    # one layer is compiled and serves all, so that compiling does not grow with the depth
    return replace(
        decoder,
        decode=torch.compile(decode_layer, dynamic=False),
        prefill=torch.compile(prefill_layer, dynamic=False),
    )


def capture(device: Any, step: Callable[[], Any]) -> Callable[[], None]:
    """Capture a step as one graph, after warming it up on a side stream; gives its replay."""
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode():
        with torch.cuda.stream(stream):
            for _ in range(2):
                step()
        torch.cuda.current_stream(device).wait_stream(stream)
        synchronise(device)
        # NCCL's watchdog queries events from its own thread while this one captures
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
    replay: Callable[[], None] = graph.replay
    return replay


@dataclass(frozen=True)
class _Runner:
    """One decoder in one mode."""

    target: Target
    ranks: Ranks
    decoder: Decoder
    mode: str
    plan: ModelPlan
    facts: dict[str, Any]
    value_bytes: int

    def decode_rows(self, pairs: list[tuple[int, int]], pool: Any) -> Iterator[DecoderRow]:
        device, shape = self.target.torch_device, self.decoder.shape
        for tokens, batch in pairs:
            caches = self.decoder.caches(batch, tokens, pool=pool)
            ids = torch.randint(0, shape.vocab, (batch,), device=device)

            def step(ids: Any = ids, caches: Any = caches) -> Any:
                return self.decoder.decode_step(ids, caches)

            ways = self.plan.three_ways and tokens == self.plan.contexts[0]
            ways = ways and batch in (self.plan.batches[0], self.plan.batches[-1])
            kv = shape.kv_bytes(batch, tokens, self.value_bytes)
            yield self._row("decode", batch, tokens, step, ways, kv, pool)

    def prefill_rows(self) -> Iterator[DecoderRow]:
        device, shape = self.target.torch_device, self.decoder.shape
        free_bytes = self.ranks.least(self.target.free_bytes())
        for batch in self.plan.prompt_batches:
            for tokens in self.plan.prompts:
                # activations: x, its norm, the gate-up product with SiLU, q, k and v with rotation
                wide = 4 * shape.hidden + 4 * shape.intermediate * max(shape.n_active, 1)
                wide += 4 * shape.n_heads * shape.head_dim
                if 1.5 * self.value_bytes * batch * tokens * wide > free_bytes:
                    continue
                ids = torch.randint(0, shape.vocab, (batch, tokens), device=device)

                def step(ids: Any = ids) -> Any:
                    return self.decoder.prefill_step(ids)

                yield self._row("prefill", batch, tokens, step, False, 0.0, None)

    def _row(
        self, phase: str, batch: int, tokens: int, step: Callable[[], Any], ways: bool,
        own_bytes: float, pool: Any,
    ) -> DecoderRow:  # fmt: skip
        device, mode = self.target.torch_device, self.mode
        call = step
        on_gpu = device.type == "cuda"
        if phase == "prefill" and tokens > GRAPH_PREFILL_TOKENS and mode == "graph":
            mode = "eager"
        if mode == "graph" and not on_gpu:
            raise UnsupportedError("a CPU has no graphs; its modes are eager and compiled")
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        graphed = on_gpu and (mode == "graph" or (mode == "compiled" and phase == "decode"))
        if graphed:
            call = capture(device, step)
        self.ranks.barrier()
        few = phase == "prefill" or not on_gpu
        timing = time_wall(
            device, call, warmup_s=0.03, budget_s=0.15, max_runs=30,
            min_runs=min(5, self.plan.min_runs) if few else self.plan.min_runs,
            fixed=self.ranks.count > 1,
        )  # fmt: skip
        by: dict[str, float] = {}
        if ways and self.ranks.least(-timing.median_s) > -_LONGEST_STEP_S / 30:
            by = tpot_three_ways(device, call)
        peak = None
        if on_gpu:
            pooled = 0 if pool is None else pool.numel() * pool.element_size()
            peak = max(1, int(torch.cuda.max_memory_allocated(device) - pooled + own_bytes))
        flop, size = self.decoder.shape.least_work(
            phase, batch, tokens, find_dtype(self.plan.weights).bytes_per_value, self.value_bytes
        )
        row = DecoderRow(
            phase=phase, batch=batch, context_tokens=tokens, mode=mode, peak_memory_bytes=peak,
            tpot_by_s=by, least_flop=flop, least_bytes=size, **self.facts,
            **timing.flagged(parting(by)).row(),
        )  # fmt: skip
        del call
        if graphed:
            release_memory()
        return row
