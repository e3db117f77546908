"""Traffic, targets and workloads: what they take, refuse and draw."""

import math

import numpy as np
import pytest

from roofline.errors import InputError, SpecError
from roofline.serving.lengths import Empirical, LogNormal, load_lengths
from roofline.serving.traffic import Slo, Traffic, Workload

FIXED = {"prompt_tokens": 100, "output_tokens": 10}


def test_users_and_growth_make_the_peak_rate():
    """By hand: 1,000 users, one request a minute, peak of 3, 20 % growth: 60 a second."""
    traffic = Traffic(
        users=1000, requests_per_user_per_s=1 / 60, peak_factor=3, growth=0.2, **FIXED
    )
    assert traffic.mean_per_s == pytest.approx(1000 / 60)
    assert traffic.peak_per_s == pytest.approx(60)


def test_log_normal_keeps_its_mean_and_variation():
    """Moments of the log-normal; 200,000 draws put the standard error of the mean at 0.2 %."""
    drawn = LogNormal(mean=2000, variation=0.8).draw(200_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(2000, rel=0.01)
    assert drawn.std() / drawn.mean() == pytest.approx(0.8, rel=0.03)


def test_empirical_pairs_stay_together():
    pairs = ((100, 1), (2000, 500))
    drawn = Traffic(requests_per_s=1, lengths=Empirical(pairs)).sample(300, seed=2)
    seen = set(zip(drawn.prompt_tokens.tolist(), drawn.output_tokens.tolist(), strict=True))
    assert seen == set(pairs)


def test_poisson_arrivals_have_unit_variation():
    """Kleinrock 1975, chapter 2: exponential gaps, coefficient of variation 1."""
    gaps = np.diff(Traffic(requests_per_s=4, **FIXED).sample(50_000, seed=5).arrival_s)
    assert gaps.mean() == pytest.approx(0.25, rel=0.02)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "input_tokens,output_tokens\n10,2\n30,4\n"),
        ("a.csv", "\ufeffisl,osl\n10,2\n30,4\n"),
        ("a.jsonl", '{"prompt_tokens": 10, "output_tokens": 2}\n\n{"prompt": 30, "output": 4}\n'),
    ],
)
def test_lengths_from_files(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert load_lengths(file).pairs == ((10, 2), (30, 4))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "no rows"),
        ("a.csv", b"x,y\n1,2\n", "no column prompt_tokens; found x, y"),
        ("a.csv", b"isl,osl\n1,2\nmany,2\n", r"a\.csv:3: isl 'many'"),
        ("a.csv", b"isl,osl\n1,2\n1.5,2\n", r"a\.csv:3: .* whole number"),
        ("a.csv", b"isl,osl\n1,2\n-1,2\n", r"a\.csv:3: .* at least 1"),
        ("a.csv", b"isl,osl\n1,2\nnan,2\n", r"a\.csv:3: "),
        ("a.csv", b"isl,osl\n1,2\n1e99,2\n", r"a\.csv:3: .* at most"),
        ("a.csv", b"isl,osl\n1\n", r"a\.csv:2: osl None"),
        ("a.csv", b"\xff\xfe\x00", "cannot be read"),
        ("a.jsonl", b"[1,2]\n", "need an object, got list"),
        ("a.jsonl", b'{"isl": true, "osl": 2}\n', "needs a number, got True"),
        ("a.jsonl", b"[" * 100_000 + b"\n", "no JSON object on this line"),
    ],
)
def test_bad_length_files_are_refused_by_line(tmp_path, name, content, words):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(SpecError, match=words):
        load_lengths(file)


def test_a_missing_length_file(tmp_path):
    with pytest.raises(SpecError, match="cannot be read"):
        load_lengths(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "one of them"),
        ({"requests_per_s": 1, "users": 2}, "one of them"),
        ({"users": 2}, "add requests_per_user_per_s"),
        ({"requests_per_s": 0}, "above 0"),
        ({"requests_per_s": -1}, "at least 0"),
        ({"requests_per_s": math.nan}, "requests_per_s"),
        ({"requests_per_s": True}, "needs a number, got True"),
        ({"requests_per_s": 1, "prompt_tokens": 0}, "prompt_tokens needs to be at least 1"),
        ({"requests_per_s": 1, "prompt_tokens": 2.5}, "whole number"),
        ({"requests_per_s": 1, "prompt_tokens": None}, "needs prompt_tokens"),
        ({"requests_per_s": 1, "prefix_share": 1.2}, "at most 1"),
        ({"requests_per_s": 1, "peak_factor": 0.5}, "peak_factor needs to be at least 1"),
        ({"requests_per_s": 1, "lengths": Empirical(((1, 1),))}, "not both"),
    ],
)
def test_traffic_that_cannot_be(arguments, words):
    with pytest.raises(InputError, match=words):
        Traffic(**{**FIXED, **arguments})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"ttft_s": 0}, "ttft_s needs to be above 0"),
        ({"tpot_s": -1}, "at least 0"),
        ({"percentile": 0.95}, "in percent"),
        ({"percentile": 100}, "at most 99.99"),
        ({"spare_replicas": 0.5}, "whole number"),
        ({"headroom": 1.0}, "at most 0.95"),
    ],
)
def test_targets_that_cannot_be(arguments, words):
    with pytest.raises(InputError, match=words):
        Slo(**arguments)


def test_a_workload_has_a_batch_or_a_concurrency():
    assert Workload(10, 5, concurrency=3).tokens == 15
    with pytest.raises(InputError, match="not both"):
        Workload(10, 5, batch=1, concurrency=2)
