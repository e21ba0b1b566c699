"""`ace-bench learn` over chats and OpenTelemetry exports, to its end, by the embedded backbone."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from ace_bench.api import load_run
from ace_bench.contexts import load
from ace_bench.core.errors import DataError
from ace_bench.store.calls import read_calls
from ace_traces.learn import main
from ace_traces.task import TracesTask
from tests.expected import check, check_answers

DATA = Path(__file__).with_name("data")
SETTINGS = {"right_from": 0.5, "feedback": "feedback", "reference": "reference", "broken": "refuse"}

SYSTEM = {"role": "system", "content": "You are an office assistant."}
CALL = {"id": "c", "function": {"name": "ledger", "arguments": '{"account": "Globex", "password": "hunter2"}'}}
REPLY = '{"paid": "120 EUR", "token": "qx77zz"}'


def asked(text, *others):
    return [SYSTEM, {"role": "user", "content": text}, *others]


def says(text, **more):
    return {"role": "assistant", "content": text, **more}


CHATS = [
    {"id": "right", "score": 1, "messages": asked(
        "What did Globex pay?", says(None, tool_calls=[CALL]), {"role": "tool", "content": REPLY},
        says("120 EUR [strate-00007]"))},
    {"id": "wrong", "messages": asked("What did Acme pay? Key sk-abcdefghijklmnop1234", says("I do not know.")),
     "feedback": {"score": 0, "comment": "The ledger has it."}, "reference": "80 EUR"},
    {"id": "unknown", "messages": asked("What did Initech pay?", says("20 EUR")), "feedback": "It took long."},
]  # fmt: skip


@pytest.fixture
def learn(tmp_path):
    """Runs the command on rows written as one file; returns the status and, if there is one, the run."""

    def run(rows, *words, name="chats.jsonl"):
        file = tmp_path / name
        file.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
        status = main([str(file), f"results={tmp_path}/results", *words])
        folders = [path.parent for path in Path(tmp_path).glob("results/*/*/*/*/journal.jsonl")]
        return status, load_run(folders[0]) if folders else None

    return run


def rollouts(run):
    lines = map(json.loads, (run.folder / "journal.jsonl").read_text().splitlines())
    return {line["sample"]: line for line in lines if line["kind"] == "rollout"}


def prompts_of(run, role):
    """The user's messages of a role, by sample."""
    return {c.session.split("/")[1]: c.request.messages[-1].content for c in read_calls(run.folder) if c.role == role}


def test_attempts_are_learnt_from_and_none_is_made(learn, tmp_path):
    out = tmp_path / "playbook.json"
    status, run = learn(CHATS, "--out", str(out))
    assert (status, run.metrics["steps"], load(out)) == (0, 3, run.playbook)
    assert run.playbook.size == 2
    assert {role for calls in run.metrics["calls"].values() for role in calls} == {"reflector", "curator"}
    scores = run.metrics["splits"]["test"]["after"]
    assert [round(scores[name]) for name in ("score", "right", "scored")] == [50, 50, 67]
    right = rollouts(run)["right"]["attempt"]
    assert (right["cited"], right["trajectory"][0]["observation"]) == (
        ["strate-00007"],
        '{"paid": "120 EUR", "token": "[key]"}',
    )
    assert (right["reply"], right["counters"]) == ("120 EUR [strate-00007]", {"turns": 2})
    assert right["trajectory"][0]["action"] == "ledger(account='Globex', password='[key]')"
    shown = prompts_of(run, "reflector")
    assert "The answer is not correct.\nScore: 0\nThe ledger has it." in shown["wrong"]
    assert "80 EUR" in shown["wrong"]
    assert "It took long." in shown["unknown"]
    assert "correct" not in shown["unknown"]
    written = "".join(path.read_text() for path in run.folder.rglob("*") if path.suffix in (".json", ".jsonl"))
    assert not [secret for secret in ("hunter2", "sk-abc", "qx77zz") if secret in written]


def test_a_run_that_was_stopped_continues_and_ends_as_one_that_was_not(learn, tmp_path):
    assert learn(CHATS, "budget.calls=3")[0] == 3
    status, run = learn(CHATS)
    calls = len([*read_calls(run.folder)])
    assert (status, learn(CHATS)[0], len([*read_calls(run.folder)])) == (0, 0, calls)
    other = tmp_path / "whole"
    assert learn([json.dumps(CHATS)], f"results={other}", name="chats=1.json")[0] == 0
    assert load_run(next(other.glob("*/*/*/*"))).playbook == run.playbook


def test_what_files_hold_is_read():
    """Messages of all forms, several files in a folder, logs beside spans: every attempt as a method gets it."""
    made = []
    for score, low in ((None, 0), ("tone", -3)):
        task = TracesTask(files=[str(DATA)], score=score, score_range=[low, 1], **SETTINGS, sample_allowed=False)
        grades = []
        for sample in task.samples("test"):
            with task.open(sample) as session:
                grades.append(session.grade(None))
                assert task.failing_grade(sample) == grades[-1]
                made.append({"id": sample.id, **sample.inputs, **asdict(session.attempt), **asdict(grades[-1])})
        made.append({"headline": task.headline, **task.score(grades)})
    check(json.dumps(made, indent=1, default=str) + "\n", Path(__file__).with_name("expected") / "traces.json")


BROKEN = Path(__file__).with_name("expected") / "broken.txt"


def test_what_cannot_be_read_is_named(tmp_path):
    file = tmp_path / "chats.jsonl"

    def answer(row):
        file.write_text("\n".join([*map(json.dumps, CHATS), row]))
        with pytest.raises(DataError) as found:
            TracesTask(files=[str(file)], score=None, score_range=[0, 1], **SETTINGS, sample_allowed=False)
        return str(found.value).replace(f"{tmp_path}/", "")

    check_answers(BROKEN, answer)


def test_what_cannot_be_read_is_refused_before_anything_is_spent_or_left_out_where_the_user_wants_that(learn, tmp_path):
    rows = [line[2:] for line in BROKEN.read_text().splitlines() if line.startswith("$ ")]
    mixed = [*rows[:4], *CHATS, *rows[4:]]
    assert (learn(mixed), (tmp_path / "results").exists()) == ((2, None), False)
    status, run = learn(mixed, "task.broken=skip")
    assert (status, run.metrics["steps"]) == (0, 3)


def test_settings_that_do_not_fit_are_refused(learn, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("none")
    wrong = {
        "mode=offline": "mode=online",
        "task.score=quality": "no attempt has a score",
        "task.score_range=[5, 1]": "must be the lowest and the highest score",
        f"task.files=[{tmp_path}/nothing]": "there are no traces at",
        f"task.files=[{tmp_path}/notes.txt]": "notes.txt is not a file of traces",
    }
    for word, problem in wrong.items():
        assert learn(CHATS, word)[0] == 2
        assert problem in capsys.readouterr().err
