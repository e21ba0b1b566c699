"""Graders of texts: equal, contained, matched by a regular expression, or sharing words."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import regex as regexes  # as ``re``, with a limit of time

from ace_bench.core.errors import DataError
from ace_bench.tasks.qa.columns import Question
from ace_bench.tasks.qa.graders.key import AnswerKey, MakeKey, accepted, grader_fault

_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_LONGEST, _SECONDS = 10_000, 1.0
"""Characters of an answer that a regular expression is searched for in, and how long."""


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
        reduced = unicodedata.normalize("NFKD" if self.accents else "NFC", text)
        if self.accents:
            reduced = "".join(char for char in reduced if not unicodedata.combining(char))
        if self.case:
            reduced = reduced.casefold()
        if self.punctuation:
            reduced = "".join(char for char in reduced if not unicodedata.category(char).startswith("P"))
        if self.articles:
            reduced = _ARTICLES.sub(" ", reduced)
        if self.whitespace or self.articles:
            reduced = " ".join(reduced.split())
        return reduced.strip() or text.strip()


def exact(ignore: Ignore) -> MakeKey:
    """Right if the answer equals an accepted one, apart from what is ignored."""
    return partial(_compared, ignore.normalise, lambda answer, gold: float(answer == gold))


def contains(ignore: Ignore) -> MakeKey:
    """Right if an accepted answer occurs in the answer as whole words, apart from what is ignored."""

    def occurs(answer: str, gold: str) -> float:
        return float(re.search(rf"(?<!\w){re.escape(gold)}(?!\w)", answer) is not None)

    return partial(_compared, ignore.normalise, occurs)


def f1(question: Question) -> AnswerKey:
    """Share of common words, as SQuAD's official script counts it (evaluate-v1.1.py, f1_score): 0 to 1."""
    return _compared(_squad, _overlap, question)


def _compared(normalise: Callable[[str], str], compare: Callable[[str, str], float], question: Question) -> AnswerKey:
    golds = accepted(question)
    wanted = [normalise(gold) for gold in golds]

    def score(answer: str) -> float:
        given = normalise(answer)
        return max(compare(given, gold) for gold in wanted)

    return AnswerKey(gold=golds[0], score=score)


def _squad(text: str) -> str:
    plain = "".join(char for char in text.lower() if char not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def _overlap(answer: str, gold: str) -> float:
    given, wanted = answer.split(), gold.split()
    common = sum((Counter(given) & Counter(wanted)).values())
    if not given or not wanted:
        return float(given == wanted)
    return 2 * common / (len(given) + len(wanted))


def regex(question: Question) -> AnswerKey:
    """Right if a pattern of the answer column is found in the answer (Python's syntax).

    The pattern itself is a right answer, too: it is all that a method with labels=gold is shown. A search that takes
    over a second is a fault of the task.
    """
    golds = accepted(question)
    compiled = [_pattern(gold, question.where) for gold in golds]

    def score(answer: str) -> float:
        return float(answer.strip() in golds or any(_found(one, answer) for one in compiled))

    return AnswerKey(gold=golds[0], score=score)


def _pattern(text: str, where: str) -> regexes.Pattern[str]:
    try:
        return regexes.compile(text)
    except (regexes.error, RecursionError, OverflowError) as error:
        raise DataError(f"{where}: the answer {text!r} is not a regular expression: {error}") from error


def _found(pattern: regexes.Pattern[str], answer: str) -> bool:
    try:
        return pattern.search(answer[:_LONGEST], timeout=_SECONDS) is not None
    except TimeoutError as error:
        raise grader_fault(
            f"the pattern {pattern.pattern!r} was searched for over {_SECONDS:g} s in an answer; write it so that it "
            "backtracks less"
        ) from error
