"""Published measurements as frozen rows in base units, read by the conventions of their tables.

One row is one measured quantity of one run. ``quantity`` says which:

    ttft          seconds from sending a request (or a whole batch) to its first token
    tpot          seconds between two output tokens of one sequence, the first one left out
    e2e           seconds for a whole batch or request, prompt and output
    output_rate   output tokens per second of all sequences together, waiting included

Units    seconds, tokens, tokens per second; ``value`` is in the unit of the quantity.
Limits   ``batch`` means what ``load`` says: the running batch (``single_stream``,
         ``fixed_batch``), a cap on the requests in flight (``concurrency``), or all requests of the
         run (``all_at_once``), which is no batch. ``running_batch`` is what was decoded together:
             stated      single_stream and fixed_batch
             little      cap × decode / (decode + TTFT), decode = TPOT × (output − 1)   [1]
             rate        output rate × TPOT: tokens per second times seconds per token  [1];
                         the smaller of the two, for a cap need not be reached
             least       1 where none of these can be had: the smallest it can have been
Sources  [1] Little 1961, Operations Research 9(3), 383-387: mean number in a system = rate × time.
"""

import re
from dataclasses import dataclass

from roofline.dtypes import Dtype

LOADS = {
    "single_stream": "single_stream",
    "fixed_batch": "fixed_batch",
    "concurrency": "concurrency",
    "all requests at once (rate inf)": "all_at_once",
    "max_throughput": "unstated",
}


@dataclass(frozen=True)
class Row:
    """One published measurement.

    Args:
        id, dataset, group, source, date: where it is from.
        model, accelerator: our names; None when there is none, then ``*_note`` says why.
        engine: our engine; None when it has no terms here.
        n_gpu: accelerators that the run used; None: not stated.
        tp, pp, dp, ep: how it was spread; None: not stated.
        plain: the plan is one that ``Parallel`` says exactly (no attention replicas inside a
            tensor-parallel group, no separate prefill and decode workers, no split by rows).
        weights, head: storage of the blocks and of lm_head; None: the checkpoint's own, 16 bit.
        kv: storage of the cache as stated; None: not stated.
        prompt_tokens, output_tokens: mean lengths; None: not stated.
        shortest: the shortest drawn length as a share of the mean.
        cached_tokens: tokens in the cache before the prompt.
        load, batch: see the module.
        quantity, value: see the module.
        statistic: ``mean``, ``median``, or ``single``.
        run: rows of one run share it.
        running_batch, batch_basis: sequences decoded together on all replicas, and how it is known.
    """

    id: str
    dataset: str
    group: str
    source: str
    date: str
    model_label: str
    model: str | None
    model_note: str
    accelerator_label: str
    accelerator: str | None
    accelerator_note: str
    engine_label: str
    engine: str | None
    engine_version: str
    n_gpu: int | None
    tp: int | None
    pp: int
    dp: int
    ep: int
    plain: bool
    plan: str
    weights_label: str
    weights: Dtype | None
    head: Dtype | None
    weights_known: bool
    kv: Dtype | None
    prompt_tokens: float | None
    output_tokens: float | None
    cached_tokens: float
    load: str
    batch: float | None
    metric: str
    quantity: str
    value: float
    statistic: str
    speculative: str
    disaggregated: bool
    notes: str
    flag: str
    run: int
    shortest: float = 1.0
    running_batch: float | None = None
    batch_basis: str = ""
    run_ttft_s: float | None = None
    run_tpot_s: float | None = None
    run_output_rate: float | None = None

    @property
    def decode_context_tokens(self) -> float:
        """Tokens of context at the middle of the output."""
        context = self.cached_tokens + (self.prompt_tokens or 0) + (self.output_tokens or 0) / 2
        shifted = re.search(r"n_ctx (\d+) with context shift", self.notes)
        # a full context drops its older half, so that it holds half of n_ctx at least
        return min(context, float(shifted[1]) / 2) if shifted else context
