"""Whole runs on a user's data: what identifies them, the judge's calls, and where gold answers go."""

import csv
from statistics import fmean

import pytest

from ace_bench.cli.main import start
from ace_bench.core.resources import CONFIG_DIRS
from ace_bench.core.settings import build
from ace_bench.runners.build import assemble
from ace_bench.runners.composing import settle
from ace_bench.runners.identifying import identify
from ace_bench.runners.settings import decode
from ace_bench.tasks.qa import Qa
from tests.doubles import Crash, Recording, crash_after
from tests.launching import composed, launch
from tests.tasks.judging import RIGHT, JudgeSaying
from tests.tasks.qa.making import made

TEAMS = ("billing", "delivery", "returns")
SMALL = ("task=qa", "limit={train: 6, val: 2, test: 4}", "mode.epochs=1", "concurrency=2")
COLUMNS = ("task.question=message", "task.answer=team", "task.group=customer")


def marker(number):
    return f"planted{number}{TEAMS[number % 3]}"


def write(path, rows=40):
    """A table whose answers are unmistakable."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["message", "team", "customer"])
        table.writerows([f"Message {n} about matter {n % 3}", marker(n), f"c{n // 2}"] for n in range(rows))
    return path


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "table.csv")


def own(data, *more):
    return (*SMALL, f"task.data={data}", *COLUMNS, *more)


def planned(data, seed=0, **settings):
    """Return the plan of a run; composing once and changing the result is quicker than composing each time."""
    config, choices = composed("task=qa", "method=base")
    config.seed = seed
    config.task = {**config.task, "data": str(data), "question": "message", "answer": "team", **settings}
    return assemble(identify(decode(settle(config, choices))))


def digest(data, **settings):
    return planned(data, **settings).identity.digest


def test_data_counts_by_content_and_settings_by_value(data, tmp_path):
    first = digest(data)
    (tmp_path / "elsewhere").mkdir()
    assert digest(write(tmp_path / "elsewhere" / "table.csv")) == first
    assert digest(data, grader="contains") != first
    assert digest(data, split_seed=1) != first
    note = tmp_path / "note.md"
    note.write_text("Say it.")
    asked = digest(data, instruction=str(note))
    assert asked == digest(data, instruction="Say it.") != first
    note.write_text("Say it now.")
    assert digest(data, instruction=str(note)) != asked
    assert planned(data, seed=1).task.samples("test") == planned(data).task.samples("test"), "a run's seed moves none"
    write(data, rows=41)
    assert digest(data) != first


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (r'task.instruction="Use \${name}, \${ x"', "Use ${name}, ${ x"),
        ("task.instruction=${results}/note.md", "Say it."),
        ("task.instruction=Costs $5", "Costs $5"),
    ],
)
def test_what_refers_to_settings_is_a_file_and_never_a_text(words, shown, data, tmp_path):
    (tmp_path / "note.md").write_text("Say it.")
    config, chosen = composed(*own(data), words, f"results={tmp_path}")
    task = build(settle(config, chosen).settings["task"], "task", sample_allowed=False)
    assert task.samples("test")[0].inputs["background"] == f"{shown}\n"


@pytest.mark.parametrize("labels", ["gold", "correctness"])
def test_gold_answers_go_where_labels_lets_them_and_to_the_judge(labels, data, tmp_path):
    asked = []
    settings = own(data, "task.grader=judge", f"labels={labels}")
    ran = launch(tmp_path, *settings, backbone=lambda inner: Recording(inner, asked))
    roles = {role for role, _, prompt in asked if "planted" in prompt}
    assert roles - {"judge"} == ({"generator", "reflector", "curator"} if labels == "gold" else set())
    answers = {
        (record["sample"], record["attempt"]["answer"])
        for record in ran.lines("journal")
        if record.get("attempt") and record["attempt"]["answer"].strip() and not record["grade"]["correct"]
    }
    calls = [call["session"] for call in ran.lines("calls") if call["role"] == "judge"]
    assert len(calls) == len(set(calls)) == len(answers)
    assert ran.metrics["calls"]["evaluate"]["judge"] > 0


class Topics(Qa):
    headline = "by_topic"

    def score(self, grades):
        means = [fmean(grade.correct for grade in grades if grade.group == one) for one in {g.group for g in grades}]
        return {**super().score(grades), "by_topic": 100 * fmean(means)} if grades else {}


def test_a_task_of_ones_own_inherits_the_settings_and_adds_its_metric(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(CONFIG_DIRS, str(tmp_path))
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "topics.yaml").write_text(
        f"defaults: [qa, _self_]\n_target_: {__name__}.Topics\nquestion: message\nanswer: team\ngroup: customer\n"
    )
    table = write(tmp_path / "table.csv")
    assert start("check", ["topics", f"task.data={table}"]) == 0
    assert "by_topic 100.00" in capsys.readouterr().out
    ran = launch(tmp_path, "task=topics", *SMALL[1:], f"task.data={table}", "method=base")
    assert ran.metrics["headline"]["metric"] == "by_topic"
    assert set(ran.metrics["splits"]["test"]["after"]) >= {"accuracy", "by_topic"}


@pytest.mark.parametrize(("said", "after", "faults"), [(RIGHT, 100.0, 0), ('{"reason": "", "verdict": "yes"}', 0.0, 4)])
def test_the_verdict_decides_and_one_that_cannot_be_read_is_a_fault(said, after, faults, data, tmp_path):
    ran = launch(tmp_path, *own(data, "task.grader=judge"), backbone=lambda inner: JudgeSaying(inner, said))
    test = ran.metrics["splits"]["test"]["after"]
    assert (test["accuracy"], test["n"], test["faults"]) == (after, 4, faults)
    assert sum(ran.metrics["faults"]["evaluate"].values()) == faults
    assert all(kind.startswith("judge/model/") for kind in ran.metrics["faults"]["evaluate"])
    assert ("reflector" in ran.metrics["calls"]["adapt"]) is not bool(faults), "nothing is learnt without a grade"


def test_a_judged_run_that_is_killed_and_continued_pays_for_no_call_twice(data, tmp_path):
    settings = own(data, "task.grader=judge")
    paid = []
    whole = launch(tmp_path / "whole", *settings, backbone=lambda inner: Recording(inner, paid))
    total = len(paid)
    paid = []
    for _ in range(total):
        try:
            ran = launch(
                tmp_path / "cut", *settings, backbone=lambda inner: Recording(inner, paid, before=crash_after(15))
            )
            break
        except Crash:
            pass
    assert len(paid) == total
    assert ran.lasting() == whole.lasting()


def test_a_function_that_fails_on_answers_leaves_faults_of_the_task(data, tmp_path, monkeypatch):
    (tmp_path / "picky_grading.py").write_text("def equal(answer, gold):\n    assert answer == gold\n    return True\n")
    monkeypatch.chdir(tmp_path)
    ran = launch(tmp_path, *own(data, "task.grader=python:picky_grading.equal", "method=base"))
    assert ran.metrics["headline"]["metric"] == "score"
    assert ran.metrics["faults"]["evaluate"] == {"generator/task/grader": 4}
    assert "grader picky_grading.py" in ran.metrics["data"]


def test_a_data_set_of_the_hub_is_read_by_its_splits(data, tmp_path):
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "train.csv").write_bytes(data.read_bytes())
    (folder / "test.csv").write_bytes(data.read_bytes())
    datasets.disable_progress_bars()
    task = made(f"hub://{folder}", question="message", answer="team")
    assert [len(task.samples(split)) for split in task.splits] == [40, 40]
    assert task.repeats[0].startswith("40 of 40 questions of test are also in train")
    assert list(task.checksums) == [f"hub://{folder}"]
