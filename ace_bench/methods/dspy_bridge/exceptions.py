"""How a stop gets out of DSPy, which catches every ``Exception`` and goes on with a score of 0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class _Halt(BaseException):
    """Carries an exception through code that catches ``Exception``."""

    def __init__(self, cause: Exception):
        super().__init__(cause)
        self.cause = cause


@contextmanager
def passing_through() -> Iterator[None]:
    """Send exceptions of the harness on their way out: an exhausted budget, an interruption, a mistake."""
    try:
        yield
    except Exception as error:
        raise _Halt(error) from error


@contextmanager
def arriving() -> Iterator[None]:
    """Raise here, as they were, the exceptions that were sent out."""
    try:
        yield
    except _Halt as halt:
        raise halt.cause from None
