"""Model runs on a CPU: rows of every kind come out; three ways agree or say so."""

import pytest

pytest.importorskip("torch")

from roofline.errors import InputError, UnsupportedError
from roofline.measure.device import find_target
from roofline.measure.model_run import ModelPlan, model_rows
from roofline.models.architecture import dense_decoder

SMALL = dense_decoder(
    "small", n_layers=2, hidden=64, n_heads=4, n_kv_heads=2, head_dim=16, intermediate=96,
    vocab=128, source="a test's own",
)  # fmt: skip


def plan(**changes):
    base = {
        "weights": "fp32", "batches": (1, 2), "contexts": (8, 16), "prompts": (4,),
        "modes": ("eager",), "min_runs": 3,
    }  # fmt: skip
    return ModelPlan(**{**base, **changes})


@pytest.fixture(scope="module")
def cpu():
    return find_target("cpu")


def test_rows_of_every_kind(cpu):
    rows = list(model_rows(cpu, SMALL, plan()))
    decode = [(row.context_tokens, row.batch) for row in rows if row.phase == "decode"]
    assert decode == [(8, 1), (8, 2), (16, 1), (16, 2)]
    assert [row.context_tokens for row in rows if row.phase == "prefill"] == [4]
    for row in rows:
        assert row.timer == "wall"
        assert row.mode == "eager"
        assert row.parameters == SMALL.parameters - 64  # no weight in the last norm
    first = rows[0]
    assert set(first.tpot_by_s) == {"two_runs", "stamps", "events"}


def test_least_work_of_a_decode_step_by_hand(cpu):
    """2 layers: matrices 64·(64+2·32)+64·64 + 3·64·96 = 30,720 values each; lm_head 8,192.

    Batch 2 at context 8: FLOP = 2·2·(2·30,720 + 8,192) + attention 4·2 layers·4 heads·16·2·8.
    """
    row = next(model_rows(cpu, SMALL, plan(batches=(2,), contexts=(8,), three_ways=False)))
    matrices = 2 * 30_720 + 8_192
    assert row.least_flop == 2 * 2 * matrices + 4 * 2 * 4 * 16 * 2 * 8
    cache = 2 * 2 * 2 * 8 * 2 * 16 * 4
    assert row.least_bytes == 4 * (matrices + 2 * 2 * 64) + cache


def test_a_cpu_has_no_graphs(cpu):
    with pytest.raises(UnsupportedError, match="no graphs"):
        list(model_rows(cpu, SMALL, plan(modes=("graph",))))


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"batches": (0,)}, "batches must be 1"), ({"modes": ("fast",)}, "no mode 'fast'"),
     ({"contexts": (True,)}, "contexts must be 1")],
)  # fmt: skip
def test_plans_that_cannot_be(cpu, changes, says):
    with pytest.raises(InputError, match=says):
        list(model_rows(cpu, SMALL, plan(**changes)))


def test_what_does_not_fit_is_refused(cpu):
    huge = dense_decoder(
        "huge", n_layers=2000, hidden=8192, n_heads=64, n_kv_heads=8, head_dim=128,
        intermediate=28672, vocab=128, source="a test's own",
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="are free"):
        list(model_rows(cpu, huge, plan()))
