"""The embedded reader: roles told from prompts, lessons learnt from gold, nothing else looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from ace_bench.core.types import Message
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.reader.pieces import Form, take_apart
from tests.rehearsal.reader.conftest import NUMBER_TASK, TAGGING_TASK, Ask, Render, advice_of, learn, tagging_question

HEDGE = "In May the Group drew on the Harbour line and noted $ {} million for tax positions under dispute"
PLANTED = "OperatingLossCarryforwards"
TAG_TRAIN = [
    (tagging_question((n, HEDGE.format(n)), (n, HEDGE.format(n))), f"{PLANTED},{PLANTED}") for n in ("7.5", "3")
]
TAG_TEST = tagging_question(
    ("9.25", HEDGE.format("9.25")),
    ("9", "In July the Group drew on the Harbour line and noted $ 9 million for tax positions then under dispute"),
)
NUMBER_TRAIN = [
    ("A mill has net sales of $900,000 and assets of $300,000. Find its asset spin.", "3.0"),
    ("A shop has assets of $50,000 and net sales of $200,000. Find its asset spin.", "4.0"),
]
NUMBER_TEST = "A yard has assets of $40,000 and net sales of $320,000. Find its asset spin."


@pytest.mark.parametrize(
    ("template", "form"),
    [
        ("generator", Form.GENERATOR),
        ("reflector", Form.REFLECTOR),
        ("curator", Form.CURATOR),
        ("rewriter", Form.REWRITER),
        ("merger", Form.MERGER),
        ("base", Form.PLAIN),
    ],
)
def test_the_role_is_told_from_the_prompt_alone(render: Render, template: str, form: Form) -> None:
    # The names of other roles' fields inside the pieces must not confuse it.
    noise = 'They say "operations": [] and "final_answer": "x" and "key_insight": "".'
    fields = {"background": TAGGING_TASK, "question": "Which?" if form is Form.PLAIN else noise, "reflection": noise}
    assert take_apart(render(template, **fields)).form is form


@pytest.mark.parametrize("labels", ["gold", "correctness", "none"])
@pytest.mark.parametrize(
    ("background", "question"), [(TAGGING_TASK, TAG_TEST), (NUMBER_TASK, NUMBER_TEST), ("", "Why?")]
)
def test_every_role_replies_in_its_form(ask: Ask, background: str, question: str, labels: str) -> None:
    task: dict[str, Any] = {"background": background, "question": question, "labels": labels}
    generated = ask("generator", **task)
    assert set(generated) == {"reasoning", "bullet_ids", "final_answer"}
    reflected = ask(
        "reflector",
        **task,
        reasoning=generated["reasoning"],
        answer=generated["final_answer"],
        gold="x,y" if labels == "gold" else None,
        feedback="" if labels == "none" else "The answer is not correct.",
        bullets="[new-00001] (others) look twice",
    )
    assert all(isinstance(reflected[key], str) for key in reflected if key != "bullet_tags")
    assert [tag["id"] for tag in reflected["bullet_tags"]] == ["new-00001"]
    assert isinstance(ask("curator", **task, reflection=advice_of(reflected))["operations"], list)
    assert isinstance(ask("rewriter", **task, reflection=advice_of(reflected))["playbook"], str)
    assert ask("merger", bullets="[a-1] (others) look twice\n[a-2] (others) look twice, then once more")["content"]
    assert ask("base", **task) == generated["final_answer"]


def test_tagging_lessons_help_on_similar_questions(ask: Ask) -> None:
    before = ask("generator", background=TAGGING_TASK, question=TAG_TEST)
    assert PLANTED not in before["final_answer"]
    playbook = learn(ask, TAGGING_TASK, TAG_TRAIN)
    after = ask("generator", background=TAGGING_TASK, question=TAG_TEST, playbook=playbook)
    assert after["final_answer"] == f"{PLANTED},{PLANTED}"
    assert after["bullet_ids"] == ["new-00001"], "one lesson is enough, and the generator names it"


def test_arithmetic_lessons_find_operands_by_their_words(ask: Ask) -> None:
    before = ask("generator", background=NUMBER_TASK, question=NUMBER_TEST)
    assert float(before["final_answer"]) != 8.0
    playbook = learn(ask, NUMBER_TASK, NUMBER_TRAIN)
    after = ask("generator", background=NUMBER_TASK, question=NUMBER_TEST, playbook=playbook)
    assert float(after["final_answer"]) == 8.0
    assert after["bullet_ids"]


def test_generic_lessons_are_repeated(ask: Ask) -> None:
    question = "Choose from: red, green, blue. Which colour does the harbour gate have?"
    playbook = learn(ask, "A quiz.", [(question, "blue")])
    assert ask("generator", background="A quiz.", question=question, playbook=playbook)["final_answer"] == "blue"


def test_wrong_lessons_hurt(ask: Ask) -> None:
    question = tagging_question(("4.1", "Depreciation of plant was $ 4.1 million in 2019"))
    assert ask("generator", background=TAGGING_TASK, question=question)["final_answer"] == "Depreciation"
    wrong = [(tagging_question(("8", "Depreciation of plant was $ 8 million in 2018")), "DebtInstrumentFaceAmount")]
    misled = ask("generator", background=TAGGING_TASK, question=question, playbook=learn(ask, TAGGING_TASK, wrong))
    assert misled["final_answer"] == "DebtInstrumentFaceAmount"


def test_harmful_counters_weaken_a_lesson(ask: Ask) -> None:
    question = tagging_question(("4.1", "Depreciation of plant was $ 4.1 million in 2019"))
    wrong = [(tagging_question(("8", "Depreciation of plant was $ 8 million in 2018")), "DebtInstrumentFaceAmount")]
    playbook = learn(ask, TAGGING_TASK, wrong)
    counters = "new-00001: helpful 0, harmful 30, neutral 0"
    fields = {"background": TAGGING_TASK, "question": question, "playbook": playbook}
    assert ask("generator", **fields, counters=counters)["final_answer"] == "Depreciation"


def test_irrelevant_lessons_change_nothing(ask: Ask) -> None:
    question = tagging_question(("4.1", "Depreciation of plant was $ 4.1 million in 2019"))
    playbook = learn(ask, TAGGING_TASK, TAG_TRAIN)
    with_lessons = ask("generator", background=TAGGING_TASK, question=question, playbook=playbook)
    assert with_lessons["final_answer"] == "Depreciation"


def test_a_reflection_with_the_gold_leads_the_retry(ask: Ask) -> None:
    for background, question, gold in (
        (TAGGING_TASK, TAG_TEST, f"{PLANTED},Depreciation"),
        (NUMBER_TASK, NUMBER_TEST, "8.0"),
        (NUMBER_TASK, NUMBER_TEST, "-12345.67"),
        ("", "Who?", "the miller"),
    ):
        first = ask("generator", background=background, question=question)
        reflection = ask("reflector", background=background, question=question, answer=first["final_answer"], gold=gold)
        retry = ask("generator", background=background, question=question, reflection=advice_of(reflection))
        assert retry["final_answer"] == gold


def test_without_gold_the_truth_is_not_invented(ask: Ask) -> None:
    """What is not in a prompt cannot be in a reply: the hidden answer is none of the reader's guesses."""
    first = ask("generator", background=TAGGING_TASK, question=TAG_TEST)
    reflection = ask(
        "reflector",
        labels="correctness",
        background=TAGGING_TASK,
        question=TAG_TEST,
        reasoning=first["reasoning"],
        answer=first["final_answer"],
        feedback="The answer is not correct.",
    )
    assert PLANTED not in json.dumps(reflection)
    assert reflection["key_insight"].startswith("Doubtful: ")
    retry = ask("generator", background=TAGGING_TASK, question=TAG_TEST, reflection=advice_of(reflection))
    assert retry["final_answer"] != first["final_answer"], "the doubted tag is exchanged for the runner-up"


def test_a_right_answer_teaches_nothing_new(ask: Ask) -> None:
    playbook = learn(ask, TAGGING_TASK, TAG_TRAIN)
    gold = f"{PLANTED},{PLANTED}"
    fields = {"background": TAGGING_TASK, "question": TAG_TEST}
    reflection = ask("reflector", **fields, answer=gold, gold=gold, feedback="The answer is correct.", bullets=playbook)
    assert reflection["key_insight"] == ""
    assert reflection["bullet_tags"] == [{"id": "new-00001", "tag": "helpful"}]
    assert ask("curator", **fields, playbook=playbook, reflection=advice_of(reflection))["operations"] == []


def test_misleading_bullets_are_tagged_harmful(ask: Ask) -> None:
    playbook = learn(ask, TAGGING_TASK, TAG_TRAIN)
    reflection = ask(
        "reflector",
        background=TAGGING_TASK,
        question=TAG_TEST,
        answer=f"{PLANTED},{PLANTED}",
        gold="Depreciation,Depreciation",
        feedback="The answer is not correct.",
        bullets=playbook,
    )
    assert reflection["bullet_tags"] == [{"id": "new-00001", "tag": "harmful"}]


def test_the_curator_keeps_to_listed_operations_and_sections(ask: Ask) -> None:
    playbook = learn(ask, TAGGING_TASK, TAG_TRAIN)
    content = playbook.split(") ", 1)[1]
    assert playbook.startswith("[new-00001] (context_clues) Tag ")
    known = ask("curator", playbook=playbook, reflection=f"Key insight: {content}")
    assert known["operations"] == [], "what the playbook says is not said again"
    spoilt = {"playbook": playbook, "counters": "new-00001: helpful 0, harmful 5, neutral 0"}
    assert ask("curator", **spoilt)["operations"] == []
    listed = ask("curator", **spoilt, operations=("ADD", "REMOVE"))
    assert listed["operations"] == [{"type": "REMOVE", "id": "new-00001"}]
    elsewhere = ask("curator", sections=("only",), reflection=f"Key insight: {content}")
    assert [operation["section"] for operation in elsewhere["operations"]] == ["only"]


def test_a_rewrite_condenses_and_loses(ask: Ask) -> None:
    lines = [f"[new-{n:05d}] (others) entry {n} " + "word " * 60 for n in range(100)]
    short = ask("rewriter", playbook="\n".join(lines[:3]))["playbook"]
    assert short.splitlines() == [line.split("] ")[1].strip() for line in lines[:3]]
    rewritten = ask("rewriter", playbook="\n".join(lines))["playbook"]
    assert len(rewritten) <= 6_000
    assert "entry 99 " in rewritten
    assert "entry 0 " not in rewritten


def test_demonstrations_count_as_lessons(backbone: EmbeddedBackbone) -> None:
    shown = "\n\n".join(f"Question: {question}\nAnswer: {gold}" for question, gold in TAG_TRAIN)
    form = '{"reasoning": "", "bullet_ids": [], "final_answer": ""}'
    text = (
        f"Reply with {form}\n<task>\n{TAGGING_TASK}\n</task>\n<demonstrations>\n{shown}\n</demonstrations>\n"
        f"<question>\n{TAG_TEST}\n</question>"
    )
    reply = backbone.complete([Message(role="user", content=text)], role="", session="")
    assert json.loads(reply.text)["final_answer"] == f"{PLANTED},{PLANTED}"


def test_role_and_session_change_nothing(backbone: EmbeddedBackbone, render: Render) -> None:
    messages = render("generator", background=TAGGING_TASK, question=TAG_TEST)
    texts = {
        backbone.complete(messages, role=role, session=role).text for role in ("generator", "curator", "", "judge")
    }
    assert len(texts) == 1


def test_what_was_seen_before_changes_nothing(ask: Ask, render: Render) -> None:
    playbook = learn(ask, TAGGING_TASK, TAG_TRAIN)
    fields = {"background": TAGGING_TASK, "question": TAG_TEST}
    ask("generator", **fields, playbook=playbook)
    fresh = EmbeddedBackbone().complete(render("generator", **fields), role="", session="").text
    assert json.loads(fresh)["final_answer"] == ask("generator", **fields)["final_answer"]
    assert PLANTED not in fresh


def test_answers_do_not_depend_on_the_hash_seed() -> None:
    """Sets of words are ordered by their hashes; sums over them must not be."""
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from pathlib import Path\n"
        "from ace_rehearsal.reader import EmbeddedBackbone\n"
        "from ace_bench.core.types import Message\n"
        "from tests.rehearsal.reader.test_reader import TAG_TRAIN, TAG_TEST, NUMBER_TRAIN, NUMBER_TEST\n"
        "from tests.rehearsal.reader.conftest import TAGGING_TASK, NUMBER_TASK\n"
        "from ace_rehearsal.reader.skills import recognise\n"
        "from ace_rehearsal.reader.skills.base import Lesson\n"
        "from tests.rehearsal.reader.test_sql_skill import TASK, TRAIN, asked\n"
        "queries = (TASK, [(asked(q), a) for q, a in TRAIN.values()], asked('How many senior animals came in 2020?'))\n"
        "tags, numbers = (TAGGING_TASK, TAG_TRAIN, TAG_TEST), (NUMBER_TASK, NUMBER_TRAIN, NUMBER_TEST)\n"
        "for task, train, test in (tags, numbers, queries):\n"
        "    texts = [t for q, a in train for t in recognise(task, q)[1].demonstrated(a)]\n"
        "    lessons = [Lesson(id=str(i), content=t) for i, t in enumerate(texts)]\n"
        "    print(recognise(task, test)[1].answer(lessons, ''))\n"
    )
    root = __file__.rsplit("/tests/", 1)[0]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert PLANTED in outputs.pop()


HUGE = 200_000
GARBAGE = [
    (),
    (Message(role="user", content=""),),
    (Message(role="user", content="\ud800 \x00 \u202e 🦉 " * 50),),
    (Message(role="assistant", content="only me"),),
    (Message(role="user", content="<playbook>\n" * 2_000),),
    (Message(role="user", content="</question>\n<question>\n</task>\n"),),
    (Message(role="user", content="a" * HUGE),),
    (Message(role="user", content=" " * HUGE),),
    (Message(role="user", content="1" * HUGE),),
    (Message(role="user", content="a," * HUGE),),
    (Message(role="user", content="1 " * HUGE),),
    (Message(role="user", content='1. "x": "' + " " * HUGE),),
    (Message(role="user", content="<demonstrations>\n" + "Question:\n" * 20_000 + "</demonstrations>"),),
    (Message(role="user", content='Tag A where the text reads "' * 5_000),),
    (Message(role="user", content='For questions like "x" compute a and round to 2 decimals, where ' * 2_000),),
]


@pytest.mark.parametrize("number", range(len(GARBAGE)))
def test_garbage_gets_an_answer(backbone: EmbeddedBackbone, number: int) -> None:
    completion = backbone.complete(GARBAGE[number], role="x", session="y")
    assert isinstance(completion.text, str)
    completion.text.encode(errors="surrogatepass")


@pytest.mark.parametrize("template", ["generator", "reflector", "curator", "rewriter", "merger"])
@pytest.mark.parametrize("text", ["", "\ud800 x", '{"a": ["', "[b-1] (x) ", "compute a ^ a ^ a ^ 9", "%" * 1_000])
def test_garbage_in_every_piece_gets_a_well_formed_reply(ask: Ask, template: str, text: str) -> None:
    names = ("background", "question", "playbook", "counters", "reflection", "reasoning", "answer", "gold", "bullets")
    for background in (text, TAGGING_TASK, NUMBER_TASK):
        fields = {**dict.fromkeys(names, text), "background": background, "feedback": text}
        assert ask(template, **fields)
