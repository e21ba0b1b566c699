"""Code that decides a result was edited: an old score is never given for that of the new code, and nothing is lost."""

import importlib
import json
import sys
from types import SimpleNamespace

import pytest

from ace_bench.ace import ace
from ace_bench.report.records import find_runs
from ace_bench.report.tables.formats import csv, markdown, page_of
from ace_bench.report.tables.own_tables import Layout, own_tables
from ace_bench.store.code import asks_a_server
from ace_bench.store.processes import read_processes
from tests.backbones.openai_compatible.scripted import answer
from tests.backbones.openai_compatible.test_experiment import Limited, overrides
from tests.backbones.serving import running
from tests.doubles import Recording
from tests.launching import launch, options, quick, retries

MINE = '''"""Parts of my own."""
from dataclasses import replace

from ace_bench.agents.single_turn import SingleTurn
from ace_bench.core.types import GeneratorSpec
from ace_bench.methods.base_llm import BaseLlm
from ace_bench.tasks.formula import Formula

TEMPLATE = "base"
SUFFIX = ""
LEAST = 0


class Method(BaseLlm):
    def __init__(self):
        self.generator = GeneratorSpec(template=TEMPLATE, answer_format="text")


class Task(Formula):
    def score(self, grades):
        return {"accuracy": max(LEAST, super().score(grades)["accuracy"]), "least": LEAST} if grades else {}


class Agent(SingleTurn):
    def solve(self, *arguments):
        attempt = super().solve(*arguments)
        return replace(attempt, answer=attempt.answer + SUFFIX)
'''
SMALL = ("task=formula", "method=base", "limit=3", "mode.epochs=1")
PARTS = {
    "method": (("+method={_target_: mine.Method}",), '"base"', '"reflexion"'),
    "task": (("task._target_=mine.Task",), "LEAST = 0", "LEAST = 1"),
    "agent": (("agent._target_=mine.Agent",), 'SUFFIX = ""', 'SUFFIX = "1"'),
}
EDITS = {
    **{part: (*edit, "come out otherwise") for part, edit in PARTS.items()},
    "headline": (PARTS["task"][0], "(Formula):", '(Formula):\n    headline = "least"', "come out otherwise (headline)"),
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Write a module of the user's, again and again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text, name="mine"):
        (tmp_path / f"{name}.py").write_text(text)
        for module in ("mine", "mine_helper", "mine_grader"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()

    write(MINE)
    yield write
    sys.modules.pop("mine", None)


@pytest.fixture
def start(tmp_path, capsys):
    """Launch with a paid model; returns the run, the number of calls paid for, and what was printed."""

    def started(*overrides):
        made = []
        ran = launch(
            tmp_path / "results", *SMALL, *overrides, backbone=lambda inner: Recording(inner, made, simulated=False)
        )
        return ran, len(made), " ".join("".join(capsys.readouterr()).split())

    return started


def ends(ran):
    return [process.how for process in read_processes(ran.folder)]


@pytest.mark.parametrize("part", EDITS)
def test_an_edited_part_does_not_answer_with_the_old_score(part, mine, start):
    chosen, old, new, difference = EDITS[part]
    first, paid, _ = start(*chosen)
    assert (first.status, paid) == (0, 3)
    mine(MINE.replace(old, new))
    ran, paid, said = start(*chosen)
    assert (ran.status, paid, ran.folder) == (2, 0, first.folder)
    assert "was made by other code: mine changed, and " in said
    assert difference in said
    assert "resume=false makes a new run beside it, accept_code=true keeps this result" in said
    assert "This run is finished" not in said
    assert ends(ran) == ["finished"]
    beside, paid, _ = start(*chosen, "resume=false")
    assert (beside.status, paid) == (0, 3)
    assert beside.folder != first.folder
    again, paid, said = start(*chosen)
    assert (again.status, paid, again.folder) == (0, 0, beside.folder)
    assert "replayed" not in said


def test_an_accepted_result_is_marked_wherever_it_is_shown(mine, start, tmp_path):
    chosen, old, new = PARTS["agent"]
    start(*chosen)
    mine(MINE.replace(old, "SUFFIX = 1"))
    assert "replaying it raises TypeError" in start(*chosen)[2]
    mine(MINE.replace(old, new))
    ran, paid, said = start(*chosen, "accept_code=true")
    assert (ran.status, paid) == (0, 0)
    words = "made by other code: mine changed, and accept_code=true accepted it"
    assert words.split(",", maxsplit=1)[0] in said
    assert ends(ran) == ["finished", "accepted"]
    assert start(*chosen)[0].status == 0
    start(*chosen, "seed=1")
    tables = own_tables(find_runs(tmp_path / "results").runs, Layout(rows=("method",), columns=("task",)))
    assert f"seed 0 {words}" in markdown(page_of(*tables))
    mine(MINE)
    assert start(*chosen)[0].status == 0
    assert ends(ran) == ["finished", "accepted", "replayed"]
    tables = own_tables(find_runs(tmp_path / "results").runs, Layout(rows=("method",), columns=("task",)))
    assert "Runs that were made by different code" in markdown(page_of(*tables))
    assert "seeds by different code: mine" in csv(tables)


def test_a_finished_run_with_lost_calls_cannot_be_checked_and_keeps_its_journal(mine, start):
    chosen, old, _ = PARTS["agent"]
    folder = start(*chosen)[0].folder
    calls, journal = folder / "calls.jsonl", (folder / "journal.jsonl").read_bytes()
    calls.write_bytes(calls.read_bytes()[:-300])
    mine(MINE.replace(old, "SUFFIX = str()"))
    for accepted, status, words in (
        ((), 2, "changed, and without the lost calls a replay cannot check the result."),
        (("accept_code=true",), 0, "This run is finished"),
    ):
        ran, paid, said = start(*chosen, *accepted)
        assert (ran.status, paid, words in said) == (status, 0, True), said
        assert (folder / "journal.jsonl").read_bytes() == journal


def test_an_unfinished_run_is_not_continued_by_other_code(mine, start):
    chosen, old, new = PARTS["agent"]
    cut, paid, _ = start(*chosen, "budget.calls=2", "concurrency=1")
    assert (cut.status, paid) == (3, 2)
    mine(MINE.replace("SUFFIX", "ENDING"))
    assert start(*chosen, "budget.calls=2")[0].status == 3
    assert ends(cut) == ["stopped", "replayed", "stopped"]
    mine(MINE.replace(old, new))
    ran, paid, said = start(*chosen)
    assert (ran.status, paid) == (2, 0)
    assert "was begun by other code: mine changed, and 2 of its 2 recorded rollouts come out otherwise" in said
    assert "accept_code=true continues this one with the new code" in said
    assert json.loads((cut.folder / "status.json").read_text())["state"] == "stopped"
    ran, paid, _ = start(*chosen, "accept_code=true")
    assert (ran.status, paid) == (0, 1)
    assert "made by several versions of the code: mine changed" in " ".join(
        (ran.folder / "summary.txt").read_text().replace("│", "").split()
    )


def test_a_grader_counts_with_what_it_imports(mine, start, tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text("".join(f'{{"q": "Which is {n}? Options: {n}, 9.", "a": "{n}"}}\n' for n in range(8)))
    grader = "from mine_helper import equal\n\n\ndef same(answer, gold):\n    return equal(answer, gold)\n"
    helper = "def equal(a, b):\n    return a == b\n"
    asked = ("task=qa", f"task.data={data}", "task.question=q", "task.answer=a", "task.grader=python:mine_grader.same")
    mine(helper, name="mine_helper")
    mine(grader, name="mine_grader")
    first = start(*asked)[0]
    assert first.status == 0
    mine(helper.replace("a == b", "a != b"), name="mine_helper")
    ran, paid, said = start(*asked)
    assert (ran.status, paid) == (2, 0)
    assert "mine_helper changed" in said
    mine(grader.replace("return equal", "return not equal"), name="mine_grader")
    assert start(*asked)[0].folder.parent != first.folder.parent, "its file is part of the data"


def rewritten(ran, change):
    """Rewrite the code that a run recorded, as another version of ace-bench would have recorded it."""
    path = ran.folder / "processes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "code" in line:
            line["code"] = change(line["code"])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("learns", [True, False])
def test_a_new_version_of_ace_bench_keeps_a_run_where_it_gives_the_same_result(learns, start, monkeypatch):
    asked = ("method=ace",)
    first, paid, _ = start(*asked)
    assert paid > 6
    rewritten(first, _all_ours_changed)
    if not learns:
        whole = ace.Ace.update
        monkeypatch.setattr(ace.Ace, "update", lambda self, *a: _without_changes(whole(self, *a), a[0]))
    ran, paid, said = start(*asked)
    assert paid == 0
    assert ran.status == (0 if learns else 2)
    assert "more modules changed, and " in said
    assert ("a replay gave the same result" in said) is learns
    assert ("come out otherwise" in said) is not learns


def _all_ours_changed(code):
    return {name: "0" * 12 if asks_a_server(name) else digest for name, digest in code.items()}


def _without_changes(update, context):
    return type(update)(context=context)


def test_a_backbone_that_is_code_is_asked_again_unless_a_paid_one_is_beside_it(start, tmp_path, capsys):
    lessons = "ace_bench.backbones.embedded.lessons"

    def edit(ran):
        rewritten(ran, lambda code: {**code, lessons: "0" * 12})

    edit(launch(tmp_path, *SMALL))
    assert launch(tmp_path, *SMALL).status == 0
    assert f"{lessons} changed, and a replay gave the same result" in " ".join(capsys.readouterr().out.split())
    edit(start()[0])
    ran, paid, said = start()
    assert (ran.status, paid) == (2, 0)
    assert f"{lessons} answers in place of a model, which a replay cannot check" in said


@pytest.mark.slow
@pytest.mark.parametrize("method", options("method"))
def test_every_method_comes_to_the_same_in_a_replay(method, start):
    mode = () if not retries(method) else ("mode=online", "~mode.epochs", "+mode.epochs=1")
    asked = (f"method={method}", *quick(method), *mode, *(("labels=correctness",) if method == "reflexion" else ()))
    first, _, said = start(*asked)
    assert first.status == 0, said
    rewritten(first, _all_ours_changed)
    again, paid, said = start(*asked)
    assert (again.status, paid) == (0, 0), said
    assert ends(again) == ["finished", "replayed"]


def test_an_edit_that_changes_no_result_keeps_the_run_and_is_recorded(mine, start):
    chosen = PARTS["agent"][0]
    start(*chosen)
    mine(MINE.replace("SUFFIX", "ENDING"))
    ran, paid, said = start(*chosen)
    assert (ran.status, paid) == (0, 0)
    assert "mine changed, and a replay gave the same result" in said
    assert "This run is finished" in said
    assert ends(ran) == ["finished", "replayed"]
    assert "replayed" not in start(*chosen)[2]


def test_runs_of_versions_that_recorded_no_code_stay_as_they_are(mine, start):
    chosen, old, new = PARTS["agent"]
    first, _, _ = start(*chosen)
    rewritten(first, lambda _: {})
    mine(MINE.replace(old, new))
    ran, paid, said = start(*chosen)
    assert (ran.status, paid) == (0, 0)
    assert "This run is finished" in said
    (first.folder / "processes.jsonl").unlink()
    assert start(*chosen)[0].status == 0


def test_a_replay_needs_no_server_and_asks_in_the_form_that_the_probe_found(tmp_path, capsys):
    server = Limited([answer('{"reasoning": "r", "bullet_ids": [], "final_answer": "x"}')], ["embedded"])
    run = ("method=base", "agent.scaffold=json", "limit=2", "mode.epochs=1", "estimate=false")
    with running(server):
        asked = overrides(SimpleNamespace(address=server.url), "backbone.api_key_env=null", *run)
        first = launch(tmp_path, *asked)
    rewritten(first, _all_ours_changed)
    again = launch(tmp_path, *asked)
    assert (first.status, again.status) == (0, 0), capsys.readouterr()
    assert ends(again) == ["finished", "replayed"]
