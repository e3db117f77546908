"""Time the plan's search: the whole catalogue in closed form, finalists simulated, one simulation.

Run: python benchmarks/plan_search.py
"""

import time

from roofline.api.plan import plan
from roofline.economics.prices import price_table
from roofline.hardware.accelerator import accelerator_ids, load_accelerator
from roofline.models.config import load_model
from roofline.planning.candidate import Space
from roofline.planning.pricing import Pricing
from roofline.planning.search import Question, size_all
from roofline.serving.simulation import simulate
from roofline.serving.step_table import tabulate
from roofline.serving.traffic import Slo, Traffic

TRAFFIC = Traffic(requests_per_s=50, prompt_tokens=4096, output_tokens=512)
SLO = Slo(ttft_s=1.0, tpot_s=0.04)


def closed_form(model):
    arch = load_model(model)
    devices = [load_accelerator(name) for name in accelerator_ids()]
    question = Question(TRAFFIC, SLO, Pricing(price_table()))
    start = time.perf_counter()
    sized, excluded = size_all(arch, devices, Space(), question)
    took = time.perf_counter() - start
    print(f"{model}: {len(devices)} accelerators, {len(sized)} candidates and "
          f"{len(excluded)} reasons in closed form: {took:.2f} s")  # fmt: skip


def whole_plan(model):
    start = time.perf_counter()
    found = plan(model, TRAFFIC, SLO)
    took = time.perf_counter() - start
    count = sum(option.simulated for option in found.options)
    print(f"{model}: plan over the catalogue, {count} accelerators simulated: {took:.2f} s")


def one_simulation():
    table = tabulate(
        lambda n, context, chunk, pairs: 8e-3 + 4e-5 * (n + chunk) + 8e-8 * context + 1e-10 * pairs,
        max_batch=256, chunk_tokens=2048, context_tokens=4352,
    )  # fmt: skip
    requests = Traffic(requests_per_s=1.0, prompt_tokens=4096, output_tokens=512).sample(20_000)
    start = time.perf_counter()
    run = simulate(requests, table, kv_pool_tokens=400_000)
    took = time.perf_counter() - start
    print(f"simulation of 20,000 requests, {run.steps:,} steps: {took:.2f} s")


if __name__ == "__main__":
    for name in ("llama-3.1-8b", "llama-3.3-70b", "deepseek-v3"):
        closed_form(name)
    whole_plan("llama-3.1-8b")
    one_simulation()
