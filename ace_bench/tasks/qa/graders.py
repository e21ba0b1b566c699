"""Graders of an answer against a reference: texts and choices.

Texts are equal, contained, or share words. A choice is the letter or the text of the right option. Differences that
nobody sees (``core.words.visible``) decide nowhere.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import regex as regexes

from ace_bench.core.errors import DataError
from ace_bench.core.words import has_words, visible, words_of
from ace_bench.tasks.qa.columns import Question, accepted_values, letter, place_of_letter, text_of

T = TypeVar("T")
_MOST_LABELS = 50
"""More different answers are no closed set."""


@dataclass(frozen=True, kw_only=True)
class AnswerKey:
    """``gold`` is the reference answer as text; ``score`` returns the share of points, in [0, 1], of an answer.

    A grader makes the key of a question; it raises ``DataError`` for an answer that cannot be a reference.
    """

    gold: str
    score: Callable[[str], float]


def accepted_texts(question: Question) -> tuple[str, ...]:
    """Return the accepted answers as text; the first is the reference answer."""
    return tuple(text_of(value, question.where, "answer") for value in accepted_values(question))


_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_ACCENT = regexes.compile(r"[[\p{Mn}&&[\p{Inherited}\p{Hebrew}\p{Arabic}]]--[\u3099\u309A]]", flags=regexes.VERSION1)
"""Marks of accents; those of Indian and Thai letters, and the voicing of Kana, are part of the word."""


@dataclass(frozen=True, kw_only=True)
class Ignore:
    """Differences between texts that do not count; surrounding white space never does."""

    case: bool
    whitespace: bool
    punctuation: bool
    articles: bool
    accents: bool

    def normalise(self, text: str) -> str:
        """Return a text without what is ignored. A text of nothing but that stays as it is."""
        text = reduced = visible(text)
        if self.accents:
            reduced = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
        if self.case:
            reduced = reduced.casefold()
        if self.punctuation:
            reduced = "".join(char for char in reduced if not unicodedata.category(char).startswith("P"))
        if self.articles:
            reduced = _ARTICLES.sub(" ", reduced)
        if self.whitespace or self.articles:
            reduced = " ".join(reduced.split())
        return reduced.strip() or text.strip()


def exact(question: Question, *, ignore: Ignore) -> AnswerKey:
    """Right if the answer equals an accepted one, apart from what is ignored."""
    return _compare_texts(question, ignore.normalise, lambda answer, gold: answer == gold)


def contains(question: Question, *, ignore: Ignore) -> AnswerKey:
    """Right if an accepted answer occurs in the answer as whole words, apart from what is ignored."""
    return _compare_texts(question, ignore.normalise, has_words)


def f1(question: Question) -> AnswerKey:
    """Share of common words, as SQuAD's official script counts it (evaluate-v1.1.py, f1_score): 0 to 1.

    Where that script knows English alone, this one does as MLQA's: the punctuation of all scripts goes, and each
    character of a script without blanks is a word.
    """
    return _compare_texts(question, _squad_words, _overlap)


def _compare_texts(question: Question, normalise: Callable[[str], T], compare: Callable[[T, T], float]) -> AnswerKey:
    golds = accepted_texts(question)
    wanted = [normalise(gold) for gold in golds]

    def score(answer: str) -> float:
        normalised = normalise(answer)
        return float(max(compare(normalised, gold) for gold in wanted))

    return AnswerKey(gold=golds[0], score=score)


def _squad_words(text: str) -> list[str]:
    plain = "".join(
        char
        for char in visible(text).lower()
        if char not in string.punctuation and not unicodedata.category(char).startswith("P")
    )
    return words_of(_ARTICLES.sub(" ", plain))


def _overlap(answered: list[str], wanted: list[str]) -> float:
    common = sum((Counter(answered) & Counter(wanted)).values())
    return 2 * common / (len(answered) + len(wanted)) if answered or wanted else 1.0


_ALONE = re.compile(r"\W*([A-Za-z]{1,3})\W*", re.ASCII)
_LEADING = re.compile(r"\W*([A-Za-z]{1,3})\s*[.):\]-]+\s*(\S.*)", re.ASCII | re.DOTALL)
_LONGEST_CHOICE = 2_000
"""Characters of an answer that patterns are tried on, which take quadratic time at worst."""
_STATED = re.compile(r"\b(?i:answer|option|choice)\s*(?:is|:)?\s*[\[(*\"']*([A-Z]{1,3})\b(?!\s*(?:or|and|/))", re.ASCII)


def choice(question: Question, *, ignore: Ignore) -> AnswerKey:
    """Right if the answer is the right option, by letter, text or both; one that names two options is wrong.

    The reference is an option's text, its letter, or its number from 0 where the column holds whole numbers.
    """
    if not question.choices:
        raise DataError("task.grader=choice needs the options: name their column by task.choices")
    texts = [ignore.normalise(option) for option in question.choices]
    right = [_place(value, texts, ignore, question) for value in accepted_values(question)]

    def score(answer: str) -> float:
        return float(_read_choice(answer, texts, ignore) in right)

    return AnswerKey(gold=f"{letter(right[0])}. {question.choices[right[0]]}", score=score)


def _place(value: object, texts: Sequence[str], ignore: Ignore, question: Question) -> int:
    text = text_of(value, question.where, "answer")
    if ignore.normalise(text) in texts:
        return texts.index(ignore.normalise(text))
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(texts):
        return value
    index = place_of_letter(text)
    if index is not None and index < len(texts):
        return index
    raise DataError(
        f"{question.where}: the answer {text!r} is neither one of the {len(texts)} choices nor the letter of one"
    )


def _read_choice(answer: str, texts: Sequence[str], ignore: Ignore) -> int | None:
    """Return the place of the option that an answer names; ``None`` if it names none or several."""
    normalised = ignore.normalise(answer)
    if normalised in texts:
        return texts.index(normalised)
    answer = visible(answer).strip()[:_LONGEST_CHOICE]
    alone = _ALONE.fullmatch(answer)
    if alone:
        return _within(alone[1], texts)
    leading = _LEADING.fullmatch(answer)
    if leading:
        index = _within(leading[1], texts)
        if index is not None and ignore.normalise(leading[2]) == texts[index]:
            return index
    stated = {index for name in _STATED.findall(answer) if (index := _within(name, texts)) is not None}
    return stated.pop() if len(stated) == 1 else None


def _within(name: str, texts: Sequence[str]) -> int | None:
    index = place_of_letter(name)
    return index if index is not None and index < len(texts) else None


def are_labels(answers: Sequence[object]) -> bool:
    """Whether reference answers are labels: few, and repeated as those of a closed set are."""
    different = len(set(map(str, answers)))
    return different <= _MOST_LABELS and 2 * different <= len(answers)
