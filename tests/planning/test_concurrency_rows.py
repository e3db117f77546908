"""The simulated closed loop against published runs at a concurrency.

Rows of measurements/published/engines.csv (aiconfigurator's accuracy rows of InferenceX runs): vLLM
on one node, dense models. That benchmark keeps ``concurrency`` requests in flight, sends ten times
as many and draws both lengths between 0.8 and 1.0 of the nominal ones. TPOT is a mean. The engine's
terms were fitted on steps of the same table, so this is a check of the simulation and a guard, not
a judgement of the terms.
"""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from roofline.hardware.accelerator import load_accelerator
from roofline.models.config import load_model
from roofline.planning.candidate import Candidate
from roofline.planning.lane import lane_of
from roofline.serving.budget import budget
from roofline.serving.deployment import deploy
from roofline.serving.placement import Placement
from roofline.serving.simulation import simulate
from roofline.serving.traffic import Traffic
from roofline.timing.parallel import Parallel

ROWS = Path(__file__).parents[2] / "measurements" / "published" / "engines.csv"
CASES = {
    ("b200_sxm", "meta-llama/Llama-3.1-70B"): ("b200-hgx", "llama-3.1-70b"),
    ("h100_sxm", "Qwen/Qwen3-32B"): ("h100-sxm5-80gb", "qwen3-32b"),
}
FORMATS = {"fp8": "fp8", "fp4": "nvfp4", "": None}


def simulated(row, device, model):
    """Mean TPOT of the benchmark that the row describes."""
    accelerator = load_accelerator(device)
    deployment = deploy(
        load_model(model), accelerator, parallel=Parallel(tp=int(row["tp"])),
        weights=FORMATS[row["precision"]], engine="vllm",
    )  # fmt: skip
    placement = Placement(
        deployment.arch, accelerator, deployment.parallel, deployment.formats.weights,
        deployment.formats.kv, deployment.engine,
    )  # fmt: skip
    prompt, output = int(row["isl"]), int(row["osl"])
    concurrency = int(row["concurrency"] or row["batch_per_replica"])
    traffic = Traffic(requests_per_s=1, prompt_tokens=prompt, output_tokens=output)
    pool = budget(placement, 1, prompt + output).kv_pool_bytes
    lane = lane_of(Candidate(deployment, placement, pool), traffic)
    requests = traffic.sample(max(10 * concurrency, 30))
    rng = np.random.default_rng(1)
    requests = dataclasses.replace(
        requests,
        prompt_tokens=rng.integers(int(prompt * 0.8), prompt + 1, len(requests)),
        output_tokens=rng.integers(int(output * 0.8), output + 1, len(requests)),
    )
    run = simulate(
        requests, lane.serving.table, chunk_tokens=lane.serving.chunk_tokens,
        max_batch=lane.serving.max_batch, kv_pool_tokens=lane.serving.kv_pool_tokens,
        request_s=lane.serving.request_s, in_flight=concurrency,
    )  # fmt: skip
    return float(run.tpot_s.mean())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1])
def test_published_concurrency_rows(case):
    """TPOT within 10 % in the median and 25 % at the 90th percentile over concurrency 4 to 128."""
    with ROWS.open(newline="") as file:
        rows = [
            row for row in csv.DictReader(file)
            if (row["gpu"], row["model"]) == case and row["engine"] == "vllm"
            and row["mode"] == "agg" and row["precision"] in FORMATS
        ]  # fmt: skip
    assert len(rows) >= 80
    ratios = []
    for row in rows:
        tpot = simulated(row, *CASES[case])
        ratios.append(tpot / (float(row["tpot_ms"]) / 1e3))
    errors = np.abs(np.array(ratios) - 1)
    assert np.median(errors) < 0.10
    assert np.percentile(errors, 90) < 0.25
