"""The measurement of founding document 004 as an experiment."""

import csv

import pytest

from ace_bench.cli.main import start
from tests.launching import ROOT


@pytest.mark.slow
def test_the_table_is_written_and_is_the_one_on_the_page(tmp_path, capsys):
    assert start("reproduce", ("experiment=seed_004", "backbone=embedded", f"results={tmp_path}")) == 0, (
        capsys.readouterr().err
    )
    (file,) = tmp_path.glob("tables/table_seed_004_*.csv")
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["row"] for row in rows if row["row"]] == ["A", "B", "C", "D"] * 2
    shares = {
        (row["configuration"], row["wording"]): "/".join(f"{float(row[name]):.1f}" for name in ("R@1", "R@5", "P@3"))
        for row in rows
    }
    page = (ROOT / "docs/retrieval.md").read_text()
    for name in {row["configuration"] for row in rows}:
        assert f"{name}|{shares[name, 'natural']}|{shares[name, 'distant']}|" in page
