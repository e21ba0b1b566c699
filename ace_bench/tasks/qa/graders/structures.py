"""Grader of JSON: the answer must be the same value, whatever the order of keys and the form of numbers."""

from __future__ import annotations

import json
import re

from ace_bench.core.errors import DataError
from ace_bench.tasks.qa.columns import Question
from ace_bench.tasks.qa.graders.key import AnswerKey

_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?```\s*", re.DOTALL)


def json_equal(question: Question) -> AnswerKey:
    """Right if the answer is JSON of the same value; a fence of backquotes around it does not matter.

    A column of lists holds one list per row here, not several accepted answers.
    """
    held = question.answer
    try:
        wanted = json.loads(held) if isinstance(held, str) else held
        gold = held.strip() if isinstance(held, str) else json.dumps(held, ensure_ascii=False)
        same_form = _form(wanted)
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{question.where}: the answer {str(held)[:80]!r} is not JSON: {error}") from error
    return AnswerKey(gold=gold, score=lambda answer: float(_read(answer) == same_form))


def _read(answer: str) -> object:
    fenced = _FENCED.fullmatch(answer)
    try:
        return _form(json.loads(fenced[1] if fenced else answer))
    except (ValueError, RecursionError):
        return _NOT_JSON


_NOT_JSON = ("not JSON",)


def _form(value: object) -> object:
    """Return a value in a form in which true is not 1, but 1 is 1.0."""
    if isinstance(value, dict):
        return {"object": {str(name): _form(one) for name, one in value.items()}}
    if isinstance(value, list):
        return [_form(one) for one in value]
    return {"bool": value} if isinstance(value, bool) else value
