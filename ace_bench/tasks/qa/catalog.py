"""The graders by name, each with the metric that heads tables and what a model is asked to answer.

Two of them are not fixed rules: ``python:MODULE.FUNCTION``, a function of your own, and ``judge``, a model that says
whether an answer says what the reference says. The judge's prompt is ``prompts/<set>/judged/judge.j2``; it sees
instruction, question, reference and answer, and is not asked where the answer is the reference letter for letter
(correct) or empty (incorrect). ``numeric`` reads 1,234.5, $3, 12%, (7), 1.5e3, and a sentence with one number.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ace_bench.core.errors import ConfigError, DataError, RolloutFault, SettingError
from ace_bench.core.settings import NotNegative
from ace_bench.core.types import Fault
from ace_bench.core.words import visible
from ace_bench.tasks.data import sha256_of
from ace_bench.tasks.qa.columns import Question
from ace_bench.tasks.qa.graders import (
    AnswerKey,
    Ignore,
    accepted_texts,
    choice,
    contains,
    exact,
    f1,
)

PREFIX = "python:"


def load_function(grader: str) -> tuple[Callable[..., Any], dict[str, str]]:
    """Import ``python:MODULE.FUNCTION``, also from the current folder; return it with the checksum of its file.

    Raises ``SettingError``.
    """
    module, _, name = grader.removeprefix(PREFIX).rpartition(".")
    if not module:
        raise SettingError(f"grader={grader} must name a function: python:MODULE.FUNCTION")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        function = getattr(importlib.import_module(module), name)
    except AttributeError as error:
        raise SettingError(f"grader={grader}: module {module} has no function {name}") from error
    except Exception as error:  # whatever the user's module raises while it is imported
        raise SettingError(f"grader={grader}: {module} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    if not callable(function):
        raise SettingError(f"grader={grader} is a {type(function).__name__}, not a function")
    source = inspect.getsourcefile(inspect.unwrap(function)) if inspect.isroutine(function) else None
    return function, {} if source is None else {f"grader {Path(source).name}": sha256_of(Path(source))}


def by_function(question: Question, *, function: Callable[..., Any], grader: str) -> AnswerKey:
    """Score by ``function(answer, gold)``, which returns true, false, or a number from 0 to 1."""
    gold = accepted_texts(question)[0]
    return AnswerKey(gold=gold, score=partial(_score, function, grader, gold))


def try_function(key: AnswerKey, where: str) -> None:
    """Grade a reference answer by itself, so that a broken function fails before anything is spent."""
    try:
        key.score(key.gold)
    except RolloutFault as error:
        raise ConfigError(f"task.{error.fault.message} (tried on the reference answer of {where})") from error


def _score(function: Callable[..., Any], grader: str, gold: str, answer: str) -> float:
    try:
        score = function(answer, gold)
    except Exception as error:  # the function is the user's: it may raise anything
        raise _fault(f"grader={grader} raised {type(error).__name__}: {error}") from error
    try:
        value = float(score) if not isinstance(score, str) else -1.0
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value <= 1:
        raise _fault(f"grader={grader} returned {score!r}; it must return true, false, or a number from 0 to 1")
    return value


def _fault(message: str) -> RolloutFault:
    return RolloutFault(Fault(owner="task", kind="grader", message=message))


FIELDS = frozenset(("background", "question", "gold", "predicted"))
PROMPT_GROUP = "judged"


def judged(question: Question) -> AnswerKey:
    """Right at once where the answer equals an accepted one; all others are for the judge."""
    golds = accepted_texts(question)
    accepted = {visible(gold).strip() for gold in golds}
    return AnswerKey(gold="\n".join(golds), score=lambda answer: float(visible(answer).strip() in accepted))


JUDGE = "judge"
EXACT = "exact"

_ASKED = "Answer the question. Give the answer alone."
_FORMS = {
    "numeric": "Answer the question with one number.",
    "choice": "Choose the right option. Answer with its letter.",
}


@dataclass(frozen=True, kw_only=True)
class GraderKind:
    """``make`` makes the key of a question; ``checksums`` belong to the grading code, if it is the user's."""

    make: Callable[[Question], AnswerKey]
    headline: str
    instruction: str
    checksums: Mapping[str, str] = field(default_factory=dict)


def grader_named(name: str, *, ignore: Ignore, tolerance: Tolerance) -> GraderKind:
    """Return a grader; raises ``SettingError`` for an unknown one, or for a function that cannot be imported."""
    if name.startswith(PREFIX):
        function, checksums = load_function(name)
        make = partial(by_function, function=function, grader=name)
        return GraderKind(make=make, headline="score", instruction=_ASKED, checksums=checksums)
    kinds: Mapping[str, Callable[[Question], AnswerKey]] = {
        EXACT: partial(exact, ignore=ignore),
        "numeric": partial(numeric, tolerance=tolerance),
        "choice": partial(choice, ignore=ignore),
        "contains": partial(contains, ignore=ignore),
        "f1": f1,
        JUDGE: judged,
    }
    if name not in kinds:
        raise SettingError(f"grader={name} must be one of {', '.join(kinds)}, or {PREFIX}MODULE.FUNCTION")
    headline = "f1" if name == "f1" else "accuracy"
    return GraderKind(make=kinds[name], headline=headline, instruction=_FORMS.get(name, _ASKED))


_NUMBER = re.compile(
    r"(?<![\w.,])(?P<open>\()?(?P<sign>[+-])?[$€£¥]?(?P<again>[+-])?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?P<power>e[+-]?\d{1,3})?"
    r"\s?(?P<percent>%)?(?P<close>\))?(?![\d,]*\d|\.\d)",
    re.ASCII | re.IGNORECASE,
)
_AS_IN_CODE = str.maketrans(
    {"\N{EN DASH}": "-", "\N{ARABIC DECIMAL SEPARATOR}": ".", "\N{ARABIC THOUSANDS SEPARATOR}": ","}
)
_LONGEST = 2_000


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """An answer is right within ``absolute``, or within the share ``relative`` of the reference."""

    absolute: NotNegative
    relative: NotNegative

    def is_close(self, value: float, wanted: float) -> bool:
        """Whether a number is close enough to the reference."""
        return abs(value - wanted) <= max(self.absolute, self.relative * abs(wanted))


def _read_number(text: str) -> tuple[float, bool] | None:
    """Return the only number of a text, and whether a percent sign follows it.

    ``None`` if there is no number, or several, or one that is not finite.
    """
    plain = visible(text[:_LONGEST]).translate(_AS_IN_CODE)
    digits = "".join(str(unicodedata.digit(char)) if char.isdecimal() else char for char in plain)
    matches = list(_NUMBER.finditer(digits))
    if len(matches) != 1:
        return None
    match = matches[0]
    value = float(match["digits"].replace(",", "") + (match["power"] or ""))
    negative = "-" in (match["sign"], match["again"]) or (match["open"] and match["close"] and not match["sign"])
    return (-value if negative else value, bool(match["percent"])) if math.isfinite(value) else None


def numeric(question: Question, *, tolerance: Tolerance) -> AnswerKey:
    """Right if the answer's number is near an accepted one.

    Where only one of the two has a percent sign, 12% is both 12 and 0.12.
    """
    wanted = []
    for gold in accepted_texts(question):
        number = _read_number(gold)
        if number is None:
            raise DataError(f"{question.where}: the answer {gold!r} is not one number; use another task.grader")
        wanted.append(number)

    def score(answer: str) -> float:
        if (parsed := _read_number(answer)) is None:
            return 0.0
        value, percent = parsed
        scale = 0.01 if percent else 100
        return float(
            any(
                tolerance.is_close(value, right) or (percent != is_percent and tolerance.is_close(value * scale, right))
                for right, is_percent in wanted
            )
        )

    return AnswerKey(gold=accepted_texts(question)[0], score=score)
