"""Launch lines: flags that the engines have, as their own command-line references list them.

Sources  vLLM 0.19, docs "vllm serve" (--quantization has no int4 or int8: such weights come from a
         checkpoint); SGLang 0.5, "Server arguments" (--tp-size, --pp-size, --dp-size, --ep-size).
"""

import json
import shlex

import pytest

from roofline import Slo, Speculation, Traffic, plan
from roofline.hardware.accelerator import load_accelerator
from roofline.models.config import load_model
from roofline.planning.candidate import Space, candidates
from roofline.planning.launch import launch_line


def line(engine, *, weights=None, device="h100-sxm5-80gb", **degrees):
    space = Space(weights=(weights,), engines=(engine,), **degrees)
    found, out = candidates(load_model("llama-3.1-8b"), load_accelerator(device), space, 4096)
    assert found, out
    return launch_line(found[-1], max_context_tokens=4096, max_batch=64)


@pytest.mark.parametrize("weights", ["int4", "int8", "nvfp4"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_formats_that_no_flag_makes_are_said_in_a_comment(engine, weights):
    found = line(engine, weights=weights)
    assert "--quantization" not in found
    assert found.endswith(f"# needs a checkpoint of the model in {weights}")
    assert "#" not in " ".join(shlex.split(found, comments=True))


def test_fp8_is_made_while_loading():
    assert "--quantization fp8" in line("vllm", weights="fp8")
    assert "#" not in line("vllm", weights="fp8")


def test_degrees_of_sglang():
    found = line("sglang", tp=(2,), pp=(2,), dp=(2,))
    for flag in ("--tp-size 2", "--pp-size 2", "--dp-size 2"):
        assert flag in found


def test_speculation_and_context_in_the_launch_line():
    """vLLM: --speculative-config takes JSON. phi-2 was made for 2,048 tokens, which no rounding
    up may pass: the engine would refuse to start."""
    traffic = Traffic(requests_per_s=0.1, prompt_tokens=1800, output_tokens=248)
    found = plan(
        "phi-2", traffic, Slo(), ["h100-sxm5-80gb"], tp=1, requests=50,
        speculation=Speculation(draft_tokens=4, acceptance=0.6),
    )  # fmt: skip
    words = shlex.split(found.cheapest.launch)
    config = json.loads(words[words.index("--speculative-config") + 1])
    assert config["num_speculative_tokens"] == 4
    assert words[words.index("--max-model-len") + 1] == "2048"
