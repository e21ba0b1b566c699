"""Of several objects in a reply the last counts, and none that only repeats the form of the prompt."""

import time

import pytest

from ace_bench.ace.replies import CuratorReply, ReflectorReply
from ace_bench.agents.single_turn import GeneratorReply, read_reply
from ace_bench.core.objects import Echo, find_echo, holds_several
from ace_bench.core.replies import parse, schema_of
from ace_bench.core.types import Message
from ace_bench.tasks.answers import JudgeReply

FORM = (
    Message(role="system", content='Reply with {"reasoning": "<why>", "final_answer": "<the answer>"}.'),
    Message(role="user", content="Which?"),
)
WORDS = (Message(role="user", content='Send {"reasoning": "your reasoning", "final_answer": "your answer here"}.'),)
EXAMPLE = (Message(role="user", content='Send, for example, {"reasoning": "step by step", "final_answer": "42"}.'),)
WORKED = (
    Message(role="user", content='Q1: {"final_answer": "A"}\nQ2: {"final_answer": "B"}\nQ3?'),
    Message(role="assistant", content='{"final_answer": "..."}'),
)

READ = {
    "two fences": (FORM, '```json\n{"final_answer": "B"}\n```\nNo:\n```json\n{"final_answer": "A"}\n```', "A"),
    "a draft": (FORM, 'First try {"final_answer": "B"}. No: {"final_answer": "A"}', "A"),
    "a draft of another type": (FORM, '{"final_answer": true} No: {"final_answer": ["A", 1]}', "A,1"),
    "a draft that can be read, and a slip": (FORM, "{\"final_answer\": \"B\"} No: {'final_answer': 'A',}", "A"),
    "the same twice": (FORM, '{"final_answer": "A"} I repeat: {"final_answer": "A"}', "A"),
    "a list": (FORM, '[{"final_answer": "B"}, {"final_answer": "A"}]', "A"),
    "an object within": (FORM, '{"draft": {"final_answer": "B"}, "final_answer": "A"}', "A"),
    "an object behind of another form": (FORM, '{"final_answer": "A"} {"note": "B"}', "A"),
    "one cut off behind its answer": (
        FORM,
        'Try {"final_answer": "B"}. No: {"final_answer": "A", "reasoning": "as',
        "A",
    ),
    "dots before": (FORM, 'The format is {"final_answer": "..."}. My reply: {"final_answer": "A"}', "A"),
    "dots behind": (FORM, '{"final_answer": "A"}, as {"final_answer": "..."} says', "A"),
    "an ellipsis": (FORM, '{"final_answer": "A"}, as {"final_answer": "<…>"} says', "A"),
    "dots, and a sentence": (FORM, 'In the form {"final_answer": "..."} the final answer is: A', "A"),
    "brackets behind": (FORM, '{"final_answer": "A"} in the form {"final_answer": "<the answer>"}', "A"),
    "other brackets behind": (FORM, '{"final_answer": "A"} as {"final_answer": "[Your final answer]"}', "A"),
    "words behind": (WORDS, '{"final_answer": "A"} as {"final_answer": "your answer here"}', "A"),
    "an example behind": (
        EXAMPLE,
        '{"final_answer": "A"}, as in {"reasoning": "step by step", "final_answer": "42"}',
        "A",
    ),
    "the example's answer": (EXAMPLE, '{"reasoning": "6 x 7", "final_answer": "42"}', "42"),
    "the example's answer alone": (EXAMPLE, '{"final_answer": "42"}', "42"),
    "a worked example's answer": (WORKED, '{"final_answer": "A"}', "A"),
    "a worked example's answer behind a draft": (WORKED, 'Try {"final_answer": "C"}. No: {"final_answer": "B"}', "B"),
    "an answer in brackets": (FORM, '{"final_answer": "<b>"}', "<b>"),
    "an answer of words in the prompt": (WORKED, '{"final_answer": "Q3?"}', "Q3?"),
}
UNREAD = {
    "dots": (FORM, '{"final_answer": "..."}'),
    "brackets": (FORM, '{"reasoning": "I think", "final_answer": "<the answer>"}'),
    "words": (WORDS, '{"reasoning": "I think", "final_answer": "your answer here"}'),
    "the example": (EXAMPLE, '{"reasoning": "step by step", "final_answer": "42"}'),
    "several forms": (FORM, '{"final_answer": "..."} or {"final_answer": "<the answer>"}'),
    "a draft before one that was cut off": (FORM, '{"final_answer": "B"} No: {"reasoning": "it must be'),
}


@pytest.mark.parametrize("name", READ)
def test_the_last_object_that_is_no_echo_counts(name):
    prompt, text, answer = READ[name]
    assert read_reply(text, prompt).answer == answer


@pytest.mark.parametrize("name", UNREAD)
def test_a_form_or_a_draft_is_no_answer(name):
    prompt, text = UNREAD[name]
    with pytest.raises(ValueError, match=r"form|cut off"):
        read_reply(text, prompt)


@pytest.mark.parametrize(
    ("value", "answer"),
    [("true", "true"), ("false", "false"), ("True", "true"), ("12", "12"), ("1.50", "1.5"), ("[true, 2]", "true,2")],
)
def test_answers_of_other_types_are_text(value, answer):
    assert read_reply(f'{{"final_answer": {value}}}').answer == answer


def test_roles_read_the_last_object_too():
    judged = '{"reason": "...", "verdict": "correct"} {"reason": "They differ", "verdict": "incorrect"}'
    assert parse(judged, JudgeReply).verdict == "incorrect"
    backwards = '{"reason": "They differ", "verdict": "incorrect"} as {"reason": "...", "verdict": "correct"}'
    assert parse(backwards, JudgeReply).verdict == "incorrect"
    add = '{{"reasoning": "", "operations": [{{"type": "ADD", "section": "s", "content": "{}"}}]}}'
    both = f"{add.format('<the content>')}\n{add.format('Add VAT')}"
    assert parse(both, CuratorReply).operations[0]["content"] == "Add VAT"
    with pytest.raises(ValueError, match="form"):
        parse('{"key_insight": "<the key insight>"}', ReflectorReply)


def test_ids_that_repeat_the_form_do_not_cost_the_answer():
    form = (Message(role="system", content='{"bullet_ids": ["<id of each entry>"], "final_answer": "<the answer>"}'),)
    reply = parse('{"bullet_ids": ["<id of each entry>"], "final_answer": "A"}', GeneratorReply, form)
    assert reply.answer == "A"


def test_replies_with_several_objects_are_told_apart():
    schema = schema_of(GeneratorReply)
    several = {name for name, (prompt, text, _) in READ.items() if holds_several(text, schema, prompt)}
    assert several == {
        "two fences",
        "a draft",
        "a draft of another type",
        "a draft that can be read, and a slip",
        "a list",
        "a worked example's answer behind a draft",
    }


def test_many_objects_and_a_long_prompt_take_no_time():
    prompt = (Message(role="user", content='{"final_answer": "x", ' * 50_000),)
    started = time.process_time()
    read_reply('{"final_answer": "a"} ' * 8_000, prompt)
    with pytest.raises(ValueError, match="form"):
        read_reply('{"final_answer": "<answer>"} ' * 6_000, prompt)
    assert find_echo({"final_answer": '"' * 100_000}, ["final_answer"], prompt) is Echo.NONE
    assert time.process_time() - started < 10
