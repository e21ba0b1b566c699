"""What the records of a run that contradict each other lack, and what the loss costs."""

import json
import shutil

import pytest

from ace_bench.store.calls import read_calls
from ace_bench.store.damage import examine
from ace_bench.store.results import CHECKSUMS
from tests.launching import launch
from tests.outcomes import as_texts
from tests.report.page.runs import changed


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


def edit(**changes):
    """Return what changes the result of a run, as if no checksums had been kept."""

    def change(folder):
        metrics = folder / "metrics.json"
        metrics.write_text(json.dumps({**json.loads(metrics.read_text()), **changes}))
        (folder / CHECKSUMS).unlink()

    return change


def append(folder):
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"half')


def restart(state):
    """Return what makes a finished run one that another process has in hand, in mid-line."""

    def change(folder):
        append(folder)
        for name in ("metrics.json", CHECKSUMS):
            (folder / name).unlink()
        (folder / "status.json").write_text(json.dumps({"state": state}))

    return change


def remove(name):
    return lambda folder: (folder / name).unlink()


FILES = ("journal.jsonl", "metrics.json", "status.json", "config.yaml", "contexts/final.json", "processes.jsonl")
SPOILT = {
    "nothing": lambda _: None,
    "other steps": edit(steps=2),
    "other rollouts": edit(rollouts={"adapt": 1, "evaluate": 3}),
    "other dollars": edit(usd={"total": 1.0}),
    "an unfinished line": append,
    "an unfinished line of a running run": restart("running"),
    "an unfinished line of a stopped run": restart("stopped"),
    **{f"{name} is missing": remove(name) for name in FILES},
}


def test_what_contradicts_or_lacks_is_named(snapshot, finished, tmp_path):
    outcomes = []
    for case, spoil in SPOILT.items():
        folder = shutil.copytree(finished, tmp_path / case)
        spoil(folder)
        found = examine(folder)
        about = {"finished": found.finished, "foreign": found.foreign, "journal intact": found.journal_intact}
        problems = "".join(f"\n    {one}" for one in found.problems).replace(str(folder), "run")
        outcomes.append((case, f"{about}, lost calls: {found.lost_calls}{problems}"))
    assert as_texts(outcomes) == snapshot


def test_lost_calls_cost_what_the_result_counts_more_than_those_that_are_left(run):
    calls = list(read_calls(run))
    cut(run / "calls.jsonl", len(calls) - 2)
    found = examine(run)
    assert found.problems == (f"{run}/calls.jsonl lacks 2 of {len(calls)} recorded calls",)
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
