"""`ace-bench learn` over chats and OpenTelemetry exports, to its end, by the embedded backbone."""

import json
from pathlib import Path

import pytest

from ace_bench.api import load_run
from ace_bench.contexts import load
from ace_bench.store.calls import read_calls
from ace_traces.learn import main

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


def attribute(key, value):
    kind = "doubleValue" if isinstance(value, float) else "stringValue"
    return {"key": f"gen_ai.{key}", "value": {kind: value}}


def span(trace, ended, *, said=(), answered=(), events=(), error="", **attributes):
    """A span as the collector's file exporter writes it, one in a line."""
    if answered:
        attributes |= {"input.messages": json.dumps(said), "output.messages": json.dumps(answered)}
    found = [attribute(key, value) for key, value in attributes.items()]
    status = {"code": 2, "message": error} if error else {}
    judged = [
        {"name": "gen_ai.evaluation.result", "attributes": [attribute(f"evaluation.{k}", v) for k, v in e.items()]}
        for e in events
    ]
    one = {
        "traceId": trace,
        "spanId": f"{ended}",
        "endTimeUnixNano": f"{ended}",
        "attributes": found,
        "events": judged,
        "status": status,
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}


def part(role, kind, **fields):
    return {"role": role, "parts": [{"type": kind, **fields}]}


def test_spans_of_a_conversation_are_one_attempt_wherever_their_lines_are(learn):
    weather = part("user", "text", content="Weather in Paris?")
    call = part("assistant", "tool_call", id="1", name="get_weather", arguments={"location": "Paris"})
    result = part("tool", "tool_call_response", id="1", response="rainy")
    bad = {"name": "Relevance", "score.value": 2.0, "explanation": "It says nothing of the temperature."}
    rows = [
        span("t1", 1, said=[weather], answered=[call], **{"operation.name": "chat"}),
        span("t2", 2, said=[part("user", "text", content="Hello")], answered=[part("assistant", "text", content="Hi")],
             **{"conversation.id": "talk"}),
        span("t2", 2, events=[{"name": "Tone", "score.label": "pass"}], **{"operation.name": "evaluate"}),
        span("t1", 3, error="timeout", **{"operation.name": "execute_tool"}),
        span("t1", 4, said=[weather, call, result], answered=[part("assistant", "text", content="Rainy.")],
             system_instructions='[{"type": "text", "content": "Be brief."}]'),
        span("t1", 5, events=[bad], **{"operation.name": "evaluate"}),
    ]  # fmt: skip
    status, run = learn(rows, "task.score_range=[0, 5]", name="spans.json")
    assert status == 0
    found = rollouts(run)
    assert [*found] == ["t1", "talk"]
    (turn, last), grade = found["t1"]["attempt"]["trajectory"], found["t1"]["grade"]
    assert (turn["action"], turn["observation"], last["thought"]) == (
        "get_weather(location='Paris')",
        "rainy",
        "Rainy.",
    )
    assert (grade["score"], grade["correct"], grade["observed"]) == (0.4, False, "Error: timeout")
    assert "temperature" in grade["report"]
    assert found["talk"]["grade"]["correct"]
    told = {c.session.split("/")[1]: c.request.messages for c in read_calls(run.folder) if c.role == "reflector"}
    assert {key: "Be brief." in str(messages) for key, messages in told.items()} == {"t1": True, "talk": False}


BROKEN = [
    ('{"messages": [', "line 4: broken JSON"),
    ('{"messages": 3}', 'line 4: a chat is an object with a list "messages"'),
    ({"messages": [{"role": "wizard"}]}, "line 4, message 1: it must be an object with a role"),
    ({"messages": asked("Hello")}, "line 4: the assistant says nothing"),
    ({"messages": [says("Hello")]}, "line 4: there is no message of a user"),
    ({"messages": asked("a", says("b")), "score": 7}, "line 4: the score 7 is not a number from 0 to 1"),
    ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": 3}]}]}]}', "line 4: not OTLP's JSON form"),
    (span("t9", 1, **{"operation.name": "chat"}), "t9: no span holds what was said"),
]


@pytest.mark.parametrize(("row", "problem"), BROKEN)
def test_what_cannot_be_read_is_named_before_anything_is_spent(learn, row, problem, tmp_path, capsys):
    assert learn([*CHATS, row])[0] == 2
    assert "chats.jsonl, line 4" in (said := capsys.readouterr().err)
    assert problem in said
    assert not (tmp_path / "results").exists()


def test_what_cannot_be_read_is_left_out_where_the_user_wants_that(learn):
    rows = [row for row, _ in BROKEN]
    status, run = learn([*rows[:4], *CHATS, *rows[4:]], "task.broken=skip")
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
