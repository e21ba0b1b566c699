"""Text to SQL: one query for a question over a schema, from its words, lessons and similar questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ace_rehearsal.reader.skills.base import HARMFUL, HELPFUL, NEUTRAL, Answer, Diagnosis, Lesson, Review
from ace_rehearsal.reader.skills.sql.asked import Asked
from ace_rehearsal.reader.skills.sql.compose import compose
from ace_rehearsal.reader.skills.sql.evidence import read_evidence
from ace_rehearsal.reader.skills.sql.lessons import (
    WHERE,
    Meaning,
    Taught,
    gather_lessons,
    habits,
    read_meanings,
    same_lesson,
    similar,
    spoken_lessons,
)
from ace_rehearsal.reader.skills.sql.meanings import applying
from ace_rehearsal.reader.skills.sql.queries import plain_query, same_query, take_query_apart, unwrapped
from ace_rehearsal.reader.skills.sql.schema import read_schema
from ace_rehearsal.reader.skills.sql.shapes import fill, slotted
from ace_rehearsal.reader.skills.sql.tokens import read_question
from ace_rehearsal.reader.skills.sql.wording import meanings_of

_SCHEMA, _KNOWLEDGE, _QUESTION = "Database schema:", "\nExternal knowledge:", "\nUser question:"
_ADVICE = re.compile(r"The query here is: ([^\n]+)")
_CANDIDATES, _LEAST_SHARE = 6, 0.72


@dataclass(frozen=True, kw_only=True)
class SqlCase:
    """A question over a schema, with the external knowledge that came with it."""

    asked: Asked
    evidence: str

    def answer(self, lessons: Sequence[Lesson], advice: str) -> Answer:
        """Follow the advice, else the query of a similar question, else compose one of what its phrases mean."""
        advised = _ADVICE.findall(advice)
        if advised:
            return Answer(text=advised[-1], reasoning="As the reflection says.")
        taught = gather_lessons(tuple(lesson.content for lesson in lessons)).over(self.asked.schema.tables.keys())
        told = self._told()
        shaped = self._shaped(taught, lessons, told)
        if shaped is not None:
            return shaped
        known = applying(taught, lessons, self.asked, told)
        meanings = (*told, *(meaning for _, meaning in known))
        sql = compose(replace(self.asked, habits=habits(taught.shapes)), meanings)
        cited = tuple(dict.fromkeys(owner for owner, meaning in known if meaning.sql in sql))
        because = f" and {', '.join(cited)}" if cited else ""
        return Answer(text=sql, reasoning=f"Composed from the words of the question{because}.", cited=cited)

    def _told(self) -> tuple[Meaning, ...]:
        return read_evidence(self.asked.schema, self.evidence, self.asked.near)

    def _shaped(self, taught: Taught, lessons: Sequence[Lesson], told: Sequence[Meaning]) -> Answer | None:
        """The query of the most similar question, filled from this one; ``None`` where none is similar enough."""
        known = _equalities(told)
        best, winner = _LEAST_SHARE, None
        for _, place in similar(taught.shapes, self.asked.words)[:_CANDIDATES]:
            owner, shape = taught.shapes[place]
            filled = fill(shape, self.asked.words, known)
            weight = 0.0 if filled is None else filled.share * min(lessons[owner].trust, 1.0)
            if filled is not None and weight > best:
                said = f"The question is like that of {lessons[owner].id}."
                best, winner = weight, Answer(text=filled.sql, reasoning=said, cited=(lessons[owner].id,))
        return winner

    def lesson(self, review: Review) -> Diagnosis:
        """With the gold, word what the question's phrases mean and the shape of its query; without, nothing."""
        right = review.correct
        if right is None and review.gold is not None:
            right = same_query(review.predicted, review.gold)
        tags = tuple((used.id, self._verdict(used, review, right)) for used in review.used)
        if right:
            return Diagnosis(error="Nothing went wrong.", cause="", approach="Keep the query.", tags=tags)
        if review.gold is None:
            known = "Nothing shows an error." if right is None else "The query is not right."
            return Diagnosis(error=known, cause="", approach="Read the schema and the question once more.", tags=tags)
        gold = plain_query(review.gold)
        shown = gold or " ".join(unwrapped(review.gold).split())
        return Diagnosis(
            error="The query gives another result than the reference.",
            cause="Phrases of the question were taken for other columns or conditions, or its shape was missed.",
            approach=f"The query here is: {shown}",
            insights=self._insights(review.predicted, gold) if gold else (),
            tags=tags,
        )

    def _insights(self, predicted: str, gold: str) -> tuple[str, ...]:
        known = predicted + " ".join(meaning.sql for meaning in self._told())
        meanings = meanings_of(self.asked, take_query_apart(gold), known)
        return (*(meaning.worded for meaning in meanings), *self._shape(gold))

    def _shape(self, gold: str) -> tuple[str, ...]:
        """The shape lesson; none where its wording cannot be read again."""
        worded = slotted(self.asked.text, gold).worded
        return spoken_lessons(worded)[:1]

    def _verdict(self, used: Lesson, review: Review, right: bool | None) -> str:
        if right is None:
            return NEUTRAL
        if right:
            return HELPFUL
        if review.gold is None:
            return HARMFUL
        gold = plain_query(review.gold)
        said = read_meanings(used.content)
        return HELPFUL if said and all(meaning.sql in gold for meaning in said) else HARMFUL

    def demonstrated(self, answer: str) -> tuple[str, ...]:
        """What its phrases mean and its shape."""
        gold = plain_query(answer)
        return self._insights("", gold) if gold else ()


def _equalities(told: Sequence[Meaning]) -> Mapping[str, str]:
    """Values that columns are said to equal."""
    found: dict[str, str] = {}
    for meaning in told:
        match = re.fullmatch(r"(\S+) = (?:'((?:[^']|'')*)'|(-?[\d.]+))", meaning.sql)
        if meaning.kind == WHERE and match:
            found[match[1].lower()] = match[2].replace("''", "'") if match[2] is not None else match[3]
    return found


class Sql:
    """Skill: write a SQLite query."""

    name = "sql"

    def recognise(self, background: str, question: str) -> SqlCase | None:
        """Recognise a question below the statements that create its tables."""
        del background
        above, found, asked = question.rpartition(_QUESTION)
        schema, _, evidence = above.rpartition(_SCHEMA)[2].partition(_KNOWLEDGE)
        tables = read_schema(schema) if found else None
        if tables is None or not tables.tables:
            return None
        text = asked.strip()
        return SqlCase(asked=Asked(schema=tables, text=text, words=read_question(text)), evidence=evidence.strip())

    def insights(self, text: str) -> tuple[str, ...]:
        """SQL lessons in a text."""
        return spoken_lessons(text)

    def section(self, insight: str) -> tuple[str, ...]:
        """Shapes are templates, the rest says what words mean."""
        if insight.startswith("For questions like"):
            return ("quer", "pattern", "template", "code", "strateg")
        return ("schema", "definition", "convention", "clue", "strateg")

    def repeats(self, insight: str, known: str) -> bool:
        """Whether both give the same SQL to the same words."""
        return insight == known or same_lesson(insight, known)
