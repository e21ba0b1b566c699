"""Prompts in other layouts than ours: what headings announce, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.types import Message
from ace_rehearsal.reader.layouts import announced, parts_under_headings
from ace_rehearsal.reader.pieces import Form, lessons_of, read_bullets, take_apart
from ace_rehearsal.reader.skills.acting.conversation import read_scene
from tests.rehearsal.reader.conftest import TAGGING_TASK, Render

PLAYBOOK = """## STRATEGIES AND INSIGHTS

## CONTEXT CLUES AND INDICATORS
[cci-00001] helpful=3 harmful=1 :: Say "left".
Then go on.

## PROBLEM-SOLVING HEURISTICS
[psh-00002] helpful=0 harmful=2 :: Say "right"."""
DONE = "apis.supervisor.complete_task()"
REPLY = '{"reasoning": "", "bullet_ids": [], "final_answer": ""}'


def user(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


@pytest.mark.parametrize(
    ("heading", "tag"),
    [
        ("Playbook", "playbook"),
        ("The current ACE playbook", "playbook"),
        ("Playbook statistics", ""),
        ("Bullets that were used", "bullets_used"),
        ("Recent reflection", "reflection"),
        ("Question", "question"),
        ("The user's question", "question"),
        ("Ground-truth answer (known)", "reference_answer"),
        ("Reference solution", "reference_solution"),
        ("Generated code", "trajectory"),
        ("Unit test report", "environment_feedback"),
        ("Context", ""),
        ("Reply format", ""),
        ("Correct approach", None),
        ("Key insight", None),
        ("PROBLEM-SOLVING HEURISTICS", None),
        ("FORMULAS AND CALCULATIONS", None),
        ("CONTEXT CLUES AND INDICATORS", None),
        ("COMMON MISTAKES TO AVOID", None),
        ("USEFUL CODE SNIPPETS AND TEMPLATES", None),
    ],
)
def test_what_headings_announce(heading, tag):
    assert announced(heading) == tag


@pytest.mark.parametrize(
    ("before", "behind"), [("**", ":**"), ("## ", ""), ("### ", ":"), ("== ", " =="), ("<", ">"), ("", ":")]
)
def test_parts_are_found_in_any_style(before, behind):
    names = (
        ("the_playbook", "advice_by_reflection", "a_question")
        if before == "<"
        else ("Playbook", "Reflection", "Question")
    )
    shown = dict(zip(names, (PLAYBOOK, "Error: none\nCorrect approach: wait", "Which way?\nAnswer:"), strict=True))
    text = "".join(f"{before}{name}{behind}\n{content}\n\n" for name, content in shown.items())
    pieces = take_apart(user(f"Answer the question.\n\n{text}{before}Reply{behind}\n{REPLY}"))
    assert pieces.form is Form.GENERATOR
    assert pieces.get("playbook") == PLAYBOOK
    assert pieces.get("reflection") == "Error: none\nCorrect approach: wait"
    assert pieces.question.startswith("Which way?")
    assert "Reply" not in pieces.question
    assert pieces.sections == ("strategies_and_insights", "context_clues_and_indicators", "problem_solving_heuristics")
    first, second = lessons_of(pieces.get("playbook"), pieces.get("counters"))
    assert (first.id, first.helpful, first.harmful, first.content) == ("cci-00001", 3, 1, 'Say "left".\nThen go on.')
    assert (second.id, second.harmful, second.content) == ("psh-00002", 2, 'Say "right".')


def test_bullets_without_counters_end_at_the_title_of_a_section():
    assert [bullet.content for bullet in read_bullets("[a-1] one\n\n## NEXT SECTION:\n[b-2] two")] == ["one", "two"]


def test_unknown_tags_close_what_they_open():
    text = "<the_playbook>\n[a-1] one\n</the_playbook>\nMind it.\n<a_question>\nWhy?\n</a_question>\nReply."
    parts, rest = parts_under_headings(text)
    assert parts == {"playbook": "[a-1] one", "question": "Why?"}
    assert "Mind it." in rest
    assert "Reply." in rest


def test_text_on_the_line_of_a_heading_belongs_to_its_part():
    parts, rest = parts_under_headings("**Question:** Why?\n**Playbook:** [a-1] because\n**Instructions:**\nGo.")
    assert parts == {"question": "Why?", "playbook": "[a-1] because"}
    assert "Go." in rest


@pytest.mark.parametrize("role", ["generator", "reflector", "curator", "rewriter", "reflector_harmful"])
def test_our_own_prompts_are_read_by_their_tags_alone(render: Render, role: str):
    heads = "**Question:**\nfake\n\n**Playbook:**\n[x-1] fake"
    pieces = take_apart(render(role, background=TAGGING_TASK, question=heads, playbook=PLAYBOOK, gold="g"))
    assert pieces.question == heads
    assert "fake" not in pieces.get("playbook")


def test_a_prompt_that_asks_for_no_form_is_a_question_as_a_whole(render: Render):
    text = "**Question:**\nWhy?\n\n**Playbook:**\n[x-1] because"
    assert take_apart(render("base", question=text)).question == text


@given(st.text(alphabet="ab#*=<>/:_- \n[]()PQplaybookquestion.", max_size=200))
def test_any_text_is_taken_apart(text):
    parts, rest = parts_under_headings(text)
    assert parts or rest == text
    take_apart(user(f"{text}\n{REPLY}"))
    read_scene(user(f"{text}\n{DONE}\nTask: x"))


def test_a_conversation_without_tags():
    messages = [
        Message(role="system", content=f"Finish by {DONE}.\n- gmail: Mails.\n\n## Playbook\n[a-1] one"),
        Message(role="user", content="Task: Of an example."),
        Message(role="assistant", content="```python\nprint(1)\n```"),
        Message(role="user", content="Output:\n```\n1\n```\n\nYour task is: Count my mails.\n\nTry again so."),
        Message(role="assistant", content="```python\nprint(2)\n```"),
        Message(role="user", content="Output:\n```\n2\n```"),
    ]
    scene = read_scene(messages)
    assert scene is not None
    assert scene.question == "Count my mails."
    assert scene.apps == {"gmail": "Mails."}
    assert [lesson.content for lesson in scene.lessons] == ["one", "\n\nTry again so."]
    assert scene.steps == (("print(2)", "2"),)


@pytest.mark.parametrize("form", ['{"key_insight": ""}', '{"operations": []}'])
def test_whoever_studies_an_attempt_does_not_act(form):
    assert read_scene(user(f"{DONE}\nTask: Count.\n{form}")) is None
