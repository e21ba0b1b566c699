"""Tables of a user's own runs: what shares a cell, what is tested, and what is never set side by side."""

import csv
import io
import json
import shlex
import shutil

import pytest

from ace_bench.cli.main import start
from ace_bench.report.figures.own_runs import panels_of
from ace_bench.report.planned import PlannedRun
from ace_bench.report.records import find_runs
from ace_bench.report.tables.formats import csv as table_csv
from ace_bench.report.tables.formats import markdown, page_of
from ace_bench.report.tables.own_tables import Layout, own_tables
from tests.outcomes import outcomes
from tests.report.paper.conftest import compose
from tests.report.paper.planned import Planner
from tests.report.paper.test_tables import ACE, BASE


@pytest.fixture
def results(tmp_path):
    """FiNER with and without a playbook, two seeds each, of a simulated model."""
    for seed in (0, 1):
        make(tmp_path, "base", BASE, seed=seed)
        make(tmp_path, "ace", ACE, seed=seed)
    return tmp_path


def make(results, method, scores, *overrides, task="finer", seed=0, **kind):
    planner = Planner(results, compose, **({"simulated": True, "source": "sample"} | kind))
    plan = PlannedRun(overrides=(f"task={task}", f"method={method}", "mode=offline", *overrides))
    return planner.make(plan, scores, seed=seed)


def tables(results, **layout):
    return own_tables(find_runs(results).runs, Layout(**layout))


def test_two_runs_of_one_seed_are_never_averaged(results):
    folder = next(results.glob("paper/finer-ace-*/*/seed0"))
    other = shutil.copytree(folder, results / "other" / "seed0")
    about = json.loads((other / "metrics.json").read_text()) | {"digest": "another"}
    (other / "metrics.json").write_text(json.dumps(about))
    (table,) = tables(results)
    assert sorted(len(cell.runs) for cell in table.measured) == [1, 2, 2]
    assert "differ in digest" in markdown(page_of(table))


def test_a_column_is_not_named_by_a_setting_in_which_its_runs_differ(tmp_path):
    for limit, metric in ((2, "bird_ex"), (2, "streambench_ex"), (3, "bird_ex")):
        make(tmp_path, "ace", [1.0] * limit, f"limit={limit}", f"task.metric={metric}", task="bird_sql")
    (table,) = tables(tmp_path)
    assert [heading.title.split(")")[0] for heading in table.columns.values()] == [
        "BIRD-SQL (limit=2",
        "BIRD-SQL (limit=3",
    ]


def test_real_and_simulated_runs_are_in_tables_of_their_own(results):
    make(results, "ace", ACE, simulated=False, source="real")
    found = tables(results)
    assert sorted((table.about["simulated"], len(table.cells)) for table in found) == [(False, 1), (True, 2)]
    rows = list(csv.DictReader(io.StringIO(table_csv(found))))
    assert {(row["simulated"], row["method"]) for row in rows} == {("True", "base"), ("True", "ace"), ("False", "ace")}


def test_the_command_writes_files_and_chooses_runs(results, capsys):
    out = results / "out" / "table.csv"
    assert start("tables", [str(results), "--rows", "method", "method=ace", "--out", str(out)]) == 0
    assert [row["method"] for row in csv.DictReader(io.StringIO(out.read_text()))] == ["ace"]


def sweep_panels(results, x):
    (table,) = own_tables(find_runs(results).runs, Layout(columns=("task", x)))
    return panels_of(table, x)


def test_a_figure_over_the_training_samples_is_their_curve(tmp_path):
    for size in (5, 20):
        make(tmp_path, "ace", ACE, f"limit={{train: {size}, test: 40}}")
    (panel,) = sweep_panels(tmp_path, "limit.train")
    assert {row: [value for value, _ in points] for row, points in panel.lines.items()} == {"ace": [5, 20]}
    assert start("figures", [str(tmp_path), "--x", "train", "--out", str(tmp_path / "out")]) == 0
    assert start("figures", [str(tmp_path), "--x", "train", "--out", str(tmp_path / "out.png")]) == 2
    assert [*(tmp_path / "out").glob("*.png")]


def test_panels_of_one_task_that_tested_different_samples_are_named_by_them(tmp_path):
    for limit, scores in (("null", ACE), ("10", ACE[:10])):
        for threshold in ("0.5", "0.7"):
            make(tmp_path, "ace", scores, f"limit={limit}", f"method.refiner.threshold={threshold}")
    panels = sweep_panels(tmp_path, "method.refiner.threshold")
    assert sorted(panel.title for panel in panels) == ["FiNER (limit=10)", "FiNER (limit=null)"]
    make(tmp_path, "ace", ACE, "method.refiner.threshold=0.5", task="formula")
    make(tmp_path, "ace", ACE, "method.refiner.threshold=0.7", task="formula")
    panels = sweep_panels(tmp_path, "method.refiner.threshold")
    assert sorted(panel.title for panel in panels)[-1] == "Formula", "the only panel of its task"


MISTAKES = [
    "tables --results RESULTS table=99",
    "tables --results RESULTS method.nothing=1",
    "tables --results RESULTS results=elsewhere",
    "tables --results RESULTS resluts=elsewhere",
    "tables --results RESULTS limt=4",
    "tables --results RESULTS seed=1",
    "tables --results RESULTS concurrency=2",
    "tables --results RESULTS 4",
    "tables --results RESULTS experiment=seed_003",
    "tables RESULTS --rows methd",
    "tables RESULTS --rows treshold",
    "tables RESULTS --rows method --metric acuracy",
    "tables RESULTS --rows method --columns method",
    "tables RESULTS --rows method --base gepa",
    "tables RESULTS --rows method --over nothing --base 0",
    "tables RESULTS --rows method method=gepa",
    "tables RESULTS/none --rows method",
    "figures RESULTS --x threshold",
    "figures RESULTS --x limit",
    "figures RESULTS --x treshold",
    "figures --results RESULTS figure=pie",
    "figures --results RESULTS style=poster",
    "tables --results RESULTS ace:roles.reflector.modl=x",
]


def test_mistakes_name_the_right_spelling(snapshot, results, one_composer, capsys, monkeypatch):
    def answer(line):
        command, *words = shlex.split(line.replace("RESULTS", str(results)))
        assert start(command, words) == 2
        return "".join(capsys.readouterr()).replace(str(results), "RESULTS")

    monkeypatch.setenv("COLUMNS", "200")
    make(results, "ace", ACE[:10], "limit=10")
    assert outcomes(answer, MISTAKES) == snapshot
    assert [path.name for path in results.iterdir()] == ["paper"], "nothing is written"
