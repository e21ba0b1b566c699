"""Output that shall stay as it is, in files. ``WRITE_EXPECTED=1`` with the command of the tests writes them anew."""

import fcntl
import os
import re
from collections.abc import Callable, Iterable
from difflib import unified_diff
from pathlib import Path

from ace_bench.core.errors import AceBenchError


def read_expected(text: str, path: Path) -> str:
    """Return what a file expects in place of a text, which is written to the file first if asked for."""
    if os.environ.get("WRITE_EXPECTED"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return path.read_text()


def check(text: str, path: Path) -> None:
    """Compare a whole text with a file."""
    expected = read_expected(text, path)
    lines = unified_diff(expected.splitlines(), text.splitlines(), str(path), "this run", n=1, lineterm="")
    assert text == expected, "\n".join(["If this run is right, WRITE_EXPECTED=1 writes the file anew:", *lines])


def check_outcomes(outcomes: Iterable[tuple[object, object]], path: Path) -> None:
    """Compare pairs of a case and what became of it with the lines of a file."""
    check("".join(f"{case}\n    {outcome}".rstrip() + "\n" for case, outcome in outcomes), path)


def check_cases(function: Callable[[str], object], path: Path) -> None:
    """Compare what a function makes of each case in a file, a line without indent, with the lines below it."""
    cases = [line for line in path.read_text().splitlines() if not line.startswith(" ")]
    check_outcomes([(case, function(case)) for case in cases], path)


def outcome(function: Callable[..., object], *arguments: object, **named: object) -> object:
    """Return what a function returns, or the name and the words of the error that it raises."""
    try:
        return function(*arguments, **named)
    except (AceBenchError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


_QUESTION = re.compile(r"(?:(?<=\n\n)|\A)\$(.*)\n")
"""A line that begins with ``$``, behind an empty one."""


def read_questions(path: Path) -> list[str]:
    """Return the questions of a file."""
    return [found.strip() for found in _QUESTION.findall(path.read_text())]


def check_answers(path: Path, answer: Callable[[str], str], *, only: str = "") -> None:
    """Compare the answers below the questions of a file, or below the ``only`` one, with new answers."""
    questions = read_questions(path)
    answers = {place: answer(one) for place, one in enumerate(questions) if only in ("", one)}
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # tests of other questions may write it, too
        old = _QUESTION.split(path.read_text())[2::2]
        new = [f"{answers[place].rstrip()}\n\n" if place in answers else text for place, text in enumerate(old)]
        check("".join(f"$ {one}\n{text}" for one, text in zip(questions, new, strict=True)), path)
