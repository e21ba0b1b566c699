"""Results of the paper through a served model: the same runs and scores as with the embedded reader in process."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ace_bench.cli.main import start
from ace_bench.report.records import find_runs
from tests.report.paper.test_reproduce_settings import reader, served  # noqa: F401 - a fixture

SHORT = ("ace:mode.epochs=1", "ace:method.max_reflection_rounds=1", "gepa:method.max_metric_calls=3")
ASKED = {
    "tables 4b and 10": ("table=4b,10", "limit=2", *SHORT),
    "figure 2": ("figure=2", "limit=1", *SHORT[:2], "agent.max_steps=3"),
}
"""On AppWorld, where a rollout takes a second, one figure of one sample a split; a longer test adds tables 1 and 2."""
IN_FULL = ("table=1,2,4b", "figure=2", "limit=2", "gepa:method.max_metric_calls=20", "mipro:method.auto=light")
LASTING = ("task", "method", "mode", "labels", "splits", "context", "rollouts", "calls", "steps", "operations")
LASTING += ("faults",)
SCORE = ("table", "row", "column", "state", "value", "n", "faults", "better", "worse")


def made(results: Path) -> dict[str, list[str]]:
    """What two reproductions must have in common: of each run what lasts, and the scores of all tables."""
    runs = [{key: run.metrics[key] for key in LASTING} for run in find_runs(results).runs]
    tables = [csv.DictReader(path.read_text().splitlines()) for path in results.glob("tables/table_*.csv")]
    scores = [[cell[key] for key in SCORE] for table in tables for cell in table if cell["unit"] == "percent"]
    return {kind: sorted(map(json.dumps, some)) for kind, some in (("runs", runs), ("scores", scores))}


def reproduced(results: Path, *settings: str) -> dict[str, list[str]]:
    assert start("reproduce", [*settings, f"results={results}"]) == 0
    return made(results)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(words, id=name, marks=[pytest.mark.thorough] * name.startswith("figure"))
        for name, words in ASKED.items()
    ],
)
def test_results_are_the_same_through_a_server(asked, reader, one_composer, one_by_one, tmp_path):  # noqa: F811
    by_server = reproduced(tmp_path / "served", *asked, *served(reader), "--jobs", "1")
    assert reader.stats()["completions"] > 0
    assert by_server == reproduced(tmp_path / "embedded", *asked, "backbone=embedded", "--jobs", "1")


@pytest.mark.thorough
def test_results_are_the_same_through_a_server_two_runs_at_a_time(reader, tmp_path):  # noqa: F811
    by_server = reproduced(tmp_path / "served", *IN_FULL, *served(reader), "--jobs", "2")
    assert by_server == reproduced(tmp_path / "embedded", *IN_FULL, "backbone=embedded", "--jobs", "2")


@pytest.mark.slow
def test_methods_of_the_field_are_compared_through_a_server(reader, one_composer, one_by_one, tmp_path, capsys):  # noqa: F811
    part = ("tasks=finer", "methods=icl,dc", "feedback=gold", "passes=stream,fit", "limit=2")
    asked = ("experiment=field", *part, *served(reader), "--jobs", "1")
    assert start("reproduce", [*asked, f"results={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "7 runs finished now, 0 before" in said
    (table,) = (file for file in tmp_path.glob("tables/table_field_*.csv") if "_costs_" not in file.name)
    with table.open() as lines:
        cells = {cell["row"]: cell for cell in csv.DictReader(lines)}
    runs = find_runs(tmp_path).runs
    shown = {row: cell["value"] for row, cell in cells.items() if cell["value"]}
    assert len(shown) == len(runs) == 7
    assert sorted(map(float, shown.values())) == sorted(run.metrics["headline"]["after"] for run in runs)
    assert len([*tmp_path.glob("figures/field_score_by_cost_finer_*.png")]) == 2, (
        "one for each scaffold with two methods"
    )
    assert start("reproduce", [*asked, f"results={tmp_path}"]) == 0
    assert "Nothing to do: all 7 runs are finished" in capsys.readouterr().out
