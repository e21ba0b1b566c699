"""Arithmetic: one number computed from the numbers of a question (Formula)."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from ace_rehearsal.reader.skills.arithmetic.formulas import FormulaError, evaluate
from ace_rehearsal.reader.skills.arithmetic.lessons import (
    FormulaLesson,
    Role,
    gather_lessons,
    likenesses,
    read_lessons,
    same_lesson,
    spoken_lessons,
    topic_words,
    word_lesson,
)
from ace_rehearsal.reader.skills.arithmetic.quantities import (
    FREQUENCY,
    PLAIN,
    Quantity,
    cues,
    read_quantities,
)
from ace_rehearsal.reader.skills.arithmetic.search import find_formula, matches
from ace_rehearsal.reader.skills.base import HARMFUL, HELPFUL, NEUTRAL, Answer, Diagnosis, Lesson, Review

_WANTED = re.compile(r"\b(?:numerical|numeric|number|decimals?|decimal places)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.:])\s+(?=\S)|\n")
_ASKS = re.compile(r"\?|\b(?:calculate|compute|determine|find|evaluate)\b|[$%]", re.IGNORECASE)
_ADVICE = re.compile(r"The answer here is (-?[\d.,]+)")
_GUESSES: tuple[tuple[str, str], ...] = (
    (r"ratio|turnover|yield|per share|multiple", "a / b"),
    (r"margin|return on|rate", "a / b * 100"),
    (r"capitali[sz]ation|interest", "a * b"),
    (r"capital|profit|income|difference|value", "a - b"),
)
_MOST_ASSIGNMENTS = 120
VOTERS, LEAST_LIKENESS, LEAST_FIT, UNUSED = 8, 0.15, 0.3, 1.0


@dataclass(frozen=True, kw_only=True)
class ArithmeticCase:
    """A question whose answer is one number."""

    question: str
    quantities: tuple[Quantity, ...]

    def answer(self, lessons: Sequence[Lesson], advice: str) -> Answer:
        """Follow the advice, else the formulas of the most similar lessons, else a first reading."""
        advised = _ADVICE.findall(advice)
        if advised:
            return Answer(text=advised[-1].rstrip(".,"), reasoning="As the reflection says.")
        votes, speakers = self._votes(lessons)
        if votes:
            best = max(sorted(votes), key=lambda text: votes[text])
            ids = tuple(dict.fromkeys(speaker for speaker, _ in speakers[best]))
            formula = speakers[best][0][1]
            return Answer(text=best, reasoning=f"By {', '.join(ids)}: {formula} gives {best}.", cited=ids)
        formula, text = self._first_reading()
        return Answer(text=text, reasoning=f"No entry fits. A first reading, {formula}, gives {text}.")

    def _votes(self, lessons: Sequence[Lesson]) -> tuple[Mapping[str, float], Mapping[str, list[tuple[str, str]]]]:
        topics = gather_lessons(tuple(lesson.content for lesson in lessons))
        votes: dict[str, float] = defaultdict(float)
        speakers: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for likeness, number in likenesses(topics, self.question)[:VOTERS]:
            if likeness < LEAST_LIKENESS:
                break
            lesson, owner = topics.lessons[number], lessons[topics.owners[number]]
            applied = apply(lesson, self.quantities)
            if applied is None or applied[1] < LEAST_FIT:
                continue
            text = as_answer(applied[0])
            votes[text] += likeness**2 * applied[1] * owner.trust
            speakers[text].append((owner.id, lesson.formula))
        return votes, speakers

    def _first_reading(self) -> tuple[str, str]:
        """Guess without a lesson: the words of the request suggest how the first two numbers combine."""
        values = [quantity.value for quantity in self.quantities if quantity.kind != FREQUENCY]
        if len(values) < 2:
            return "a", as_answer(values[0]) if values else "0"
        asked = " ".join(topic_words(self.question)).lower()
        formula = next((guess for pattern, guess in _GUESSES if re.search(pattern, asked)), "a / b")
        try:
            return formula, as_answer(evaluate(formula, {"a": values[0], "b": values[1]}))
        except FormulaError:
            return "a", as_answer(values[0])

    def lesson(self, review: Review) -> Diagnosis:
        """With the gold, search the formula that gives it; without, only warn."""
        tags = tuple((used.id, self._verdict(used, review)) for used in review.used)
        gold = _number(review.gold)
        predicted = _number(review.predicted)
        if gold is not None:
            if predicted is not None and predicted == gold:
                return Diagnosis(error="Nothing went wrong.", cause="", approach="Keep the formula.", tags=tags)
            return self._against_gold(gold, review, tags)
        if review.correct is False:
            asked = " ".join(topic_words(self.question))
            return Diagnosis(
                error=f"The answer {review.predicted.strip()} is not right; the right one is not shown.",
                cause=f'The formula for "{asked}" was probably another one.',
                approach="Look for a formula that uses all numbers given.",
                tags=tags,
            )
        verdict = "Nothing went wrong." if review.correct else "Nothing shows an error."
        return Diagnosis(error=verdict, cause="", approach="Keep the formula.", tags=tags)

    def _against_gold(self, gold: float, review: Review, tags: tuple[tuple[str, str], ...]) -> Diagnosis:
        shown = (review.gold or "").strip()
        finding = find_formula(self.quantities, gold)
        error = f"The answer {review.predicted.strip()} differs from the reference."
        if finding is None:
            return Diagnosis(
                error=error,
                cause="No small formula over the numbers of the question gives the reference.",
                approach=f"The answer here is {shown}",
                tags=tags,
            )
        return Diagnosis(
            error=error,
            cause="Another formula was used, or its operands were mixed up.",
            approach=f"The answer here is {shown}",
            insights=(word_lesson(self.question, self.quantities, finding),),
            tags=tags,
        )

    def _verdict(self, used: Lesson, review: Review) -> str:
        gold, predicted = _number(review.gold), _number(review.predicted)
        for lesson in read_lessons(used.content):
            applied = apply(lesson, self.quantities)
            if applied is None:
                continue
            if gold is not None and matches(applied[0], gold):
                return HELPFUL
            if predicted is not None and matches(applied[0], predicted):
                if review.correct is not None:
                    return HELPFUL if review.correct else HARMFUL
                return HARMFUL if gold is not None else NEUTRAL
        return NEUTRAL

    def demonstrated(self, answer: str) -> tuple[str, ...]:
        """The formula that explains the example, if a small one does."""
        value = _number(answer)
        finding = find_formula(self.quantities, value) if value is not None else None
        return (word_lesson(self.question, self.quantities, finding),) if finding else ()


def apply(lesson: FormulaLesson, quantities: Sequence[Quantity]) -> tuple[float, float] | None:
    """Value of a lesson's formula over a question's numbers, and how well the operands fit, in (0, 1]."""
    if len(lesson.roles) > len(quantities):
        return None
    fits = [
        [_fit(role, quantity, abs(i - j)) for j, quantity in enumerate(quantities)]
        for i, role in enumerate(lesson.roles)
    ]
    places = _assign(fits)
    values = {role.letter: quantities[j].value for role, j in zip(lesson.roles, places, strict=True)}
    total = sum(fits[i][j] for i, j in enumerate(places))
    unused = sum(quantity.kind != FREQUENCY for j, quantity in enumerate(quantities) if j not in places)
    try:
        return evaluate(lesson.formula, values), min(1.0, total / len(lesson.roles)) / (1 + UNUSED * unused)
    except FormulaError:
        return None


def _assign(fits: Sequence[Sequence[float]]) -> tuple[int, ...]:
    """Give every role its quantity: the best assignment where there are few, else greedily."""
    roles, count = len(fits), len(fits[0])
    if math.perm(count, roles) <= _MOST_ASSIGNMENTS:
        return max(permutations(range(count), roles), key=lambda places: sum(fits[i][j] for i, j in enumerate(places)))
    chosen: dict[int, int] = {}
    for _, i, j in sorted((-fit, i, j) for i, row in enumerate(fits) for j, fit in enumerate(row)):
        if i not in chosen and j not in chosen.values():
            chosen[i] = j
    return tuple(chosen[i] for i in range(roles))


def _fit(role: Role, quantity: Quantity, shift: int) -> float:
    own = cues(quantity)
    shared = sum(min(weight, own.get(key, 0.0)) for key, weight in role.cues.items())
    whole = min(sum(role.cues.values()), sum(own.values()))
    words = shared / whole if whole else 0.0
    if role.kind == quantity.kind:
        kind = 1.0
    else:
        kind = 0.5 if PLAIN in {role.kind, quantity.kind} and FREQUENCY not in {role.kind, quantity.kind} else 0.0
    return kind * (0.35 + 0.65 * words - 0.03 * shift) + 0.01 * (kind > 0)


def as_answer(value: float) -> str:
    """Write a number with two decimals at most, as the task's own answers are written."""
    return str(round(value, 2) + 0.0)


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text.replace(",", "").replace("$", "").rstrip("%. \n").strip())
    except ValueError:
        return None


def _split_off_form(text: str) -> tuple[str, str]:
    """Split a prompt without tags behind the first line or sentence that says the answer is a number."""
    start = 0
    for end in [match.end() for match in _SENTENCE_END.finditer(text)]:
        sentence, start = text[start:end], end
        if _WANTED.search(sentence):
            line = text.find("\n", end)
            # A form of several sentences ends with its line; what follows on the same line is the question.
            several = text[end - 1] != "\n" and line >= 0 and not _ASKS.search(text[end:line])
            cut = line + 1 if several else end
            return text[:cut], text[cut:]
    return "", text


class Arithmetic:
    """Skill: compute one number from the numbers of a question."""

    name = "arithmetic"

    def recognise(self, background: str, question: str) -> ArithmeticCase | None:
        """Recognise a request for a number over a question that holds numbers."""
        form, asked = (background, question) if background else _split_off_form(question)
        asked = asked.rpartition("Question:")[2]
        quantities = read_quantities(asked)
        if not quantities or not _WANTED.search(form):
            return None
        return ArithmeticCase(question=asked, quantities=quantities)

    def insights(self, text: str) -> tuple[str, ...]:
        """Arithmetic lessons in a text."""
        return spoken_lessons(text)

    def section(self, insight: str) -> tuple[str, ...]:
        """Formulas have a section of their own."""
        del insight
        return ("formula", "calculation", "strateg")

    def repeats(self, insight: str, known: str) -> bool:
        """Whether both teach the same formula for nearly the same words."""
        return insight == known or same_lesson(insight, known)
