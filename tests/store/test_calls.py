"""Every call is kept as it was sent, in little room, and comes back whatever became of the run since."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import StoreError
from ace_bench.core.types import Completion, Message, Stage, Usage
from ace_bench.store.call_log import CallLog, PaidReply
from ace_bench.store.calls import Request, StoredRequest, read_calls, restore_request
from ace_bench.store.lines import SEAL
from ace_bench.store.requests import RequestHistory

LINES = [f"[sai-{number:05d}] (strategies) {'word ' * 30}{number}" for number in range(300)]
OBJECT = {"type": "object"}
REPLY = Completion(text="fine", usage=Usage(), seconds=0.1)


@pytest.fixture
def opened(tmp_path):
    """Open the calls of one and the same folder, each time as another process would."""
    logs = []

    def open_log():
        logs.append(CallLog(tmp_path / "calls.jsonl"))
        return logs[-1]

    yield open_log
    for log in logs:
        log.close()


def playbook_prompt(bullets, question, helpful=0):
    counters = "\n".join(f"sai-{number:05d}: helpful {number % 7 + (number == helpful)}" for number in range(bullets))
    system = Message(role="system", content="You answer questions.")
    return [system, Message(role="user", content="\n".join([*LINES[:bullets], counters, f"What about {question}?"]))]


def ask(log, number, messages, role="generator", *, fault=None, schema=OBJECT):
    request = log.prepare(f"session {number}", role, messages, schema=schema, settings={"model": "m"})
    log.add(f"{request.name}/0", PaidReply(completion=REPLY, fault=fault), stage=Stage.ADAPT, request=request)
    return request.name


def sent_by(folder):
    return {call.id.rpartition("/")[0]: list(call.request.messages) for call in read_calls(folder)}


def test_messages_schema_and_settings_come_back_exactly(opened, tmp_path):
    log = opened()
    sent = [playbook_prompt(number, f"\u00fc {number} \U0001f600", helpful=number) for number in range(100, 120)]
    for number, messages in enumerate(sent):
        ask(log, number, messages, role=("generator", "curator")[number % 2])
    calls = list(read_calls(tmp_path))
    assert [list(call.request.messages) for call in calls] == sent
    assert {json.dumps([call.request.schema, call.request.settings]) for call in calls} == {
        '[{"type": "object"}, {"model": "m"}]'
    }
    assert all(call.completion == REPLY and call.at > 0 for call in calls)


def test_a_growing_playbook_takes_the_room_of_what_is_new(opened, tmp_path):
    log = opened()
    sizes = []
    for number in range(290, 300):
        ask(log, number, playbook_prompt(number, f"question {number}", helpful=number - 100))
        sizes.append((tmp_path / "calls.jsonl").stat().st_size)
    assert sizes[0] > 50_000
    assert max(after - before for before, after in pairwise(sizes)) < 2_000


def test_the_question_of_a_session_is_stored_once_for_all_its_roles(opened, tmp_path):
    log = opened()
    sent = {}
    for role in ("generator", "reflector", "curator"):
        for number in range(3):  # sessions take turns
            question = "".join(f"{number}, line {line}: {'words ' * 20}\n" for line in range(50))
            messages = [Message(role="user", content=f"You are the {role}.\n{question}</question>")]
            sent[ask(log, number, messages, role)] = messages
    assert sent_by(tmp_path) == sent
    assert (tmp_path / "calls.jsonl").stat().st_size < 3 * len(question) + 9 * 600


def test_calls_of_many_threads_refer_only_to_what_stands_before_them(opened, tmp_path):
    log = opened()
    sent = [playbook_prompt(100 + number % 50, f"question {number}") for number in range(200)]
    with ThreadPoolExecutor(16) as pool:
        names = list(pool.map(lambda number: ask(log, number, sent[number]), range(len(sent))))
    assert sent_by(tmp_path) == dict(zip(names, sent, strict=True))
    known = set()
    for line in map(json.loads, (tmp_path / "calls.jsonl").read_text().splitlines()):
        assert {line["request"]["base"], line["request"]["first"]} <= {None, *known}
        known.add(line["id"].split("/")[-2])


@given(
    st.lists(
        st.lists(st.sampled_from(["", "a", "b\u2028", "a line of more than twenty letters", "d" * 5000]), max_size=8),
        max_size=8,
    )
)
def test_any_request_is_restored_from_the_one_before(prompts):
    history, base = RequestHistory(), None
    for number, prompt in enumerate(prompts):
        messages = [Message(role="user", content="\n".join(prompt)), Message(role="assistant", content="x" * number)]
        request = history.prepare("s", "r", messages, schema=None, settings={})
        stored = StoredRequest(**request.record())
        base = restore_request(stored, base, None, request.name.split("/")[2])
        assert list(base.messages) == messages
        history.add(request)


@pytest.mark.parametrize(
    "changed", [{"schema": {"type": "array"}}, {"settings": {"model": "n"}}, {"role": "curator"}, {"session": "t"}]
)
def test_whatever_differs_in_a_request_changes_the_name_of_its_call(changed):
    middle = ["x" * 10_000, "y", "x" * 10_000]
    usual = {"session": "s", "role": "r", "messages": [Message(role="user", content="".join(middle))]}
    usual |= {"schema": None, "settings": {"model": "m"}}
    history = RequestHistory()
    names = {history.prepare(**one).name for one in (usual, usual | changed)}
    middle[1] = "z"
    names.add(history.prepare(**usual | {"messages": [Message(role="user", content="".join(middle))]}).name)
    assert len(names) == 3


@given(st.integers(1, 3), st.integers(-2, 2), st.integers(0, 3))
def test_the_last_character_counts_whatever_the_length_and_whatever_was_asked_before(blocks, more, begun):
    size = 4096 * blocks + more
    names = set()
    for before in ("", "x" * begun * 4096):
        for last in "yz":
            history = RequestHistory()
            for content in (before, "x" * (size - 1) + last):
                messages = [Message(role="user", content=content)]
                request = history.prepare("s", "r", messages, schema=None, settings={})
                history.add(request)
            names.add(request.name)
    assert len(names) == 2


def test_a_schema_is_stored_as_what_changed_in_it(opened, tmp_path):
    ids = [f"others-{number:05}" for number in range(300)]
    schemas = [
        None,
        *({"properties": {"ids": {"enum": ids[:size]}, "answer": {}}} for size in (0, 300, 299, 2, 2)),
        None,
    ]
    log = opened()
    for number, schema in enumerate(schemas):
        ask(log, number, [Message(role="user", content="?")], schema=schema)
    assert [call.request.schema for call in read_calls(tmp_path)] == schemas
    sizes = [len(line) for line in (tmp_path / "calls.jsonl").read_bytes().splitlines()]
    assert sizes[3] < sizes[2] / 5, "one id less"
    assert sizes[5] == min(sizes[1:-1])


@pytest.mark.parametrize(
    "changes",
    [{"messages": [["user", ["What is that?"]]]}, {"head": {"schema": None}}, {"head": None, "base": "0" * 16}],
    ids=str,
)
def test_a_request_that_was_changed_is_not_believed(changes, opened, tmp_path):
    ask(opened(), 0, [Message(role="user", content="What is it?")])
    path = tmp_path / "calls.jsonl"
    record = json.loads(path.read_text())
    unsealed = {name: value for name, value in record.items() if name not in SEAL}
    path.write_text(json.dumps({**unsealed, "request": {**record["request"], **changes}}) + "\n")
    with pytest.raises(StoreError, match=r"does not hold the messages of session 0/generator/\w+/0: it was changed"):
        list(read_calls(tmp_path))


@pytest.mark.parametrize("spans", [5, None, [5], [[0]], [[0, "x"]], [[0, 10**9]], ["{"], []], ids=str)
def test_a_schema_of_wrong_spans_is_not_believed(spans):
    base = Request(messages=(), schema=OBJECT, settings={})
    stored = StoredRequest(base="base", first=None, head={"schema_spans": spans}, messages=[])
    assert restore_request(stored, base, None, "0" * 16) is None


def test_a_call_that_damage_took_is_made_again_and_the_others_are_whole(opened, tmp_path):
    path = tmp_path / "calls.jsonl"
    log = opened()
    sent = {}
    for number in range(6):
        messages = playbook_prompt(100, f"question {number}")
        sent[ask(log, number, messages)] = messages
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    with pytest.raises(StoreError, match="a line is missing"):
        list(read_calls(tmp_path))
    ask(opened(), 2, playbook_prompt(100, "question 2"))
    assert sent_by(tmp_path) == sent
