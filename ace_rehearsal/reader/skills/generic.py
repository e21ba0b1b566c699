"""Any question of no known kind: choose an option by its words, or repeat what a lesson says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ace_rehearsal.reader.skills.base import HARMFUL, HELPFUL, NEUTRAL, Answer, Diagnosis, Lesson, Review
from ace_rehearsal.reader.words import content_stems, tokens

_LISTED = re.compile(r"^[ \t]*(?:\(?(\d{1,2}|[A-Za-z])[.):]|[-*])[ \t]+(\S[^\n]{0,200})$", re.MULTILINE)
_INLINE = re.compile(
    r"\b(?:options?|choices?|one of|choose from)\b[^:\n]{0,60}:[ \t]*([^\n]{3,2000}?)(?=[.?!](?:\s|$)|\n|$)",
    re.IGNORECASE,
)
_LESSON = re.compile(r'When asked about "([^"\n]*)" answer "([^"\n]*)"(?:, not "([^"\n]*)")?\.')
_ADVICE = re.compile(r'The answer here is "([^"\n]*)"')
_TOPIC, _LONGEST, _MOST_OPTIONS = 24, 120, 200
_LESSON_WEIGHT, _LEAST = 3.0, 0.2
_ANSWER = "unknown"


@dataclass(frozen=True, kw_only=True)
class GenericCase:
    """A question with the options found in it, which may be none."""

    question: str
    options: tuple[str, ...]

    def answer(self, lessons: Sequence[Lesson], advice: str) -> Answer:
        """Choose by the words shared with the question and by the most similar lessons."""
        advised = _ADVICE.findall(advice)
        if advised:
            return Answer(text=advised[-1], reasoning="As the reflection says.")
        own = frozenset(content_stems(tokens(self.question)))
        scores = {option: _overlap(option, own) for option in self.options}
        speakers: dict[str, list[str]] = {}
        for lesson in lessons:
            for topic, said, instead in _LESSON.findall(lesson.content):
                likeness = _overlap(topic, own)
                if likeness < _LEAST or (self.options and said not in scores):
                    continue
                vote = _LESSON_WEIGHT * likeness**2 * lesson.trust
                scores[said] = scores.get(said, 0.0) + vote
                speakers.setdefault(said, []).append(lesson.id)
                if instead in scores:
                    scores[instead] -= vote / 3
        if not scores:
            return Answer(text=_ANSWER, reasoning="The question names no options and no entry fits it.")
        best = max(scores, key=lambda option: scores[option])
        cited = tuple(dict.fromkeys(speakers.get(best, [])))
        return Answer(text=best, reasoning=f"{best} fits the words of the question best.", cited=cited)

    def lesson(self, review: Review) -> Diagnosis:
        """Compare as text where the gold is shown."""
        said = _one_line(review.predicted)
        gold = None if review.gold is None else _one_line(review.gold)
        right = review.correct if gold is None else gold.lower() == said.lower()
        verdict = NEUTRAL if right is None else HELPFUL if right else HARMFUL
        tags = tuple((used.id, verdict) for used in review.used)
        if right:
            return Diagnosis(error="Nothing went wrong.", cause="", approach="Keep the answer.", tags=tags)
        if gold is None:
            error = (
                "Nothing shows an error." if right is None else "The answer is not right; the right one is not shown."
            )
            return Diagnosis(error=error, cause="", approach="Look at the question once more.", tags=tags)
        return Diagnosis(
            error=f'The answer "{said}" differs from the reference.',
            cause="The words of the question were read as pointing elsewhere.",
            approach=f'The answer here is "{gold}".',
            insights=(self._worded(gold, said),) if gold else (),
            tags=tags,
        )

    def demonstrated(self, answer: str) -> tuple[str, ...]:
        """The pair itself."""
        return (self._worded(_one_line(answer), ""),)

    def _worded(self, gold: str, said: str) -> str:
        words = [word for word in tokens(self.question) if word[0].isalpha()]
        topic = " ".join(words[-_TOPIC:])
        wrong = f', not "{said}"' if said else ""
        return f'When asked about "{topic}" answer "{gold}"{wrong}.'


def _overlap(text: str, own: frozenset[str]) -> float:
    stems = set(content_stems(tokens(text)))
    return len(stems & own) / len(stems) if stems else 0.0


def _one_line(text: str) -> str:
    return " ".join(text.replace('"', "'").split())[:_LONGEST]


def _split_options(text: str) -> tuple[tuple[str, ...], str]:
    """Options of a text and the text without them: their own words must not speak for them."""
    inline = _INLINE.search(text)
    if inline:
        names = [name.strip(" \t\"'.") for name in re.split(r"[,;|]", inline[1])]
        rest = text[: inline.start()] + text[inline.end() :]
    else:
        names = [match[2].strip() for match in _LISTED.finditer(text)]
        rest = _LISTED.sub("", text)
    found = tuple(dict.fromkeys(name for name in names if name))[:_MOST_OPTIONS]
    return (found, rest) if len(found) > 1 else ((), text)


class Generic:
    """Skill of last resort: recognises every question."""

    name = "generic"

    def recognise(self, background: str, question: str) -> GenericCase:
        """Take any text as a question."""
        options, rest = _split_options(question)
        return GenericCase(question=rest, options=options or _split_options(background)[0])

    def insights(self, text: str) -> tuple[str, ...]:
        """Lessons in this skill's wording."""
        return tuple(dict.fromkeys(match[0] for match in _LESSON.finditer(text)))

    def section(self, insight: str) -> tuple[str, ...]:
        """Any section will do; strategies are tried first."""
        del insight
        return ("strateg", "heuristic", "other")

    def repeats(self, insight: str, known: str) -> bool:
        """Only the same words say the same."""
        return insight == known
