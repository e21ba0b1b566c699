"""Grader by a model (LLM as a judge): does an answer say what the reference says?

The prompt is ``prompts/<set>/judged/judge.j2``. The judge sees instruction, question, reference and answer. It is not
asked where the answer is the reference letter for letter (correct) or empty (incorrect).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ace_bench.core.backbones import Lm
from ace_bench.core.prompts import Prompts
from ace_bench.core.replies import ask
from ace_bench.tasks.qa.columns import Question
from ace_bench.tasks.qa.graders.key import AnswerKey, accepted

TEMPLATE = "judge"
FIELDS = frozenset(("background", "question", "gold", "predicted"))
PROMPT_GROUP = "judged"


class JudgeReply(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's reply; the reason comes first, so that the model thinks before it decides."""

    reason: str
    verdict: Literal["correct", "incorrect"]


def judged(question: Question) -> AnswerKey:
    """Right at once where the answer equals an accepted one; all others are for the judge."""
    golds = accepted(question)
    return AnswerKey(gold="\n".join(golds), score=lambda answer: float(answer.strip() in golds))


def verdict(inputs: dict[str, str], gold: str, answer: str, prompts: Prompts, lm: Lm) -> bool:
    """Ask the judge, and ask again if its reply cannot be read; raises ``RolloutFault``."""
    fields = {**inputs, "gold": gold, "predicted": answer}
    return ask(lm, prompts.render(TEMPLATE, fields), JudgeReply).verdict == "correct"
