"""The registry of skills. A new skill is one module here and one line below; the last recognises anything."""

from __future__ import annotations

from ace_rehearsal.reader.skills.acting import Acting
from ace_rehearsal.reader.skills.arithmetic import Arithmetic
from ace_rehearsal.reader.skills.base import Case, Skill
from ace_rehearsal.reader.skills.diagnosis import Diagnosing
from ace_rehearsal.reader.skills.generic import Generic
from ace_rehearsal.reader.skills.sql import Sql
from ace_rehearsal.reader.skills.tagging import Tagging

SKILLS: tuple[Skill, ...] = (Acting(), Sql(), Tagging(), Diagnosing(), Arithmetic(), Generic())


def recognise(background: str, question: str) -> tuple[Skill, Case]:
    """Return the first skill that recognises a question, with the question as it understands it."""
    for skill in SKILLS:
        case = skill.recognise(background, question)
        if case is not None:
            return skill, case
    raise AssertionError("the last skill recognises every question")
