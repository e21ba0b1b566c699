"""Grader of numbers within a tolerance: it reads 1,234.5, $3, 12%, (7), 1.5e3, and a sentence with one number."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial

from ace_bench.core.errors import DataError
from ace_bench.core.settings import NotNegative
from ace_bench.tasks.qa.columns import Question
from ace_bench.tasks.qa.graders import AnswerKey, MakeKey, accepted

_NUMBER = re.compile(
    r"(?<![\w.,])(?P<open>\()?(?P<sign>[+-])?[$€£¥]?(?P<again>[+-])?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?P<power>e[+-]?\d{1,3})?"
    r"\s?(?P<percent>%)?(?P<close>\))?(?![\d,]*\d|\.\d)",
    re.ASCII | re.IGNORECASE,
)
_MINUS = str.maketrans(
    {"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " "}
)
_LONGEST = 2_000


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """An answer is right within ``absolute``, or within the share ``relative`` of the reference."""

    absolute: NotNegative
    relative: NotNegative

    def near(self, value: float, wanted: float) -> bool:
        """Whether a number is close enough to the reference."""
        return abs(value - wanted) <= max(self.absolute, self.relative * abs(wanted))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A number in a text; ``percent`` if a percent sign follows it."""

    value: float
    percent: bool


def read_number(text: str) -> Reading | None:
    """Return the only number of a text; ``None`` where there is none or several, or one that is not finite."""
    found = list(_NUMBER.finditer(text[:_LONGEST].translate(_MINUS)))
    if len(found) != 1:
        return None
    match = found[0]
    value = float(match["digits"].replace(",", "") + (match["power"] or ""))
    negative = "-" in (match["sign"], match["again"]) or (match["open"] and match["close"] and not match["sign"])
    return (
        Reading(value=-value if negative else value, percent=bool(match["percent"])) if math.isfinite(value) else None
    )


def numeric(tolerance: Tolerance) -> MakeKey:
    """Right if the answer's number is near an accepted one.

    Where only one of the two has a percent sign, 12% is both 12 and 0.12.
    """
    return partial(_key, tolerance)


def _key(tolerance: Tolerance, question: Question) -> AnswerKey:
    golds = accepted(question)
    wanted = []
    for gold in golds:
        number = read_number(gold)
        if number is None:
            raise DataError(f"{question.where}: the answer {gold!r} is not one number; use another task.grader")
        wanted.append(number)

    def score(answer: str) -> float:
        given = read_number(answer)
        return float(given is not None and any(_equal(given, one, tolerance) for one in wanted))

    return AnswerKey(gold=golds[0], score=score)


def _equal(given: Reading, wanted: Reading, tolerance: Tolerance) -> bool:
    if tolerance.near(given.value, wanted.value):
        return True
    if given.percent == wanted.percent:
        return False
    scale = 0.01 if given.percent else 100
    return tolerance.near(given.value * scale, wanted.value)
