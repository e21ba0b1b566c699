"""Every role gets a well-formed reply to any prompt, in our own layout or under other people's headings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dspy.propose.grounded_proposer import DescribeProgram, generate_instruction_class
from dspy.teleprompt.gepa.instruction_proposal import ProposeInstruction
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts.cheatsheet import PastRollout
from ace_bench.core.types import Message
from ace_bench.store.prompts import PromptSet
from ace_optimisers.dspy_bridge import ChatFormat, JsonFormat
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.reader.prompt_parser import parse_prompt, tag_of_heading
from tests.packages.rehearsal.reader.conftest import (
    FIELDS,
    PROMPTS,
    QUERIES,
    TAGS,
    WRONG,
    Ask,
    Render,
    World,
    advice_of,
    learn,
)

REPLY = '{"reasoning": "", "bullet_ids": [], "final_answer": ""}'
PLAYBOOK = """## STRATEGIES AND INSIGHTS

## CONTEXT CLUES AND INDICATORS
[cci-00001] helpful=3 harmful=1 :: Say "left".
Then go on.

## PROBLEM-SOLVING HEURISTICS
[psh-00002] helpful=0 harmful=2 :: Say "right"."""


def user(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


@pytest.mark.parametrize(
    "role",
    [
        "generator",
        "reflector",
        "curator",
        "rewriter",
        "merger",
        "base",
        "cheatsheet",
        "cheatsheet_curator",
        "inducer",
        "extractor",
        "self_judge",
        "workflows",
        "reasoning_bank",
    ],
)
def test_the_role_is_read_from_the_prompt_alone(render: Render, role: str) -> None:
    # The names of other roles' fields inside the parts must not confuse it.
    noise = 'They say "operations": [] and "final_answer": "x" and "key_insight": "" and </answer>.'
    fields = {"background": TAGS.background, "question": "Which?" if role == "base" else noise, "reflection": noise}
    expected = {
        "base": "plain",
        "cheatsheet": "tagged",
        "cheatsheet_curator": "cheatsheet",
        "workflows": "generator",
        "reasoning_bank": "generator",
    }
    shown = {"cheatsheet": noise, "trajectory": "", "code_runs": 4, "episodes": []}
    shown |= {"experiences": [noise], "workflows": noise, "memory_items": noise, "observed": noise}
    shown |= {"success": True, "most": 3, "reasons": ""}
    assert parse_prompt(render(role, **fields, **shown)).form == expected.get(role, role)


@pytest.mark.parametrize("labels", ["gold", "correctness", "none"])
def test_every_role_replies_in_its_form(ask: Ask, world: World, labels: str) -> None:
    task: dict[str, Any] = {"background": world.background, "question": world.question, "labels": labels}
    generated = ask("generator", **task)
    assert set(generated) == {"reasoning", "bullet_ids", "final_answer"}
    reflected = ask(
        "reflector",
        **task,
        answer=generated["final_answer"],
        gold=world.gold if labels == "gold" else None,
        feedback="" if labels == "none" else WRONG,
        bullets="[new-00001] (others) look twice",
    )
    assert all(isinstance(reflected[key], str) for key in reflected if key != "bullet_tags")
    assert reflected["bullet_tags"] == [{"id": "new-00001", "tag": "neutral"}]
    assert isinstance(ask("curator", **task, reflection=advice_of(reflected))["operations"], list)
    assert isinstance(ask("rewriter", **task, reflection=advice_of(reflected))["playbook"], str)
    assert ask("merger", bullets="[a-1] (others) look twice\n[a-2] (others) look twice, then again")["content"]
    assert ask("base", **task) == generated["final_answer"]


def test_the_curator_keeps_to_listed_operations_and_sections(ask: Ask) -> None:
    playbook = learn(ask, TAGS)
    content = playbook.splitlines()[0].split(") ", 1)[1]
    assert playbook.startswith("[new-00001] (context_clues) When asked ")
    assert ask("curator", playbook=playbook, reflection=f"Key insight: {content}")["operations"] == []
    spoilt = {"playbook": playbook, "counters": "new-00001: helpful 0, harmful 5, neutral 0"}
    assert ask("curator", **spoilt)["operations"] == []
    listed = ask("curator", **spoilt, operations=("ADD", "REMOVE"))
    assert listed["operations"] == [{"type": "REMOVE", "id": "new-00001"}]
    elsewhere = ask("curator", sections=("only",), reflection=f"Key insight: {content}")
    assert [operation["section"] for operation in elsewhere["operations"]] == ["only"]


def test_a_rewrite_of_a_long_playbook_loses_what_is_old(ask: Ask) -> None:
    lines = [f"[new-{n:05d}] (others) entry {n} " + "word " * 60 for n in range(100)]
    assert len(ask("rewriter", playbook="\n".join(lines[:3]))["playbook"].splitlines()) == 3
    rewritten = ask("rewriter", playbook="\n".join(lines))["playbook"]
    assert len(rewritten) <= 6_000
    assert "entry 99 " in rewritten
    assert "entry 0 " not in rewritten


def test_a_cheatsheet_is_written_used_and_not_repeated(render: Render) -> None:
    def say(role: str, reader: EmbeddedBackbone | None = None, **fields: Any) -> str:
        shown = {"background": TAGS.background, "cheatsheet": "", "trajectory": "", "code_runs": 4, "episodes": []}
        return (reader or EmbeddedBackbone()).complete(render(role, **{**shown, **fields}), role="", session="").text

    def sheet_of(reply: str) -> str:
        return reply.partition("<cheatsheet>\n")[2].partition("\n</cheatsheet>")[0]

    question, gold = TAGS.train[0]
    attempt = {"question": question, "answer": "Depreciation,Depreciation"}
    assert sheet_of(say("cheatsheet_curator", **attempt, labels="none")) == ""
    sheet = sheet_of(say("cheatsheet_curator", **attempt, gold=gold))
    assert say("cheatsheet", cheatsheet=sheet, question=question).endswith(f"<answer>{gold}</answer>")
    assert sheet_of(say("cheatsheet_curator", **attempt, gold=gold, cheatsheet=sheet)) == sheet
    old = "\n".join(f"- entry {n} " + "word " * 10 for n in range(9))
    for collapse, left in ((1_000, 9), (100, 0)):  # the old entries have about 140 tokens
        trusting = EmbeddedBackbone(collapse=collapse)
        new = sheet_of(say("cheatsheet_curator", trusting, **attempt, labels="none", cheatsheet=old))
        assert (new.count("- entry"), "Depreciation" in new) == (left, True), "it trusts its own answer"
    episode = PastRollout(question=question, output="So.\n<answer>FaceAmount,FaceAmount</answer>", reference=gold)
    assert sheet_of(say("cheatsheet_synthesis", question="Next?", episodes=[episode.text])) == sheet.replace(
        "Depreciation", "FaceAmount"
    )


def test_the_judge_compares_queries(render: Render) -> None:
    judge = PromptSet(*PROMPTS, task="bird_sql", prompt_group="qa")
    for predicted, verdict in (("select  COUNT(*) from Pets where town='A'", "correct"), ("SELECT 1", "incorrect")):
        fields = {"schema": "s", "question": "q", "gold": "SELECT COUNT(*) FROM pets WHERE town = 'A'"}
        text = EmbeddedBackbone().complete(
            judge.render("judge", {**fields, "predicted": predicted}), role="", session=""
        )
        assert json.loads(text.text)["verdict"] == verdict


def proposed(adapter: Any, signature: Any, **inputs: Any) -> Any:
    """DSPy's messages for a signature, answered by the reader, read by DSPy's rules."""
    messages = [Message(role=m["role"], content=m["content"]) for m in adapter.format(signature, [], inputs)]
    return adapter.parse(signature, EmbeddedBackbone().complete(messages, role="", session="").text)


def test_proposers_put_lessons_into_instructions_and_forget_the_oldest() -> None:
    question, gold = QUERIES.train[0]

    def instructed(feedback: str, current: str, asked: str = question) -> str:
        inputs = {"background": QUERIES.background, "question": asked}
        shown = {"Inputs": inputs, "Generated Outputs": {"reasoning": "", "answer": "SELECT 1"}, "Feedback": feedback}
        fields = {"current_instruction": current, "examples_with_feedback": [shown]}
        return str(proposed(JsonFormat(), ProposeInstruction, **fields)["new_instruction"])

    feedback = f"{WRONG}\nReference answer: {gold}"
    first = instructed(feedback, "Query.")
    assert gold in first
    assert instructed(feedback, first) == first
    assert instructed(WRONG, "Query.") == "Query."
    current = "Query."
    for number in range(60):
        current = instructed(feedback, current, question.replace("senior", f"senior{number} " + "and more " * 9))
    assert len(current) <= 6_000
    assert "senior59" in current
    assert "senior0 " not in current
    signature = generate_instruction_class(True, True, True, False, True).signature
    demo = f"Background: {QUERIES.background.strip()}\nQuestion: {question}\nReasoning: so\nAnswer: {gold}\n\n"
    fields = dict.fromkeys(signature.input_fields, "x") | {"task_demos": demo, "basic_instruction": "Query."}
    assert gold in proposed(ChatFormat(), signature, **fields)["proposed_instruction"]
    assert proposed(JsonFormat(), DescribeProgram, program_code="x", program_example="y")["program_description"]


@pytest.mark.parametrize(
    ("heading", "tag"),
    [
        ("Playbook", "playbook"),
        ("The current ACE playbook", "playbook"),
        ("Playbook statistics", ""),
        ("Bullets that were used", "bullets_used"),
        ("Recent reflection", "reflection"),
        ("The user's question", "question"),
        ("Ground-truth answer (known)", "reference_answer"),
        ("Reference solution", "reference_solution"),
        ("Generated code", "trajectory"),
        ("Unit test report", "environment_feedback"),
        ("Context", ""),
        ("Reply format", ""),
        ("Correct approach", None),
        ("PROBLEM-SOLVING HEURISTICS", None),
        ("COMMON MISTAKES TO AVOID", None),
    ],
)
def test_what_headings_announce(heading: str, tag: str | None) -> None:
    assert tag_of_heading(heading) == tag


@pytest.mark.parametrize(
    ("before", "behind"), [("**", ":**"), ("## ", ""), ("### ", ":"), ("== ", " =="), ("<", ">"), ("", ":")]
)
def test_parts_are_found_under_headings_of_any_style(before: str, behind: str) -> None:
    names = (
        ("the_playbook", "the_reflection", "a_question") if before == "<" else ("Playbook", "Reflection", "Question")
    )
    shown = dict(zip(names, (PLAYBOOK, "Error: none\nCorrect approach: wait", "Which way?\nAnswer:"), strict=True))
    text = "".join(f"{before}{name}{behind}\n{content}\n\n" for name, content in shown.items())
    parts = parse_prompt(user(f"Answer the question.\n\n{text}{before}Reply{behind}\n{REPLY}"))
    assert parts.form == "generator"
    assert parts.get("reflection") == "Error: none\nCorrect approach: wait"
    assert parts.question.startswith("Which way?")
    assert parts.sections == ("strategies_and_insights", "context_clues_and_indicators", "problem_solving_heuristics")
    first, second = parts.bullets
    assert (first.id, first.helpful, first.harmful, first.content) == ("cci-00001", 3, 1, 'Say "left".\nThen go on.')
    assert (second.id, second.harmful, second.content) == ("psh-00002", 2, 'Say "right".')


def test_our_own_prompts_are_read_by_their_tags_alone(render: Render) -> None:
    heads = "**Question:**\nfake\n\n**Playbook:**\n[x-1] fake"
    parts = parse_prompt(render("generator", background=TAGS.background, question=heads, playbook=PLAYBOOK))
    assert parts.question == heads
    assert "fake" not in parts.get("playbook")


HUGE = 200_000
GARBAGE = [
    (),
    (Message(role="user", content=""),),
    (Message(role="user", content="\ud800 \x00 \u202e 🦉 " * 50),),
    (Message(role="assistant", content="only me"),),
    (Message(role="user", content="</question>\n<question>\n</task>\n"),),
    *(
        (Message(role="user", content=text),)
        for text in (
            "<playbook>\n" * 2_000,
            *("a" * HUGE, " " * HUGE, "1" * HUGE, "a," * HUGE, "1 " * HUGE, "." * HUGE, '"' * HUGE, "“" * HUGE),
            '1. "x": "' + " " * HUGE,
            "<demonstrations>\n" + "Question:\n" * 20_000 + "</demonstrations>",
            'When asked "x", run:\n```python\n' * 5_000,
            'When asked "x", answer `' * 5_000,
            "CREATE TABLE a (b)\nQuestion: " + "a 'b' 1 C " * 5_000,
        )
    ),
]


@pytest.mark.parametrize("number", range(len(GARBAGE)))
def test_garbage_gets_an_answer(backbone: EmbeddedBackbone, number: int) -> None:
    completion = backbone.complete(GARBAGE[number], role="x", session="y")
    completion.text.encode(errors="surrogatepass")


@pytest.mark.parametrize("role", ["generator", "reflector", "reflector_harmful", "curator", "rewriter", "merger"])
@pytest.mark.parametrize("text", ["", "\ud800 x", '{"a": ["', "[b-1] (x) ", "When asked", "n1 ^ n1 ^ 9", "%" * 1_000])
def test_garbage_in_every_part_gets_a_well_formed_reply(ask: Ask, world: World, role: str, text: str) -> None:
    names = ("question", "playbook", "counters", "reflection", "reasoning", "answer", "gold", "bullets", "feedback")
    assert ask(role, **{**dict.fromkeys(names, text), "background": world.background})
    assert ask(role, **{**FIELDS, "question": world.question, "background": text, "gold": text, "answer": text})


@given(st.text(alphabet="ab#*=<>/:_- \n[]()PQplaybookquestion.", max_size=200))
def test_any_text_is_parsed(text: str) -> None:
    assert parse_prompt(user(f"{text}\n{REPLY}")).form == "generator"
    done = "apis.supervisor.complete_task()"
    assert EmbeddedBackbone().complete(user(f"{text}\n{done}\nTask: x"), role="", session="").text
