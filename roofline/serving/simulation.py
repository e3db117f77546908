"""Simulation of one replica with continuous batching and chunked prefill, event by event.

Every step carries all sequences that decode, one token each, and fills the rest of its token
budget with prompt chunks in order of arrival. Steps without a chunk are skipped over in closed
form up to the next arrival or completion, so the cost grows with requests and chunks, not with
tokens.

Shapes   one array element a request, in order of arrival.
Units    second, token.
Limits   One queue, first come first served; a first token leaves at the end of the step that
         finishes its prompt. Cached prefix tokens save prefill, not cache space. When the cache is
         full the youngest running request is put out and later recomputed (``preempt=True``), or a
         request waits until its whole length fits (``preempt=False``). A decode pool recomputes
         for free what it put out.
Sources  [1] Agrawal et al. 2024, Sarathi-Serve, arXiv:2403.02310 (chunked prefill).
         [2] Kwon et al. 2023, PagedAttention, arXiv:2309.06180, section 4.5 (recomputation).
"""

import heapq
import math
from dataclasses import replace

import numpy as np

from roofline.errors import InputError
from roofline.serving.simulation_result import Simulation
from roofline.serving.step_table import StepTable
from roofline.serving.traffic import Requests

MAX_STEPS = 10_000_000
"""Steps with a chunk after which a simulation is given up, rather than run for hours."""


def simulate(
    requests: Requests,
    table: StepTable,
    *,
    chunk_tokens: int = 2048,
    max_batch: int | None = None,
    kv_pool_tokens: float = math.inf,
    preempt: bool = True,
    tokens_per_step: float = 1.0,
    prefill: bool = True,
    request_s: float = 0.0,
    in_flight: int | None = None,
) -> Simulation:
    """Run requests through one replica.

    Args:
        requests: from ``Traffic.sample``, in order of arrival.
        table: times of the steps.
        chunk_tokens: token budget of a step, decoding sequences included.
        max_batch: most sequences at once; the table's size when left out.
        kv_pool_tokens: tokens the KV cache holds.
        preempt: what a full cache means, see Limits.
        tokens_per_step: output tokens a decode step gives each sequence; above 1 with speculation.
        request_s: time that handling a request takes beside the device, added to its first token.
        in_flight: a closed loop: so many requests are sent at once, each further one when one is
            answered, whatever the arrival times were; None: requests arrive when they say.
        prefill: False for a decode pool: prompts come with their cache, computed elsewhere.

    Raises:
        InputError: a request that never fits, no budget for a prompt, or arguments out of range.

    >>> from roofline.serving.step_table import constant_table
    >>> from roofline.serving.traffic import Traffic
    >>> requests = Traffic(requests_per_s=1, prompt_tokens=8, output_tokens=1).sample(1000)
    >>> table = constant_table(0.5, max_batch=1, chunk_tokens=8)
    >>> run = simulate(requests, table, chunk_tokens=8)
    >>> float(run.busy_s), run.preemptions
    (500.0, 0)
    """
    slots = table.max_batch if max_batch is None else max_batch
    _check(requests, table, chunk_tokens, slots, kv_pool_tokens, tokens_per_step)
    if in_flight is not None and (isinstance(in_flight, bool) or in_flight < 1):
        raise InputError(f"in_flight needs to be at least 1, got {in_flight!r}")
    if not (request_s >= 0 and math.isfinite(request_s)):
        raise InputError(f"request_s needs to be at least 0, got {request_s}")
    run = _run(
        requests, table, chunk_tokens, slots, kv_pool_tokens,
        preempt=preempt, gain=tokens_per_step, prefill=prefill, in_flight=in_flight,
        think_s=request_s,
    )  # fmt: skip
    return replace(
        run, first_token_s=run.first_token_s + request_s, finish_s=run.finish_s + request_s
    )


def _check(
    requests: Requests,
    table: StepTable,
    chunk_tokens: int,
    slots: int,
    kv_pool_tokens: float,
    tokens_per_step: float,
) -> None:
    if not 1 <= slots <= table.max_batch:
        raise InputError(f"max_batch needs to be 1 to {table.max_batch}, got {slots}")
    if not 1 <= chunk_tokens < table.mixed_s.size:
        raise InputError(
            f"chunk_tokens needs to be 1 to {table.mixed_s.size - 1}, got {chunk_tokens}"
        )
    if not (tokens_per_step >= 1 and math.isfinite(tokens_per_step)):
        raise InputError(f"tokens_per_step needs to be at least 1, got {tokens_per_step}")
    if math.isnan(kv_pool_tokens) or len(requests) == 0:
        raise InputError("need at least one request and a KV pool that is a number")
    longest = int((requests.prompt_tokens + requests.output_tokens).max())
    if longest > kv_pool_tokens:
        raise InputError(
            f"a request of {longest:,} tokens never fits a KV cache of {kv_pool_tokens:,.0f} tokens"
        )


def _run(
    requests: Requests,
    table: StepTable,
    chunk: int,
    slots: int,
    pool: float,
    *,
    preempt: bool,
    gain: float,
    prefill: bool,
    in_flight: int | None = None,
    think_s: float = 0.0,
) -> Simulation:
    """Go from event to event; plain lists and local names, because this loop is the cost."""
    arrival: list[float] = requests.arrival_s.tolist()
    prompt: list[int] = requests.prompt_tokens.tolist()
    output: list[int] = requests.output_tokens.tolist()
    cached: list[int] = requests.cached_tokens.tolist()
    count = len(arrival)
    sent = count
    if in_flight is not None:
        sent = min(in_flight, count)
        arrival = [0.0] * sent + [math.inf] * (count - sent)
    decode_s: list[float] = table.decode_s.tolist()
    context_s: list[float] = table.context_s.tolist()
    mixed_s: list[float] = table.mixed_s.tolist()
    pair_s = table.pair_s
    limited = math.isfinite(pool)
    whole = not preempt  # reserve the whole length at admission

    first = [math.nan] * count
    finish = [0.0] * count
    done_at = [-1] * count  # step after which a running request is done
    begun_at = [0] * count  # step after which it began to decode
    held = [0.0] * count  # tokens it held when it began to decode
    emitted = [0] * count  # output tokens sent before it last began
    running: list[int] = []  # youngest last; finished ones are dropped lazily
    ends: list[tuple[int, int]] = []
    put_out: list[int] = []  # preempted, to be recomputed first

    now, step, n, context, busy = 0.0, 0, 0, 0.0, 0.0
    reserved = 0.0  # tokens of prompts being prefilled, or of whole lengths
    head, finished, preemptions, peak, mixed_steps = 0, 0, 0, 0, 0
    current, left, position = -1, 0, 0

    while finished < count:
        if n == 0:
            context = 0.0  # sums of fractions would leave a rest
            if current < 0 and not put_out and arrival[head] > now:
                now = arrival[head]
        # Prompts take what the decoding sequences leave of the budget.
        budget, tokens, pairs = chunk - n, 0, 0.0
        fresh: list[int] = []
        while budget > 0 or not prefill:
            if current < 0:
                if n + len(fresh) >= slots:
                    break
                if put_out:
                    request = put_out[-1]
                elif head < count and arrival[head] <= now:
                    request = head
                else:
                    break
                need = prompt[request] + (output[request] if whole else emitted[request] + 1)
                if limited and reserved + (0.0 if whole else context) + need > pool:
                    break
                if put_out:
                    put_out.pop()
                else:
                    head += 1
                reserved += need
                current = request
                position = cached[request] if prefill else prompt[request]
                left = prompt[request] + emitted[request] - position
                if not prefill:
                    fresh.append(request)
                    current = -1
                    continue
            take = left if left < budget else budget
            pairs += take * position + take * (take + 1) * 0.5
            position += take
            left -= take
            budget -= take
            tokens += take
            if left == 0:
                fresh.append(current)
                current = -1

        if tokens:
            duration = mixed_s[n + tokens] + context_s[n] * context + pair_s * pairs
            steps = 1
            mixed_steps += 1
            if mixed_steps > MAX_STEPS:
                raise InputError(f"over {MAX_STEPS:,} steps in a simulation; send fewer tokens")
        elif fresh:  # a decode pool: the prompt's cache is there, decoding begins at once
            duration, steps = 0.0, 0
        elif n:
            # Nothing changes until a completion, an arrival that may enter, or a full cache.
            steps = ends[0][0] - step
            base = decode_s[n] + context_s[n] * context
            growth = context_s[n] * n * gain
            if head < sent and n < slots and not put_out and arrival[head] > now:
                steps = min(steps, _steps_until(arrival[head] - now, base, growth))
            if limited and not whole:
                room = pool - context - reserved
                steps = min(steps, max(int(room / (n * gain)), 1))
            duration = steps * base + growth * (steps * (steps - 1) * 0.5)
        else:
            raise InputError(
                f"the step budget of {chunk} tokens leaves no room for a prompt beside {n} "
                "decoding sequences"
            )
        now += duration
        busy += duration
        step += steps
        context += n * gain * steps

        while ends and ends[0][0] <= step:
            end, request = heapq.heappop(ends)
            if done_at[request] != end:
                continue  # it was put out meanwhile
            done_at[request] = -1
            n -= 1
            context -= held[request] + gain * (end - begun_at[request])
            if whole:
                reserved -= prompt[request] + output[request]
            finish[request] = now
            finished += 1
            if sent < count:
                arrival[sent] = now + think_s
                sent += 1

        for request in fresh:
            if not whole:
                reserved -= prompt[request] + emitted[request] + 1
            emitted[request] += 1  # the token that the prompt's last position gives
            if math.isnan(first[request]):
                first[request] = now
            rest = output[request] - emitted[request]
            if rest <= 0:
                finish[request] = now
                finished += 1
                if sent < count:
                    arrival[sent] = now + think_s
                    sent += 1
                if whole:
                    reserved -= prompt[request] + output[request]
                continue
            held[request] = prompt[request] + emitted[request]
            context += held[request]
            begun_at[request] = step
            done_at[request] = step + math.ceil(rest / gain - 1e-9)
            heapq.heappush(ends, (done_at[request], request))
            if limited and not whole:
                running.append(request)
            n += 1
        if n > peak:
            peak = n

        while limited and not whole and n > 1 and context + reserved + n * gain > pool:
            request = running.pop()
            if done_at[request] < 0:
                continue
            steps_run = step - begun_at[request]
            context -= held[request] + gain * steps_run
            emitted[request] += min(int(gain * steps_run), output[request] - emitted[request] - 1)
            done_at[request] = -1
            n -= 1
            put_out.append(request)
            preemptions += 1

    return Simulation(
        np.array(arrival),
        np.array(first),
        np.array(finish),
        requests.prompt_tokens,
        requests.output_tokens,
        preemptions,
        busy,
        step,
        peak,
    )


def _steps_until(wait_s: float, base_s: float, growth_s: float) -> int:
    """Count the steps, each ``growth_s`` longer than the last, that end at or after ``wait_s``."""
    if base_s <= 0:
        return 1 << 60
    steps = wait_s / base_s
    if growth_s > 0:
        half = base_s - growth_s / 2
        steps = (math.sqrt(half * half + 2 * growth_s * wait_s) - half) / growth_s
    return max(math.ceil(steps - 1e-9), 1)
