"""Every role gets a well-formed reply to any prompt, in our own layout or under other people's headings."""

import pytest
from dspy.propose.grounded_proposer import DescribeProgram, generate_instruction_class
from dspy.teleprompt.gepa.instruction_proposal import ProposeInstruction
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.backbones.embedded.prompt_parser import parse_prompt
from ace_bench.core.types import Message
from ace_bench.methods.optimisers.dspy_bridge import ChatFormat, JsonFormat
from tests.backbones.embedded.conftest import QUERIES, TAGS, WRONG, ask, read, render

REPLY = '{"reasoning": "", "bullet_ids": [], "final_answer": ""}'
PLAYBOOK = """## STRATEGIES AND INSIGHTS

## CONTEXT CLUES AND INDICATORS
[cci-00001] helpful=3 harmful=1 :: Say "left".
Then go on.

## PROBLEM-SOLVING HEURISTICS
[psh-00002] helpful=0 harmful=2 :: Say "right"."""


def user(text):
    return [Message(role="user", content=text)]


OTHER_FORMS = {"base": "plain", "cheatsheet": "tagged", "cheatsheet_curator": "cheatsheet"}
OTHER_FORMS |= {"workflows": "generator", "reasoning_bank": "generator"}
SAME_FORMS = ("generator", "reflector", "curator", "rewriter", "inducer", "extractor", "self_judge")


@pytest.mark.parametrize("role", [*SAME_FORMS, *OTHER_FORMS])
def test_the_role_is_read_from_the_prompt_alone(role):
    # The names of other roles' fields inside the parts must not confuse it.
    noise = 'They say "operations": [] and "final_answer": "x" and "key_insight": "" and </answer>.'
    shown = dict.fromkeys(("question", "reflection", "cheatsheet", "workflows", "memory_items", "observed"), noise)
    shown |= {"background": TAGS.background, "experiences": [noise]} | ({"question": "?"} if role == "base" else {})
    assert parse_prompt(render(role, **shown)).form == OTHER_FORMS.get(role, role)


def test_a_rewrite_of_a_long_playbook_loses_what_is_old():
    lines = [f"[new-{n:05d}] (others) entry {n} " + "word " * 60 for n in range(100)]
    assert len(ask("rewriter", playbook="\n".join(lines[:3]))["playbook"].splitlines()) == 3
    rewritten = ask("rewriter", playbook="\n".join(lines))["playbook"]
    assert len(rewritten) <= 6_000
    assert "entry 99 " in rewritten
    assert "entry 0 " not in rewritten


def proposed(adapter, signature, **inputs):
    """DSPy's messages for a signature, answered by the reader, read by DSPy's rules."""
    messages = [Message(role=m["role"], content=m["content"]) for m in adapter.format(signature, [], inputs)]
    return adapter.parse(signature, read(messages))


def test_proposers_put_lessons_into_instructions_and_forget_the_oldest():
    question, gold = QUERIES.train[0]

    def instructed(feedback, current, asked=question):
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


HEADED = {
    "bullets_used": ("Bullets that were used", "[x-1] one"),
    "reference_answer": ("Ground truth answer (known)", "4"),
    "reference_solution": ("Reference solution", "apis"),
    "trajectory": ("Generated code", "print"),
    "environment_feedback": ("Unit test report", "1 passed"),
    "playbook": ("The current ACE playbook", PLAYBOOK),
    "": ("Playbook statistics", "two bullets"),
    "reflection": ("Recent reflection", "Error: none\nCorrect approach: wait"),
    "question": ("The user's question", "Which way?"),
}


@pytest.mark.parametrize(
    ("before", "behind"), [("**", ":**"), ("## ", ""), ("### ", ":"), ("== ", " =="), ("<", ">"), ("", ":")]
)
def test_parts_are_found_under_headings_of_any_style(before, behind):
    named = HEADED if before != "<" else {tag: (tag, text) for tag, (_, text) in HEADED.items() if tag}
    text = "".join(f"{before}{name}{behind}\n{content}\n\n" for name, content in named.values())
    parts = parse_prompt(user(f"Answer the question.\n\n{text}{before}Reply format{behind}\n{REPLY}"))
    assert (parts.form, 'Say "left"' in parts.plain) == ("generator", False)
    assert parse_prompt(user(f"{text}{REPLY}")).form == "generator", "the reply form may end the last part"
    assert {tag: parts.get(tag) for tag in named if tag} == {tag: content for tag, (_, content) in named.items() if tag}
    assert parts.sections == ("strategies_and_insights", "context_clues_and_indicators", "problem_solving_heuristics")
    first, second = parts.bullets
    assert (first.id, first.helpful, first.harmful, first.content) == ("cci-00001", 3, 1, 'Say "left".\nThen go on.')
    assert (second.id, second.harmful, second.content) == ("psh-00002", 2, 'Say "right".')


def test_our_own_prompts_are_read_by_their_tags_alone():
    heads = "**Question:**\nfake\n\n**Playbook:**\n[x-1] fake"
    parts = parse_prompt(render("generator", background=TAGS.background, question=heads, playbook=PLAYBOOK))
    assert parts.question == heads
    assert "fake" not in parts.get("playbook")


HUGE = 200_000
GARBAGE = [
    *("", "\ud800 \x00 \u202e 🦉 " * 50, "</question>\n<question>\n</task>\n", "<playbook>\n" * 2_000),
    *(text * HUGE for text in ("a", " ", "1", "a,", "1 ", ".", '"', "“")),
    '1. "x": "' + " " * HUGE,
    "<demonstrations>\n" + "Question:\n" * 20_000 + "</demonstrations>",
    'When asked "x", run:\n```python\n' * 5_000,
    'When asked "x", answer `' * 5_000,
    "CREATE TABLE a (b)\nQuestion: " + "a 'b' 1 C " * 5_000,
]


@pytest.mark.parametrize("number", range(len(GARBAGE)))
def test_garbage_gets_an_answer(number):
    read(GARBAGE[number]).encode(errors="surrogatepass")
    assert read([])
    assert read([Message(role="assistant", content="only me")])


@pytest.mark.parametrize("role", ["generator", "reflector", "reflector_harmful", "curator", "rewriter"])
def test_garbage_in_every_part_gets_a_well_formed_reply(world, role):
    names = ("question", "playbook", "counters", "reflection", "reasoning", "answer", "gold", "bullets", "feedback")
    for text in ("", "\ud800 x", '{"a": ["', "[b-1] (x) ", "When asked", "n1 ^ n1 ^ 9", "%" * 1_000):
        first = ask(role, **{**dict.fromkeys(names, text), "background": world.background})
        assert first.keys() == ask(role, question=world.question, background=text, gold=text, answer=text).keys()


@given(st.text(alphabet="ab#*=<>/:_- \n[]()PQplaybookquestion.", max_size=200))
def test_any_text_is_parsed(text):
    assert parse_prompt(user(f"{text}\n{REPLY}")).form == "generator"
    assert read(f"{text}\napis.supervisor.complete_task()\nTask: x")
