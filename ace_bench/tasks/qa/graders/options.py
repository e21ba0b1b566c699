"""Grader of choices: the letter or the text of the right option."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from ace_bench.core.errors import DataError
from ace_bench.tasks.qa.columns import Question, accepted_values, letter, text_of
from ace_bench.tasks.qa.graders.key import AnswerKey, MakeKey
from ace_bench.tasks.qa.graders.texts import Ignore

_ALONE = re.compile(r"\W*([A-Za-z])\W*", re.ASCII)
_LEADING = re.compile(r"\W*([A-Za-z])\s*[.):\]-]+\s*(\S.*)", re.ASCII | re.DOTALL)
_LONGEST = 2_000
"""Characters of an answer that patterns are tried on, which take quadratic time at worst."""
_STATED = re.compile(r"\b(?i:answer|option|choice)\s*(?:is|:)?\s*[\[(*\"']*([A-Z])\b(?!\s*(?:or|and|/))", re.ASCII)


def choice(ignore: Ignore) -> MakeKey:
    """Right if the answer is the right option, by letter, text or both; one that names two options is wrong.

    The reference is an option's text, its letter, or its number from 0 where the column holds whole numbers.
    """
    return partial(_key, ignore.normalise)


def _key(normalise: Callable[[str], str], question: Question) -> AnswerKey:
    if not question.choices:
        raise DataError("task.grader=choice needs the options: name their column by task.choices")
    texts = [normalise(option) for option in question.choices]
    right = [_place(value, texts, normalise, question) for value in accepted_values(question)]

    def score(answer: str) -> float:
        return float(read_choice(answer, texts, normalise) in right)

    return AnswerKey(gold=f"{letter(right[0])}. {question.choices[right[0]]}", score=score)


def _place(value: object, texts: Sequence[str], normalise: Callable[[str], str], question: Question) -> int:
    text = text_of(value, question.where, "answer")
    if normalise(text) in texts:
        return texts.index(normalise(text))
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(texts):
        return value
    place = ord(text.upper()) - ord("A") if len(text) == 1 else -1
    if 0 <= place < len(texts):
        return place
    raise DataError(
        f"{question.where}: the answer {text!r} is neither one of the {len(texts)} choices nor the letter of one"
    )


def read_choice(answer: str, texts: Sequence[str], normalise: Callable[[str], str]) -> int | None:
    """Return the place of the option that an answer names; ``None`` where it names none or several."""
    given = normalise(answer)
    if given in texts:
        return texts.index(given)
    answer = answer.strip()[:_LONGEST]
    alone = _ALONE.fullmatch(answer)
    if alone:
        return _within(alone[1], texts)
    leading = _LEADING.fullmatch(answer)
    if leading:
        place = _within(leading[1], texts)
        if place is not None and normalise(leading[2]) == texts[place]:
            return place
    stated = {place for one in _STATED.findall(answer) if (place := _within(one, texts)) is not None}
    return stated.pop() if len(stated) == 1 else None


def _within(name: str, texts: Sequence[str]) -> int | None:
    place = ord(name.upper()) - ord("A")
    return place if place < len(texts) else None
