"""Price files: each row is read, checked and found again, or refused by its line."""

from datetime import date

import pytest

from roofline.economics.price_checks import check_prices
from roofline.economics.price_row import COLUMNS, read_prices
from roofline.economics.prices import price_files, price_table
from roofline.errors import InputError, MissingDataError, SpecError, UnknownNameError
from roofline.hardware.accelerator import accelerator_ids

TODAY = date(2026, 11, 29)
HEAD = (
    "provider,instance,region,spec_id,gpu_count,usd_per_hour,term,currency,as_of,source_url,notes\n"
)
GOOD = "Acme,n8,eu,h100-sxm5-80gb,8,24,on_demand,USD,2026-11-01,https://acme.test,\n"


def file(tmp_path, *rows, head=HEAD):
    path = tmp_path / "own.csv"
    path.write_text(head + "".join(row if row.endswith("\n") else row + "\n" for row in rows))
    return path


def findings(path, severity):
    prices, found = read_prices(path)
    found += check_prices(prices, accelerator_ids(), today=TODAY)
    return [
        str(finding).replace(str(path), "F") for finding in found if finding.severity == severity
    ]


def test_the_shipped_table_has_no_errors_and_says_what_is_open():
    """145 dated offers; what nobody can map stays listed."""
    path = price_files()[-1]
    assert findings(path, "error") == []
    table = price_table(today=TODAY)
    assert len(table.prices) == 145
    assert {price.item for price in table.unmapped} >= {"H100", "H200", "A100 80GB", "V100"}
    assert all(price.source_url for price in table.prices)


def test_whole_instances_are_paid_for(tmp_path):
    """Three accelerators on nodes of eight cost a node: 24 USD; nine cost two."""
    table = price_table(file(tmp_path, GOOD), today=TODAY)
    assert table.quote("h100-sxm5-80gb", 3).usd_per_hour == 24
    nine = table.quote("h100-sxm5-80gb", 9)
    assert (nine.usd_per_hour, nine.instances, nine.paid_accelerators) == (48, 2, 16)


def test_the_cheapest_offer_depends_on_the_count(tmp_path):
    path = file(tmp_path, GOOD, "Solo,n1,eu,h100-sxm5-80gb,1,4,on_demand,USD,2026-11-01,x,")
    table = price_table(path, today=TODAY)
    assert table.quote("h100-sxm5-80gb", 1).price.provider == "Solo"
    assert table.quote("h100-sxm5-80gb", 8).price.provider == "Acme"


def test_own_rows_replace_the_shipped_ones(tmp_path):
    table = price_table(file(tmp_path, GOOD), today=TODAY)
    assert {p.provider for p in table.prices if p.spec_id == "h100-sxm5-80gb"} == {"Acme"}
    assert table.quote("t4", 1).price.provider != "Acme"


def test_a_folder_of_the_user_goes_first(tmp_path, monkeypatch):
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "mine.csv").write_text(HEAD + GOOD)
    monkeypatch.setenv("ROOFLINE_SPEC_PATH", str(tmp_path))
    assert price_table(today=TODAY).quote("h100-sxm5-80gb", 8).price.provider == "Acme"


def test_there_is_no_default_price():
    with pytest.raises(
        MissingDataError, match=r"no price of mi300x on_demand; .* owned; .*--price"
    ):
        price_table(today=TODAY).quote("mi300x", 8)
    with pytest.raises(MissingDataError, match="there is none at all"):
        price_table(today=TODAY).quote("ascend-910b", 8)
    with pytest.raises(UnknownNameError, match="no price term 'weekly'"):
        price_table(today=TODAY).quote("t4", 1, "weekly")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            "A,i,r,t4,1,0,on_demand,USD,2026-11-01,s,",
            "F:2: usd_per_hour '0'; it needs to be above 0",
        ),
        ("A,i,r,t4,1,-3,on_demand,USD,2026-11-01,s,", "above 0"),
        ("A,i,r,t4,1,nan,on_demand,USD,2026-11-01,s,", "above 0"),
        ("A,i,r,t4,1,inf,on_demand,USD,2026-11-01,s,", "above 0"),
        ("A,i,r,t4,1,cheap,on_demand,USD,2026-11-01,s,", "'cheap' is no number"),
        ("A,i,r,t4,1,,on_demand,USD,2026-11-01,s,", "usd_per_hour is blank"),
        ("A,i,r,t4,0,1,on_demand,USD,2026-11-01,s,", "gpu_count '0'"),
        ("A,i,r,t4,1.5,1,on_demand,USD,2026-11-01,s,", "gpu_count '1.5'"),
        ("A,i,r,t4,1,1,weekly,USD,2026-11-01,s,", "no term 'weekly'; there are: on_demand"),
        ("A,i,r,t4,1,1,on_demand,EUR,2026-11-01,s,", "convert to USD"),
        ("A,i,r,t4,1,1,on_demand,USD,yesterday,s,", "is no date"),
        ("A,i,r,t4,1,1,on_demand,USD,2026-02-31,s,", "is no date"),
        (",i,r,t4,1,1,on_demand,USD,2026-11-01,s,", "provider is blank"),
        ("A,i,r,,1,1,on_demand,USD,2026-11-01,s,", "spec_id and item are both blank"),
        ("A,i,r,t4,1,1,on_demand,USD,2026-11-01,s,,extra", "more cells than columns"),
        ("A,i,r,t4,1,,owned,USD,2026-11-01,s,", "needs capex_usd"),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_line(tmp_path, row, words):
    path = file(tmp_path, row)
    assert any(words in finding for finding in findings(path, "error"))
    with pytest.raises(SpecError, match=r"own\.csv:2: "):
        price_table(path, today=TODAY)


def test_spot_above_on_demand(tmp_path):
    """skypilot issue 7311: on-demand 0.43 below spot 0.86."""
    path = file(
        tmp_path,
        "A,i,r,t4,1,0.43,on_demand,USD,2026-11-01,s,",
        "A,i,r,t4,1,0.86,spot,USD,2026-11-01,s,",
    )
    assert findings(path, "error") == [
        "F:3: spot at 0.86 USD/h is above on-demand at 0.43 (line 2)"
    ]


def test_a_node_at_the_price_of_one_accelerator(tmp_path):
    """3 USD for eight H100 where one alone costs 4."""
    path = file(
        tmp_path,
        "Solo,n1,eu,h100-sxm5-80gb,1,4,on_demand,USD,2026-11-01,x,",
        "A,n8,eu,h100-sxm5-80gb,8,3,on_demand,USD,2026-11-01,x,",
    )
    assert "write the price of the whole node" in findings(path, "error")[0]


def test_age_is_warned_of(tmp_path):
    path = file(
        tmp_path,
        "A,i,r,t4,1,1,on_demand,USD,2026-08-30,s,",  # 91 days before
        "A,j,r,t4,1,1,on_demand,USD,2026-08-31,s,",  # 90 days before
        "A,k,r,t4,1,1,on_demand,USD,,s,",
    )
    warned = findings(path, "warning")
    assert len(warned) == 2
    assert "91 days old" in warned[0]
    assert "no date" in warned[1]
    quote = price_table(path, today=TODAY).quote("t4", 1, today=TODAY)
    assert "91 days old" in quote.warnings[0]


def test_an_unknown_spec_is_listed_not_dropped(tmp_path):
    path = file(tmp_path, GOOD, "A,i,r,h900,1,1,on_demand,USD,2026-11-01,s,")
    assert findings(path, "warning") == ["F:3: h900: no such spec; not mapped"]
    assert "h900" in {price.spec_id for price in price_table(path, today=TODAY).unmapped}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no column provider"),
        (b"a,b\n1,2\n", "no column provider"),
        (HEAD.encode(), "no rows"),
        (b"\xff\xfe\x00\x01", "cannot be read"),
        (HEAD.encode() + b'A,"i\n', "no CSV"),
        ((HEAD.strip() + ",flavour\n").encode() + GOOD.encode(), "mean nothing here: flavour"),
    ],
)
def test_files_that_are_no_price_table(tmp_path, content, words):
    path = tmp_path / "own.csv"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=words):
        price_table(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(SpecError, match="cannot be read"):
        price_table(tmp_path / "none.csv")


@pytest.mark.parametrize(("given", "words"), [
    ({"t4": 0}, "above 0"), ({"t4": True}, "need a number"), ({"t4": float("nan")}, "above 0"),
])  # fmt: skip
def test_a_mapping_that_cannot_be(given, words):
    with pytest.raises(InputError, match=words):
        price_table(given)


def test_a_mapping_of_an_unknown_accelerator():
    with pytest.raises(UnknownNameError, match="did you mean"):
        price_table({"h200-sxm-141": 3.0})


def test_more_accelerators_never_cost_less():
    table = price_table(today=TODAY)
    for spec_id in ("h100-sxm5-80gb", "l40s", "b200-hgx"):
        costs = [table.quote(spec_id, count).usd_per_hour for count in range(1, 40)]
        assert costs == sorted(costs)


def test_the_columns_are_those_of_the_readme():
    assert COLUMNS[:4] == ("provider", "instance", "region", "spec_id")


def _file(tmp_path, *rows):
    path = tmp_path / "own.csv"
    head = "provider,instance,region,spec_id,gpu_count,usd_per_hour,term,as_of"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_a_lone_node_at_the_price_of_one_accelerator_is_warned_of(tmp_path):
    """8 H100 at 2.5 USD an hour is 0.31 each; the shipped offers ask 2 to 4 for one."""
    path = _file(tmp_path, "a,n8,eu,h100-sxm5-80gb,8,2.5,on_demand,2026-11-01")
    quote = price_table(path, today=TODAY).quote("h100-sxm5-80gb", 8, today=TODAY)
    assert any("price of the whole node" in line for line in quote.warnings)
    fair = _file(tmp_path, "a,n8,eu,h100-sxm5-80gb,8,20,on_demand,2026-11-01")
    quote = price_table(fair, today=TODAY).quote("h100-sxm5-80gb", 8, today=TODAY)
    assert not any("where others ask" in line for line in quote.warnings)


def test_one_accelerator_at_the_price_of_a_node_is_warned_of(tmp_path):
    path = _file(tmp_path, "a,n8,eu,h100-sxm5-80gb,1,55,on_demand,2026-11-01")
    quote = price_table(path, today=TODAY).quote("h100-sxm5-80gb", 1, today=TODAY)
    assert any("is it a node's price?" in line for line in quote.warnings)


def test_an_offer_twice_is_warned_of(tmp_path):
    path = _file(
        tmp_path,
        "a,n1,eu,t4,1,0.5,on_demand,2026-11-01",
        "A,n1,eu,t4,1,0.6,on_demand,2026-11-01",
        "a,n1,us,t4,1,0.6,on_demand,2026-11-01",
    )
    prices, _ = read_prices(path)
    said = [one for one in check_prices(prices, accelerator_ids(), today=TODAY)
            if "same offer as line 2" in one.message]  # fmt: skip
    assert [(one.line, one.severity) for one in said] == [(3, "warning")]
    assert "at another price" in said[0].message
