"""Design rule 1: reference answers and verdicts are where ``labels`` lets them be, and nowhere else.

Two runs that differ in hidden ones alone send the same messages (``tests.interference``).
"""

import csv
import json
import shutil

import pytest

from ace_bench.tasks.catalog import make_task
from tests.interference import SMALL, Case, Pair, cases, check_pair
from tests.launching import ROOT, brief, tasks

SAMPLE = "task.source=sample"
ACTING = [task for task in tasks() if brief(task)]
QUESTIONS = [task for task in tasks() if task not in ACTING]
COVER = (("method", "labels"), ("labels", "mode"), ("task", "labels"), ("task", "mode"))
QUICK = (("labels", "mode"), ("task", "labels"))


@pytest.fixture(scope="session")
def seen():
    """What a world answered, for all pairs."""
    return {}


@pytest.mark.parametrize("case", cases(QUESTIONS, COVER, QUICK))
def test_what_is_hidden_changes_no_message(case, tmp_path):
    check_pair(case, tmp_path, f"task={case.task}", SAMPLE)


@pytest.mark.slow
@pytest.mark.usefixtures("one_warm_engine")
@pytest.mark.parametrize("case", cases(ACTING, (("labels", "mode"),)))
def test_what_is_hidden_in_a_real_world_changes_no_message(case, seen, tmp_path):
    check_pair(case, tmp_path, f"task={case.task}", SAMPLE, *brief(case.task), seen=seen)


def same_calls(folder, *settings, hides, seen=None):
    pair = Pair(folder=folder, settings=(*SMALL, SAMPLE, *settings), seen=seen)
    (ran, first), (_, other) = pair.sent("first"), pair.sent("other", hides=lambda _: hides)
    assert first
    return first == other, ran


@pytest.mark.parametrize(("labels", "hides"), [("gold", (True, False)), ("correctness", (False, True))])
def test_what_labels_show_does_change_messages(labels, hides, tmp_path):
    settings = ("task=finer", "method=ace", "mode.epochs=1")
    assert not same_calls(tmp_path, *settings, f"labels={labels}", hides=hides)[0]


MEMORIES = "self_stream_icl mem_prompt awm reasoning_bank reflexion best_of_k"


@pytest.mark.parametrize("method", MEMORIES.split())
def test_a_memory_of_answers_holds_no_gold_whatever_labels_reveal(method, tmp_path):
    settings = ("task=ddxplus", f"method={method}", "mode=online", "labels=gold")
    assert same_calls(tmp_path, *settings, hides=(True, False))[0]


@pytest.mark.slow
@pytest.mark.usefixtures("one_warm_engine")
def test_rules_that_learn_from_executions_repeat_no_gold(seen, tmp_path):
    settings = ("task=appworld", "method=ace", "labels=gold", "method.reflector=rules", "mode.epochs=1")
    same, ran = same_calls(tmp_path, *settings, *brief("appworld"), hides=(True, False), seen=seen)
    assert same
    assert set(ran.metrics["calls"]["adapt"]) == {"generator"}


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("labels", ["correctness", "gold"])
def test_reflections_on_earlier_samples_bring_nothing_hidden(labels, mode, tmp_path):
    case = Case(task="finer", method="ace", labels=labels, mode=mode)
    check_pair(case, tmp_path, "task=finer", SAMPLE, "method.generator_reflections=3")


@pytest.mark.parametrize(
    ("task", "field"),
    [("finer", "target"), ("formula", "target"), ("ddxplus", "PATHOLOGY"), ("bird_sql", "SQL")],
)
def test_samples_do_not_depend_on_the_answers_in_their_file(task, field, tmp_path):
    published = ROOT / "ace_bench" / "tasks" / "samples" / task
    folder = shutil.copytree(published, tmp_path / task)
    for path in folder.glob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text(_with_other_answers(rows, field))
    settings = {"source": "real", "sample_allowed": False, **({"train_size": 60} if task == "ddxplus" else {})}
    made = [make_task(task, data_dir=str(one), **settings) for one in (published, folder)]
    _check_equal(*made)


def test_questions_of_a_file_do_not_depend_on_its_answers(tmp_path):
    text = (ROOT / "ace_bench/tasks/samples/qa/tickets.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    first, other = tmp_path / "first.jsonl", tmp_path / "other.jsonl"
    first.write_text("\n".join(map(json.dumps, rows)))
    other.write_text(_with_other_answers(rows, "team"))
    columns = {"question": "message", "answer": "team", "inputs": ["customer"], "id": "id", "split": "split"}
    made = [make_task("qa", data=str(path), sample_allowed=False, **columns) for path in (first, other)]
    _check_equal(*made)


def _with_other_answers(rows, field):
    """Return the rows as JSON lines, each with the answer of the one before it."""
    answers = [row[field] for row in rows]
    return "\n".join(
        json.dumps({**row, field: answer}) for row, answer in zip(rows, answers[-1:] + answers, strict=False)
    )


def _check_equal(task, other):
    """Check that two tasks have the same samples and different reference answers."""
    for split in ("train", "val", "test"):
        samples = task.samples(split)
        assert samples == other.samples(split)
        assert [task.failing_grade(one).gold for one in samples] != [other.failing_grade(one).gold for one in samples]
