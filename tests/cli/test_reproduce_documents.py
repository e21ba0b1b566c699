"""The experiments of the founding documents: how they are asked for, listed and measured."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from ace_bench.cli.main import main
from ace_bench.cli.reproducing.measuring import measured_tables
from ace_bench.cli.reproducing.request import jobs, read_request
from ace_bench.core.errors import DataError
from ace_bench.core.measurement import Measurement
from ace_bench.report.experiments import Experiment, load_experiments
from ace_bench.report.paper.tables import load_paper

EXPERIMENTS = load_experiments(load_paper())


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
    with pytest.raises(DataError, match="there is no experiment seed_001; there are seed_000"):
        read_request(["experiment=seed_001"], EXPERIMENTS)


def test_the_row_without_changes_is_a_run_of_the_papers_tables():
    assert EXPERIMENTS.run("seed_000", "ace", "tgc") == EXPERIMENTS.run("1", "ace_offline_gt", "normal_tgc")


def test_a_measurement_is_called_with_the_request_and_marked_where_it_is_simulated(tmp_path):
    settings = ["experiment=seed_009", "backbone=embedded", "limit=5", "seed=1", f"results={tmp_path}"]
    request = read_request(settings, with_measurement())
    assert jobs(request, with_measurement()) == []
    table = measured_tables(request, with_measurement())["seed_009"]
    assert table.stem == "table_seed_009_embedded-simulated"
    assert table.page.title.endswith("measured with embedded [simulated: not comparable with published numbers]")
    assert table.page.grids[0].rows == (("A", "64.7", "n/a"), ("B", "79.4", "12"))
    assert table.page.notes == ("asked for embedded ('limit=5',) (1,) seed_009",)
    assert table.csv.splitlines()[1] == "seed_009,embedded,True,A,64.7,"


def test_documents_are_listed_and_planned(tmp_path, capsys):
    assert main(["reproduce", "--list"]) == 0
    assert "experiment=seed_000" in capsys.readouterr().out
    assert main(["reproduce", "experiment=seed_000", "backbone=embedded", "--dry-run", f"results={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert said.count("missing") == len(EXPERIMENTS.runs("seed_000"))
