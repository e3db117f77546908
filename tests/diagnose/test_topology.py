"""Topology, links, mapping and network logs; real outputs and published cases."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.diagnose.fabric_reader import read_fabric
from roofline.diagnose.gradients import gradient_bill
from roofline.diagnose.mapping import best_mapping
from roofline.diagnose.network import parse_ibstat, parse_nccl_log, port_faults
from roofline.diagnose.nvlink import link_health, parse_nvlinks
from roofline.diagnose.topology import gpudirect, parse_topology, path_between
from roofline.errors import InputError

H200 = (
    "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\t0-31\t0\t\tN/A\nGPU1\tNV18\t X \t0-31\t0\t\tN/A\n\nLegend:\n\n"
    "  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "GPU 0: NVIDIA H200 (UUID: GPU-43892aed-94c6-acaf-5490-3ee50349ef57)\n"
    + "".join(f"\t Link {i}: 26.562 GB/s\n" for i in range(18))
)


def links(name, rates):
    listed = [f"\t Link {i}: {f'{r} GB/s' if r else '<inactive>'}" for i, r in enumerate(rates)]
    return "\n".join([f"GPU 0: {name}", *listed]) + "\n"


def matrix(cells, extra=""):
    n = len(cells)
    head = "\t" + "\t".join(f"GPU{i}" for i in range(n)) + "\tCPU Affinity\tNUMA Affinity"
    rows = [f"GPU{i}\t" + "\t".join(row) + "\t0-31\t0" for i, row in enumerate(cells)]
    return "\n".join([head, *rows]) + extra


def test_real_h200_pair():
    """Output of the H200 machine, November 2026, underline codes and all: 18 links, 450 GB/s."""
    fabric = read_fabric(H200)
    assert fabric.accelerator == "h200-sxm-141gb"
    assert fabric.rate(0, 1) == 450e9
    assert not fabric.faults
    assert fabric.health[0].signalling_bytes_per_s == pytest.approx(478.1e9, rel=1e-3)
    (group,) = fabric.groups(2)
    # a ring of two moves the message once: 1 GiB at 450 GB/s is 2.386 ms
    assert group.all_reduce_s[2**30] == pytest.approx(2.386e-3, rel=1e-3)


def test_six_inactive_links_of_an_h100_pcie_are_no_fault():
    """Azure/azurehpc-health-checks issue 162: 12 of 18, 300 GB/s; 256.63 measured is 0.855."""
    (gpu,) = parse_nvlinks(links("NVIDIA H100 PCIe", [26.562] * 12 + [None] * 6))
    state = link_health(gpu)
    assert not state.fault
    assert state.expected == 12
    assert state.limit_bytes_per_s == 300e9
    assert state.measured_share(256.63e9) == pytest.approx(0.855, abs=5e-4)


def test_two_links_of_a_v100_are_down():
    """Azure/azhpc-diagnostics issue 73: 4 × 25.781 = 103.1 GB/s, 0.667 of the links."""
    text = links("Tesla V100-SXM2-32GB", [25.781, 25.781, 25.781, None, 25.781, None])
    (gpu,) = parse_nvlinks(text)
    state = link_health(gpu)
    assert state.fault
    assert state.signalling_bytes_per_s == pytest.approx(103.1e9, rel=1e-3)
    assert state.share == pytest.approx(0.667, abs=5e-4)
    assert state.missing == (3, 5)


@pytest.mark.parametrize(
    ("name", "rates", "expected", "fault"),
    [
        ("NVIDIA A100-SXM4-80GB", [25.0] * 12, 12, False),
        ("NVIDIA A100-SXM4-80GB", [25.0] * 11 + [None], 12, True),
        ("NVIDIA H100 80GB HBM3", [26.562] * 17 + [None], 18, True),
        ("NVIDIA H200", [26.562] * 18, 18, False),
        ("NVIDIA B200", [53.125] * 18, 18, False),
        ("NVIDIA RTX A6000", [14.062] * 4, 4, False),
        ("NVIDIA A100 80GB PCIe", [None] * 12, None, False),  # no bridge fitted
        ("NVIDIA H100 NVL", [26.562] * 12 + [None] * 6, 12, False),
    ],
)
def test_what_each_variant_should_have(name, rates, expected, fault):
    """Link counts of NVIDIA's datasheets: NVLink rate of the variant ÷ rate of one link."""
    (gpu,) = parse_nvlinks(links(name, rates))
    state = link_health(gpu)
    assert (state.expected, state.fault) == (expected, fault)


def test_a_degraded_link_is_found():
    (gpu,) = parse_nvlinks(links("NVIDIA H200", [26.562] * 17 + [13.281]))
    state = link_health(gpu)
    assert (state.fault, state.degraded) == (True, (17,))


def test_an_unknown_variant_is_not_judged_alone():
    text = links("NVIDIA X999", [26.562] * 12 + [None] * 6)
    (gpu,) = parse_nvlinks(text)
    state = link_health(gpu)
    assert not state.fault
    assert "not known" in state.reason
    other = parse_nvlinks(links("NVIDIA X999", [26.562] * 18))[0]
    assert link_health(gpu, peers=(gpu, other)).fault


def test_numa_and_paths(tmp_path):
    text = matrix([["X", "PIX", "SYS"], ["PIX", "X", "NODE"], ["SYS", "NODE", "X"]])
    topology = parse_topology(text)
    assert path_between(topology, 0, 1).same_root_complex is True
    assert path_between(topology, 0, 2).same_root_complex is False
    assert path_between(topology, 1, 2).same_root_complex is False
    path = tmp_path / "topo.txt"
    path.write_text(text)
    assert read_fabric(path).n_gpus == 3


def test_adapters_and_gpudirect():
    text = (
        "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNV18\tPXB\tSYS\t0-55\t0\t\tN/A\n"
        "GPU1\tNV18\t X \tSYS\tSYS\t0-55\t0\t\tN/A\n"
        "NIC0\tPXB\tSYS\t X \tPHB\nNIC1\tSYS\tSYS\tPHB\t X \n\n"
        "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
    )
    topology = parse_topology(text)
    assert topology.gpus == (0, 1)
    assert gpudirect(topology, 0).startswith("mlx5_0 (PXB): GPUDirect RDMA works")
    assert "no GPUDirect" in gpudirect(topology, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nothing here\n", "no topology in it"),
        ("\tGPU0\tGPU1\nGPU0\tX\n", "cells where 2 are"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\n", "1 of 2 rows"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV2\tX\n", "mangled"),
        ("\tGPU0\tGPU1\nGPU0\tX\tWAT\nGPU1\tNV2\tX\n", "cells where 2 are"),
        ("Link 0: 25 GB/s\n", "before any GPU"),
    ],
)
def test_bad_texts_give_one_line(text, says):
    with pytest.raises(InputError, match=says) as error:
        read_fabric(text)
    assert "\n" not in str(error.value)


def test_missing_file_and_huge_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read as a topology: No such file"):
        read_fabric(tmp_path / "none.txt")
    big = tmp_path / "big.txt"
    big.write_bytes(b"x" * (9 * 2**20))
    with pytest.raises(InputError, match="larger than"):
        read_fabric(big)


CUBE = [  # DGX-1V hybrid cube mesh, from NVIDIA's DGX-1 whitepaper: NV1 and NV2 bonds
    ["X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"],
    ["NV1", "X", "NV2", "NV1", "SYS", "NV2", "SYS", "SYS"],
    ["NV1", "NV2", "X", "NV2", "SYS", "SYS", "NV1", "SYS"],
    ["NV2", "NV1", "NV2", "X", "SYS", "SYS", "SYS", "NV1"],
    ["NV2", "SYS", "SYS", "SYS", "X", "NV1", "NV1", "NV2"],
    ["SYS", "NV2", "SYS", "SYS", "NV1", "X", "NV2", "NV1"],
    ["SYS", "SYS", "NV1", "SYS", "NV1", "NV2", "X", "NV2"],
    ["SYS", "SYS", "SYS", "NV1", "NV2", "NV1", "NV2", "X"],
]


def test_pairs_of_a_cube_mesh_use_double_links():
    fabric = read_fabric(matrix(CUBE), accelerator="v100-sxm2-32gb")
    mapping = fabric.mapping(2)
    assert all(CUBE[a][b] == "NV2" for a, b in mapping.groups)
    assert all(rate == 50e9 for rate in mapping.group_bytes_per_s)
    four = fabric.mapping(4)
    assert {frozenset(group) for group in four.groups} == {
        frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7}),
    }  # fmt: skip
    assert sorted(four.devices) == list(range(8))


def test_bridged_pairs_are_kept_together():
    pairs = {(0, 2), (1, 3)}
    cells = [
        ["X" if i == j else "NV4" if (min(i, j), max(i, j)) in pairs else "SYS" for j in range(4)]
        for i in range(4)
    ]
    fabric = read_fabric(matrix(cells), accelerator="rtx-a6000")
    assert fabric.mapping(2).groups == ((0, 2), (1, 3))
    assert fabric.mapping(2).paste.endswith("CUDA_VISIBLE_DEVICES=0,2,1,3")


def test_large_nodes_are_mapped_too():
    mapping = best_mapping(16, 4, lambda a, b: 100.0 if a % 4 == b % 4 else 1.0)
    assert {frozenset(group) for group in mapping.groups} == {
        frozenset(range(k, 16, 4)) for k in range(4)
    }


def test_tp_must_divide():
    with pytest.raises(InputError, match="tp=3 does not divide 8 devices; use 1, 2, 4, 8"):
        best_mapping(8, 3, lambda a, b: 1.0)


@settings(deadline=None, max_examples=20)  # each tries all partitions and rings
@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_mapping_uses_every_device_once(groups, random):
    rates = {(a, b): random.random() for a in range(8) for b in range(a)}
    tp = {1: 8, 2: 4, 3: 2, 4: 2}[groups]
    mapping = best_mapping(8, tp, lambda a, b: rates[max(a, b), min(a, b)])
    assert sorted(mapping.devices) == list(range(8))
    assert all(len(group) == tp for group in mapping.groups)


@pytest.mark.parametrize(
    ("parameters", "ranks", "volume"),
    [(70e9, 8, 245e9), (70e9, 2, 140e9), (70e9, 1, 0.0), (8.03e9, 8, 28.105e9)],
)
def test_gradient_bill(parameters, ranks, volume):
    """2(n−1)/n × parameters × 2 bytes: 245 GB per GPU for 70e9 over 8."""
    bill = gradient_bill(parameters, ranks, bytes_per_s=300e9)
    assert bill.volume_bytes == pytest.approx(volume)
    assert bill.time_s == pytest.approx(volume / 300e9)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_gradient_bill_refuses(bad):
    with pytest.raises(InputError):
        gradient_bill(bad, 8)
    with pytest.raises(InputError):
        gradient_bill(1e9, 8, bytes_per_s=bad if bad != float("inf") else -1.0)


LOG = """node1:10:20 [0] NCCL INFO NCCL version 2.27.5+cuda13.0
node1:10:20 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 4 cudaDev 0
node1:10:20 [0] NCCL INFO Channel 00/08 : 0[0] -> 1[1] via P2P/CUMEM/read
node1:10:20 [1] NCCL INFO Channel 00/08 : 1[1] -> 2[2] via SHM/direct/direct
node1:10:20 [2] NCCL INFO Channel 00/08 : 2[2] -> 3[3] [send] via NET/IB/0/GDRDMA
node1:10:20 [3] NCCL INFO Channel 00/08 : 3[3] -> 0[0] [send] via NET/Socket/0
"""


def test_nccl_log():
    paths = parse_nccl_log(LOG)
    assert (paths.version, paths.ranks) == ("2.27.5+cuda13.0", 4)
    assert paths.transports == {
        "peer to peer": 1, "host memory (SHM)": 1, "network, GPUDirect RDMA": 1,
        "sockets (Ethernet)": 1,
    }  # fmt: skip
    assert paths.host_pairs == ((1, 2),)
    assert len(paths.notes) == 2


def test_nccl_through_the_host_where_nvlinks_are():
    text = matrix([["X", "NV4"], ["NV4", "X"]]) + "\n"
    fabric = read_fabric(text + "NCCL INFO Channel 00/02 : 0[0] -> 1[1] via SHM/direct/direct\n")
    assert any("0→1, which NVLinks join" in note for note in fabric.notes)


def test_nccl_log_without_channels():
    with pytest.raises(InputError, match="NCCL_DEBUG=INFO"):
        parse_nccl_log("NCCL INFO Bootstrap\n")


IBSTAT = """CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 40
CA 'mlx5_2'
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 200
"""


def test_ibstat():
    ports = parse_ibstat(IBSTAT)
    assert [port.up for port in ports] == [True, False, True]
    assert ports[0].bytes_per_s == 50e9  # 400 Gb/s
    assert port_faults(ports) == (
        "mlx5_1 port 1 is Down/Disabled",
        "mlx5_2 port 1 runs at 50 % of the fastest adapter's rate",
    )
    assert read_fabric(IBSTAT).faults == port_faults(ports)


def test_expected_all_reduce_of_a_pair():
    """1 GiB over 450 GB/s at the published 0.82 of NVLink 4 rings is 2.91 ms (least: 2.39)."""
    (group,) = read_fabric(H200).groups(2)
    assert group.expected_all_reduce_s[2**30] == pytest.approx(2.91e-3, rel=5e-3)
    assert all(group.expected_all_reduce_s[s] > least for s, least in group.all_reduce_s.items())


def test_expected_all_reduce_over_pcie_is_slower_than_the_slot():
    text = matrix([["X", "PHB"], ["PHB", "X"]]) + "\n"
    (group,) = read_fabric(text, accelerator="l40s").groups(2)
    # PCIe 4.0 x16, 31.5 GB/s, of which NCCL's model gives 24 (0.76)
    assert 2**30 / group.expected_all_reduce_s[2**30] == pytest.approx(24e9, rel=0.01)
