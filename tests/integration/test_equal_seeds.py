"""Runs whose requests no seed changes are made once, and tables show one run; two names of one run are refused."""

import pytest

from ace_bench.cli.main import start
from ace_bench.core.errors import ConfigError
from ace_bench.report.records import find_runs
from ace_bench.runners.checking import Candidate, RunChecks
from tests.launching import launch
from tests.report.paper.conftest import compose, one_composer, reproduce  # noqa: F401 - fixtures

SMALL = ("task=finer", "task.source=sample", "limit=2", "mode.epochs=1", "mode.before=false")
MODEL = ("backbone=openai_compatible", "backbone.model=m")
OFFICIAL = ("protocol=official", "task.source=sample")


@pytest.mark.parametrize(
    ("overrides", "draws"),
    [
        (("method=base",), False),
        (("method=base", "mode=online"), False),
        (("method=base", *MODEL), False),
        (("method=base", *MODEL, "backbone.sampling.temperature=0.7"), True),
        (("method=base", *MODEL, "backbone.sampling.temperature=null"), True),
        (("method=base", *MODEL, "sampling.generator.temperature=1"), True),
        (("method=ace_empty",), False),
        (("method=icl",), True),
        (("method=ace",), True),
        (("method=ace", "mode.shuffle=false"), False),
        (("method=ace", "mode.shuffle=false", "method.reflector=off"), False),
        (("method=ace", "mode.shuffle=false", *MODEL, "sampling.reflector.temperature=1"), True),
        (("method=ace", "mode=online"), True),
        (("method=ace", "mode=online", "mode.shuffle=false"), False),
        (("method=ace", "mode=evaluate"), False),
        (("method=ace", *OFFICIAL), False),
        (("method=combee", "mode.shuffle=false"), True),
        (("method=gepa",), True),
        (("method=base", "task=bird_sql"), False),
        (("method=base", "task=appworld"), False),
    ],
)
def test_what_a_seed_draws_is_asked_of_the_parts(overrides, draws):
    assert RunChecks(compose).draws(("task=finer", *overrides)) == draws


def test_a_part_of_somebody_else_that_says_nothing_is_taken_to_draw(tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "silent.py").write_text(
        "from ace_bench.methods.base_llm import BaseLlm\nfrom ace_bench.tasks.finer import Finer\n"
        "class Silent(BaseLlm): ...\nclass Saying(BaseLlm):\n    draws_from_seed = False\nclass Other(Finer): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    checks = RunChecks(compose)
    assert checks.draws(("task=finer", "method=base", "method._target_=silent.Silent"))
    assert not checks.draws(("task=finer", "method=base", "method._target_=silent.Saying"))
    assert checks.draws(("task=finer", "method=base", "task._target_=silent.Other"))


def test_a_mixed_sweep_runs_once_what_no_seed_changes_and_tables_say_so(tmp_path, capsys, monkeypatch):
    command = ["run", "-m", *SMALL, "method=base,ace", "seed=0,1,2", f"results={tmp_path}"]
    monkeypatch.setattr("sys.argv", ["ace-bench"])
    start(command[0], command[1:])
    said = capsys.readouterr().out
    assert said.count("method=base") >= 1
    assert "is run once, with seed 0: it is greedy and draws nothing" in said
    runs = sorted((run.method, run.seed) for run in find_runs(tmp_path).runs)
    assert runs == [("ace", 0), ("ace", 1), ("ace", 2), ("base", 0)]
    assert start("tables", [str(tmp_path), "--rows", "method"]) == 0
    table = capsys.readouterr().out
    (base,) = (line for line in table.splitlines() if line.startswith("| base") and "seed 0" in line)
    (ace,) = (line for line in table.splitlines() if line.startswith("| ace") and "seeds 0, 1, 2" in line)
    assert "1 run: greedy, nothing is drawn" in base
    assert "nothing is drawn" not in ace
    assert "t over" in table or "+" in ace, "one run of the base is tested against three"
    for seed in (1, 2):
        launch(tmp_path, *SMALL, "method=base", f"seed={seed}")
    start("tables", [str(tmp_path), "--rows", "method"])
    again = capsys.readouterr().out
    assert base.replace("drawn", "drawn (also made with seed 1, 2)") in again


def test_a_plan_of_several_seeds_makes_and_misses_what_draws_nothing_once(reproduce, tmp_path):  # noqa: F811
    asked = ("experiment=field", "tasks=finer", "methods=icl,ace_empty", "passes=fit,once", "feedback=gold")
    said = reproduce(*asked, "backbone=embedded", "limit=1", "seed=0,1,2", "--dry-run")[1]
    assert "one seed, 4 runs: greedy, nothing is drawn" in said
    lines = [line for line in said.splitlines() if " ace-bench run " in line]
    by_method = {method: sum(f"method={method} " in line for line in lines) for method in ("base", "ace_empty", "icl")}
    assert by_method["icl"] == 3 * by_method["base"]


@pytest.mark.parametrize(
    ("runs", "same"),
    [
        ((("method=base", "concurrency=1"), ("method=base", "concurrency=8")), True),
        ((("method=ace", "seed=0"), ("method=ace", "seed=0")), True),
        ((("method=ace",), ("method=ace", "seed=0")), True),
        ((("method=ace", "mode.batch_size=1"), ("method=ace",)), True),
        ((("method=ace", "seed=0"), ("method=ace", "seed=1")), False),
        ((("method=ace", "method.curator_sees=1"), ("method=ace", "method.curator_sees=2")), False),
        ((("method=base", "name=a"), ("method=base", "name=b")), False),
    ],
)
def test_two_names_of_one_run_are_refused_before_anything_is_spent(runs, same, tmp_path):
    runs = [(*SMALL, *run, f"results={tmp_path}") for run in runs]
    check = RunChecks(compose).check
    if not same:
        check(Candidate(overrides=run) for run in runs)
        return
    with pytest.raises(ConfigError, match="are the same run") as caught:
        check(Candidate(overrides=run) for run in runs)
    for run in runs:
        assert " ".join(run) in str(caught.value)
    assert not list(tmp_path.iterdir())
