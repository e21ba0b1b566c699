"""Thoughts at the one door of all calls: recorded, replayed, cached, counted, and read whole by the authors' rules."""

import json

import pytest

from ace_bench.core.errors import RolloutFault
from ace_bench.core.replies import ask_as_written, ask_once
from ace_bench.core.types import NO_USAGE, Completion, Message, Stage
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.runners.summary import summary_text
from ace_bench.store.call_log import CallLog
from ace_bench.store.responses import Responses
from tests.runners.scripted import Scripted, answer, events, gold, play, reflection

THOUGHT = "<think>perhaps rejected4711</think>\n\n"


class Says:
    name, simulated, identity, context_length = "says", True, {}, None

    def __init__(self, text):
        self.text = text

    def complete(self, messages, *, role, session, schema=None):
        return Completion(text=self.text, usage=NO_USAGE, seconds=0.0)


@pytest.fixture
def bind(tmp_path):
    """Bind a text to a new process of one run; ``cache`` adds a response cache, in a run of its own."""
    opened = []

    def make(text, *, cache=False):
        log = CallLog(tmp_path / (f"{len(opened)}.jsonl" if cache else "calls.jsonl"))
        replies = Responses(tmp_path / "cache") if cache else None
        opened.extend(filter(None, (log, replies)))
        gateway = CallGateway(calls=log, budget=Budget(), stop=Stop(), wall=lambda: 0.0, responses=replies)
        caller = Caller(stage=Stage.EVALUATE, role="generator", session="s")
        lm = BoundLm(gateway=gateway, backbone=Says(text), caller=caller)
        return log, lambda prompt="hello": lm([Message(role="user", content=prompt)])

    yield make
    for one in opened:
        one.close()


def test_a_reply_is_recorded_and_replayed_without_its_thoughts(bind, tmp_path):
    log, ask = bind(f"{THOUGHT}A")
    first = ask()
    assert (first.text, first.thoughts, first.as_written) == ("A", "perhaps rejected4711", f"{THOUGHT}A")
    log.sync()
    assert bind("another")[1]() == first
    (line,) = map(json.loads, (tmp_path / "calls.jsonl").read_text().splitlines())
    assert (line["text"], line["thoughts"], line["written"]) == ("A", first.thoughts, first.as_written)
    assert (log.ledger.total.thought, log.ledger.total.thought_chars) == (1, len(first.thoughts))


def test_a_reply_without_thoughts_is_recorded_as_before(bind, tmp_path):
    log, ask = bind("A")
    ask()
    log.sync()
    (line,) = map(json.loads, (tmp_path / "calls.jsonl").read_text().splitlines())
    assert not {"thoughts", "written", "several"} & set(line)


def test_the_response_cache_keeps_thoughts(bind):
    paid = bind(f"{THOUGHT}A", cache=True)[1]()
    cached = bind("another", cache=True)[1]()
    assert cached.replayed
    assert (cached.text, cached.thoughts, cached.as_written) == (paid.text, paid.thoughts, paid.as_written)


def test_thoughts_alone_are_an_empty_reply_and_the_authors_code_reads_them(bind):
    _, ask = bind(THOUGHT)
    with pytest.raises(RolloutFault) as caught:
        ask()
    assert (caught.value.fault.kind, caught.value.unreadable_text) == ("empty_reply", "")
    assert ask_once(lambda _: ask("again"), []) == ask_as_written(lambda _: ask("once more"), []) == THOUGHT


def reply(value):
    return f"{THOUGHT}{json.dumps({'final_answer': 'draft'})} No: {json.dumps(value)}"


def test_a_run_counts_thoughts_and_replies_with_several_objects_and_shows_them_to_nobody(tmp_path):
    script = Scripted(
        generator=lambda call: reply(answer(gold(call.sample))),
        reflector=lambda _: f"{THOUGHT}{json.dumps(reflection())}",
        curator=lambda _: f'{THOUGHT}{{"operations": []}}',
    )
    ran = play(tmp_path, script=script)
    metrics = ran.metrics
    assert metrics["headline"]["after"] == 100.0
    calls = metrics["calls"]
    for stage, roles in metrics["thoughts"].items():
        assert {role: one["replies"] for role, one in roles.items()} == calls[stage]
    assert metrics["several_objects"]["evaluate"] == {"generator": calls["evaluate"]["generator"]}
    summary = summary_text(metrics, [])
    assert "replies with thoughts" in summary
    assert "the last one that fits was read" in summary
    assert not any("rejected4711" in call.prompt for _, call in script.calls)
    assert "rejected4711" not in json.dumps(events(ran))
