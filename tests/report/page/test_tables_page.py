"""The page of tables, in a site and from the server."""

import re

import pytest

from ace_bench.cli.main import main
from tests.launching import launch
from tests.report.paper.planned import Planner
from tests.report.paper.test_tables import ACE, BASE, REAL, SHARED, planned


@pytest.mark.slow
def test_real_runs_stand_beside_the_papers_numbers_simulated_ones_apart_and_each_links_to_its_run(tmp_path):
    planner = Planner(tmp_path / "results", SHARED.compose)
    planner.make(planned("2/base/finer"), BASE, extra=REAL)
    planner.make(planned("2/ace_offline_gt/finer"), ACE, extra=REAL, sizes=[5, 9])
    launch(tmp_path / "results", "task=formula", "method=base", "limit=2", "mode.before=false")
    launch(tmp_path / "results", "task=ddxplus", "method=reasoning_bank", "mode=online", "limit=2")
    site = tmp_path / "site"
    assert main(["report", str(tmp_path / "results"), "--out", str(site)]) == 0
    page = (site / "tables.html").read_text()
    assert '<a href="tables.html">' in (site / "index.html").read_text()
    real, simulated = re.split("<h2>Simulated</h2>", page)
    assert re.search(r'<th scope="row">ACE</th>.*?>70\.0 .*?<td>78\.3</td>', real)
    assert "70.0 [" not in simulated
    assert "78.3" not in simulated
    assert "reasoning_bank" in simulated, "a run that no table of the paper takes"
    keys = re.findall(r'<a href="index.html#view=summary&amp;run=(\w+)">', simulated)
    assert len({*keys}) == 2
    assert all((site / "data" / f"run-{key}.bin").exists() for key in keys)
    assert "<script" not in page
