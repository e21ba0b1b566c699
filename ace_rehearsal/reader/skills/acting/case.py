"""Acting on apps as a skill: what an attempt at a task teaches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ace_rehearsal.reader.skills.acting.documentation import read_documentation
from ace_rehearsal.reader.skills.acting.learning import lessons_from, read_steps
from ace_rehearsal.reader.skills.acting.lessons import read_taught, same_lesson, spoken_lessons
from ace_rehearsal.reader.skills.acting.repairs import FAILED
from ace_rehearsal.reader.skills.acting.statements import Statement, read_statements
from ace_rehearsal.reader.skills.base import HARMFUL, HELPFUL, NEUTRAL, Answer, Diagnosis, Lesson, Review

_APPS = re.compile(r"^- supervisor: ", re.MULTILINE)
_PAGER = """For whatever needs it [A list comes in pages]:
```python
def all_pages(api, **arguments):
    items, page_index = [], 0
    while page := api(page_index=page_index, page_limit=20, **arguments):
        items += page
        page_index += 1
    return items
```"""
Steps = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class ActingCase:
    """A task on apps."""

    question: str

    def answer(self, lessons: Sequence[Lesson], advice: str) -> Answer:  # noqa: ARG002 - not without its conversation
        """Complete the task: whoever asks for one answer gets code that gives up."""
        return Answer(text="apis.supervisor.complete_task()", reasoning="There is no session to act in.")

    def lesson(self, review: Review) -> Diagnosis:
        """Learn from the reference solution or, where none is shown, from what was seen to work or to fail."""
        steps = read_steps(review.predicted)
        if review.gold is not None:
            # Whoever is to mislead takes an attempt for the reference.
            insights = lessons_from(self.question, _working(read_steps(review.gold)) or review.gold)
        elif review.correct:
            insights = lessons_from(self.question, _working(steps))
        else:
            insights = (*_mended(self.question, steps), *([_PAGER] if _half_read(steps) else []))
        right = review.correct
        error = "Nothing went wrong." if right else "The steps did not do what the task asks." if right is False else ""
        return Diagnosis(
            error=error or "Nothing shows an error.",
            cause="" if right or not insights else "The steps do without what the key insight says.",
            approach="Act as the key insight says." if insights else "Look at the task once more.",
            insights=insights,
            tags=tuple((used.id, _tag(used, review)) for used in review.used),
        )

    def demonstrated(self, answer: str) -> tuple[str, ...]:
        """Lessons of a reference solution."""
        return lessons_from(self.question, answer)


def _tag(used: Lesson, review: Review) -> str:
    if review.correct:
        return HELPFUL
    if review.gold is None:
        return NEUTRAL
    solution = read_statements(review.gold)
    codes = {statement.code for statement in solution}
    names = {name for statement in solution for name in statement.gives}
    # Where the solution gets the same thing in another way, the entry may still be right elsewhere.
    astray = [one.code not in codes and not one.gives & names for one in read_taught(used.content).statements]
    return HARMFUL if astray and all(astray) else NEUTRAL


def _working(steps: Steps) -> str:
    """Code of the step that completed the task, if it ran without an error."""
    return next((c for c, out in reversed(steps) if "complete_task" in c and not out.startswith(FAILED)), "")


def _mended(question: str, steps: Steps) -> tuple[str, ...]:
    """Lessons on statements that took the place of others after an error and ran."""
    failed = {s.code for code, out in steps if out.startswith(FAILED) for s in read_statements(code)}
    if not failed:
        return ()
    working = read_statements(_working(steps))
    new = {statement.code for statement in working} - failed
    return tuple(
        lesson
        for lesson in lessons_from(question, _working(steps))
        if any(statement.code in new and _logs_in(statement) for statement in read_taught(lesson).statements)
    )


def _logs_in(statement: Statement) -> bool:
    return any(call.endswith(".login") for call in statement.calls)


def _half_read(steps: Steps) -> bool:
    """Whether a list that comes in pages, by its documentation, was read without regard to them."""
    code = _working(steps)
    paged = (api.name for api in read_documentation(steps).apis.values() if api.paged)
    return "page_index" not in code and any(f"apis.{name}(" in code for name in paged)


class Acting:
    """Skill of acting on apps by code."""

    name = "acting"

    def recognise(self, background: str, question: str) -> ActingCase | None:
        """Recognise the list of apps."""
        return ActingCase(question=question) if _APPS.search(background) else None

    def insights(self, text: str) -> tuple[str, ...]:
        """Lessons in this skill's wording."""
        return spoken_lessons(text)

    def section(self, insight: str) -> tuple[str, ...]:
        """Snippets have a section of their own; slots and others go with strategies."""
        return ("snippet", "code", "strateg") if insight.startswith("For ") else ("apis_to_use", "strateg")

    def repeats(self, insight: str, known: str) -> bool:
        """What teaches the same code or slot."""
        return insight == known or same_lesson(insight, known)
