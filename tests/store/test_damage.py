"""What the records of a run that contradict each other lack, and what the loss costs."""

import json
import shutil

import pytest

from ace_bench.store.calls import read_calls
from ace_bench.store.damage import examine
from ace_bench.store.results import CHECKSUMS
from tests.launching import launch
from tests.packages.report.page.runs import changed


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    settings = ("task=formula", "task.source=sample", "method=ace", "mode.epochs=1", "limit={train: 1, test: 2}")
    return launch(tmp_path_factory.mktemp("damage"), *settings, "mode.before=false").folder


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def cut(path, number):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:number]))


def edit(folder, **changes):
    metrics = folder / "metrics.json"
    metrics.write_text(json.dumps({**json.loads(metrics.read_text()), **changes}))
    (folder / CHECKSUMS).unlink()


def said(folder):
    return [problem.replace(f"{folder}", "run") for problem in examine(folder).problems]


def test_a_whole_run_lacks_nothing(run):
    found = examine(run)
    assert (found.problems, found.finished, found.foreign, found.lost_calls) == ((), True, False, 0)
    assert found.metrics["steps"] == 1


def test_lost_calls_cost_what_the_result_counts_more_than_those_that_are_left(run):
    calls = list(read_calls(run))
    cut(run / "calls.jsonl", len(calls) - 2)
    found = examine(run)
    assert said(run) == [f"run/calls.jsonl lacks 2 of {len(calls)} recorded calls"]
    assert (found.lost_calls, found.foreign) == (2, False)
    gone = calls[-2].completion.usage + calls[-1].completion.usage
    assert (found.lost.prompt, found.lost.completion, found.lost.usd) == (gone.prompt, gone.completion, gone.usd)
    (run / "metrics.json").unlink()
    assert examine(run).lost.prompt is None, "nothing says what they cost"


def test_calls_of_another_run_do_not_count_as_its_own(run):
    changed(run, "calls.jsonl", lambda line: line.update(session="another"))
    found = examine(run)
    assert found.foreign
    assert found.journal_intact
    assert found.lost_calls == 0
    assert "so journal.jsonl and calls.jsonl are of different runs" in found.problems[0]


@pytest.mark.parametrize(
    ("changes", "contradicted"),
    [
        ({"steps": 2}, ["steps"]),
        ({"rollouts": {"adapt": 1, "evaluate": 3}}, ["rollouts"]),
        ({"usd": {"total": 1.0}}, []),
    ],
)
def test_a_result_that_its_own_records_contradict_is_named(run, changes, contradicted):
    edit(run, **changes)
    problems = [problem for problem in said(run) if "the result" in problem]
    assert [problem.split()[5] for problem in problems] == contradicted
    assert "run/checksums.jsonl is missing" in said(run)


def test_an_unfinished_line_is_damage_once_the_run_has_ended(run):
    with (run / "journal.jsonl").open("ab") as file:
        file.write(b'{"half')
    problem = "run/journal.jsonl ends in 6 bytes that are no complete line"
    assert said(run) == [problem]
    assert not examine(run).journal_intact
    for name in ("metrics.json", CHECKSUMS):
        (run / name).unlink()
    for state, ends in (("running", False), ("stopped", True)):
        (run / "status.json").write_text(json.dumps({"state": state}))
        assert (problem in said(run), examine(run).finished) == (ends, False)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("journal.jsonl", "run/journal.jsonl is missing"),
        ("metrics.json", "run/metrics.json is missing or damaged"),
        ("status.json", "run/status.json is missing"),
        ("config.yaml", "run/config.yaml is missing or damaged"),
        ("contexts/final.json", "run/contexts/final.json is missing or damaged"),
        ("processes.jsonl", None),
    ],
)
def test_a_missing_file_is_named_once(run, name, problem):
    (run / name).unlink()
    problems = said(run)
    assert [one for one in problems if name in one] == ([problem] if problem else [])
    assert len(problems) <= 1 or name == "journal.jsonl"
    assert examine(run).finished
