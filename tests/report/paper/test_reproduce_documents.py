"""The experiments of the founding documents: how they are asked for, listed and measured."""

from __future__ import annotations

import csv
from dataclasses import replace
from types import MappingProxyType

import pytest

from ace_bench.cli.main import start
from ace_bench.cli.reproducing.request import jobs, measured_tables, read_request
from ace_bench.core.measurement import Measurement
from ace_bench.report.paper.tables import Experiment
from tests.report.paper.conftest import EXPERIMENTS, compose
from tests.report.paper.planned import Planner


def measure(wanted):
    rows = (("A", 64.7, None), ("B", 79.4, 12))
    note = f"asked for {wanted.backbone} {wanted.settings} {wanted.seeds} {wanted.folder.name}"
    return Measurement(columns=("setting", "R@1", "n"), rows=rows, notes=(note,), simulated=True)


def with_measurement():
    plan = Experiment(title="Retrieval", model="deepseek_v3_1", measure=f"{__name__}:measure")
    return replace(EXPERIMENTS, by_name=MappingProxyType({**EXPERIMENTS.by_name, "seed_009": plan}))


def test_a_document_is_asked_for_by_name_and_is_no_part_of_table_all():
    request = read_request(["experiment=seed_000"], EXPERIMENTS)
    assert request.names == ("seed_000",)
    assert all("backbone=deepseek_v3_1" in job.extra for job in jobs(request, EXPERIMENTS))
    assert read_request(["experiment=all"], EXPERIMENTS).names == EXPERIMENTS.documents
    assert not set(EXPERIMENTS.documents) & set(read_request(["table=all"], EXPERIMENTS).names)
    assert EXPERIMENTS.run("seed_000", "ace", "tgc") == EXPERIMENTS.run("1", "ace_offline_gt", "normal_tgc")


def test_a_measurement_is_called_with_the_request_and_marked_where_it_is_simulated(tmp_path):
    settings = ["experiment=seed_009", "backbone=embedded", "limit=5", "backbone.model=a/b", "seed=1"]
    request = read_request([*settings, f"results={tmp_path}"], with_measurement())
    assert jobs(request, with_measurement()) == []
    table = measured_tables(request, with_measurement())["seed_009"]
    assert table.stem == "table_seed_009_embedded-a_b-simulated"
    assert table.page.title.endswith("measured with embedded, a/b [simulated: not comparable with published numbers]")
    assert table.page.grids[0].rows == (("A", "64.7", "n/a"), ("B", "79.4", "12"))
    assert table.page.notes == ("asked for embedded ('backbone.model=a/b',) (1,) seed_009",)
    assert table.csv.splitlines()[1] == "seed_009,embedded a/b,True,A,64.7,"


def test_a_table_of_a_document_shows_no_number_of_the_paper(tmp_path, capsys):
    planner = Planner(tmp_path, compose)
    for planned in EXPERIMENTS.runs("seed_000"):
        planner.make(planned, [1.0, 0.0], extra=("backbone=deepseek_v3_1",), sizes=[1, 2])
    assert start("tables", ["experiment=seed_000", "--results", str(tmp_path)]) == 0
    (table,) = tmp_path.glob("tables/table_seed_000_*.md")
    results = table.read_text().partition("### Statistics")[0]
    assert results.count("| offline | gold | 50.0 |") == len(EXPERIMENTS.by_name["seed_000"].rows)
    assert "paper" not in results
    assert start("tables", ["experiment=seed_003", "--results", str(tmp_path)]) == 2
    assert "`ace-bench reproduce experiment=seed_003` makes it" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_document_is_rehearsed(tmp_path, reproduce):
    asked = ("experiment=seed_000", "backbone=embedded", "limit=1")
    assert reproduce(*asked, "--dry-run")[1].count("missing") == len(EXPERIMENTS.runs("seed_000"))
    status, said = reproduce(*asked)
    assert status == 0, said
    (table,) = tmp_path.glob("tables/table_seed_000_embedded-*-simulated-sample_data.csv")
    with table.open() as lines:
        found = {(cell["row"], cell["column"]): cell["value"] for cell in csv.DictReader(lines)}
    assert all(found.values()), "every cell has a number"
    assert float(found["ace", "reflector"]) > 0
    assert {float(found["rules", role]) for role in ("reflector", "curator")} == {0.0}
    assert reproduce(*asked)[1].startswith(f"Nothing to do: all {len(EXPERIMENTS.runs('seed_000'))} runs are finished")
