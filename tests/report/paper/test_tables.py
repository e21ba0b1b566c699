"""Tables from run folders: what stands in them, what never stands side by side, and what broken folders leave whole."""

import json
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from ace_bench.cli.main import start
from ace_bench.report.conditions import Selector, Variant
from ace_bench.report.records import find_runs
from ace_bench.report.tables.paper_tables import void_note
from ace_bench.report.tables.results_index import ResultsIndex, Wanted
from ace_bench.report.tables.write import write_tables
from tests.report.paper.conftest import compose
from tests.report.paper.planned import Planner

REAL = ("backbone=deepseek_v3_1",)
SHARED = ResultsIndex(results=Path(), compose=compose)
"""For its experiments, and for configurations that are slow to compose."""

BASE = [1.0] * 10 + [0.0] * 30
ACE = [1.0] * 8 + [0.0] * 2 + [1.0] * 20 + [0.0] * 10
"""Ten right without a context, twenty-eight with: twenty won, two lost."""


def planned(ref):
    return SHARED.experiments.run(*ref.split("/"))


def results_index(results, *extra):
    return ResultsIndex(results=results, compose=SHARED.compose, extra=extra)


def made(results, *which, extra=(), **shown):
    """The cells of the tables written but that of the claims, and the text of all."""
    out = results / "tables"
    files = write_tables(results_index(results, *extra), out, Wanted(names=which, **shown))
    grids = [file for file in files if file.suffix == ".csv" and "_claims_" not in file.name]
    read = {file.stem: pd.read_csv(file, dtype={"table": str, "seeds": str}) for file in grids}
    return {stem: table.set_index(["row", "column"]) for stem, table in read.items()}, (out / "tables.md").read_text()


def edit_metrics(folder, **changed):
    """Give a run other metrics."""
    file = folder / "metrics.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))


@pytest.fixture
def real(tmp_path):
    """FiNER with and without a playbook, two seeds of the playbook, by a real model on real data."""
    planner = Planner(tmp_path, SHARED.compose)
    planner.make(planned("2/base/finer"), BASE, extra=REAL, faults=3)
    for seed in (0, 1):
        planner.make(planned("2/ace_offline_gt/finer"), ACE, extra=REAL, seed=seed, sizes=[5, 9])
    return tmp_path


def test_latex_takes_a_width_and_leaves_the_papers_numbers_out(real):
    assert r"\begin{table*}" in latex_of(real, "2")
    alone = latex_of(real, "2", paper=False, width="column")
    assert r"\begin{table}" in alone
    assert "70.7" not in alone


def latex_of(results, name, **form):
    """The LaTeX of the one table that is written."""
    (file,) = write_tables(results_index(results), results / "tables", Wanted(names=(name,), formats=("tex",), **form))
    return file.read_text()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_the_tables_of_the_paper_compile_as_they_are(real, tmp_path):
    names = [name for name, plan in SHARED.experiments.tables.items() if plan.layout == "table"]
    wanted = Wanted(names=tuple(names), formats=("tex",), standalone=True)
    texts = [file.read_text() for file in write_tables(results_index(real), tmp_path, wanted)]
    assert len(texts) == len(names)
    tables = [text.partition("\\begin{document}")[2].removesuffix("\\end{document}\n") for text in texts]
    parts = [texts[0].partition("\\begin{document}")[0], "\\begin{document}", *tables, "\\end{document}"]
    (tmp_path / "all.tex").write_text("".join(parts))
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


def test_a_table_that_nobody_ran_is_written_if_asked_for(real):
    tables, text = made(real, "11")
    (table,) = tables.values()
    assert set(table.state) == {"missing"}
    assert "backbone=deepseek_v3_1" in text
    names = {name.split("_")[1] for name in made(real)[0]}
    assert names >= {"02", "16"}
    assert not names & {"07", "08", "09", "11"}, "those are of other models, or nobody ran them"


def test_a_setting_of_one_task_finds_the_runs_made_with_it(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    planner.make(planned("2/base/finer"), ACE, extra=(*REAL, "limit=2"))
    planner.make(planned("2/base/formula"), ACE, extra=(*REAL, "limit=9"))
    tables, _ = made(tmp_path, "2", extra=["limit=9", "finer:limit=2"])
    (table,) = tables.values()
    assert (table.loc["base", "finer"].value, table.loc["base", "formula"].value) == (70.0, 70.0)


@pytest.mark.slow
def test_runs_are_told_apart_by_what_can_change_an_answer_and_named_by_the_model(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    here = ("backbone=vllm", "backbone.url=http://here:1", "backbone.model=org/m-1.5")
    there = ("backbone=openai_compatible", "backbone.base_url=http://there:2/v1", "backbone.model=org/m-1.5")
    planner.make(planned("2/base/finer"), [1.0], extra=here)
    planner.make(planned("2/base/formula"), [1.0, 0.0], extra=(*there, "backbone.timeout=9", "concurrency=3"))
    planner.make(planned("2/base/finer"), [0.0], extra=(*here, "backbone.sampling.temperature=0.7"))
    planner.make(planned("2/base/finer"), [0.0, 1.0], extra=(*here, "+backbone.extra_body.think={a: true}"))
    planner.make(planned("2/base/finer"), [1.0, 1.0, 0.0, 0.0, 0.0], extra=(*here, "embedder=static:m"))
    tables, text = made(tmp_path, "2")
    values = {name: table.loc["base"].value.dropna().to_dict() for name, table in tables.items()}
    assert values == {
        "table_02_org_m-1.5": {"finer": 100.0, "formula": 50.0, "average": 75.0},
        "table_02_org_m-1.5-temperature_0.7": {"finer": 0.0, "formula": 50.0, "average": 25.0},
        "table_02_org_m-1.5-think_a_true": {"finer": 50.0, "formula": 50.0, "average": 50.0},
        "table_02_org_m-1.5-embedder_static_m": {"finer": 40.0},
    }
    other = tables["table_02_org_m-1.5-temperature_0.7"].loc["base"]
    assert ["not the planned run" in other.notes[column] for column in ("finer", "formula")] == [False, True]
    assert "runs with org/m-1.5, sampling.temperature=0.7" in text
    commands = [line for line in text.splitlines() if line.startswith("ace-bench run ")]
    for command in commands:
        assert SHARED.compose(shlex.split(command.partition("  #")[0])[2:-1]), "what is printed can be run"
    assert sum("http://here:1" in command for command in commands) == len(commands)
    asked, _ = made(tmp_path, "2", extra=[*there, "backbone.base_url=http://elsewhere:3/v1"])
    assert asked["table_02_org_m-1.5"].loc["base", "average"].value == 75.0, "the address and the way do not matter"
    none, text = made(tmp_path, "11", extra=[*here[:2], "backbone.model=org/none"])
    assert list(none) == ["table_11_org_none"]
    assert "backbone.url=http://here:1" in text


def test_what_the_paper_plans_itself_is_its_setting(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    planner.make(planned("11/base/average"), BASE, extra=REAL)
    planner.make(planned("3/one_epoch/normal_tgc"), ACE, extra=REAL, sizes=[1])
    tables, _ = made(tmp_path, "11", "3")
    assert [table.not_the_papers_setting.isna().all() for table in tables.values()] == [True, True]


@pytest.mark.parametrize(
    ("settings", "seeds"),
    [
        ("backbone=deepseek_v3_1 limit=1", "5"),
        ("limit=1 limit=null", "0 1"),
        ("task.source=real protocol=paper", "0 1 5"),
        ("finer:limit=1 formula:limit=2", "5"),
        ("labels=gold method.nothing=1", "0 1 5"),
        ("backbone=gpt_5_1", ""),
        ("task.source=sample", ""),
        ("protocol=official@ba78d34", ""),
    ],
)
def test_runs_that_were_made_otherwise_than_asked_are_not_shown(settings, seeds, real):
    """Of four runs, one of them with a limit, the seeds of the runs that fit the settings."""
    Planner(real, SHARED.compose).make(planned("2/base/finer"), [1.0], extra=(*REAL, "limit=1"), seed=5)
    selector = Selector(configurations=SHARED.configurations, plans=(), extra=settings.split())
    found = selector.variants(find_runs(real).runs).values()
    assert " ".join(sorted({str(run.seed) for some in found for run in some})) == seeds


@pytest.mark.parametrize(
    ("limit", "is_shown"), [("{train: 3, test: 4}", True), ("{test: 4}", True), ("{test: 5}", False)]
)
def test_runs_are_chosen_by_their_limits_of_splits(limit, is_shown, tmp_path):
    Planner(tmp_path, SHARED.compose).make(planned("2/base/finer"), [1.0], extra=(*REAL, "limit={train: 3, test: 4}"))
    selector = Selector(configurations=SHARED.configurations, plans=(), extra=(f"limit={limit}",))
    assert bool(selector.variants(find_runs(tmp_path).runs)) == is_shown


def test_conditions_are_named_by_what_can_change_an_answer():
    known = {"backbone": "vllm", "name": "org/m-1.5", "overrides": ("backbone=vllm", "limit=4")}
    real = Variant(**known, changes=("gepa:method.k=1", "limit=4"), source="real")
    assert (real.label, real.slug, real.comparable) == (
        "org/m-1.5, gepa:method.k=1, limit=4",
        "org_m-1.5-gepa_k_1-limit_4",
        True,
    )
    sample = replace(real, simulated=True, source="sample", changes=("prompts=" + "x" * 180,))
    assert sample.label.endswith("x [simulated, sample data: not comparable with published numbers]")
    assert (len(sample.slug), sample.slug[:22], sample.comparable) == (180 + 9, "org_m-1.5-prompts_xxxx", False)


def test_the_script_writes_three_forms_and_one_page_of_all(real, capsys):
    assert start("tables", ["table=2", "--results", str(real), "--differences"]) == 0
    assert "ours - paper" in (real / "tables" / "tables.md").read_text()
    names = [f"table_02_deepseek_v3_1.{suffix}" for suffix in ("md", "tex", "csv")]
    assert sorted(file.name for file in (real / "tables").iterdir()) == sorted([*names, "tables.md"])
    assert str(real / "tables" / "tables.md") in capsys.readouterr().out


def test_a_row_is_void_where_more_than_a_tenth_of_a_roles_replies_were_cut():
    def run(cut):
        metrics = {"calls": {"adapt": {"curator": 50}}, "cut_replies": {"adapt": {"curator": cut}, "evaluate": {}}}
        return SimpleNamespace(metrics=metrics)

    assert void_note([run(5)]) == ""
    assert void_note([run(0), run(17)]) == "void: 34% of the curator's replies were cut"
    assert void_note([SimpleNamespace(metrics={})]) == "", "runs of older versions do not say"


def test_the_name_of_a_void_base_stands_without_the_mark_where_others_are_compared_with_it(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    planner.make(planned("2/ace_offline_gt/finer"), ACE, extra=REAL, sizes=[5])
    base = planner.make(planned("2/base/finer"), BASE, extra=REAL)
    edit_metrics(base, cut_replies={"adapt": {}, "evaluate": {"generator": 20}})
    _, text = made(tmp_path, "2")
    assert "| Base LLM (void: 50% of the generator's replies were cut) |" in text
    assert "change against Base LLM (points)" in text


def test_a_table_that_no_run_fills_is_still_marked_as_simulated(tmp_path):
    planner = Planner(tmp_path, SHARED.compose, simulated=True, source="sample")
    planner.make(planned("2/base/finer"), BASE, extra=("backbone=embedded",))
    tables, text = made(tmp_path, "2", extra=("backbone=embedded", "limit=40"))
    assert list(tables) == ["table_02_embedded-limit_40-simulated-sample_data"]
    assert "[simulated, sample data: not comparable with published numbers]" in text
    assert "| paper |" not in text


def test_the_file_of_all_tables_keeps_those_of_earlier_commands(real):
    made(real, "2")
    _, text = made(real, "5")
    headings = [line.partition("(")[2][:7] for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["table 2", "table 5"]


def test_a_run_of_another_row_never_fills_a_cell(real):
    planner = Planner(real, SHARED.compose)
    planner.make(planned("2/ace_offline/formula"), ACE, extra=REAL, sizes=[5])
    planner.make(planned("17/every_5/finer"), ACE, extra=REAL, sizes=[5])
    shutil.rmtree(planner.folder(planned("2/ace_offline_gt/finer"), REAL, 0).parent)
    table = made(real, "2")[0].popitem()[1]
    assert pd.isna(table.loc["ace_offline_gt", "formula"].value)
    assert pd.isna(table.loc["ace_offline_gt", "finer"].value)


def test_a_run_of_an_older_version_whose_classes_moved_and_whose_transport_is_gone_fills_its_cell(tmp_path):
    planner = Planner(tmp_path, SHARED.compose)
    for seed in (0, 1):
        folder = planner.make(planned("2/ace_offline_gt/finer"), ACE, extra=REAL, seed=seed, sizes=[5])
        planner.make(planned("2/base/finer"), BASE, extra=REAL, seed=seed)
        for name in ("identity.json", "config.yaml"):
            text = (folder / name).read_text()
            assert "ace_bench.playbook" in text
            (folder / name).write_text(text.replace("ace_bench.playbook", "ace_bench.contexts.playbook"))
        record = json.loads((folder / "identity.json").read_text())
        record["settings"]["method"] |= {"curator_every": 1, "token_budget": 80_000}  # which are constants now
        (folder / "identity.json").write_text(json.dumps(record))
    for config in tmp_path.rglob("config.yaml"):
        config.write_text(config.read_text().replace("backbone:\n", "backbone:\n  client: built_in\n"))
    tables, text = made(tmp_path, "2")
    (table,) = tables.values()
    assert table.loc["ace_offline_gt", "finer"].value == 70.0
    assert "backbone=deepseek_v3_1" in text
    assert "client" not in text, "no command would take it"
