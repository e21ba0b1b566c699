"""The reader as a proposer of instructions, in DSPy's forms."""

import json

import pytest
from dspy.propose.grounded_proposer import DescribeProgram, generate_instruction_class
from dspy.teleprompt.gepa.instruction_proposal import ProposeInstruction
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.types import Message
from ace_bench.methods.dspy_bridge.adapters import ChatFormat, JsonFormat
from ace_rehearsal.reader.backbone import EmbeddedBackbone
from ace_rehearsal.reader.proposing import propose
from ace_rehearsal.reader.skills.tagging.lessons import spoken_lessons
from tests.contexts.making import examples

BACKGROUND = "Here is a list of US GAAP tags options: InterestExpense,LineOfCredit,OperatingLeaseCost.\n"
QUESTION = (
    'Answer the following 1 questions, one tag each, separated by commas.\n1. What is best tag for entity "12.5" in '
    'sentence: "Under the credit facility the company may borrow up to $ 12.5 million from its bank."?'
)


def asked(adapter, signature, **inputs):
    """The messages of DSPy for a signature, and what the reader replies, read by DSPy's rules."""
    messages = [Message(role=m["role"], content=m["content"]) for m in adapter.format(signature, [], inputs)]
    reply = EmbeddedBackbone().complete(messages, role="", session="").text
    return adapter.parse(signature, reply)


def attempt(feedback):
    return {
        "Inputs": {"background": BACKGROUND, "question": QUESTION},
        "Generated Outputs": {"reasoning": "", "answer": "InterestExpense"},
        "Feedback": feedback,
    }


def instructed(*attempts, current="Tag numbers."):
    fields = {"current_instruction": current, "examples_with_feedback": list(attempts)}
    return asked(JsonFormat(), ProposeInstruction, **fields)["new_instruction"]


def test_a_lesson_of_an_attempt_with_its_reference_goes_into_the_instruction():
    new = instructed(attempt("The answer is not correct.\nReference answer: LineOfCredit"))
    assert new.startswith("Tag numbers.\n- ")
    assert [lesson.split()[1] for lesson in spoken_lessons(new)] == ["LineOfCredit"]
    assert instructed(attempt("The answer is not correct.\nReference answer: LineOfCredit"), current=new) == new


def test_without_a_reference_nothing_is_taught_as_certain():
    lessons = spoken_lessons(instructed(attempt("The answer is not correct.")))
    assert all(lesson.startswith("Doubtful") for lesson in lessons)
    assert instructed(attempt("The answer is correct.")) == "Tag numbers."


def test_an_instruction_does_not_grow_without_end_and_forgets_the_oldest_first():
    current = "Tag numbers."
    for number in range(60):
        wording = QUESTION.replace("credit facility", f"contract{number} sort{number} kind{number} form{number}")
        shown = {**attempt("Reference answer: LineOfCredit"), "Inputs": {"background": BACKGROUND, "question": wording}}
        current = instructed(shown, current=current)
    assert len(current) <= 6_000
    assert "contract59" in current
    assert "contract0 " not in current
    assert current.startswith("Tag numbers.\n")


def test_right_answers_shown_to_miprov2_become_lessons():
    signature = generate_instruction_class(True, True, True, False, True).signature
    demo = f"Background: {BACKGROUND.strip()}\nQuestion: {QUESTION}\nReasoning: because\nAnswer: LineOfCredit"
    fields = dict.fromkeys(signature.input_fields, "x") | {"task_demos": demo + "\n\n", "basic_instruction": "Tag."}
    proposed = asked(ChatFormat(), signature, **fields)["proposed_instruction"]
    assert proposed.startswith("Tag.\n- Tag LineOfCredit")


@pytest.mark.parametrize("adapter", [ChatFormat(), JsonFormat()])
def test_other_forms_get_a_remark(adapter):
    assert asked(adapter, DescribeProgram, program_code="x", program_example="y")["program_description"]


def test_prompts_without_such_a_form_are_left_to_the_other_roles():
    assert propose([Message(role="user", content="Your output fields are:\n1. `answer`")]) is None
    assert propose([]) is None


@given(
    st.text() | st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
@examples(60)
def test_whatever_stands_in_the_examples_there_is_an_instruction(value):
    text = value if isinstance(value, str) else json.dumps(value)
    system = "Your output fields are:\n1. `new_instruction` (str): x\nOutputs will be a JSON object"
    user = f"[[ ## current_instruction ## ]]\nDo.\n\n[[ ## examples_with_feedback ## ]]\n{text}"
    reply = propose([Message(role="system", content=system), Message(role="user", content=user)])
    assert json.loads(reply) == {"new_instruction": "Do."}
