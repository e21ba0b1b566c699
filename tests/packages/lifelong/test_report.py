"""Tables, matrices and figures of lives, against what their definitions give for the scores in their metrics."""

import csv
from pathlib import Path
from statistics import fmean

import pytest

from ace_bench.api import load_runs
from ace_bench.report.records import find_runs
from ace_bench.report.statistics import Point
from ace_lifelong import command
from ace_lifelong.figures import drawings
from ace_lifelong.lives import Life, LifeTest, Lives, group_lives
from ace_lifelong.measures import forgetting
from ace_report.figures.own_runs import write_sweep_figures
from tests.expected import check
from tests.launching import launch

LIFE = ("task=stream", "mode=lifelong", "mode.stages=[finer,formula,ddxplus]", "limit={train: 30, test: 30}")
ORDERS = (("ddxplus", "formula", "finer"), ("finer", "formula", "ddxplus"))
EXPECTED = Path(__file__).with_name("expected")


@pytest.fixture(scope="module")
def lives(tmp_path_factory):
    """Two seeds of a method that forgets in one order, and one in another; and one that does not learn."""
    folder = tmp_path_factory.mktemp("lives")
    for method, seed, order in (("dc", 0, 0), ("dc", 1, 0), ("dc", 0, 1), ("base", 0, 0)):
        named = f"mode.order=[{','.join(ORDERS[order])}]"
        assert launch(folder, *LIFE, named, f"method={method}", f"seed={seed}").status == 0
    return folder


def read(path):
    return [*csv.DictReader(path.read_text().splitlines())]


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the figures out, which take seconds."""
    monkeypatch.setattr(command, "drawings", lambda _: ())


@pytest.mark.usefixtures("undrawn")
def test_the_tables_of_lives(lives, tmp_path, capsys):
    """The measures on the page follow from the matrices of scores beside them."""
    assert command.main([str(lives), "--out", str(tmp_path)]) == 0
    page = (tmp_path / "lifelong.md").read_text()
    check(page, EXPECTED / "lifelong.md")
    methods, stages = page.index("### Stages"), page.index("### Orders")
    files = "".join(f"{tmp_path / name}\n" for name in ("lifelong.md", "lifelong.tex", "lifelong.csv", "tests.csv"))
    assert capsys.readouterr().out == page[:methods] + page[stages:] + files
    check((tmp_path / "tests.csv").read_text().replace(str(lives), "RESULTS"), EXPECTED / "tests.csv")
    row = read(tmp_path / "lifelong.csv")[1]
    shown = [f"{float(row[name]):.1f}" for name in ("end", "end low", "end high")]
    assert f"| {' > '.join(ORDERS[0])} | {len(row['seeds'].split())} |" in page
    assert "{} [{}, {}]".format(*shown) in page


def curve(series):
    places = zip(series.x, series.y, series.low or series.y, series.high or series.y, strict=True)
    return f"  {series.name} ({series.kind}): " + "  ".join(" ".join(f"{n:.4g}" for n in place) for place in places)


def test_curves_show_the_numbers_of_the_tables(lives):
    (stream,) = group_lives(find_runs(lives).runs)
    lines = []
    for name, drawing in drawings(stream):
        lines += [name, drawing.title, f"{drawing.height:g} high, {drawing.across} across, wide {drawing.wide}"]
        for panel in drawing.panels:
            lines += [f"{panel.title}: {panel.x_label}, {panel.y_label}, {panel.names}", *map(curve, panel.series)]
    check("\n".join(lines) + "\n", EXPECTED / "figures.txt")


@pytest.mark.slow
def test_figures_are_written(lives, tmp_path, monkeypatch):
    some = lambda stream: (one for one in drawings(stream) if "_order2" not in one[0])  # noqa: E731 - they take seconds
    monkeypatch.setattr(command, "drawings", some)
    assert command.main([str(lives), "--out", str(tmp_path)]) == 0
    names = {f"{name}.{kind}" for name in ("retention_order1", "growth_order1", "orders") for kind in ("pdf", "png")}
    assert names <= {path.name for path in tmp_path.iterdir()}
    files = write_sweep_figures(load_runs(lives, "method=dc"), tmp_path / "own", x="order")
    assert [path.suffix for path in files] == [".pdf", ".png"], "the order is a list"


@pytest.mark.usefixtures("undrawn")
def test_a_memory_that_learns_from_what_it_is_tested_on_has_a_living_gain(tmp_path):
    settings = ("task=ddxplus", "mode=lifelong", "mode.by=answer", "mode.parts=6", "mode.learnt_split=test")
    settings = (*settings, "mode.fresh=false", "limit=12", "method=dc")
    launch(tmp_path, *settings)
    ran = launch(tmp_path, *settings, "mode.epochs=2")
    assert command.main([str(tmp_path), "method=dc", "--out", str(tmp_path / "out")]) == 0
    _, row = read(tmp_path / "out" / "lifelong.csv")
    assert (row["method"], row["own - fresh"]) == ("epochs=2", "")
    assert "(answer1, answer2, answer3, answer4, answer5, answer6), embedded" in row["stream"]
    first = {}  # attempts, each before its sample is learnt from
    for line in ran.lines("journal"):
        if line["kind"] == "rollout" and line["stage"] == "adapt":
            first.setdefault(line["sample"], 100 * line["grade"]["score"])
    assert len(first) == 12
    assert float(row["living"]) == pytest.approx(fmean(first.values()))
    assert float(row["living gain"]) == pytest.approx(fmean(first.values()) - float(row["start"]))
    (stream,) = group_lives(find_runs(tmp_path).runs)
    spent, tokens = stream.lives[1].first.spent, ran.metrics["tokens"]["adapt"]
    assert [*spent] == [f"stage{number}" for number in range(1, 7)]
    assert sum(spent.values()) == tokens["in"] + tokens["out"]


def test_a_stage_that_ends_at_its_best_is_remembered_better_than_ever():
    def scored(**scores):
        points = {stage: {f"{stage}-{n}": Point(score=n < score) for n in range(10)} for stage, score in scores.items()}
        return LifeTest(tokens=0, items=0, asked=None, points=points)

    tests = {"stage1": scored(a=6, b=0), "stage2": scored(a=5, b=4), "stage3": scored(a=8, b=1)}
    life = Life(run=None, order=("a", "b", "c"), tests=tests, living={}, spent={})
    lives = Lives(name="m", order=life.order, seeds={0: life})
    assert forgetting(lives, "a").value == pytest.approx(-20)
    assert forgetting(lives, "b").value == pytest.approx(30)
    assert forgetting(lives).value == pytest.approx(5)


@pytest.mark.usefixtures("undrawn")
def test_runs_that_are_no_lives_or_lack_rollouts_are_refused_in_a_sentence(tmp_path, capsys):
    assert command.main([str(tmp_path / "none")]) == 2
    ran = launch(tmp_path / "runs", "task=formula", "method=base", "limit=2")
    assert command.main([str(tmp_path / "runs")]) == 2
    ran = launch(tmp_path / "lives", "task=bird_sql", "mode=lifelong", "method=base", "limit=8")
    journal = ran.folder / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"kind":"rollout"' not in line))
    assert command.main([str(tmp_path / "lives")]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 3
    assert "is not a folder" in said[0]
    assert "none of these runs is a finished one of mode=lifelong" in said[1]
