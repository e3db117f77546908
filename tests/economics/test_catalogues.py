"""Catalogues: rows as gpuhunt and SkyPilot write them, mapped or said to be open."""

import pytest

from roofline.economics.catalogues import candidates, import_gpuhunt, import_skypilot
from roofline.economics.price_row import read_prices
from roofline.errors import SpecError

GPUHUNT = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,"
    "gpu_vendor,flags,cpu_arch,provider_data\n"
    "p5.48xlarge,us-east-1,55.04,192,2048,8,H100,80,False,,nvidia,,x86,\n"
    "p5.48xlarge,us-east-1,21.0,192,2048,8,H100,80,True,,nvidia,,x86,\n"
    "gpu_1x,eu,3.29,26,200,1,H100,80,False,,nvidia,,x86,\n"
    "mi300x.8,eu,24.0,26,200,8,MI300X,192,False,,amd,,x86,\n"
    "free,eu,0,26,200,1,H100NVL,94,False,,nvidia,,x86,\n"
    "cpu,eu,0.1,26,200,0,,,False,,,,x86,\n"
    "odd,eu,1.0,26,200,1,Zephyr9,80,False,,acme,,x86,\n"
)
SKYPILOT = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
    "AvailabilityZone\n"
    "p4de.24xlarge,A100-80GB,8,96,1152,,40.96,12.0,us-east-1,us-east-1a\n"
    "p4d.24xlarge,A100,8,96,1152,\"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 40960}}]}\",32.77,,us,\n"
    "p4de.24xlarge,A100-80GB,8,96,1152,,40.96,11.0,us-east-1,us-east-1b\n"
    "g6.xlarge,L4,1,4,16,,0.8048,,us-east-1,us-east-1a\n"
    "m5.large,,,2,8,,0.096,,us-east-1,us-east-1a\n"
    "1x,H100-SXM,1,2,8,,,1.25,eu,\n"
)


def test_gpuhunt_names_are_settled_by_memory_and_instance(tmp_path):
    """gpuhunt does not tell H100 SXM from PCIe; AWS P5 is SXM, ``gpu_1x`` may be either."""
    (tmp_path / "aws.csv").write_text(GPUHUNT)
    found = import_gpuhunt(tmp_path, as_of="2026-11-01")
    mapped = {(p.instance, p.term): (p.spec_id, p.usd_per_hour, p.gpu_count) for p in found.prices}
    assert mapped == {
        ("p5.48xlarge", "on_demand"): ("h100-sxm5-80gb", 55.04, 8),
        ("p5.48xlarge", "spot"): ("h100-sxm5-80gb", 21.0, 8),
        ("mi300x.8", "on_demand"): ("mi300x", 24.0, 8),
    }
    open_rows = {p.item: p.notes for p in found.unmapped}
    assert open_rows["H100"] == "ambiguous: h100-sxm5-80gb or h100-pcie-80gb"
    assert open_rows["Zephyr9"] == "no spec of this name and memory"
    assert [finding.line for finding in found.refused] == [6]
    assert found.without_accelerator == 1


def test_skypilot_zones_are_merged_and_both_terms_read(tmp_path):
    folder = tmp_path / "aws"
    folder.mkdir()
    (folder / "vms.csv").write_text(SKYPILOT)
    found = import_skypilot(folder / "vms.csv", as_of="2026-11-01")
    mapped = {(p.spec_id, p.term): p.usd_per_hour for p in found.prices}
    assert mapped == {
        ("a100-sxm4-80gb", "on_demand"): 40.96,
        ("a100-sxm4-80gb", "spot"): 11.0,
        ("a100-sxm4-40gb", "on_demand"): 32.77,
        ("l4", "on_demand"): 0.8048,
        ("h100-sxm5-80gb", "spot"): 1.25,
    }
    assert {p.provider for p in found.prices} == {"aws"}
    assert "no price" in str(found.refused[0])


def test_an_import_reads_back_as_a_price_file(tmp_path):
    (tmp_path / "aws.csv").write_text(GPUHUNT)
    found = import_gpuhunt(tmp_path / "aws.csv")
    (tmp_path / "out.csv").write_text(found.to_csv())
    prices, findings = read_prices(tmp_path / "out.csv")
    assert not findings
    assert len(prices) == len(found.prices) + len(found.unmapped)
    assert "dated by the file" in prices[0].notes


@pytest.mark.parametrize(
    ("name", "memory", "instance", "ids"),
    [
        ("H100-SXM", None, "", ("h100-sxm5-80gb",)),
        ("H100NVL", 94, "", ("h100-nvl-94gb",)),
        ("A100-80GB-SXM", None, "", ("a100-sxm4-80gb",)),
        ("A100", 40, "a2-highgpu-1g", ("a100-sxm4-40gb",)),
        ("A100", 80, "Standard_NC24ads_A100_v4", ("a100-pcie-80gb",)),
        ("H100", 94, "Standard_NC40ads_H100_v5", ("h100-nvl-94gb",)),
        ("H100", 80, "Standard_ND96isr_H100_v5", ("h100-sxm5-80gb",)),
        ("V100-32GB", None, "p3dn.24xlarge", ("v100-sxm2-32gb",)),
        ("MI325X", 288, "", ("mi325x",)),
        ("L4", 24, "", ("l4",)),
        ("L40S", 48, "", ("l40s",)),
        ("tpu-v5p", None, "", ("tpu-v5p",)),
        ("H200", 141, "any", ("h200-sxm-141gb", "h200-nvl-141gb")),
        ("nothing", 80, "", ()),
        ("RTX6000", 24, "gpu_1x_rtx6000", ()),  # Lambda's is the Quadro of 2018
        ("L40S", 24, "", ()),
    ],
)
def test_candidates(name, memory, instance, ids):
    """Boards of instance families as their providers publish them."""
    assert candidates(name, memory, instance) == ids


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"x,y\n1,2\n", "no column"), (b"", "no column"), (b"\xff\xfe\x00", "cannot be read")],
)
def test_files_that_are_no_catalogue(tmp_path, content, words):
    path = tmp_path / "aws.csv"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=words):
        import_gpuhunt(tmp_path)
    with pytest.raises(SpecError, match=words):
        import_skypilot(path)


def test_an_empty_folder(tmp_path):
    with pytest.raises(SpecError, match="no CSV file"):
        import_gpuhunt(tmp_path)
