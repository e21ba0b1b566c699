"""Figures from run folders: what is drawn is what runs recorded, and says what they were."""

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from PIL import Image

from ace_bench.cli.main import start
from ace_bench.core.types import Stage, Usage
from ace_bench.report.evidence import CallCosts
from ace_bench.report.figures.paper_figures import draw_bars, draw_sensitivity
from ace_bench.report.figures.series import cache_curve, compare_runs
from ace_bench.report.figures.style import MAX_SERIES, SCREEN
from ace_bench.report.figures.write import write_figures
from ace_bench.report.tables.results_index import Wanted
from tests.report.paper.planned import Planner
from tests.report.paper.test_tables import ACE, BASE, REAL, SHARED, planned, results_index

EMBEDDED = ("backbone=embedded", "task.source=sample")


def words(figure):
    """All words of a figure."""
    texts = [figure.get_suptitle(), *(text.get_text() for legend in figure.legends for text in legend.get_texts())]
    return "\n".join(texts + [text.get_text() for axis in figure.axes for text in axis.texts])


def selection(results):
    (found,) = results_index(results).selections
    return found


@pytest.fixture
def planner(tmp_path):
    return Planner(tmp_path, SHARED.compose)


def test_settings_that_differ_are_different_series_and_the_most_usual_come_first(planner):
    for row in ("every_5", "never", "every_1"):
        planner.make(planned(f"17/{row}/finer"), ACE, extra=REAL, sizes=[1])
    planner.make(planned("17/base/finer"), BASE, extra=REAL)
    found = selection(planner.results).members
    compared = compare_runs(found, "title")
    names = ["ACE, harmful every none", "Base LLM", "ACE, harmful every 1", "ACE, harmful every 5"]
    assert [series.name for series in compared.series] == sorted(names)
    assert compared.title == "title, labels=gold"
    run = found[0]
    others = [
        replace(run, folder=run.folder / str(n), identity={**run.identity, "limit": n}) for n in range(1, MAX_SERIES)
    ]
    many = compare_runs([*found, *others], "title")
    assert len(many.series) == MAX_SERIES
    assert many.omitted == "+3 more, with less usual settings"
    assert {len(one.runs) for one in many.series} == {1}


def called(cached, prompt=100, replayed=False):
    usage = Usage(prompt=prompt, completion=1, cached=cached, usd=None)
    return CallCosts(stage=Stage.ADAPT, role="generator", session="s", usage=usage, replayed=replayed)


def test_cache_reuse_looks_back_on_a_window_of_tokens_and_leaves_out_replays():
    calls = [called(0), called(50), called(99, replayed=True), called(100), called(30, prompt=300)]
    assert [*cache_curve(calls, 2)] == [0, 25, 75, 32.5]
    assert cache_curve([called(0), called(None)], 2) is None, "unknown is not zero"
    assert cache_curve([], 2) is None


@pytest.mark.slow
def test_bars_of_another_setting_than_the_papers_say_so_and_stand_alone_unless_asked(planner):
    planner.make(planned("2/base/finer"), BASE, extra=(*REAL, "limit=40"))
    chosen = selection(planner.results)
    alone, asked = (draw_bars("figure_1", chosen, "Bars", SCREEN, with_paper=asked) for asked in (False, True))
    assert alone.get_suptitle() == asked.get_suptitle() == "Bars\n[not the paper's setting]"
    assert ["paper" in words(figure).splitlines() for figure in (alone, asked)] == [False, True]


def test_the_leaderboard_is_named_where_it_is_left_out_beside_simulated_runs(tmp_path):
    simulated = Planner(tmp_path, SHARED.compose, simulated=True, source="sample")
    simulated.make(planned("1/ace_offline_gt/normal_tgc"), ACE, extra=EMBEDDED, sizes=[1])
    alone = draw_bars("figure_5", selection(tmp_path), "Alone", SCREEN, with_paper=False)
    systems = "IBM CUGA, LOOP, ReAct + 2 SetBSR, ReAct, GPT-4o"
    assert f"published results not shown beside these runs: {systems}" in words(alone)
    assert "73.2" not in words(alone)


def test_one_point_of_a_setting_is_no_curve(planner):
    planner.make(planned("17/base/finer"), BASE, extra=REAL)
    planner.make(planned("17/every_5/finer"), ACE, extra=REAL, sizes=[1])
    assert draw_sensitivity("17", selection(planner.results), "One", SCREEN, with_paper=False) is None


@pytest.mark.slow
@pytest.mark.skipif(not all(map(shutil.which, ("pdflatex", "pdftotext"))), reason="LaTeX or poppler is not installed")
def test_a_figure_for_a_paper_has_a_caption_instead_of_a_title_and_compiles(tmp_path):
    simulated = Planner(tmp_path, SHARED.compose, simulated=True, source="sample")
    for row in ("base", "ace_offline_gt"):
        simulated.make(planned(f"2/{row}/finer"), BASE, extra=(*EMBEDDED, "limit={train: 5_0}"), sizes=[1])
    words = ["--results", str(tmp_path), "figure=overall", "style=paper_times", "--width", "column"]
    assert start("figures", words) == 0
    (pdf,) = (tmp_path / "figures").glob("*.pdf")
    shown = subprocess.run(["pdftotext", str(pdf), "-"], capture_output=True, text=True, check=True).stdout
    assert "simulated, sample data" in shown
    assert "Overall results" not in shown
    assert "Overall results, embedded" in pdf.with_suffix(".tex").read_text()
    head = "\\documentclass{article}\\usepackage{pgf}\\begin{document}"
    (pdf.parent / "paper.tex").write_text(f"{head}\\input{{{pdf.stem}}}\\end{{document}}")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"]
    done = subprocess.run(command, cwd=pdf.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.slow
def test_the_same_runs_give_the_same_files(planner):
    planner.make(planned("2/base/finer"), BASE, extra=REAL)
    index, wanted = results_index(planner.results), Wanted(names=("overall",))
    files, again = (write_figures(index, planner.results / name, wanted) for name in ("before", "after"))
    assert [file.suffix for file in files] == [".pdf", ".png"]
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]
    with Image.open(files[1]) as image:
        assert image.width > 1000
        assert len(image.convert("RGB").getcolors(maxcolors=1 << 20)) > 3, "something is drawn"


def test_figures_without_matplotlib_say_what_to_install(planner, capsys, monkeypatch):
    planner.make(planned("2/base/finer"), BASE, extra=REAL)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert start("figures", ["--results", str(planner.results)]) == 2
    assert "pip install 'ace-bench[analysis]'" in capsys.readouterr().err
