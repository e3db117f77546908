"""Links of a replica: which rate bounds what, by hand from datasheet rates."""

import pytest

from roofline.api.predict import predict
from roofline.errors import InputError
from roofline.hardware.accelerator import load_accelerator
from roofline.serving.replica_links import replica_links
from roofline.timing.parallel import Parallel

H200 = "h200-sxm-141gb"


def links(name, network=None, **plan):
    return replica_links(load_accelerator(name), Parallel(**plan), network)


def test_a_network_slows_only_what_leaves_the_domain():
    """H200: 8 by NVLink at 450 GB/s; NDR has 50 GB/s a port. A pair of stages of 8 crosses it."""
    found = links(H200, "infiniband-ndr", tp=8, pp=2)
    assert (found.tensor_bytes_per_s, found.stage_bytes_per_s) == (450e9, 50e9)
    inside = links(H200, "infiniband-ndr", tp=4, pp=2)
    assert (inside.tensor_bytes_per_s, inside.stage_bytes_per_s) == (450e9, 450e9)
    assert inside.between is None
    assert any("unused" in line for line in inside.assumptions)


def test_all_reduce_over_two_nodes_sends_an_eighth_over_each_port():
    """A node sends the buffer once over its 8 ports of 50 GB/s (Klenk et al. 2020): 400 GB/s.

    Prefill of 32 prompts of 2,048 of Llama-3.1-8B: 64 all-reduces of 65,536 × 4,096 × 2 bytes are
    34.36 GB, 85.9 ms over 400 GB/s; over one port it would be 687 ms, above what machines measure.
    """
    p = predict("llama-3.1-8b", H200, batch=32, parallel=Parallel(tp=16), network="infiniband-ndr")
    assert p.prefill.by_resource["link"] == pytest.approx(0.0859, rel=1e-3)
    assert p.prefill.by_resource["link"] == pytest.approx(64 * 65536 * 8192 / 400e9)


def test_the_estimate_pays_for_the_network():
    """A slower network never makes a step faster, and one that is crossed costs time."""
    plan = Parallel(tp=16)
    mids = [
        predict("llama-3.1-8b", H200, batch=32, parallel=plan, network=name).prefill.estimate_s.mid
        for name in ("infiniband-xdr", "infiniband-ndr", "ethernet-25gbe")
    ]
    assert mids == sorted(mids)
    assert mids[2] > 2 * mids[0]


def test_a_pair_bridge_goes_on_over_pcie():
    """A100 PCIe: NVLink joins two; PCIe 4 x16 is 31.5 GB/s, two cards send 63 GB/s together."""
    found = links("a100-pcie-80gb", tp=4)
    assert found.tensor_bytes_per_s == pytest.approx(63e9)
    assert any("PCIe of one host" in line for line in found.assumptions)


def test_leaving_the_domain_needs_a_network():
    with pytest.raises(InputError, match=r"tp=16 leaves the scale-up domain .* name the network"):
        links(H200, tp=16)
    said = links(H200, dp=16, ep=16).assumptions
    assert any("experts reach past the 8" in line for line in said)


def test_one_rank_has_no_link():
    assert links(H200).tensor_bytes_per_s is None


@pytest.mark.parametrize(("tp", "said"), [(1, False), (2, False), (4, True), (8, True)])
def test_ranks_past_what_was_measured_are_said(tp, said):
    """The H200 record holds all-reduces of two ranks (measurements/h200-sxm-141gb)."""
    found = predict(
        "llama-3.1-8b", "h200-sxm-141gb", parallel=Parallel(tp=tp), machine="h200-sxm-141gb"
    )
    assert any("all-reduce measured over 2 ranks" in line for line in found.assumptions) == said
