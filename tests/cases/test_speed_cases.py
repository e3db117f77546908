"""Cases about speed and peaks; expected values are the cases' own (tests/data/cases.jsonl)."""

from dataclasses import replace

import pytest

from roofline.api.predict import predict
from roofline.dtypes import Dtype, find_dtype
from roofline.errors import UnknownNameError, UnsupportedError
from roofline.hardware.accelerator import Accelerator, Compute, Memory, load_accelerator
from roofline.models.config import load_model
from roofline.timing.parallel import Parallel
from roofline.work.operators import Formats, Step, step_operators
from roofline.work.weights import stored_bytes

PAGE = "AMD, Radeon RX 6900 XT, product page, 2020"


def amd_6900_xt():
    """RX 6900 XT: 16 GB, 512 GB/s, 46.08 TFLOP/s fp16 (AMD product page)."""
    return Accelerator(
        id="rx-6900-xt", name="RX 6900 XT", vendor="AMD", kind="gpu",
        memory=Memory(usable_bytes=16 * 2**30, bytes_per_s=512e9, source=(PAGE,)),
        compute=Compute(flop_per_s={"fp16": 46.08e12, "fp32": 23.04e12}, source=(PAGE,)),
    )  # fmt: skip


def step_bytes(arch, batch, context=1.0):
    step = Step(decode_sequences=batch, context_tokens=context)
    operators = step_operators(arch, step, Formats(None, arch.dtype))
    return sum(float(operator.least_bytes) for operator in operators)


class TestWeightsReadOncePerStep:
    def test_batch_is_not_bandwidth(self, cases):
        """dec-batch-is-not-bandwidth: 864 MB in 3,605 µs are 239.7 GB/s at batch 1 and at 4."""
        case = cases["dec-batch-is-not-bandwidth"]
        right, time_s = case["right_answer"], case["input"]["step_us"] / 1e6
        assert 864e6 / time_s / 1e9 == pytest.approx(right["batch1_GBs"], rel=1e-3)
        arch = load_model("qwen2.5-1.5b")
        one, four = step_bytes(arch, 1), step_bytes(arch, 4)
        # only the cache, embeddings' rows and activations come on top: far below a second reading
        assert one <= four < 1.02 * one
        assert four / time_s < 1.02 * one / time_s

    def test_the_ceiling_is_bandwidth_over_bytes(self, cases):
        right = cases["dec-batch-is-not-bandwidth"]["right_answer"]
        bandwidth = load_accelerator("rtx-4090").memory_bandwidth()
        assert bandwidth / 864e6 == pytest.approx(right["ceiling_tok_s"], rel=1e-3)


class TestResidentIsNotRead:
    def test_a_dense_model_reads_all_but_its_token_table(self):
        """dec-resident-not-read: the table is held and one row of it is read."""
        arch = load_model("qwen2.5-7b")
        table = arch.embedding_parameters * 2
        read = step_bytes(arch, 1)
        assert stored_bytes(arch) - table == pytest.approx(read, rel=1e-3)

    def test_experts_that_are_not_chosen_are_not_read(self, cases):
        """418 % of peak came from dividing throughput into resident bytes."""
        case = cases["dec-resident-not-read"]
        arch = load_model("qwen3-30b-a3b")
        read, resident = step_bytes(arch, 1), stored_bytes(arch)
        assert resident / read > case["input"]["moe_35B_A3B"]["tok_s"] / 42.5  # 4 and more
        share = case["right_answer"]["moe"]["share_of_achievable"]
        rate = case["input"]["moe_35B_A3B"]["tok_s"]
        gb = case["right_answer"]["moe"]["GB_per_token"]
        assert share * 854.2 / rate == pytest.approx(gb, rel=0.01)  # GB/s per token/s

    @pytest.mark.parametrize(("model", "measured"), [("qwen3-30b-a3b", 77.6)])
    def test_a_bound_on_all_weights_is_beaten(self, cases, model, measured):
        """moe-35b-a3b-6900xt: 13 GB at 512 GB/s would be 39 tok/s, 77.6 were measured."""
        assert cases["moe-35b-a3b-6900xt"]["right_answer"]["measured"] == measured
        arch = replace(load_model(model), dtype=Dtype.FP16)  # the card has no bf16
        p = predict(arch, amd_6900_xt(), weights="q2_k", prompt_tokens=64, output_tokens=32)
        total = stored_bytes(arch, find_dtype("q2_k"))
        assert 512e9 / total < measured < 1 / p.decode.bound_s

    def test_slower_than_all_weights_is_no_bandwidth_limit(self, cases):
        """moe-30b-spill-vs-fit: 16.3 tok/s is below even reading all 11.3 GB for every token."""
        case = cases["moe-30b-spill-vs-fit"]
        arch = replace(load_model(case["input"]["config"]), dtype=Dtype.FP16)
        weights = stored_bytes(arch, Dtype("2.96 bit", 2.96))
        assert pytest.approx(45, abs=0.5) == 512e9 / 11.3e9
        assert 512e9 / weights == pytest.approx(45, rel=0.15)  # embeddings in 16 bit here
        p = predict(arch, amd_6900_xt(), weights="q2_k", prompt_tokens=64, output_tokens=32)
        assert case["input"]["A"]["measured"] < 512e9 / weights < 1 / p.decode.bound_s


class TestPeaks:
    @pytest.mark.parametrize(
        ("spec", "compute", "tflop_per_s"),
        [
            pytest.param("rtx-a6000", "bf16", 154.8, id="A6000-not-309.7"),
            pytest.param("mi350x", "bf16", 2300, id="MI350X-not-312"),
            pytest.param("h20-96gb", "fp16", 148, id="H20-not-989"),
            pytest.param("h100-sxm5-80gb", "bf16", 989.5, id="H100-not-1979"),
        ],
    )
    def test_dense_peak_of_the_part_itself(self, spec, compute, tflop_per_s):
        """peak-a6000-sparse-merged, peak-unknown-gpu-fallback, peak-h20, peak-sparse-mfu."""
        peak = load_accelerator(spec).peak_flop_per_s(compute)
        assert peak / 1e12 == pytest.approx(tflop_per_s, rel=4e-3)  # as datasheets round

    def test_utilisation_against_the_right_peak(self, cases):
        h100 = load_accelerator("h100-sxm5-80gb").peak_flop_per_s("bf16")
        case = cases["peak-sparse-mfu"]
        reached = case["input"]["model_TFLOP_per_token"] * case["input"]["tok_s"] * 1e12
        assert reached / h100 == pytest.approx(case["right_answer"]["mfu"], rel=2e-3)
        mi350x = load_accelerator("mi350x").peak_flop_per_s("bf16")
        case = cases["peak-unknown-gpu-fallback"]
        reached = case["input"]["tool_mfu"] * case["input"]["tool_peak_TFLOPs"] * 1e12
        assert reached / mi350x == pytest.approx(case["right_answer"]["mfu"], rel=5e-3)

    def test_h20_ridge(self, cases):
        right = cases["peak-h20"]["right_answer"]
        h20 = load_accelerator("h20-96gb")
        ridge = h20.peak_flop_per_s("fp16") / h20.memory_bandwidth()
        assert ridge == pytest.approx(right["ridge_flop_per_byte"], rel=0.01)

    @pytest.mark.parametrize("unknown", ["MI999X", "RTX 7090", ""])
    def test_an_unknown_device_is_never_another_one(self, unknown):
        with pytest.raises(UnknownNameError):
            load_accelerator(unknown)

    def test_a_type_that_the_device_lacks_is_refused(self):
        with pytest.raises(UnsupportedError, match="t4 has no bf16"):
            load_accelerator("t4").peak_flop_per_s("bf16")


def test_an_easier_clock_explains_more_than_the_peak(cases):
    """ma-above-theoretical-2080ti: 15.9 TFLOP/s need 1,824 MHz, a normal boost clock."""
    case = cases["ma-above-theoretical-2080ti"]
    clock = case["input"]["measured_GFLOPs"] * 1e9 / (2 * 4352)
    assert clock / 1e6 == pytest.approx(case["right_answer"]["MHz"], rel=1e-3)
    spec = load_accelerator("rtx-4090")  # a spec's peak goes with the clock that is stated in it
    assert spec.compute.boost_clock_hz


def test_bytes_all_reduced_per_prompt_token(cases):
    """tp-prefill-3090-llama70: two all-reduces a layer of 8,192 values, 2,621,440 B a token."""
    case = cases["tp-prefill-3090-llama70"]
    arch = load_model(case["input"]["config"])
    tokens = case["input"]["prompt_tokens"]
    card = load_accelerator("rtx-3090")
    p = predict(arch, card, parallel=Parallel(tp=2), weights="int4", prompt_tokens=tokens,
                output_tokens=2)  # fmt: skip
    layers = arch.n_layers * 2 * arch.hidden_size * 2
    assert layers == case["right_answer"]["bytes_per_token"]
    assert layers * tokens / 1e9 == pytest.approx(
        case["right_answer"]["total_GB_per_direction"], rel=2e-3
    )
    # a prompt cannot pass faster than that volume over PCIe 4.0 x16, 32 GB/s each way
    assert p.prefill.estimate_s.mid > layers * tokens / 32e9


def test_tpot_leaves_the_first_token_out(cases):
    """dec-tpot-definitions: (12 − 2) / 100 = 100 ms; with the first token in it 118.8 ms."""
    given, right = (cases["dec-tpot-definitions"][key] for key in ("input", "right_answer"))
    n = given["output_tokens"]
    assert (given["e2e_s"] - given["ttft_s"]) / (n - 1) * 1e3 == right["excl_ms"]
    assert given["e2e_s"] / n * 1e3 == pytest.approx(right["incl_ms"], rel=1e-3)
    p = predict("llama-3.1-8b", "h100-sxm5-80gb", prompt_tokens=2048, output_tokens=n)
    ours = (p.total_s.mid - p.ttft_s.mid) / (n - 1)
    assert p.tpot_s.mid == pytest.approx(ours, rel=1e-9)


@pytest.mark.parametrize("batch", [1, 64])
def test_two_cards_are_never_twice_one(cases, batch):
    """tp-3090-batch-vs-single: 1.31 × at batch 1 and 0.89 × at 64 were measured, 2 × nowhere."""
    right = cases["tp-3090-batch-vs-single"]["right_answer"]
    assert right["single"] < 2 > right["batch"]
    one, two = (
        predict("qwen3-32b", "rtx-3090", parallel=Parallel(tp=tp), weights="int4",
                prompt_tokens=256, output_tokens=256, batch=batch).tpot_s.mid
        for tp in (1, 2)
    )  # fmt: skip
    assert one / two < 2
