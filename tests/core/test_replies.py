import gc
import re
import subprocess
import sys
from ast import literal_eval

import msgspec
import pytest

from ace_bench.core.encoding import collector_paused
from ace_bench.core.errors import RolloutFault
from ace_bench.core.lenient_json import find_objects
from ace_bench.core.replies import (
    EMPTY_REPLY,
    ask,
    ask_once,
    describe_unreadable,
    is_offer,
    offer,
    parse,
    schema_of,
    takes_tools,
    without_repeats,
)
from ace_bench.core.types import NO_USAGE, Completion, Fault, Message
from tests.outcomes import as_texts, outcome, outcomes


class Reply(msgspec.Struct):
    answer: str
    ids: list[str] = []


class Scripted:
    def __init__(self, *texts):
        self.texts = list(texts)
        self.prompts = []

    def __call__(self, messages, schema=None):
        self.prompts.append(messages)
        return Completion(text=self.texts.pop(0), usage=NO_USAGE, seconds=0.0)


LONG = {
    "as deep as is read": "{'a': " + "[" * 49 + "]" * 49 + "}",
    "too deep": "{'a': " + "[" * 50 + "]" * 50 + "}",
    "much too deep": '{"more": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "15 broken objects": "{'a': }" * 15 + "{'b': 2}",
    "16 broken objects": "{'a': }" * 16 + "{'b': 2}",
    "as long as is read": "{'b': 2}".ljust(200_000),
    "too long": "{'b': 2}".ljust(200_001),
}
ENDLESS = {
    "lists without end": "{'answer': " + "['x', " * 100_000,
    "objects without end": '{"answer": ' + '{"a' * 60_000,
    "quotes without end": '{"a": "' + '" ' * 90_000,
    "quotes of two kinds": "{'\"" * 60_000,
    "braces without end": "{" * 300_000 + '"answer": "a"}',
}


def read(text):
    """Return the reply that a text holds, and the objects in it."""
    return f"{str(outcome(parse, text, Reply)).partition(' object: ')[0]}\n    {[*find_objects(text)]}"


REPLIES = [
    '\'{"answer": "a}b", "ids": []}\'',
    '\'  \\n{"answer": "a}b"}\\n\'',
    '\'Sure!\\n```json\\n{"answer": "a}b"}\\n```\\nDone.\'',
    '\'```\\n{"answer": "a}b", "extra": 1}\\n```\'',
    '\'{"answer": "a}b", "ids": ["line\\nbreak\\tand tab"]}\'',
    '\'I think {"answer": "a}b", "ids": ["x"]} is right, or {"answer": "c"}\'',
    "\"{'answer': 'a}b', 'ids': ['x', 'y',]}\"",
    '\'{"answer": "a}b", "more": None, "ids": ["x", "y"], "sure": True}\'',
    '\'{"more": "an area \\\\(x\\\\)", "answer": "a}b"}\'',
    '\'{"more": "we say "net", then "gross".", "answer": "a}b", "ids": ["x", "y"],}\'',
    '\'{"ids": ["x", "y"], "answer": "a}b"\'',
    '\'{"ids": ["x", "y"], "answer": "a}b",\'',
    '\'Use {x} and \\\\frac{1}{2}. {"other": 1} {"answer": "a}b"}\'',
    '\'{"answer": "cut of\'',
    '\'{"ids": [], "answer": 12\'',
    '\'{"answer": "a", "ids": ["x"\'',
    '\'{"answer": "a", "ids": ["x", "cut\'',
    "'{\"answer\": 1,234}'",
    "'{\"ids\": []}'",
    '\'{"answer": "a", "ids": "x"}\'',
    "''",
    "'no object here'",
    "'\\ud800{\"answer\": '",
    '\'{"a": "\\\\u00e9\\\\ud83d\\\\ude00\\\\(\\\\n\\\\"",}\'',
    "\"{'a':1,'b':-2.5e3,'c':007,'d':[x y,True]}\"",
    "\"{'a': 1} {'b': {'c': 2}} {'d'\"",
    "\"{'a': } {'b': 2}\"",
    "\"{'a': 1 'b': 2}\"",
    "\"{'a': 1, 'b': {'c': 2\"",
    "\"{'a': 1,\"",
]


def test_texts_are_read_as_replies_and_searched_for_objects_or_are_unreadable(snapshot):
    assert outcomes(lambda case: read(literal_eval(case)), REPLIES) == snapshot
    assert as_texts([(name, read(text)) for name, text in LONG.items()]) == snapshot


@pytest.mark.parametrize("name", ENDLESS)
def test_hostile_texts_are_only_unreadable(name):
    with pytest.raises(ValueError, match=r"."):
        parse(ENDLESS[name], Reply)


def test_ask_asks_again_with_the_reason_and_only_once():
    wrong = f'{{"ids": ["{NUMBERS}"]}}'
    lm = Scripted(wrong, '{"answer": "yes"}')
    assert ask(lm, [Message(role="user", content="?")], Reply).answer == "yes"
    reason = (
        "That reply could not be read: Object missing required field `answer`. Send only the JSON object asked for "
    )
    _, (_, echo, again) = lm.prompts
    assert (echo, again.content) == (Message(role="assistant", content=wrong[:2000].rstrip()), f"{reason}above.")
    lm = Scripted("nonsense", "still nonsense", '{"answer": "too late"}')
    with pytest.raises(RolloutFault) as caught:
        ask(lm, [Message(role="user", content="?")], Reply)
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("model", "unreadable_reply")
    assert len(lm.prompts) == 2


RUNAWAYS = {
    "blanks": '{"ids": ["a"' + " \n\t" * 400,
    "blanks between": '{"ids":' + "\n" * 900 + '["a"',
    "a character": '{"ids": ["' + "x" * 5000,
    "a sentence": '{"ids": ["' + "The entity is the amount of the loan. " * 90,
    "items of a list": '{"ids": [' + '"a-00001", ' * 500,
    "escaped lines": '{"ids": ["' + "\\n" * 3000,
}


@pytest.mark.parametrize("text", RUNAWAYS.values(), ids=RUNAWAYS)
def test_what_is_asked_again_and_shown_to_others_does_not_repeat_a_reply_that_ran_away(text):
    lm = Scripted(text, text)
    with pytest.raises(RolloutFault) as caught:
        ask(lm, [Message(role="user", content="?")], Reply)
    echo = lm.prompts[1][1].content
    assert echo.startswith('{"ids":')
    for shown in (echo, describe_unreadable(caught.value)):
        assert len(shown) < 300
        assert not re.search(r"\s{20}", shown)


def test_what_a_reply_says_once_is_shown_as_it_is():
    said = '{"answer": 1000000, "why": "ha ha ha, no ---------- and\n            return 5.0000000"}'
    assert without_repeats(said) == said


NUMBERS = " ".join(map(str, range(1000, 2000)))


def test_an_unreadable_reply_is_shown_with_the_reason_and_without_its_middle():
    def shown(text, kind="unreadable_reply"):
        paid = None if text is None else Completion(text=text, usage=NO_USAGE, seconds=0.0)
        return describe_unreadable(RolloutFault(Fault(owner="model", kind=kind, message="odd"), paid))

    assert shown(None) == shown(" ") == "(This reply could not be read: odd.)"
    assert shown("x", "length_truncated").startswith(
        "(This reply could not be read: it reached the limit of its length"
    )
    assert shown(NUMBERS[:1999]) == "(This reply could not be read: odd.)\n" + NUMBERS[:1999]
    assert shown(NUMBERS[:2002]).endswith(f"{NUMBERS[1490:1500]}\n[2 characters left out]\n{NUMBERS[1502:2002]}")
    assert shown(f"{NUMBERS[:1500]}xyz{NUMBERS[-500:]}").endswith(f"\n[3 characters left out]\n{NUMBERS[-500:]}")


def test_the_authors_code_takes_what_came_and_asks_once():
    def refuse(kind, text):
        paid = Completion(text=text, usage=NO_USAGE, seconds=0.0)
        raise RolloutFault(Fault(owner="model", kind=kind, message="no"), paid)

    assert EMPTY_REPLY == "INCORRECT_DUE_TO_EMPTY_RESPONSE, " * 3 + "INCORRECT_DUE_TO_EMPTY_RESPONSE"
    for kind, text in (("empty_reply", ""), ("length_truncated", "cut"), ("no_content", EMPTY_REPLY)):
        assert ask_once(lambda _, kind=kind, text=text: refuse(kind, text), []) == text
    for kind in ("refusal", "other"):
        with pytest.raises(RolloutFault):
            ask_once(lambda _, kind=kind: refuse(kind, ""), [])


def test_schema_is_self_contained():
    schema = schema_of(Reply)
    assert schema["properties"]["ids"]["type"] == "array"
    assert "$ref" not in str(schema)


def test_a_request_may_offer_tools():
    assert offer([{"name": "a"}]) == {"tools": [{"name": "a"}]}
    assert offer([], "auto") == {"tools": [], "tool_choice": "auto"}
    assert [is_offer(schema) for schema in (None, schema_of(Reply), offer([]))] == [False, False, True]
    lm = Scripted()
    assert not takes_tools(lm)
    lm.takes_tools = True
    assert takes_tools(lm)


CODE = """
import sys, threading
sys.setswitchinterval(1e-6)
from ace_bench.ace.replies import parse_operations
from ace_bench.core.replies import parse
from ace_bench.ace.replies import ReflectorReply
start = threading.Barrier(16)
def read():
    start.wait()
    parse('{"key_insight": "x", "bullet_tags": [{"id": "a", "tag": "helpful"}]}', ReflectorReply)
    parse_operations([{"type": "ADD", "section": "s", "content": "c"}, {"type": "TAG", "id": "a", "tag": "helpful"}])
threads = [threading.Thread(target=read) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_threads_that_meet_a_type_together_do_not_crash_the_interpreter():
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", CODE], check=False).returncode == 0


def test_the_collector_is_paused_and_then_as_it_was():
    assert gc.isenabled()
    with collector_paused():
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
