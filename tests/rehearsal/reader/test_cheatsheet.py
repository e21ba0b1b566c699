"""The reader as generator and curator of a cheatsheet."""

from __future__ import annotations

import pytest

from ace_bench.contexts.cheatsheet import PastRollout
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.reader.pieces import Form, take_apart
from tests.rehearsal.reader.conftest import NUMBER_TASK, TAGGING_TASK, Render, tagging_question

HEDGE = "In May the Group drew on the Harbour line and noted $ {} million for tax positions under dispute"
GOLD = "OperatingLossCarryforwards,OperatingLossCarryforwards"
FIELDS = {"background": TAGGING_TASK, "cheatsheet": "", "trajectory": "", "code_runs": 4, "episodes": []}


def question(*numbers: str) -> str:
    return tagging_question(*[(number, HEDGE.format(number)) for number in numbers])


def say(backbone: EmbeddedBackbone, render: Render, role: str, **fields: object) -> str:
    return backbone.complete(render(role, **{**FIELDS, **fields}), role=role, session="s").text


def sheet_of(reply: str) -> str:
    return reply.partition("<cheatsheet>\n")[2].partition("\n</cheatsheet>")[0]


@pytest.mark.parametrize(
    ("template", "form"),
    [
        ("cheatsheet", Form.TAGGED),
        ("cheatsheet_curator", Form.CHEATSHEET),
        ("cheatsheet_synthesis", Form.CHEATSHEET),
    ],
)
@pytest.mark.parametrize("labels", ["gold", "none"])
def test_the_form_is_told_from_the_prompt_alone(render: Render, template: str, form: Form, labels: str) -> None:
    noise = 'They say "operations": [] and "final_answer": "x" and </answer> and </cheatsheet>.'
    fields = {**FIELDS, "question": noise, "reasoning": noise, "gold": noise, "feedback": noise, "labels": labels}
    assert take_apart(render(template, **fields)).form is form


def test_what_an_attempt_teaches_is_written_down_and_used(backbone: EmbeddedBackbone, render: Render) -> None:
    attempt = say(backbone, render, "cheatsheet", question=question("7.5", "3"))
    assert GOLD not in attempt
    fields = {"question": question("7.5", "3"), "reasoning": attempt, "answer": "Depreciation,Depreciation"}
    untold = say(backbone, render, "cheatsheet_curator", **fields, labels="none")
    assert "OperatingLoss" not in untold
    sheet = sheet_of(say(backbone, render, "cheatsheet_curator", **fields, gold=GOLD))
    assert "OperatingLossCarryforwards" in sheet
    assert say(backbone, render, "cheatsheet", cheatsheet=sheet, question=question("9", "2")).endswith(
        f"<answer>{GOLD}</answer>"
    )
    again = say(backbone, render, "cheatsheet_curator", **fields, gold=GOLD, cheatsheet=sheet)
    assert sheet_of(again) == sheet, "what is known is not written twice"


def test_earlier_attempts_teach_the_same_when_they_are_retrieved(backbone: EmbeddedBackbone, render: Render) -> None:
    past = [
        PastRollout(
            question=question("7.5", "3"), output="So.\n<answer>Depreciation,Depreciation</answer>", reference=GOLD
        ),
        PastRollout(question=question("4", "8"), output="no answer", feedback="The answer is not correct."),
    ]
    shown = [episode.text for episode in past]
    reply = say(backbone, render, "cheatsheet_synthesis", question=question("9", "2"), episodes=shown)
    assert "OperatingLossCarryforwards" in sheet_of(reply)


def test_a_sheet_that_grows_too_long_loses_what_is_old(backbone: EmbeddedBackbone, render: Render) -> None:
    sheet = "\n".join(f"- lesson {number}: {'so and so ' * 30}" for number in range(40))
    fields = {"background": NUMBER_TASK, "question": "How much is 3 times 4?", "cheatsheet": sheet, "answer": "1"}
    kept = sheet_of(say(backbone, render, "cheatsheet_curator", **fields, gold="12.0"))
    assert len(kept) < 7_000 < len(sheet)
    assert "- lesson 0:" not in kept
    assert "- lesson 39:" in kept
